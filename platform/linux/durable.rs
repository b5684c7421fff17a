//! A whole file system made durable: syncfs.

use std::io;
use std::os::fd::BorrowedFd;

/// Makes everything on the file system of `fd` durable.
pub(crate) fn sync_file_system(fd: BorrowedFd<'_>) -> io::Result<bool> {
    rustix::fs::syncfs(fd)?;
    Ok(true)
}
