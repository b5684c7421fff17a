//! Objects marked by fanotify, and what its events say of them.
//!
//! Promise: objects are told apart by file handle, never by name or inode number alone, and no handle is ever opened.
//! Two queues: names of directories in one, covered files themselves in the other. The kernel merges events of one object,
//! so that a storm of writes takes one place in the queue. A directory on the file system that is marked as a whole takes
//! no mark of its own: its identity is enough to know its events. What may not be listed is not marked either way.
//! Limit: no mark can be taken off an object that was moved out of reach; it ends with the group. Groups made without
//! privilege do not say who did something.
//! Source: fanotify(7), fanotify_mark(2); unprivileged groups since Linux 5.13.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

use crate::cover::{Event, Extra, MarkError, Marks, Reading, Seat};
use crate::dir::Dir;
use crate::opening::Marker;
use crate::stat::FileType;

use super::groups::{FSID, Queue};
use super::privileged::{MarkGroups, Whole};
use super::records::{self, Part};
use super::sys::fanotify as sys;

const BUFFER: usize = 256 * 1024;
/// More than any event takes: two names, two handles and what goes with them.
const LONGEST: usize = 4096;

/// Readings that empty a queue of the usual length (16,384 events), with room to spare.
const FULL: usize = 64;

const CONTENTS: usize = 0;
const NAMES: usize = 1;

const GONE: u64 = libc::FAN_DELETE_SELF | libc::FAN_MOVE_SELF;
/// Without `FAN_DELETE`: a covered file tells of its last name and of every other by itself (its number of links is an
/// attribute), a covered directory by `FAN_DELETE_SELF`. What nobody covers is deleted at no cost: half of what a checkout
/// or a build does to names.
const NAME_CHANGES: u64 = libc::FAN_CREATE | libc::FAN_MOVED_FROM | libc::FAN_MOVED_TO | GONE | libc::FAN_ONDIR;
const CONTENT_CHANGES: u64 = libc::FAN_MODIFY | libc::FAN_CLOSE_WRITE | libc::FAN_ATTRIB;

/// The two queues.
pub(super) struct Groups {
    queues: [Queue; 2],
    /// The file system of which every name is told.
    whole: Option<Whole>,
    /// Marks covered files for opens, too.
    marker: Option<Arc<dyn Marker>>,
    /// What we do ourselves is nobody's news.
    own_pid: u32,
    buffer: Vec<u8>,
    /// Whether the kernel makes handles that need not be openable (Linux 6.5), as overlayfs has only those.
    identity_only: bool,
}

impl Groups {
    /// As any user may have them.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self::of([Queue::new(libc::FAN_REPORT_FID)?, Queue::new(libc::FAN_REPORT_DFID_NAME)?], None, None))
    }

    /// Over what was opened with privilege; `marker` is told of each covered file.
    pub(super) fn with(groups: MarkGroups, marker: Option<Arc<dyn Marker>>) -> io::Result<Self> {
        let MarkGroups { contents, names, whole } = groups;
        let mut names = Queue::of(libc::FAN_REPORT_DFID_NAME, names);
        let whole = match whole {
            Ok((whole, group)) => {
                names.add(group)?;
                Some(whole)
            }
            Err(_) => None,
        };
        let mut groups = Self::of([Queue::of(libc::FAN_REPORT_FID, contents), names], whole, marker);
        groups.forget()?;
        Ok(groups)
    }

    /// Throws away what was told since the file system was marked: nothing has been looked at yet.
    fn forget(&mut self) -> io::Result<()> {
        for group in 0..self.queues[NAMES].groups() {
            // As often as a full queue takes, and no more: what comes meanwhile is read like any other.
            for _ in 0..FULL {
                if self.queues[NAMES].read(group, &mut self.buffer)? == 0 {
                    break;
                }
            }
        }
        Ok(())
    }

    fn of(queues: [Queue; 2], whole: Option<Whole>, marker: Option<Arc<dyn Marker>>) -> Self {
        let own_pid = crate::process::own_pid();
        Self { queues, whole, marker, own_pid, buffer: vec![0; BUFFER], identity_only: true }
    }

    /// File system and handle of an open object, laid out as in an event. `near` is the identity of another object of the
    /// same file system, which saves asking for that again: statfs(2) adds up counters of all processors.
    fn identity(&mut self, object: BorrowedFd<'_>, near: Option<&[u8]>, key: &mut Vec<u8>) -> io::Result<()> {
        key.clear();
        match near.and_then(<[u8]>::first_chunk::<FSID>) {
            Some(id) => key.extend_from_slice(id),
            None => sys::file_system_id(object, key)?,
        }
        if self.identity_only {
            match sys::handle(object, libc::AT_HANDLE_FID, key) {
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => self.identity_only = false,
                other => return other,
            }
        }
        sys::handle(object, 0, key)
    }
}

/// The object that has the name, not opened for anything: it may be unreadable, or on another file system than `dir`.
fn pin(dir: &Dir, name: &CStr) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(dir, name, flags, Mode::empty())?)
}

/// The kernel marks a directory only for who may read it. One that tells without a mark of its own is to tell no more than
/// that: whoever may not list it got a handle that opens nothing ([`super::files::open_dir_at`]).
fn may_be_listed(dir: &Dir) -> io::Result<()> {
    if rustix::fs::fcntl_getfl(dir)?.contains(OFlags::PATH) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(())
}

