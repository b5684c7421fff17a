//! Marks and events by fanotify, as any user may have them.
//!
//! Promise: objects are told apart by file handle, never by name or inode number alone, and no handle is ever opened.
//! Two queues: names of directories in one, covered files themselves in the other. The kernel merges events of one object,
//! so that a storm of writes takes one place in the queue.
//! Limit: without privilege an event does not say who caused it, and no mark can be taken off an object that was moved
//! out of reach; both end with the group.
//! Source: fanotify(7), fanotify_mark(2); unprivileged groups since Linux 5.13.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};

use crate::cover::{self, Event, Extra, MarkError, Marks};
use crate::dir::Dir;
use crate::event::{EventSource, Sink, StartError, Subscription, WatchSet};
use crate::stat::FileType;

use super::groups::{FSID, Queue};
use super::records::{self, Part};
use super::sys::fanotify as sys;

const NAME: &str = "fanotify";
const BUFFER: usize = 256 * 1024;

const CONTENTS: usize = 0;
const NAMES: usize = 1;

const GONE: u64 = libc::FAN_DELETE_SELF | libc::FAN_MOVE_SELF;
/// Without `FAN_DELETE`: a covered file tells of its last name and of every other by itself (its number of links is an
/// attribute), a covered directory by `FAN_DELETE_SELF`. What nobody covers is deleted at no cost: half of what a checkout
/// or a build does to names.
const NAME_CHANGES: u64 = libc::FAN_CREATE | libc::FAN_MOVED_FROM | libc::FAN_MOVED_TO | GONE | libc::FAN_ONDIR;
const CONTENT_CHANGES: u64 = libc::FAN_MODIFY | libc::FAN_CLOSE_WRITE | libc::FAN_ATTRIB;

/// The backend.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fanotify;

impl EventSource for Fanotify {
    fn name(&self) -> &'static str {
        NAME
    }

    fn probe(&self) -> Result<(), StartError> {
        let root = Dir::open_ambient(std::path::Path::new("/"))
            .map_err(|error| StartError::Unavailable { backend: NAME, reason: error.source.to_string() })?;
        let mut groups = Groups::new()?;
        groups
            .mark_dir(&root, Extra::default(), None, &mut Vec::new())
            .map_err(|error| StartError::Unavailable { backend: NAME, reason: why(&error) })
    }

    fn start(&self, set: WatchSet, sink: Sink) -> Result<Box<dyn Subscription>, StartError> {
        cover::start(NAME, Groups::new()?, set, sink)
    }
}

fn limit(name: &str) -> String {
    std::fs::read_to_string(format!("/proc/sys/fs/fanotify/{name}"))
        .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

fn why(error: &MarkError) -> String {
    match error {
        MarkError::Limit => {
            format!("all {} marks of this user are in use; raise fs.fanotify.max_user_marks", limit("max_user_marks"))
        }
        MarkError::Gone => error.to_string(),
        MarkError::Failed(error) => format!("a directory cannot be marked: {error}"),
    }
}

/// The two queues.
struct Groups {
    queues: [Queue; 2],
    buffer: Vec<u8>,
    /// Whether the kernel makes handles that need not be openable (Linux 6.5), as overlayfs has only those.
    identity_only: bool,
}

impl Groups {
    fn new() -> Result<Self, StartError> {
        let contents = Queue::new(libc::FAN_REPORT_FID);
        let both = contents.and_then(|contents| Ok([contents, Queue::new(libc::FAN_REPORT_DFID_NAME)?]));
        let queues = both.map_err(|error| {
            let reason = match error.raw_os_error() {
                Some(libc::EMFILE) => format!(
                    "all {} groups of this user or all descriptors of this process are in use; raise fs.fanotify.max_user_groups",
                    limit("max_user_groups")
                ),
                Some(libc::EPERM) => "this kernel gives it to root only (before Linux 5.13), or a filter forbids it".to_owned(),
                Some(libc::ENOSYS | libc::EINVAL) => "this kernel lacks it; Linux 5.13 or later is needed".to_owned(),
                _ => error.to_string(),
            };
            StartError::Unavailable { backend: NAME, reason }
        })?;
        Ok(Self { queues, buffer: vec![0; BUFFER], identity_only: true })
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

fn failed(error: io::Error) -> MarkError {
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::ENOMEM) => MarkError::Limit,
        Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP | libc::ESTALE) => MarkError::Gone,
        _ => MarkError::Failed(error),
    }
}

impl Marks for Groups {
    fn mark_dir(&mut self, dir: &Dir, extra: Extra, near: Option<&[u8]>, key: &mut Vec<u8>) -> Result<(), MarkError> {
        let mut mask = NAME_CHANGES;
        if extra.attributes {
            mask |= libc::FAN_ATTRIB | libc::FAN_EVENT_ON_CHILD;
        }
        if extra.content {
            mask |= CONTENT_CHANGES | libc::FAN_DELETE | libc::FAN_EVENT_ON_CHILD;
        }
        self.identity(dir.as_fd(), near, key).map_err(failed)?;
        self.queues[NAMES].mark(key, libc::FAN_MARK_ONLYDIR, mask, dir.as_fd(), None).map_err(failed)
    }

    fn is(&mut self, dir: &Dir, _extra: Extra, key: &[u8]) -> bool {
        let mut own = Vec::with_capacity(key.len());
        self.identity(dir.as_fd(), None, &mut own).is_ok() && own == key
    }

    fn mark_entry(&mut self, dir: &Dir, name: &[u8], file_type: FileType, key: &mut Vec<u8>) -> Result<(), MarkError> {
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

    fn read(&mut self, queue: usize, see: &mut dyn FnMut(Event<'_>) -> bool) -> io::Result<usize> {
        let mut count = 0;
        for group in 0..self.queues[queue].groups() {
            let length = self.queues[queue].read(group, &mut self.buffer)?;
            for event in records::fanotify(&self.buffer[..length]) {
                count += 1;
                match event {
                    Ok(event) => tell(&event, see),
                    Err(_) => {
                        see(Event::Gap);
                    }
                }
            }
        }
        Ok(count)
    }
}

/// Tells of each object an event names.
fn tell(event: &records::Fanotify<'_>, see: &mut dyn FnMut(Event<'_>) -> bool) {
    if event.mask & libc::FAN_Q_OVERFLOW != 0 {
        see(Event::Overflow);
        return;
    }
    let mut told = false;
    for object in event.objects() {
        let Ok(object) = object else { break };
        let Some(key) = object.key else { break };
        told = true;
        match object.part {
            Part::Object => {
                see(Event::Own(key));
            }
            _ if matches!(object.name, b"" | b".") => {
                if event.mask & GONE != 0 {
                    see(Event::Own(key));
                }
                // A directory's attributes are told with its own handle, to a mark on its parent as well.
                if event.mask & libc::FAN_ATTRIB != 0 {
                    see(Event::Attributes(key));
                }
            }
            Part::Entry | Part::OldEntry | Part::NewEntry | Part::Directory => {
                see(Event::Entry {
                    dir: key,
                    name: object.name,
                    is_dir: event.mask & libc::FAN_ONDIR != 0,
                    left: event.mask & (libc::FAN_DELETE | libc::FAN_MOVED_FROM) != 0,
                });
            }
        }
    }
    if !told {
        see(Event::Gap);
    }
}
