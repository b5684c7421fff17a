//! Leases, by which the kernel tells whether a file is open for writing: F_SETLEASE(2const).
//!
//! Promise: a lease that was got is given back before the function returns.
//! Limit: in that moment an open of the file for writing waits, or fails with `EWOULDBLOCK` if it may not wait, and the
//! process that holds the lease gets a `SIGIO`.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

fn set(file: BorrowedFd<'_>, lease: libc::c_int) -> io::Result<()> {
    // SAFETY: takes three integers and touches no memory of ours.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, lease) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Gets a lease that only a file which nobody has open for writing can have, and gives it back. `EAGAIN`: somebody has, or
/// is about to. Needs to be the owner, or `CAP_LEASE`.
pub(crate) fn try_read_lease(file: BorrowedFd<'_>) -> io::Result<()> {
    set(file, libc::F_RDLCK)?;
    set(file, libc::F_UNLCK)
}
