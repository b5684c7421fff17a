//! Writing, cutting and syncing an open file, each step a fault point.
//!
//! Promise: an error names the operation and the file; a short write is never reported as success.
//! Limit: after a failed sync nothing is known of what lies on the disk; the caller must cut the file back or write anew.
//! Source: write(2), ftruncate(2), fsync(2). `sync_data` is fdatasync(2) on Linux; on macOS both syncs are
//! `F_FULLFSYNC`, since fsync(2) there leaves the data in the drive's cache, and fsync(2) on a volume that has no such
//! thing.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use rustix::fs::{self, Mode};
use rustix::io::retry_on_intr;

use crate::dir::{FsError, on};
use crate::{fault, host};

fn step<T>(operation: &'static str, name: &[u8], act: impl FnOnce() -> io::Result<T>) -> Result<T, FsError> {
    fault::point(operation).and_then(|()| act()).map_err(on(operation, name))
}

/// Writes all bytes at the file's position, or at its end if it was opened for appending. `name` is for the error.
///
/// On an error some of the bytes may have been written.
pub fn write_all(mut file: &File, name: &[u8], bytes: &[u8]) -> Result<(), FsError> {
    // In tests the process can die in the middle of a write, not only before it.
    let middle = if cfg!(feature = "testing") { bytes.len() / 2 } else { bytes.len() };
    let (first, second) = bytes.split_at(middle);
    step("write", name, || file.write_all(first))?;
    if second.is_empty() { Ok(()) } else { step("write", name, || file.write_all(second)) }
}

/// Makes the content durable, with as much of the metadata as reading it back needs.
pub fn sync_data(file: &File, name: &[u8]) -> Result<(), FsError> {
    step("sync", name, || Ok(retry_on_intr(|| host::sync_data(file.as_fd()))?))
}

/// Makes the content and all metadata durable, a shorter length included.
pub fn sync_all(file: &File, name: &[u8]) -> Result<(), FsError> {
    step("sync", name, || Ok(retry_on_intr(|| host::sync(file.as_fd()))?))
}

/// Cuts the file to `length` bytes.
pub fn truncate(file: &File, name: &[u8], length: u64) -> Result<(), FsError> {
    step("truncate", name, || file.set_len(length))
}

/// Whether anybody has the file open for writing at this moment, or mapped so. `None` where that cannot be told: if it is
/// not our user's, or on a system that does not tell.
pub fn is_open_for_writing(file: &File) -> Option<bool> {
    host::is_open_for_writing(file.as_fd())
}

/// Gives an open file or directory exactly these permission bits.
pub fn set_mode(open: impl AsFd, name: &[u8], mode: u32) -> Result<(), FsError> {
    step("chmod", name, || Ok(fs::fchmod(open, Mode::from_raw_mode(mode as _))?))
}
