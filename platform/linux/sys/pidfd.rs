//! What the kernel tells of the process of a descriptor: `PIDFD_GET_INFO` of ioctl(2), Linux 6.13.
//!
//! Limit: an older kernel has no such call and answers `ENOTTY`; a process that has been waited for gives `ESRCH`.
//! Source: include/uapi/linux/pidfd.h.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

/// `struct pidfd_info` as it was at first; the kernel fills as much as the number of the call says.
#[repr(C)]
#[derive(Default)]
struct Info {
    mask: u64,
    cgroup: u64,
    pid: u32,
    tgid: u32,
    ppid: u32,
    real_user: u32,
    /// Its other users and groups, and how it ended.
    rest: [u32; 8],
}

/// `_IOWR(0xFF, 11, struct pidfd_info)`.
const GET_INFO: u32 = 3 << 30 | (size_of::<Info>() as u32) << 16 | 0xFF << 8 | 11;
/// `PIDFD_INFO_CREDS`.
const USERS: u64 = 1 << 1;

/// The real user of the process.
pub(crate) fn real_user(process: BorrowedFd<'_>) -> io::Result<u32> {
    const { assert!(size_of::<Info>() == 64) };
    let mut info = Info { mask: USERS, ..Info::default() };
    // SAFETY: `info` is writable memory of the size that the number of the call says, lives past it, and any bytes are a value.
    let result = unsafe { libc::ioctl(process.as_raw_fd(), GET_INFO as libc::Ioctl, ptr::from_mut(&mut info)) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    if info.mask & USERS == 0 { Err(io::ErrorKind::Unsupported.into()) } else { Ok(info.real_user) }
}
