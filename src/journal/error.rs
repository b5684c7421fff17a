//! What can go wrong with a journal.

use platform::FsError;

use super::line::TooLong;

/// A journal operation that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The journal, or one that was set aside, could not be opened.
    #[error("cannot open the journal")]
    Open(#[source] FsError),
    /// It is there, and we do not trust whoever can write it.
    #[error("{file} {reason}")]
    NotOurs {
        /// Which file of the state folder.
        file: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// It could not be read to its end.
    #[error("cannot read {file}")]
    Read {
        /// Which file of the state folder.
        file: String,
        /// The system's answer.
        #[source]
        source: std::io::Error,
    },
    /// An entry was altered, or is missing. Nothing was changed.
    #[error("{file}, line {line}: {reason}")]
    Chain {
        /// Which file of the state folder.
        file: String,
        /// The first line that is wrong; the first is 1.
        line: u64,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A newer version wrote an entry this one does not know. Nothing was changed.
    #[error("{file}, line {line}: the event {event} is not known to this version")]
    UnknownEvent {
        /// Which file of the state folder.
        file: String,
        /// The line; the first is 1.
        line: u64,
        /// The event's name, escaped.
        event: String,
    },
    /// An entry is in the chain and makes no sense. Nothing was changed.
    #[error("{file}, line {line}: {reason}")]
    Malformed {
        /// Which file of the state folder.
        file: String,
        /// The line; the first is 1.
        line: u64,
        /// What is wrong with it, escaped.
        reason: String,
    },
    /// The torn end could not be cut off.
    #[error("cannot cut the journal back to its last good line")]
    Cut(#[source] FsError),
    /// A batch could not be written or made durable; it was dropped, and the journal ends with the batch before.
    #[error("cannot write to the journal")]
    Write(#[source] FsError),
    /// The entry is too long; it was not taken.
    #[error("cannot write to the journal")]
    TooLong(#[from] TooLong),
    /// Another file, or none, has the journal's name now, or it is shorter than what was written.
    #[error("the journal was removed, replaced or cut by another program")]
    Taken,
    /// A journal that grew too long could not be set aside.
    #[error("cannot set the full journal aside")]
    Rotate(#[source] FsError),
}

impl JournalError {
    /// The stable code in refusals.
    pub const fn code(&self) -> &'static str {
        "GXT_CAGE_JOURNAL"
    }
}
