//! A whole file system made to outlast a power cut at once; [`crate::file`] does it for one file.
//!
//! Promise: after `Ok` the kernel has told the device to keep what was written before. Limit: a device that lies about
//! its cache loses it all the same. The sync is a [`crate::fault`] point.
//! Source: fsync(2), syncfs(2) (errors of earlier write-back are reported since Linux 5.8); `F_FULLFSYNC` in fcntl(2) on
//! macOS.

use std::io;
use std::os::fd::AsFd as _;

use crate::{Dir, fault, host};

/// Makes everything on the directory's file system durable. `false` if this system has no such call, and nothing was
/// done: then each file must be synced by itself.
pub fn sync_file_system(dir: &Dir) -> io::Result<bool> {
    fault::point("sync")?;
    host::sync_file_system(dir.as_fd())
}
