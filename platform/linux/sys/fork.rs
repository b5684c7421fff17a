//! A process made of this one, without another program: fork(2), _exit(2).
#![allow(unsafe_code)]

use std::io;

/// Makes a copy of this process: its number, or `None` in the copy.
///
/// To be called while the process has one thread: of others the copy would have the locks and not the threads. In the
/// copy, the caller ends by [`end`] and never returns to what the original was doing.
pub(crate) fn fork() -> io::Result<Option<u32>> {
    // SAFETY: passes no memory; by this function's contract no other thread can hold a lock that the copy needs.
    let pid = unsafe { libc::fork() };
    match u32::try_from(pid) {
        Ok(0) => Ok(None),
        Ok(pid) => Ok(Some(pid)),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Ends the process at once: nothing is flushed, and nothing that the original registered is called.
pub(crate) fn end(code: i32) -> ! {
    // SAFETY: takes an integer and does not return.
    unsafe { libc::_exit(code) }
}
