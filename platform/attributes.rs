//! Bits, owner and flags of an open file or directory, and its way to the disk.
//!
//! Promise: every function acts on the open object, whatever its name leads to by now, and passes a fault point.
//! Limit: the order matters and is the caller's. Whoever restores a file writes its content, then [`chown`]s it, then sets
//! its extended attributes, then [`chmod`]s it: writing and changing the owner take set-id bits and `security.capability`
//! away, and a POSIX ACL rewrites the group bits. Flags come last, since an immutable file refuses all the rest.
//! Source: fchmod(2), chown(2), fsync(2), ioctl_iflags(2), fchflags(2) on macOS.

use std::os::fd::AsFd;

use rustix::fs::{self, Gid, Mode, Uid};

use crate::dir::{FsError, change};
use crate::host;

/// What the file system refuses to everybody, root included, until it is taken off again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags {
    /// No change at all.
    pub immutable: bool,
    /// No change but appending.
    pub append_only: bool,
}

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
    change("sync", b"file", || host::sync(object.as_fd()))
}

/// Sets exactly these flags, and leaves all others alone.
///
/// # Errors
/// [`FsError::is_unsupported`] if the file system has no such flags and one is wanted; `EPERM` without
/// `CAP_LINUX_IMMUTABLE` (on macOS: for a flag that only root may take off).
pub fn set_flags(object: &impl AsFd, flags: Flags) -> Result<(), FsError> {
    change("set flags of", b"file", || host::set_flags(object.as_fd(), flags))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dir::{Dir, stat_of};

    #[test]
    fn bits_are_set_exactly_set_id_included() {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let dir = Dir::open_ambient(temp.path()).expect("it exists");
        let file = dir.create_new(b"f", 0o4751).expect("creates");
        assert_eq!(stat_of(file.as_fd()).expect("stats").mode, 0o4751);
        chmod(&file, 0o6000).expect("chmods");
        assert_eq!(stat_of(file.as_fd()).expect("stats").mode, 0o6000);
        sync(&file).expect("syncs");
    }

    #[test]
    fn an_immutable_file_refuses_removal_until_the_flag_is_taken_off() {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let dir = Dir::open_ambient(temp.path()).expect("it exists");
        let file = dir.create_new(b"f", 0o600).expect("creates");
        set_flags(&file, Flags::default()).expect("there is nothing to take off");
        match set_flags(&file, Flags { immutable: true, append_only: false }) {
            Ok(()) => {
                assert!(dir.stat(b"f").expect("stats").expect("exists").immutable);
                assert!(dir.unlink(b"f").is_err(), "an immutable file was removed");
                set_flags(&file, Flags::default()).expect("takes it off");
                dir.unlink(b"f").expect("now it can go");
            }
            // An ordinary user, or a file system without flags.
            Err(error) => {
                assert!(error.is_unsupported() || error.source.kind() == std::io::ErrorKind::PermissionDenied)
            }
        }
    }
}
