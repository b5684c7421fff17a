//! fanotify groups and marks, and the file handles by which their events name objects.
//!
//! Promise: one system call a function, arguments by safe types, the result checked before anything is built from it.
//! Limit: no policy here; which masks make sense is the caller's knowledge.
//! Source: fanotify_init(2), fanotify_mark(2), open_by_handle_at(2), statfs(2).
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

/// The longest handle a file system may give (`MAX_HANDLE_SZ`).
pub(crate) const MAX_HANDLE: usize = libc::MAX_HANDLE_SZ as usize;

/// A new group with these flags.
///
/// The kernel opens an event's file when it is read, for us: without waiting for whoever has a lease on it, who could keep
/// the reader, and with it every opener, for as long as leases last. Such an open is refused.
pub(crate) fn init(flags: u32) -> io::Result<OwnedFd> {
    let descriptors = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_LARGEFILE | libc::O_NONBLOCK;
    // SAFETY: takes two integers and touches no memory of ours.
    let fd = unsafe { libc::fanotify_init(flags, descriptors as u32) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so `fd` is an open descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Takes over a descriptor that the kernel made and told in an event; `None` for a negative number.
///
/// To be called once for each number of a buffer that was just read from a group, and for no other.
pub(crate) fn take(number: i32) -> Option<OwnedFd> {
    // SAFETY: by this function's contract the kernel made the descriptor for this process and nobody else owns it.
    (number >= 0).then(|| unsafe { OwnedFd::from_raw_fd(number) })
}

/// Changes the mark of the object `name` in `dir`, or of `dir` itself without a name.
pub(crate) fn mark(
    group: BorrowedFd<'_>,
    flags: u32,
    mask: u64,
    dir: BorrowedFd<'_>,
    name: Option<&CStr>,
) -> io::Result<()> {
    let name = name.map_or(ptr::null(), CStr::as_ptr);
    // SAFETY: `name` is null, which the kernel takes for `dir` itself, or a NUL-terminated string that lives past the call.
    let result = unsafe { libc::fanotify_mark(group.as_raw_fd(), flags, mask, dir.as_raw_fd(), name) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A `struct file_handle` with room for every handle.
#[repr(C)]
struct Handle {
    bytes: u32,
    kind: i32,
    room: [u8; MAX_HANDLE],
}

/// Appends the handle of an open object to `out` as the kernel lays it out in an event: length, type, bytes.
pub(crate) fn handle(object: BorrowedFd<'_>, flags: i32, out: &mut Vec<u8>) -> io::Result<()> {
    let mut handle = Handle { bytes: MAX_HANDLE as u32, kind: 0, room: [0; MAX_HANDLE] };
    let mut mount = 0;
    // SAFETY: `handle` has the layout of `struct file_handle` followed by as many writable bytes as `bytes` says, `mount` is
    // a writable integer, the name is NUL-terminated; all live past the call and nothing else refers to them.
    let result = unsafe {
        libc::name_to_handle_at(
            object.as_raw_fd(),
            c"".as_ptr(),
            ptr::from_mut(&mut handle).cast(),
            ptr::from_mut(&mut mount),
            flags | libc::AT_EMPTY_PATH,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let bytes = handle.room.get(..handle.bytes as usize).ok_or(io::ErrorKind::InvalidData)?;
    out.extend_from_slice(&handle.bytes.to_ne_bytes());
    out.extend_from_slice(&handle.kind.to_ne_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}

/// Appends the id of the file system `fd` lies on (`f_fsid`), eight bytes as an event has them.
pub(crate) fn file_system_id(fd: BorrowedFd<'_>, out: &mut Vec<u8>) -> io::Result<()> {
    let mut stat = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: `stat` is writable memory of the size of `struct statfs` that lives past the call.
    let result = unsafe { libc::fstatfs(fd.as_raw_fd(), stat.as_mut_ptr()) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so the kernel has filled the whole structure.
    let id = unsafe { stat.assume_init() }.f_fsid;
    const { assert!(size_of::<libc::fsid_t>() == 8) };
    // SAFETY: `fsid_t` is two `int`s, has no padding, and every bit pattern of eight bytes is a value of the target type.
    out.extend_from_slice(&unsafe { std::mem::transmute::<libc::fsid_t, [u8; 8]>(id) });
    Ok(())
}
