//! mkfifo(2) and truncate(2), for tests of what a confined process cannot do.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;

fn checked(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes a FIFO.
pub(crate) fn mkfifo(path: &CStr) -> io::Result<()> {
    // SAFETY: `path` ends with a NUL and is only read.
    checked(unsafe { libc::mkfifo(path.as_ptr(), 0o600) })
}

/// Cuts a file short by its path.
pub(crate) fn truncate(path: &CStr) -> io::Result<()> {
    // SAFETY: `path` ends with a NUL and is only read.
    checked(unsafe { libc::truncate(path.as_ptr(), 0) })
}
