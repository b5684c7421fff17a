//! The journal: what was accepted, what is being put back, and who decided; so that the next start after any crash knows
//! the last accepted state.
//!
//! Entries are appended in memory and committed as one batch: written with one write, then synced. Each line holds the
//! digest of the one before.
//!
//! Promise: when [`Journal::commit`] returns `Ok`, the batch survives a power cut. When it returns an error, the batch is
//! gone, memory and file agree, and the next commit works as soon as the system allows. Whatever part of the last batch a
//! power cut leaves, [`FileJournal::open`] finds the entries before it, and refuses a journal with an altered one.
//! Limit: the chain has no key. It finds accidents and edits, not a forger who may write the file.

mod chain;
mod error;
mod event;
mod file;
pub mod flagged;
pub mod forward;
mod line;
mod log;
mod memory;
mod names;
mod object;
mod read;
mod record;
mod replay;
mod scan;
mod stamps;
mod time;

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod crashes;
#[cfg(test)]
mod tears;

pub use error::JournalError;
pub use event::{Asked, Event, HeldOutcome, Options, RestoreOutcome, Writer, portions};
pub use file::{FileJournal, Opened};
pub use line::{Entry, Head, MAX_LINE_BYTES, TooLong, Unreadable};
pub use log::SessionLog;
pub use memory::{FailsAt, MemoryJournal};
pub use object::Object;
pub use read::{Seen, Verified, read, read_from, verify};
pub use record::{Record, RecordError, RecordType};
pub use replay::{AcceptedState, DirectoryState, Replay, Replayed, SessionInfo, Unfinished, replay};
pub use stamps::Stamps;
pub use time::{rfc3339, session_id, time_meant};

/// Where entries of one session go.
pub trait Journal: Send {
    /// Adds an entry to the batch that waits; `at` is its time in RFC 3339, see [`rfc3339`].
    ///
    /// # Errors
    /// [`JournalError::TooLong`]: the entry was not taken; the batch is as before.
    fn append(&mut self, at: &str, event: &Event) -> Result<(), JournalError>;

    /// Writes the batch and makes it durable. Does nothing if there is none.
    ///
    /// # Errors
    /// Any: the batch is dropped. What must be in the journal has to be appended again.
    fn commit(&mut self) -> Result<(), JournalError>;

    /// Forgets the batch that waits.
    fn discard(&mut self);

    /// The session whose entries these are.
    fn session(&self) -> &str;

    /// Number and digest of the last entry, be it durable or in the batch that waits.
    fn head(&self) -> Head;
}
