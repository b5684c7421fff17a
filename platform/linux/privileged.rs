//! What can only be opened with `CAP_SYS_ADMIN`: groups whose events say who, a mark on a whole file system, opens that wait.
//!
//! Promise: nothing of the directory is read but which file system it lies on. Whatever is opened here works on after
//! privilege is given up: the kernel asks for it when a group is made and when a file system is marked, not when events are
//! read or single objects marked.
//! Limit: one file system is marked as a whole, the directory's; others of the same tree get marks on their directories.
//! Source: fanotify_init(2) and fanotify_mark(2) on what needs the capability, netlink(7), Linux
//! Documentation/driver-api/connector.rst.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::thread::{CapabilitySet, capabilities};

use crate::dir::Dir;
use crate::privilege::PrivilegeError;

use super::files::stat_fd;
use super::groups::{self, FSID, Groups};
use super::openings::permission_group;
use super::sys::fanotify as sys;

/// Subvolumes below the tree, at most, whose events say who.
const SPARE: usize = 3;

/// What is told of a whole file system: names that are made or moved, and directories that are removed, so that those we
/// know can be forgotten. Who is renamed tells both its names at once (Linux 5.17).
const NAME_CHANGES: u64 = libc::FAN_CREATE | libc::FAN_RENAME | libc::FAN_DELETE | libc::FAN_ONDIR;

/// The file system that is marked as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whole {
    id: [u8; FSID],
    pub(super) device: u64,
}

impl Whole {
    /// Whether what happens in the directory with this identity on this device is told. Two file systems may have one id, if
    /// one is a copy of the other.
    pub(super) fn tells(&self, device: Option<u64>, key: &[u8]) -> bool {
        device == Some(self.device) && key.first_chunk() == Some(&self.id)
    }
}

/// Groups of the event backend.
pub(crate) struct MarkGroups {
    pub(super) contents: Groups,
    pub(super) names: Groups,
    /// The group that holds the mark on a whole file system, or why there is none.
    pub(super) whole: io::Result<(Whole, OwnedFd)>,
}

impl MarkGroups {
    pub(crate) fn all(&self) -> Vec<BorrowedFd<'_>> {
        let whole = self.whole.iter().map(|(_, group)| group.as_fd());
        self.contents.all().chain(self.names.all()).chain(whole).collect()
    }
}

/// Whether the process has what this needs: the capability, and that in the whole machine and not in a namespace of its own.
pub(crate) fn is_privileged() -> bool {
    let has = capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN));
    // Only that one may have such a group. Any other error is for whoever needs one to tell.
    has && !matches!(sys::init(libc::FAN_CLASS_CONTENT | libc::FAN_CLOEXEC), Err(error) if is_refusal(&error))
}

/// The event backend's groups; `None` if a filter forbids them.
pub(crate) fn mark_groups(dir: &Dir) -> Result<Option<MarkGroups>, PrivilegeError> {
    let made = Groups::new(libc::FAN_REPORT_FID, SPARE)
        .and_then(|contents| Ok((contents, Groups::new(libc::FAN_REPORT_DFID_NAME, SPARE)?)));
    match made {
        Ok((contents, names)) => Ok(Some(MarkGroups { contents, names, whole: mark_whole(dir) })),
        Err(error) => refused(error, "make a group for events"),
    }
}

/// Marks the file system of `dir`. In a group of its own: what it keeps quiet would be so for its other marks, too.
fn mark_whole(dir: &Dir) -> io::Result<(Whole, OwnedFd)> {
    let mut id = Vec::with_capacity(FSID);
    sys::file_system_id(dir.as_fd(), &mut id)?;
    let id = *id.first_chunk().ok_or(io::ErrorKind::InvalidData)?;
    let whole = Whole { id, device: stat_fd(dir.as_fd())?.id.dev };
    let group = groups::new_group(libc::FAN_REPORT_DFID_NAME)?;
    let flags = libc::FAN_MARK_ADD | libc::FAN_MARK_FILESYSTEM;
    // The end of anything but a directory is kept quiet (Linux 6.0), as without privilege: a covered file tells it by
    // itself, and of all others nobody wants to know. It is half of what a build or a checkout does to names.
    let quiet = flags | libc::FAN_MARK_IGNORE_SURV;
    sys::mark(group.as_fd(), quiet, libc::FAN_DELETE, dir.as_fd(), None)?;
    sys::mark(group.as_fd(), flags, NAME_CHANGES, dir.as_fd(), None)?;
    Ok((whole, group))
}

/// The group by which opens are held.
pub(crate) fn openings() -> Result<Option<OwnedFd>, PrivilegeError> {
    match permission_group() {
        Ok(group) => Ok(Some(group)),
        // Before Linux 5.15, or built without permission events.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(None),
        Err(error) => refused(error, "make a group for opens"),
    }
}

fn refused<T>(error: io::Error, operation: &'static str) -> Result<Option<T>, PrivilegeError> {
    if is_refusal(&error) { Ok(None) } else { Err(PrivilegeError::call(operation)(error)) }
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::ENOSYS))
}
