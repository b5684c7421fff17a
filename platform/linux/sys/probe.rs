//! Any system call, for tests of what refuses it.
#![allow(unsafe_code)]

use std::io;

/// Makes the call. Addresses among the arguments are null or lead to what lives past the call.
pub(crate) fn call(number: libc::c_long, arguments: [usize; 6]) -> io::Result<libc::c_long> {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: by this function's contract the kernel reads and writes nothing but what the arguments lead to, and that is
    // null or lives past the call. Calls that would replace memory of ours are made only to be refused.
    let answer = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}
