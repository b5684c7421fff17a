//! setuid(2) and its like, getpwuid_r(3), ptrace(2).
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::users::User;

fn checked(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Replaces the supplementary groups.
pub(crate) fn setgroups(groups: &[u32]) -> io::Result<()> {
    let count = libc::c_int::try_from(groups.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: the pointer and the length are those of one slice, which lives past the call; it is only read.
    checked(unsafe { libc::setgroups(count, groups.as_ptr()) })
}

/// Sets the supplementary groups to those of a user, directory services included.
pub(crate) fn initgroups(name: &[u8], gid: u32) -> io::Result<()> {
    let name = CString::new(name)?;
    // The group of nobody is -2 there.
    let gid = gid.cast_signed();
    // SAFETY: `name` ends with a NUL and lives past the call; it is only read.
    checked(unsafe { libc::initgroups(name.as_ptr(), gid) })
}

/// Sets the group.
pub(crate) fn setgid(gid: u32) -> io::Result<()> {
    // SAFETY: no memory is passed.
    checked(unsafe { libc::setgid(gid) })
}

/// Sets the user.
pub(crate) fn setuid(uid: u32) -> io::Result<()> {
    // SAFETY: no memory is passed.
    checked(unsafe { libc::setuid(uid) })
}

/// Sets the effective user.
pub(crate) fn seteuid(uid: u32) -> io::Result<()> {
    // SAFETY: no memory is passed.
    checked(unsafe { libc::seteuid(uid) })
}

/// Refuses every later attempt of another process to trace this one.
pub(crate) fn deny_attach() -> io::Result<()> {
    // SAFETY: with this request the address is not used (ptrace(2)).
    checked(unsafe { libc::ptrace(libc::PT_DENY_ATTACH, 0, std::ptr::null_mut(), 0) })
}

/// The user with this number.
pub(crate) fn user(uid: u32) -> io::Result<Option<User>> {
    let mut entry = MaybeUninit::<libc::passwd>::zeroed();
    let mut texts = vec![0; 16 << 10];
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are to live memory of the type or length given; the call fills `entry` with pointers into
    // `texts`, which is neither moved nor changed before the last of them is read below.
    let error = unsafe { libc::getpwuid_r(uid, entry.as_mut_ptr(), texts.as_mut_ptr(), texts.len(), &raw mut found) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    if found.is_null() {
        return Ok(None);
    }
    // SAFETY: `found` says that the entry was filled in.
    let entry = unsafe { entry.assume_init() };
    // SAFETY: the name points to a text that ends with a NUL, within `texts`.
    let name = unsafe { CStr::from_ptr(entry.pw_name) };
    // SAFETY: so does the home.
    let home = unsafe { CStr::from_ptr(entry.pw_dir) };
    let home = PathBuf::from(OsStr::from_bytes(home.to_bytes()));
    Ok(Some(User { name: name.to_bytes().to_vec(), uid: entry.pw_uid, gid: entry.pw_gid, home }))
}
