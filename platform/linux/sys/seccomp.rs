//! What the kernel's filter of system calls can answer.
//!
//! Promise: asking filters nothing. Source: seccomp(2), `SECCOMP_GET_ACTION_AVAIL` (Linux 4.14).
#![allow(unsafe_code)]

/// Whether a filter can answer a call with an error.
pub(crate) fn can_refuse() -> bool {
    let action: u32 = libc::SECCOMP_RET_ERRNO;
    // SAFETY: with this operation the kernel reads one `u32` at the pointer, which lives past the call, and writes nothing.
    let answer =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0_u32, std::ptr::from_ref(&action)) };
    answer == 0
}
