//! The version of Landlock's interface.
//!
//! Promise: asking confines nothing. Source: landlock_create_ruleset(2), `LANDLOCK_CREATE_RULESET_VERSION`.
#![allow(unsafe_code)]

use std::io;
use std::ptr;

const CREATE_RULESET_VERSION: libc::c_uint = 1;

/// The highest version of the interface that the kernel knows. `EOPNOTSUPP`: built in and not enabled.
pub(crate) fn version() -> io::Result<u32> {
    // SAFETY: with this flag the kernel demands a null pointer and a length of zero, and touches no memory of ours.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, ptr::null::<libc::c_void>(), 0_usize, CREATE_RULESET_VERSION)
    };
    u32::try_from(version).map_err(|_| io::Error::last_os_error())
}
