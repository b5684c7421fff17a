//! The signal a descriptor sends to its owner: F_SETSIG(2const).
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// From include/uapi/asm-generic/fcntl.h, the same for every processor; not in the libc crate.
const F_SETSIG: libc::c_int = 10;

/// Makes it one that does nothing by default. The usual one, `SIGIO`, ends the process.
pub(crate) fn make_harmless(file: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes three integers and touches no memory of ours.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), F_SETSIG, libc::SIGURG) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
