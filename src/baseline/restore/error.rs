//! Why a place could not be put back.

use std::io;

use platform::{Dir, FsError, RelPath, RootError};

use super::super::look::LookError;
use crate::store::{QuarantineError, StoreError};

/// Why a place could not be put back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// A file operation failed.
    #[error("{source}{}", if *.immutable { " (it is immutable)" } else { "" })]
    File {
        /// Operation, object and answer.
        source: FsError,
        /// Whether the object or its directory is immutable or append-only, which is why.
        immutable: bool,
    },
    /// Another file system is mounted over the place or a directory above it.
    #[error("another file system is mounted over {path:?}")]
    Mounted {
        /// The place.
        path: RelPath,
    },
    /// The place has no name below its root.
    #[error("the root itself cannot be put back")]
    IsRoot,
    /// What is there is not what was rejected; it was left alone.
    #[error("{path:?} is another object than the one rejected")]
    AnotherObject {
        /// The place.
        path: RelPath,
    },
    /// The accepted content is not to be had.
    #[error("the accepted content of {path:?} cannot be had")]
    Content {
        /// The place.
        path: RelPath,
        /// Why.
        #[source]
        source: StoreError,
    },
    /// What was rejected could not be kept, so it was not touched, or was left under its temporary name.
    #[error("cannot keep what was rejected")]
    Quarantine(#[from] QuarantineError),
    /// The journal did not take the intent; nothing was changed.
    #[error("cannot journal the intent")]
    Intent(#[source] io::Error),
    /// The kernel gave no random name.
    #[error("cannot name a temporary file")]
    Name(#[source] io::Error),
    /// The content is back, and something else about it is not.
    #[error("the content is back, but not exactly: {source}")]
    NotExact {
        /// What could not be set.
        source: FsError,
    },
    /// What was put there could not be read back.
    #[error("cannot read back what was restored")]
    ReadBack(#[source] LookError),
    /// Somebody changed the place again and again.
    #[error("another process changes it faster than it can be restored ({attempts} attempts)")]
    Contended {
        /// How often it was put back.
        attempts: u32,
    },
    /// The accepted state is of a type that cannot be made: a FIFO, a socket or a device.
    #[error("{path:?} is accepted as a {file_type}, which cannot be made again")]
    NotMade {
        /// The place.
        path: RelPath,
        /// The type.
        file_type: &'static str,
    },
}

impl From<FsError> for RestoreError {
    fn from(source: FsError) -> Self {
        Self::File { source, immutable: false }
    }
}

impl From<RootError> for RestoreError {
    fn from(error: RootError) -> Self {
        match error {
            RootError::Mounted { path } => Self::Mounted { path },
            RootError::Fs(source) => source.into(),
            RootError::NoParent { path } => Self::AnotherObject { path },
            _ => Self::IsRoot,
        }
    }
}

impl RestoreError {
    /// The system's error number, if one is behind this.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::File { source, .. } | Self::NotExact { source } => source.errno(),
            Self::Content { source, .. } => source.errno(),
            Self::Quarantine(source) => source.errno(),
            Self::Intent(source) | Self::Name(source) => source.raw_os_error(),
            Self::ReadBack(source) => source.errno(),
            Self::Mounted { .. }
            | Self::IsRoot
            | Self::AnotherObject { .. }
            | Self::Contended { .. }
            | Self::NotMade { .. } => None,
        }
    }

    /// Whether the system refused for want of permission.
    pub(super) fn is_forbidden(&self) -> bool {
        matches!(self, Self::File { source, .. } if source.source.kind() == io::ErrorKind::PermissionDenied)
    }

    /// Looks whether flags are behind a refusal, since `EPERM` alone does not say so.
    pub(super) fn with_flags(self, dir: &Dir, name: &[u8]) -> Self {
        match self {
            Self::File { source, .. } if source.source.kind() == io::ErrorKind::PermissionDenied => {
                let stats = [dir.own_stat().ok(), dir.stat(name).ok().flatten()];
                let immutable = stats.iter().flatten().any(|stat| stat.immutable || stat.append_only);
                Self::File { source, immutable }
            }
            other => other,
        }
    }
}
