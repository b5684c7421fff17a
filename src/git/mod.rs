//! What git would say about the tree, read from its files: no git process is ever started.
//!
//! Promise: where something cannot be read or understood, more is protected, never less, and a warning says so.

pub mod config;
pub mod discover;
pub mod files;
pub mod ignore;
pub mod index;
pub mod places;
pub mod settings;

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use platform::Root;
use platform::ambient::{self, Content};

pub use discover::{GitError, Repository, discover};
pub use places::Places;
pub use settings::Sources;

use crate::rules::file::FILE_NAME;
use crate::text::escaped;
use ignore::{IgnoreFile, IgnoreSet};
use index::{IndexError, MAX_INDEX_BYTES, Tracked};

/// Bytes `info/exclude` or an ignore file may have.
const MAX_IGNORE_BYTES: u64 = 1 << 20;

/// Something in git's files that we had to do without. Everything stays protected; the person should know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// A configuration file has a line git would refuse.
    #[error("git configuration {} cannot be read in line {line}", shown(.path))]
    ConfigFaulty {
        /// The file.
        path: PathBuf,
        /// Its first faulty line.
        line: usize,
    },
    /// A configuration file is too large.
    #[error("git configuration {} is larger than 1 MiB and was not read", shown(.path))]
    ConfigTooLarge {
        /// The file.
        path: PathBuf,
    },
    /// A file could not be read.
    #[error("{} cannot be read", shown(.path))]
    Unreadable {
        /// The file.
        path: PathBuf,
    },
    /// Includes are nested too deeply, or there are too many.
    #[error("git configuration includes too many files; the rest was not read")]
    TooManyIncludes,
    /// A `~name/` or `%(prefix)/` that only git can resolve.
    #[error("git configuration names {}, which cannot be resolved here", escaped(.value))]
    HomeUnknown {
        /// The value.
        value: Vec<u8>,
    },
    /// The index could not be read: every path counts as tracked.
    #[error("{0}; every path counts as tracked")]
    Index(IndexError),
}

fn shown(path: &Path) -> String {
    escaped(path.as_os_str().as_bytes())
}

/// What git knows of `.cage.yaml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committed {
    /// It is in the index as it is in the tree.
    Same,
    /// It is in the index, but not as it is in the tree.
    Modified,
    /// It is not in the index.
    Untracked,
    /// The index could not be read.
    Unknown,
}

/// What the rules need to know of git.
#[derive(Debug)]
pub struct GitView {
    /// Where control files lie that their names do not tell.
    pub places: Places,
    /// What is ignored.
    pub ignored: IgnoreSet,
    /// What is tracked.
    pub tracked: Tracked,
    /// What git knows of `.cage.yaml`, if there is one.
    pub committed: Option<Committed>,
    /// What went wrong.
    pub warnings: Vec<Warning>,
}

/// Reads it all. `tree` is the open root at `repository.top`, `rule_file` the content of its `.cage.yaml`.
pub fn read(repository: &Repository, tree: &Arc<Root>, sources: &Sources, rule_file: Option<&[u8]>) -> GitView {
    let settings = settings::read(repository, sources);
    let places = places::of(repository, &settings);
    let mut warnings = settings.warnings;

    let path = repository.git_dir.join("index");
    let (tracked, blob) = match ambient::read(&path, MAX_INDEX_BYTES) {
        Ok(Content::Bytes(bytes)) => match index::parse(&bytes, settings.format, FILE_NAME.as_bytes()) {
            Ok(index) => (Tracked::Paths(index.paths), index.blob),
            Err(error) => {
                warnings.push(Warning::Index(error));
                (Tracked::All, None)
            }
        },
        Ok(Content::Absent) => (Tracked::none(), None),
        Ok(Content::TooLarge) => {
            warnings.push(Warning::Index(IndexError::TooLarge));
            (Tracked::All, None)
        }
        Err(_) => {
            warnings.push(Warning::Unreadable { path });
            (Tracked::All, None)
        }
    };
    let committed = rule_file.map(|content| match (&blob, &tracked) {
        (None, Tracked::All) => Committed::Unknown,
        (None, Tracked::Paths(_)) => Committed::Untracked,
        (Some(blob), _) if *blob == settings.format.blob_id(content) => Committed::Same,
        (Some(_), _) => Committed::Modified,
    });

    let mut general = Vec::new();
    for path in [Some(repository.common_dir.join("info/exclude")), settings.excludes].into_iter().flatten() {
        match ambient::read(&path, MAX_IGNORE_BYTES) {
            Ok(Content::Bytes(bytes)) => general.push(IgnoreFile::parse(&bytes)),
            Ok(Content::Absent) => {}
            Ok(Content::TooLarge) | Err(_) => warnings.push(Warning::Unreadable { path }),
        }
    }
    let ignored = IgnoreSet::of_tree(general, Arc::clone(tree));
    GitView { places, ignored, tracked, committed, warnings }
}
