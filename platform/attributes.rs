//! Bits, owner and flags of an open file or directory, and its way to the disk.

use std::os::fd::AsFd;

use rustix::fs::{self, Gid, Mode, Uid};

use crate::dir::{FsError, change};

/// Sets exactly these permission bits, set-id and sticky included.
pub fn chmod(object: &impl AsFd, mode: u32) -> Result<(), FsError> {
    change("chmod", b"file", || fs::fchmod(object, Mode::from_raw_mode(mode as _)))
}

/// Sets owner and group.
pub fn chown(object: &impl AsFd, uid: u32, gid: u32) -> Result<(), FsError> {
    change("chown", b"file", || fs::fchown(object, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))))
}

/// Makes content and attributes durable.
pub fn sync(object: &impl AsFd) -> Result<(), FsError> {
    change("sync", b"file", || fs::fsync(object))
}
