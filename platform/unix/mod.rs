//! What Linux and macOS have in common beyond what safe crates offer.

pub(crate) mod sys;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{self, RenameFlags};

/// Renames unless the new name exists.
pub(crate) fn rename_new(
    dir: BorrowedFd<'_>,
    name: &[u8],
    to_dir: BorrowedFd<'_>,
    to: &[u8],
) -> rustix::io::Result<()> {
    fs::renameat_with(dir, name, to_dir, to, RenameFlags::NOREPLACE)
}

/// Swaps two names.
pub(crate) fn exchange(
    dir: BorrowedFd<'_>,
    name: &[u8],
    other_dir: BorrowedFd<'_>,
    other: &[u8],
) -> rustix::io::Result<()> {
    fs::renameat_with(dir, name, other_dir, other, RenameFlags::EXCHANGE)
}

/// A pipe whose ends no child gets and nobody waits at: what is read, and what is written. To wake a thread that polls.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe()?;
    for fd in [&read, &write] {
        rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(fd, true)?;
    }
    Ok((read, write))
}
