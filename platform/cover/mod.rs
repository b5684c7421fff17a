//! Covering a tree with marks on its directories: what fanotify and inotify have in common.
//!
//! Promise: a directory is marked before it is listed, and everything the listing shows is marked or queued before the
//! next events are read; so whatever is in a directory is either seen by the listing or raises an event, however fast it
//! is made. Names are looked at again whenever an event names them: an event's kind and order decide nothing.
//! Limit: what raises no event (stores into a mapping, a write below an overlay) is the caller's sweep to find.
//! Source: inotify(7) "Limitations and caveats", fanotify(7) "Limitations and caveats".

mod engine;
mod notes;
#[cfg(test)]
mod simulated;
mod table;
#[cfg(test)]
mod tests;
mod thread;

use std::io;
use std::os::fd::BorrowedFd;

use crate::dir::Dir;
use crate::stat::FileType;

pub use thread::start;

/// Things to hear of about a directory that its parent's mark or one mark on the whole file system does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extra {
    /// Its own end: it is a root, and nothing above it is marked.
    pub end: bool,
    /// Changed attributes of its entries: an unreadable directory in it may have become readable.
    pub attributes: bool,
    /// Changed content of its entries: a covered file in it may not be read, which a mark of its own needs.
    pub content: bool,
}

/// What is known about where a directory lies.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seat<'k> {
    /// Its device, if that was read.
    pub device: Option<u64>,
    /// The identity of another object of the same file system, if one is known to be.
    pub near: Option<&'k [u8]>,
}

/// Why an object was not marked.
#[derive(Debug, thiserror::Error)]
pub enum MarkError {
    /// There is no such object, or it is of another type now.
    #[error("the object is gone")]
    Gone,
    /// The kernel's limit on marks is reached.
    #[error("the limit on marks is reached")]
    Limit,
    /// The system call failed.
    #[error("the object cannot be marked")]
    Failed(#[from] io::Error),
}

/// What a kernel's queue says. Keys are what [`Marks`] gave when it marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'e> {
    /// Something happened to the entry `name` of a directory.
    Entry {
        /// The directory.
        dir: &'e [u8],
        /// The name in it.
        name: &'e [u8],
        /// Whether the entry is or was a directory.
        is_dir: bool,
        /// Whether, among other things perhaps, it was taken away.
        left: bool,
        /// Whether it was taken to another place.
        moved: bool,
        /// The process that did it; 0 if that is not known.
        pid: u32,
    },
    /// Something happened to the marked object itself.
    Own {
        /// The object.
        key: &'e [u8],
        /// The process that did it; 0 if that is not known.
        pid: u32,
    },
    /// The attributes of a directory changed.
    Attributes(&'e [u8]),
    /// The mark is no longer there.
    Unmarked(&'e [u8]),
    /// Events were dropped.
    Overflow,
    /// The file system was unmounted.
    Unmounted,
    /// Something that could not be understood.
    Gap,
}

/// What came of a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// How many events there were.
    pub events: usize,
    /// Whether the queue was seen to be empty after them.
    pub drained: bool,
}

/// A kernel's way to mark objects and to tell of them.
///
/// There are two queues: the second tells of the entries of directories, the first of the marked entries themselves. So a
/// storm of names in some directory cannot push out what happens to a covered file.
pub trait Marks: Send {
    /// Sees to it that what happens in the directory is told from now on, and writes its identity to `key`.
    fn mark_dir(&mut self, dir: &Dir, extra: Extra, seat: Seat<'_>, key: &mut Vec<u8>) -> Result<(), MarkError>;

    /// Whether the directory, which may be marked or not, has this identity.
    fn is(&mut self, dir: &Dir, extra: Extra, key: &[u8]) -> bool;

    /// Marks what has the name now and writes its identity to `key`. It is not a directory.
    fn mark_entry(&mut self, dir: &Dir, name: &[u8], file_type: FileType, key: &mut Vec<u8>) -> Result<(), MarkError>;

    /// Writes the identity of the directory `name`, which may not be opened, to `key`, if events about its attributes name it
    /// by identity. `false` if they name it as an entry.
    fn identify(&mut self, _dir: &Dir, _name: &[u8], _key: &mut Vec<u8>) -> bool {
        false
    }

    /// Takes a mark off, if that can be done by identity.
    fn unmark(&mut self, key: &[u8]);

    /// What becomes readable when the queues fill.
    fn queues(&self) -> [BorrowedFd<'_>; 2];

    /// Reads what is in one of the queues, as much as fits into a buffer, and tells of it. `see` answers whether the event's
    /// key is known; a mark that is not may be taken off.
    fn read(&mut self, queue: usize, see: &mut dyn FnMut(Event<'_>) -> bool) -> io::Result<Reading>;
}
