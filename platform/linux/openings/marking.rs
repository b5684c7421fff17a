//! Which files are marked, and whose they are.
//!
//! Promise: a mark is put on regular files of our own user alone, on file systems that hold people's own files: an open of a
//! file of the kernel's (cgroup, sysfs) is an act of whoever administers the machine, and is held up by nobody. Of a file that
//! was given away since, every open goes through at once.
//! Limit: that mark stays. Taking it off takes the right to read the file, which who gave it away need not have left us; and a
//! file that came back without it would be open to all. Nothing holds its opens but a guardian, while we are stopped.
//! Source: fanotify_mark(2) `EACCES`; statfs(2); cgroups(7), "Delegation".

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, CWD, StatxFlags};
use rustix::io::Errno;

use super::super::files::{path_of, pin, stat_fd};
use super::super::sys::fanotify as sys;
use super::{Shared, lock};
use crate::dir::Dir;
use crate::opening::Marker;
use crate::stat::{FileId, FileType};

impl Shared {
    /// Whether files of this user may be held.
    pub(super) fn is_ours(&self, user: u32) -> bool {
        self.owner.is_none_or(|owner| owner == user)
    }
}

impl Marker for Shared {
    fn mark(&self, dir: &Dir, name: &[u8]) -> io::Result<()> {
        let object = match pin(dir.as_fd(), name) {
            Ok(object) => object,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        };
        let stat = stat_fd(object.as_fd())?;
        if stat.file_type != FileType::Regular || !self.is_ours(stat.uid) {
            return Ok(());
        }
        if !may_be_held(object.as_fd())? {
            return Ok(());
        }
        let path = std::ffi::CString::new(path_of(&object))?;
        let ended = lock(&self.ended);
        if *ended {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        sys::mark(self.group.as_fd(), libc::FAN_MARK_ADD, libc::FAN_OPEN_PERM, CWD, Some(&path))
    }
}

/// Whether opens on the file system of this object may be held at all.
pub(super) fn may_be_held(object: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(super::super::file_system(object)?.kind.holds_own_files())
}

/// Device and inode, and the owner, as far as the kernel knows them without asking whoever serves the file system.
pub(super) fn identity(file: BorrowedFd<'_>) -> rustix::io::Result<(FileId, u32)> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let statx = rustix::fs::statx(file, c"", flags, StatxFlags::TYPE | StatxFlags::INO | StatxFlags::UID)?;
    let id = FileId { dev: rustix::fs::makedev(statx.stx_dev_major, statx.stx_dev_minor), ino: statx.stx_ino };
    Ok((id, statx.stx_uid))
}
