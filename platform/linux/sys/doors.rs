//! Ways out that a confined process tries in vain: execve(2), io_uring_setup(2).
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::ptr;

use rustix::io::Errno;

fn last() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Replaces this program by the one at `path`, without arguments and environment; returns only if that failed.
pub(crate) fn execute(path: &CStr) -> rustix::io::Result<()> {
    let arguments = [path.as_ptr(), ptr::null()];
    let environment: [*const libc::c_char; 1] = [ptr::null()];
    // SAFETY: path and strings are NUL-terminated, both lists end with a null pointer, and all live past the call.
    unsafe { libc::execve(path.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    Err(last())
}

/// Sets up a ring of no entries and without a description, which the kernel refuses in any case.
pub(crate) fn set_up_ring() -> rustix::io::Result<()> {
    // SAFETY: the kernel takes a null description for a bad address and touches no memory of ours.
    let answer = unsafe { libc::syscall(libc::SYS_io_uring_setup, 0_u32, ptr::null::<libc::c_void>()) };
    if answer < 0 { Err(last()) } else { Ok(()) }
}
