//! sched_setscheduler(2).
#![allow(unsafe_code)]

use std::io;

/// Gives the process the policy of ordinary ones, `SCHED_OTHER`.
pub(crate) fn be_ordinary() -> io::Result<()> {
    // SAFETY: every field of the structure is a number or, on some C libraries, more numbers; all may be zero.
    let parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live structure of the type the call reads.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const parameters) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
