//! What Linux and macOS have in common beyond what safe crates offer.

pub(crate) mod sys;

use std::os::fd::BorrowedFd;

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
