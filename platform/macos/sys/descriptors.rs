//! close(2) of what was inherited.
#![allow(unsafe_code)]

use std::os::fd::RawFd;

/// Closes one inherited descriptor. To be called first thing in a process, while nothing in it owns it.
pub(crate) fn close(descriptor: RawFd) {
    // SAFETY: no memory is passed; by this function's contract nothing in the process refers to the descriptor.
    unsafe { libc::close(descriptor) };
}
