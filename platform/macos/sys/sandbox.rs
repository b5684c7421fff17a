//! sandbox_init(3), and sandbox_check, which has no page: WebKit and Chromium ask by it whether a process is in a sandbox.
//!
//! Both are in libSystem, which every program is linked with.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::ptr;

use libc::{c_char, c_int};

unsafe extern "C" {
    fn sandbox_init(profile: *const c_char, flags: u64, error: *mut *mut c_char) -> c_int;
    fn sandbox_free_error(error: *mut c_char);
    fn sandbox_check(pid: libc::pid_t, operation: *const c_char, kind: c_int, ...) -> c_int;
}

/// The profile is a text, not the name of one of the system's own (sandbox.h, `SANDBOX_NAMED`).
const TEXT: u64 = 0;

/// Puts the whole process, for good, under the profile with this text.
pub(crate) fn enter(profile: &CStr) -> io::Result<()> {
    let mut error = ptr::null_mut();
    // SAFETY: `profile` ends with a NUL and is only read; `error` is a live pointer, which the call sets to a text of its
    // own or leaves.
    let done = unsafe { sandbox_init(profile.as_ptr(), TEXT, &raw mut error) };
    if done == 0 {
        return Ok(());
    }
    if error.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call failed and set the pointer to a text that ends with a NUL.
    let why = unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned();
    // SAFETY: the text is the call's, is freed once, and nothing refers to it any more.
    unsafe { sandbox_free_error(error) };
    Err(io::Error::other(why))
}

/// Whether this process is in a sandbox.
pub(crate) fn is_in_one() -> io::Result<bool> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    // SAFETY: without an operation no further argument is read.
    match unsafe { sandbox_check(own, ptr::null(), 0) } {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(io::Error::last_os_error()),
    }
}
