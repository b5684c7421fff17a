//! The lock of a watch: protected files and folders that refuse every change while it runs.
//!
//! Promise: what is made immutable is in the journal before, durably, and is taken off again by identity: at the end, by
//! the next start, by `keep recover`. What was immutable before us is left alone for good. Limit: the lock refuses, it does
//! not ask; and a folder above a locked file can still be renamed. `docs/lock.md` has the rest.
//!
//! [`objects`] sets and takes off, [`left`] does it for an earlier run, [`others`] are watches beside this one; [`minutes`]
//! and [`waiting`] are pure.

pub mod left;
pub mod minutes;
pub mod objects;
pub mod others;
pub mod waiting;

#[cfg(test)]
mod tests;

use std::fmt;

use crate::journal::{Event, Journal, rfc3339};

use super::lines::counted;

/// How much is locked, for the start line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Locked {
    /// Files.
    pub files: usize,
    /// Folders in which nothing can be made, renamed or removed.
    pub folders: usize,
}

impl fmt::Display for Locked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.files, self.folders) {
            (0, 0) => formatter.write_str("locked: nothing"),
            (files, 0) => write!(formatter, "locked: {}", counted(files, "file")),
            (0, folders) => write!(formatter, "locked: {}", counted(folders, "folder")),
            (files, folders) => {
                write!(formatter, "locked: {}, {}", counted(files, "file"), counted(folders, "folder"))
            }
        }
    }
}

/// Where the entries about flags go.
pub trait Pen {
    /// Makes these durable: all of them, or none.
    fn now(&mut self, events: &[Event]) -> Result<(), String>;

    /// Adds one that need not be durable before anything else happens.
    fn soon(&mut self, event: Event);
}

/// Writes to a journal directly, as long as no watch runs yet.
pub struct JournalPen<'j> {
    /// The journal, with a session begun.
    pub journal: &'j mut dyn Journal,
    /// Wall time of the entries.
    pub at: std::time::SystemTime,
}

impl Pen for JournalPen<'_> {
    fn now(&mut self, events: &[Event]) -> Result<(), String> {
        let at = rfc3339(self.at);
        let appended = events.iter().try_for_each(|event| self.journal.append(&at, event));
        appended.and_then(|()| self.journal.commit()).map_err(|error| {
            self.journal.discard();
            crate::cli::exit::causes(&error)
        })
    }

    fn soon(&mut self, event: Event) {
        // An entry too long for the journal is one that was too long when it was made immutable: then it was not.
        let _fits = self.journal.append(&rfc3339(self.at), &event);
    }
}