fn failed(error: io::Error) -> MarkError {
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::ENOMEM) => MarkError::Limit,
        Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP | libc::ESTALE) => MarkError::Gone,
        _ => MarkError::Failed(error),
    }
}

impl Marks for Groups {
    fn mark_dir(&mut self, dir: &Dir, extra: Extra, seat: Seat<'_>, key: &mut Vec<u8>) -> Result<(), MarkError> {
        self.identity(dir.as_fd(), seat.near, key).map_err(failed)?;
        let is_told = self.whole.is_some_and(|whole| whole.tells(seat.device, key));
        if is_told && extra == Extra::default() {
            return may_be_listed(dir).map_err(failed);
        }
        let mut mask = if is_told { GONE | libc::FAN_ONDIR } else { NAME_CHANGES };
        if extra.attributes {
            mask |= libc::FAN_ATTRIB | libc::FAN_EVENT_ON_CHILD;
        }
        if extra.content {
            mask |= CONTENT_CHANGES | libc::FAN_DELETE | libc::FAN_EVENT_ON_CHILD;
        }
        self.queues[NAMES].mark(key, libc::FAN_MARK_ONLYDIR, mask, dir.as_fd(), None).map_err(failed)
    }

    fn is(&mut self, dir: &Dir, _extra: Extra, key: &[u8]) -> bool {
        let mut own = Vec::with_capacity(key.len());
        self.identity(dir.as_fd(), None, &mut own).is_ok() && own == key
    }

    fn mark_entry(&mut self, dir: &Dir, name: &[u8], file_type: FileType, key: &mut Vec<u8>) -> Result<(), MarkError> {
        // Before our own, so that no open is missed of a file that was said to be covered. If it fails the file is covered all
        // the same; at the kernel's limit, which counts marks of all groups together, our own mark fails next and says so.
        if let Some(marker) = &self.marker
            && file_type == FileType::Regular
        {
            let _ = marker.mark(dir, name);
        }
        let name = CString::new(name).map_err(|_| MarkError::Gone)?;
        // Reads and writes of a FIFO, socket or device change nothing that is stored.
        let mask = if file_type == FileType::Regular { CONTENT_CHANGES | GONE } else { libc::FAN_ATTRIB | GONE };
        // If the name changes hands between the two calls, the directory's mark tells and both are made again.
        pin(dir, &name).and_then(|object| self.identity(object.as_fd(), None, key)).map_err(failed)?;
        self.queues[CONTENTS].mark(key, libc::FAN_MARK_DONT_FOLLOW, mask, dir.as_fd(), Some(&name)).map_err(failed)
    }

    fn identify(&mut self, dir: &Dir, name: &[u8], key: &mut Vec<u8>) -> bool {
        let Ok(name) = CString::new(name) else { return false };
        pin(dir, &name).and_then(|object| self.identity(object.as_fd(), None, key)).is_ok()
    }

    fn unmark(&mut self, _key: &[u8]) {}

    fn queues(&self) -> [BorrowedFd<'_>; 2] {
        [self.queues[CONTENTS].as_fd(), self.queues[NAMES].as_fd()]
    }

    fn read(&mut self, queue: usize, see: &mut dyn FnMut(Event<'_>) -> bool) -> io::Result<Reading> {
        let mut reading = Reading { events: 0, drained: true };
        for group in 0..self.queues[queue].groups() {
            let length = self.queues[queue].read(group, &mut self.buffer)?;
            reading.drained &= length + LONGEST < BUFFER;
            for event in records::fanotify(&self.buffer[..length]) {
                reading.events += 1;
                match event {
                    Ok(event) => tell(&event, self.own_pid, see),
                    Err(_) => {
                        see(Event::Gap);
                    }
                }
            }
        }
        Ok(reading)
    }
}

/// Tells of each object an event names.
fn tell(event: &records::Fanotify<'_>, own_pid: u32, see: &mut dyn FnMut(Event<'_>) -> bool) {
    if event.mask & libc::FAN_Q_OVERFLOW != 0 {
        see(Event::Overflow);
        return;
    }
    let pid = u32::try_from(event.pid).ok().filter(|&pid| pid != own_pid).unwrap_or(0);
    let mut told = false;
    for object in event.objects() {
        let Ok(object) = object else { break };
        let Some(key) = object.key else { break };
        told = true;
        match object.part {
            Part::Object => {
                see(Event::Own { key, pid });
            }
            _ if matches!(object.name, b"" | b".") => {
                if event.mask & GONE != 0 {
                    see(Event::Own { key, pid });
                }
                // A directory's attributes are told with its own handle, to a mark on its parent as well.
                if event.mask & libc::FAN_ATTRIB != 0 {
                    see(Event::Attributes(key));
                }
            }
            Part::Entry | Part::OldEntry | Part::NewEntry | Part::Directory => {
                let moved = object.part == Part::OldEntry || event.mask & libc::FAN_MOVED_FROM != 0;
                see(Event::Entry {
                    dir: key,
                    name: object.name,
                    is_dir: event.mask & libc::FAN_ONDIR != 0,
                    left: moved || event.mask & libc::FAN_DELETE != 0,
                    moved,
                    pid,
                });
            }
        }
    }
    if !told {
        see(Event::Gap);
    }
}
