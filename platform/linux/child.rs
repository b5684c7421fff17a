//! A process of this program, on Linux.

use std::ffi::CStr;
use std::io;
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::process::{Signal, set_parent_process_death_signal};

use super::sys::descriptors;

/// The file that runs, be its name another's or gone by now.
pub(crate) fn own_program() -> io::Result<PathBuf> {
    Ok(PathBuf::from("/proc/self/exe"))
}

/// Closes every descriptor from `first` on. Only while nothing in the process owns one of them.
pub(crate) fn close_inherited(first: u32) -> io::Result<()> {
    match descriptors::close_from(first) {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::NOSYS) => {}
        done => return done,
    }
    let mut open = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        open.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    // The listing's own is closed by now; closing its number again does nothing.
    open.into_iter().filter(|&number| number.unsigned_abs() >= first).for_each(descriptors::close);
    Ok(())
}

/// Has the kernel kill this process when the thread that made it ends.
pub(crate) fn end_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// What ps(1) calls it.
pub(crate) fn name_process(name: &CStr) {
    // A name is for people; without it the process is as good.
    let _ = rustix::thread::set_name(name);
}
