//! setgroups(2), setresuid(2) and their like, through the C library: it applies them to every thread, whereas the bare
//! system calls change the calling thread alone (nptl(7)).
#![allow(unsafe_code)]

use std::io;

fn checked(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Replaces the supplementary groups.
pub(crate) fn setgroups(groups: &[u32]) -> io::Result<()> {
    // SAFETY: the pointer and the length are those of one slice, which lives past the call; it is only read.
    checked(unsafe { libc::setgroups(groups.len(), groups.as_ptr()) })
}

/// Sets the real, effective and saved group.
pub(crate) fn setresgid(gid: u32) -> io::Result<()> {
    // SAFETY: no memory is passed.
    checked(unsafe { libc::setresgid(gid, gid, gid) })
}

/// Sets the real, effective and saved user.
pub(crate) fn setresuid(uid: u32) -> io::Result<()> {
    // SAFETY: no memory is passed.
    checked(unsafe { libc::setresuid(uid, uid, uid) })
}

/// The real, effective and saved group.
pub(crate) fn getresgid() -> io::Result<[u32; 3]> {
    let [mut real, mut effective, mut saved] = [u32::MAX; 3];
    // SAFETY: the three pointers are to distinct live integers of the type the call writes.
    checked(unsafe { libc::getresgid(&raw mut real, &raw mut effective, &raw mut saved) })?;
    Ok([real, effective, saved])
}

/// The real, effective and saved user.
pub(crate) fn getresuid() -> io::Result<[u32; 3]> {
    let [mut real, mut effective, mut saved] = [u32::MAX; 3];
    // SAFETY: the three pointers are to distinct live integers of the type the call writes.
    checked(unsafe { libc::getresuid(&raw mut real, &raw mut effective, &raw mut saved) })?;
    Ok([real, effective, saved])
}

/// Sets the user as whom this thread accesses files, and says whether it is that now.
pub(crate) fn setfsuid(uid: u32) -> bool {
    // SAFETY: no memory is passed.
    unsafe { libc::setfsuid(uid) };
    // It returns the one before, whatever comes of it; a number that is nobody's changes nothing and so asks.
    // SAFETY: no memory is passed.
    let now = unsafe { libc::setfsuid(u32::MAX) };
    now.cast_unsigned() == uid
}
