//! Access lists: acl_get_fd_np, acl_set_fd_np, acl_size, acl_copy_ext, acl_copy_int, acl_free, all of acl(3); and taking one
//! away by filesec_init, filesec_set_property, filesec_free of filesec_init(3) and fchmodx_np.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::ptr;

use libc::{c_int, c_void, ssize_t};
use rustix::io::Errno;

use crate::apple_access_list::is_whole;

unsafe extern "C" {
    fn acl_get_fd_np(fd: c_int, kind: c_int) -> *mut c_void;
    fn acl_set_fd_np(fd: c_int, list: *mut c_void, kind: c_int) -> c_int;
    fn acl_size(list: *mut c_void) -> ssize_t;
    fn acl_copy_ext(buffer: *mut c_void, list: *mut c_void, size: ssize_t) -> ssize_t;
    fn acl_copy_int(buffer: *const c_void) -> *mut c_void;
    fn acl_free(list: *mut c_void) -> c_int;
    fn filesec_init() -> *mut c_void;
    fn filesec_set_property(security: *mut c_void, property: c_int, value: *const c_void) -> c_int;
    fn filesec_free(security: *mut c_void);
    fn fchmodx_np(fd: c_int, security: *mut c_void) -> c_int;
}

/// `ACL_TYPE_EXTENDED` of sys/acl.h, the only kind there is.
const EXTENDED: c_int = 0x100;

/// `FILESEC_ACL` of sys/fcntl.h: the property that is a list.
const PROPERTY: c_int = 5;

/// `_FILESEC_REMOVE_ACL` of sys/fcntl.h: as the property's value it says that there is to be none, which is another thing
/// than an empty one. acl_set_fd_np takes no such value: it passes on where a list is kept, not the list.
const REMOVE: *const c_void = ptr::without_provenance(1);

fn last() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// A list that the library keeps.
struct List(*mut c_void);

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: the pointer came from the library, is freed once, and nothing refers to it any more.
        unsafe { acl_free(self.0) };
    }
}

/// The list of an open file in its portable form; `None` if it has none.
pub(crate) fn get(fd: BorrowedFd<'_>) -> rustix::io::Result<Option<Vec<u8>>> {
    let Some(list) = of(fd.as_raw_fd())? else { return Ok(None) };
    let mut bytes = vec![0; size(&list)?];
    let room = ssize_t::try_from(bytes.len()).map_err(|_| Errno::OVERFLOW)?;
    // SAFETY: `bytes` has `room` writable bytes and the list is live; the call writes at most that many.
    let written = unsafe { acl_copy_ext(bytes.as_mut_ptr().cast(), list.0, room) };
    bytes.truncate(usize::try_from(written).map_err(|_| last())?);
    Ok(Some(bytes))
}

fn of(fd: RawFd) -> rustix::io::Result<Option<List>> {
    // SAFETY: no memory is passed; the descriptor is one that a caller has borrowed.
    let list = unsafe { acl_get_fd_np(fd, EXTENDED) };
    match list.is_null().then(last) {
        None => Ok(Some(List(list))),
        Some(Errno::NOENT) => Ok(None),
        Some(errno) => Err(errno),
    }
}

fn size(list: &List) -> rustix::io::Result<usize> {
    // SAFETY: the list is live.
    let size = unsafe { acl_size(list.0) };
    usize::try_from(size).map_err(|_| last())
}

/// Gives an open file the list with this portable form.
pub(crate) fn set(fd: BorrowedFd<'_>, bytes: &[u8]) -> rustix::io::Result<()> {
    let list = parse(bytes)?;
    // SAFETY: the list is live; the descriptor is open while it is borrowed.
    if unsafe { acl_set_fd_np(fd.as_raw_fd(), list.0, EXTENDED) } == 0 { Ok(()) } else { Err(last()) }
}

/// What is to be changed of a file's security, as the library keeps it.
struct Security(*mut c_void);

impl Drop for Security {
    fn drop(&mut self) {
        // SAFETY: the pointer came from the library, is freed once, and nothing refers to it any more.
        unsafe { filesec_free(self.0) };
    }
}

/// Takes the list of an open file away.
pub(crate) fn remove(fd: BorrowedFd<'_>) -> rustix::io::Result<()> {
    // SAFETY: takes nothing; what it returns is freed by its own type.
    let security = Security(unsafe { filesec_init() });
    if security.0.is_null() {
        return Err(last());
    }
    // SAFETY: `security` is live; the value is the constant that stands for no list, which is not followed.
    if unsafe { filesec_set_property(security.0, PROPERTY, REMOVE) } != 0 {
        return Err(last());
    }
    // SAFETY: `security` is live; the descriptor is open while it is borrowed.
    if unsafe { fchmodx_np(fd.as_raw_fd(), security.0) } == 0 { Ok(()) } else { Err(last()) }
}

fn parse(bytes: &[u8]) -> rustix::io::Result<List> {
    if !is_whole(bytes) {
        return Err(Errno::INVAL);
    }
    // SAFETY: `bytes` is live and has as many bytes as its header says, which is all that is read.
    let list = unsafe { acl_copy_int(bytes.as_ptr().cast()) };
    if list.is_null() { Err(last()) } else { Ok(List(list)) }
}
