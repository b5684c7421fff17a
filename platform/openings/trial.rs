//! Whether opens of files of a file system can be held here, found out by holding two of our own.
//!
//! Promise: what is said to work was done on a scratch file without a name, which is gone afterwards: an open for writing
//! waited, was told from one for reading, and failed when it was refused. Limit: it is true of the directory's file system.

use std::io;
use std::os::fd::BorrowedFd;

use crate::dir::Dir;
use crate::host;

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tried {
    /// An open for writing waited, and failed when it was refused.
    pub writes_are_held: bool,
    /// An open for reading was told from one for writing, waited, and failed when it was refused.
    pub reads_are_told: bool,
}

/// Tries it with a group whose events nobody else reads yet.
pub fn try_in(group: BorrowedFd<'_>, dir: &Dir) -> io::Result<Tried> {
    host::try_holding(group, dir)
}
