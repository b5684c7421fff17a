//! Why a file tool could not do what it was asked.
//!
//! Promise: the text is for the agent; it names paths below the root, escaped, and never a content, the text of a link that
//! leads outside, or anything found there.

use platform::{FsError, RelPath, RootError};

use crate::gate::path::PathError;
use crate::rules::glob::GlobError;
use crate::text::escaped;

/// Why a job failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilesError {
    /// It is no path.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A symlink on the way leads out of the root.
    #[error("{} leads out of the root through a symlink", shown(.path))]
    Outside {
        /// The path that was asked for.
        path: RelPath,
    },
    /// Symlinks go round, or there are too many.
    #[error("too many symlinks on the way to {}", shown(.path))]
    Loop {
        /// The path that was asked for.
        path: RelPath,
    },
    /// A symlink leads to a name that a question could not show.
    #[error("{} leads through a symlink to a name that cannot be shown", shown(.path))]
    Unshowable {
        /// The path that was asked for.
        path: RelPath,
    },
    /// Something on the way, or the path itself, is no directory.
    #[error("{} is not a directory", shown(.path))]
    NotDirectory {
        /// Which.
        path: RelPath,
    },
    /// Nothing is there.
    #[error("{} does not exist", shown(.path))]
    Absent {
        /// The path.
        path: RelPath,
    },
    /// The path leads onto another file system.
    #[error("another file system is mounted at {}, and nothing is done there", shown(.path))]
    Mounted {
        /// The path.
        path: RelPath,
    },
    /// A file was expected.
    #[error("{} is a directory", shown(.path))]
    IsDirectory {
        /// The path.
        path: RelPath,
    },
    /// A FIFO, a socket or a device.
    #[error("{} is neither a file nor a directory, and is not touched", shown(.path))]
    Special {
        /// The path.
        path: RelPath,
    },
    /// A directory that holds something.
    #[error("{} is a directory and not empty", shown(.path))]
    NotEmpty {
        /// The path.
        path: RelPath,
    },
    /// A move would take the place of something.
    #[error("{} exists already; `overwrite` allows to take the place of a file", shown(.path))]
    Exists {
        /// The path.
        path: RelPath,
    },
    /// A move would take the place of a directory, or put a directory in the place of a file.
    #[error("only a file can take the place of a file: {} stays", shown(.path))]
    NotOverwritten {
        /// Where it would arrive.
        path: RelPath,
    },
    /// Both ends of a move are the same.
    #[error("{} is the same file", shown(.path))]
    SameFile {
        /// Where it would arrive.
        path: RelPath,
    },
    /// A directory would be moved into itself.
    #[error("{} lies in what is to be moved", shown(.path))]
    IntoItself {
        /// Where it would arrive.
        path: RelPath,
    },
    /// More bytes than are written at once.
    #[error("the content has more than {most} bytes")]
    TooLarge {
        /// The limit.
        most: usize,
    },
    /// The name is one of those that changes in progress have.
    #[error("{} is a name of unfinished writes; take another one", shown(.path))]
    Reserved {
        /// The path.
        path: RelPath,
    },
    /// What is there is not what was asked about.
    #[error("{} has changed since this was asked about, and nothing was done; call again", shown(.path))]
    Changed {
        /// The path.
        path: RelPath,
    },
    /// A line does not fit into a result.
    #[error("a line of {} is longer than {most} bytes; read it by bytes", shown(.path))]
    LongLine {
        /// The file.
        path: RelPath,
        /// The limit.
        most: u64,
    },
    /// The lines asked for lie too far into the file.
    #[error("the lines lie more than {most} bytes into {}; read it by bytes", shown(.path))]
    FarLine {
        /// The file.
        path: RelPath,
        /// The limit.
        most: u64,
    },
    /// The pattern of a search.
    #[error("the pattern {0}")]
    Pattern(#[from] GlobError),
    /// What a file has to hold.
    #[error("`contains` cannot be searched for: {why}")]
    Expression {
        /// What is wrong, escaped.
        why: String,
    },
    /// No name could be made up.
    #[error("the system gives no random bytes: {0}")]
    Random(#[source] std::io::Error),
    /// The system refused.
    #[error("{0}: {source}", source = .0.source)]
    Fs(#[from] FsError),
}

/// A path for people and agents.
pub(super) fn shown(path: &RelPath) -> String {
    if path.is_root() { "the root".to_owned() } else { escaped(path.as_bytes()) }
}

impl From<RootError> for FilesError {
    fn from(error: RootError) -> Self {
        match error {
            RootError::NoParent { path } => Self::Absent { path },
            RootError::Mounted { path } => Self::Mounted { path },
            RootError::Fs(error) => Self::Fs(error),
            // `IsRoot` and what may come: the root has no name to act on.
            _ => Self::IsDirectory { path: RelPath::root() },
        }
    }
}
