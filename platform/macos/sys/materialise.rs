//! setiopolicy_np(3).
#![allow(unsafe_code)]

use std::io;

use libc::c_int;

unsafe extern "C" {
    fn setiopolicy_np(kind: c_int, scope: c_int, value: c_int) -> c_int;
}

/// Numbers of sys/resource.h.
const VFS_MATERIALIZE_DATALESS_FILES: c_int = 3;
const SCOPE_PROCESS: c_int = 0;
const MATERIALIZE_DATALESS_FILES_OFF: c_int = 1;

/// Lets every access of this process to data that is not on this machine fail with EDEADLK, in place of fetching it.
pub(crate) fn never() -> io::Result<()> {
    // SAFETY: no memory is passed.
    let done = unsafe { setiopolicy_np(VFS_MATERIALIZE_DATALESS_FILES, SCOPE_PROCESS, MATERIALIZE_DATALESS_FILES_OFF) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
