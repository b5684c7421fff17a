//! A process of this program, on macOS.

use std::ffi::CStr;
use std::io;
use std::path::PathBuf;

use super::sys::descriptors;

/// The file that was started, by its path: whoever may replace it could have done so before the start.
pub(crate) fn own_program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// Closes every descriptor from `first` on. Only while nothing in the process owns one of them.
pub(crate) fn close_inherited(first: u32) -> io::Result<()> {
    let mut open = Vec::new();
    for entry in std::fs::read_dir("/dev/fd")? {
        open.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    // The listing's own is closed by now; closing its number again does nothing.
    open.into_iter().filter(|&number| number.unsigned_abs() >= first).for_each(descriptors::close);
    Ok(())
}

/// There is no such signal here: the end of the channel has to do.
pub(crate) fn end_with_parent() -> io::Result<()> {
    Ok(())
}

/// The system has no such name.
pub(crate) fn name_process(_name: &CStr) {}
