//! Names of rejected things, and why one could not be kept, found or put back.

use std::io;

use platform::FsError;

/// Name of one rejected thing: the wall time in digits and a number; names sort by time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuarantineId(pub(super) String);

impl QuarantineId {
    /// Takes a name as [`super::Quarantine::reserve`] makes them.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'T' | b'Z' | b'-');
        (text.len() >= 6 && text.len() <= 40 && text.bytes().all(fits)).then(|| Self(text.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for QuarantineId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Why something could not be kept, found or put back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QuarantineError {
    /// A name could not be reached or changed.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// Bytes could not be read or written.
    #[error("cannot {operation} rejected content")]
    Bytes {
        /// What was tried.
        operation: &'static str,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// No name is left for this moment.
    #[error("too many things were rejected at {at}")]
    Crowded {
        /// The moment.
        at: String,
    },
    /// There is no such thing in the quarantine, or no whole description of it.
    #[error("nothing in quarantine is named {id}")]
    Missing {
        /// The name asked for.
        id: QuarantineId,
    },
    /// It has no content that could be opened or put back: only described, aside, or never moved.
    #[error("{id} has no content in quarantine")]
    NoContent {
        /// The name asked for.
        id: QuarantineId,
    },
    /// The content is not what was put there.
    #[error("the content of {id} is damaged")]
    Corrupt {
        /// The name asked for.
        id: QuarantineId,
    },
}

impl QuarantineError {
    /// The system's error number, if one is behind this.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Fs(error) => error.errno(),
            Self::Bytes { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }
}
