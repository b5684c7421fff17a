//! Tells when something is mounted or unmounted where it matters: no mark on an inode does.
//!
//! Limit: this mount namespace only; what another one mounts is not seen by our paths either.
//! Source: proc_pid_mountinfo(5): the file polls as an error and as urgent data after each change of the mount table.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::event::LostCause;
use crate::root::Root;

use super::mounts::{Mount, concerns, parse};

/// See the module.
pub(crate) struct MountWatch {
    table: File,
    dirs: Vec<Vec<u8>>,
    known: BTreeSet<Mount>,
}

impl MountWatch {
    /// Starts with the mounts there are. `None` without `/proc`.
    pub(crate) fn new(roots: &[Arc<Root>]) -> Option<Self> {
        let table = File::open("/proc/self/mountinfo").ok()?;
        let real = |root: &Arc<Root>| {
            let own = format!("/proc/self/fd/{}", root.dir().as_fd().as_raw_fd());
            std::fs::read_link(own).ok().map(|path| path.into_os_string().into_vec())
        };
        let dirs = roots.iter().filter_map(real).collect();
        let mut watch = Self { table, dirs, known: BTreeSet::new() };
        watch.known = watch.read()?;
        Some(watch)
    }

    /// What polls as urgent when the table changes.
    pub(crate) fn queue(&self) -> Option<BorrowedFd<'_>> {
        Some(self.table.as_fd())
    }

    fn read(&self) -> Option<BTreeSet<Mount>> {
        let mut text = Vec::new();
        let mut piece = [0; 16 * 1024];
        loop {
            match self.table.read_at(&mut piece, text.len() as u64) {
                Ok(0) => break,
                Ok(length) => text.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        let matters = |mount: &Mount| self.dirs.iter().any(|dir| concerns(&mount.point, dir));
        Some(parse(&text).filter(matters).collect())
    }

    /// Compares the table with the last time.
    pub(crate) fn changed(&mut self) -> Option<LostCause> {
        let now = self.read()?;
        let cause = if self.known.difference(&now).next().is_some() {
            Some(LostCause::Unmounted)
        } else if now.difference(&self.known).next().is_some() {
            Some(LostCause::Mounted)
        } else {
            None
        };
        self.known = now;
        cause
    }
}
