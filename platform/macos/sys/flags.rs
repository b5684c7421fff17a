//! chflags(2).
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

/// Sets all flags of an open file.
pub(crate) fn fchflags(fd: BorrowedFd<'_>, flags: u32) -> rustix::io::Result<()> {
    // SAFETY: no memory is passed; the descriptor is open for as long as `fd` is borrowed.
    if unsafe { libc::fchflags(fd.as_raw_fd(), flags) } == 0 {
        Ok(())
    } else {
        Err(Errno::from_io_error(&std::io::Error::last_os_error()).expect("it has just been set by the call"))
    }
}
