//! One queue of fanotify events: a group, and further ones for file systems whose marks the first may not hold.
//!
//! A group may hold marks of several file systems, unless an id is shared by parts of one that tell their objects apart
//! differently, as subvolumes of btrfs do: those marks are refused with `EXDEV` and get a group of their own.
//! Source: fanotify_mark(2) `EXDEV`; Linux commits "fanotify: allow weak fsid inode marks" (6.8), before which such
//! file systems could not be marked at all.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll;

use super::sys::fanotify as sys;

/// Bytes of a file system's id, with which an identity begins.
pub(super) const FSID: usize = 8;

/// Groups of one queue, at most; a user has 128 in all.
const MOST: usize = 16;

/// See the module.
pub(super) struct Queue {
    report: u32,
    first: OwnedFd,
    /// Groups that hold no mark yet.
    spare: Vec<OwnedFd>,
    /// Further groups, each with the file system whose marks go there; none go to one that came with its own.
    further: Vec<(Option<[u8; FSID]>, OwnedFd)>,
    /// What becomes readable when any of them does, once there are several.
    any: Option<OwnedFd>,
}

/// Groups that report in the same way: one to begin with, and some to go on with where it may not hold a mark.
pub(crate) struct Groups {
    first: OwnedFd,
    spare: Vec<OwnedFd>,
}

impl Groups {
    /// As many more as `spare`, all made now, with the privilege there is now.
    pub(super) fn new(report: u32, spare: usize) -> io::Result<Self> {
        Ok(Self { first: new_group(report)?, spare: (0..spare).map(|_| new_group(report)).collect::<io::Result<_>>()? })
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        std::iter::once(&self.first).chain(&self.spare).map(AsFd::as_fd)
    }
}

/// One group. Its queue has the kernel's limit: without one, whoever makes events while we are stopped fills its memory.
pub(super) fn new_group(report: u32) -> io::Result<OwnedFd> {
    sys::init(libc::FAN_CLASS_NOTIF | libc::FAN_CLOEXEC | libc::FAN_NONBLOCK | report)
}

impl Queue {
    /// A queue whose events name objects in this way (`FAN_REPORT_…`).
    pub(super) fn new(report: u32) -> io::Result<Self> {
        Ok(Self::of(report, Groups { first: new_group(report)?, spare: Vec::new() }))
    }

    /// The same over groups that are there already and report so.
    pub(super) fn of(report: u32, groups: Groups) -> Self {
        Self { report, first: groups.first, spare: groups.spare, further: Vec::new(), any: None }
    }

    /// Reads from this group as well, which holds all the marks it will ever have.
    pub(super) fn add(&mut self, group: OwnedFd) -> io::Result<()> {
        wait_for(&mut self.any, &self.first, &group)?;
        self.further.push((None, group));
        Ok(())
    }

    /// Adds to the mark of the object `name` in `dir`, or of `dir` itself without a name; `key` is its identity.
    pub(super) fn mark(
        &mut self,
        key: &[u8],
        flags: u32,
        mask: u64,
        dir: BorrowedFd<'_>,
        name: Option<&CStr>,
    ) -> io::Result<()> {
        let flags = flags | libc::FAN_MARK_ADD;
        let Some(id) = key.first_chunk::<FSID>() else { return Err(io::ErrorKind::InvalidInput.into()) };
        let group = self.further.iter().find(|(of, _)| of.as_ref() == Some(id)).map_or(&self.first, |(_, group)| group);
        match sys::mark(group.as_fd(), flags, mask, dir, name) {
            Err(error) if error.raw_os_error() == Some(libc::EXDEV) && self.may_grow(id) => {
                let group = match self.spare.pop() {
                    Some(group) => group,
                    None => new_group(self.report)?,
                };
                wait_for(&mut self.any, &self.first, &group)?;
                sys::mark(group.as_fd(), flags, mask, dir, name)?;
                self.further.push((Some(*id), group));
                Ok(())
            }
            other => other,
        }
    }

    fn may_grow(&self, id: &[u8; FSID]) -> bool {
        self.further.len() + 1 < MOST && !self.further.iter().any(|(of, _)| of.as_ref() == Some(id))
    }

    /// What becomes readable.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.any.as_ref().unwrap_or(&self.first).as_fd()
    }

    /// How many groups there are.
    pub(super) fn groups(&self) -> usize {
        1 + self.further.len()
    }

    /// Reads what is in one of the groups; nothing if it is empty.
    pub(super) fn read(&self, group: usize, buffer: &mut [u8]) -> io::Result<usize> {
        let group = match group.checked_sub(1) {
            None => &self.first,
            Some(further) => &self.further[further].1,
        };
        match rustix::io::read(group, buffer) {
            Ok(length) => Ok(length),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(0),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Waits for a further group together with the first.
fn wait_for(any: &mut Option<OwnedFd>, first: &OwnedFd, group: &OwnedFd) -> io::Result<()> {
    let wait =
        |all: &OwnedFd, group: &OwnedFd| epoll::add(all, group, epoll::EventData::new_u64(0), epoll::EventFlags::IN);
    let all = match any.take() {
        Some(all) => all,
        None => {
            let all = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            wait(&all, first)?;
            all
        }
    };
    wait(any.insert(all), group)?;
    Ok(())
}
