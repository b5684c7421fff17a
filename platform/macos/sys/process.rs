//! proc_pidinfo (libproc.h), sysctlbyname(3).
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::mem::{MaybeUninit, size_of};

/// What the kernel tells of a process.
pub(crate) fn bsd_info(pid: u32) -> io::Result<libc::proc_bsdinfo> {
    let pid = i32::try_from(pid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    let mut info = MaybeUninit::<libc::proc_bsdinfo>::zeroed();
    let size = size_of::<libc::proc_bsdinfo>() as libc::c_int;
    // SAFETY: `info` has `size` writable bytes and lives past the call, which writes at most that many.
    let written = unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDTBSDINFO, 0, info.as_mut_ptr().cast(), size) };
    if written != size {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all of it was written, and any bytes are a valid value of this struct of integers.
    Ok(unsafe { info.assume_init() })
}

/// How many threads a process has.
pub(crate) fn thread_count(pid: u32) -> io::Result<usize> {
    let pid = i32::try_from(pid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    let mut info = MaybeUninit::<libc::proc_taskinfo>::zeroed();
    let size = size_of::<libc::proc_taskinfo>() as libc::c_int;
    // SAFETY: `info` has `size` writable bytes and lives past the call, which writes at most that many.
    let written = unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDTASKINFO, 0, info.as_mut_ptr().cast(), size) };
    if written != size {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all of it was written, and any bytes are a valid value of this struct of integers.
    let info = unsafe { info.assume_init() };
    Ok(usize::try_from(info.pti_threadnum).unwrap_or(0))
}

/// A text the kernel keeps under a name.
pub(crate) fn sysctl_text(name: &CStr) -> io::Result<String> {
    let mut buffer = [0_u8; 256];
    let mut length = buffer.len();
    // SAFETY: `name` ends with a NUL; `buffer` has `length` writable bytes and both live past the call, which writes at
    // most that many bytes and then how many it wrote. Nothing is set.
    let done = unsafe {
        libc::sysctlbyname(name.as_ptr(), buffer.as_mut_ptr().cast(), &raw mut length, std::ptr::null_mut(), 0)
    };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    let text = buffer[..length.min(buffer.len())].split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(text).into_owned())
}
