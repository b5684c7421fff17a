//! Bytes made to outlast a power cut, one file at a time or a whole file system at once.
//!
//! Promise: after `Ok` the kernel has told the device to keep what was written before. Limit: a device that lies about
//! its cache loses it all the same. Every write and sync is a [`crate::fault`] point.
//! Source: fsync(2), syncfs(2) (errors of earlier write-back are reported since Linux 5.8); `F_FULLFSYNC` in fcntl(2) on
//! macOS, which [`File::sync_all`] uses there.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;

use crate::{Dir, fault, host};

/// Writes all the bytes at the file's position.
pub fn write_all(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    fault::point("write")?;
    file.write_all(bytes)
}

/// Makes everything on the directory's file system durable. `false` if this system has no such call, and nothing was
/// done: then each file must be synced by itself.
pub fn sync_file_system(dir: &Dir) -> io::Result<bool> {
    fault::point("sync")?;
    host::sync_file_system(dir.as_fd())
}
