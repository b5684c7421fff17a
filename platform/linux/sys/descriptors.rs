//! Letting go of what was inherited: close_range(2) (Linux 5.9), dup3(2).
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

/// Closes every descriptor from `first` on.
///
/// To be called first thing in a process, while nothing in it owns any of them.
pub(crate) fn close_from(first: u32) -> io::Result<()> {
    // SAFETY: no memory is passed; by this function's contract nothing in the process refers to the descriptors.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0_u32) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Closes one inherited descriptor, under the same contract: where the kernel has no close_range.
pub(crate) fn close(descriptor: RawFd) {
    // SAFETY: no memory is passed; by this function's contract nothing in the process refers to the descriptor.
    unsafe { libc::close(descriptor) };
}

/// Makes this number a duplicate of an open file, whatever it was before.
///
/// Only for numbers that nothing in the process owns: under the contract of [`close_from`].
pub(crate) fn occupy(number: RawFd, with: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no memory is passed; by this function's contract nothing in the process refers to the number.
    let done = unsafe { libc::dup3(with.as_raw_fd(), number, libc::O_CLOEXEC) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Takes over a descriptor that the kernel made and told in an event that was just read; `None` for a negative number.
#[cfg(test)]
pub(crate) fn told(number: RawFd) -> Option<std::os::fd::OwnedFd> {
    // SAFETY: by this function's contract the kernel made the descriptor for this process and nobody else owns it.
    (number >= 0).then(|| unsafe { std::os::fd::FromRawFd::from_raw_fd(number) })
}
