//! Marks and events by fanotify, as any user may have them.
//!
//! Promise: objects are told apart by file handle, never by name or inode number alone, and no handle is ever opened.
//! Two groups: names of directories in one, covered files themselves in the other. The kernel merges events of one object,
//! so that a storm of writes takes one place in the queue.
//! Limit: without privilege an event does not say who caused it, and no mark can be taken off an object that was moved
//! out of reach; both end with the group.
//! Source: fanotify(7), fanotify_mark(2); unprivileged groups since Linux 5.13.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::cover::{self, Event, Extra, MarkError, Marks};
use crate::dir::Dir;
use crate::event::{EventSource, Sink, StartError, Subscription, WatchSet};
use crate::stat::FileType;

use super::records::{self, Part};
use super::sys::fanotify as sys;

const NAME: &str = "fanotify";
const BUFFER: usize = 256 * 1024;

const GONE: u64 = libc::FAN_DELETE_SELF | libc::FAN_MOVE_SELF;
const NAMES: u64 =
    libc::FAN_CREATE | libc::FAN_DELETE | libc::FAN_MOVED_FROM | libc::FAN_MOVED_TO | GONE | libc::FAN_ONDIR;
const CONTENT: u64 = libc::FAN_MODIFY | libc::FAN_CLOSE_WRITE | libc::FAN_ATTRIB;

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
            .mark_dir(&root, Extra::default(), &mut Vec::new())
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

/// The two groups.
struct Groups {
    contents: OwnedFd,
    names: OwnedFd,
    buffer: Vec<u8>,
    /// Whether the kernel makes handles that need not be openable (Linux 6.5), as overlayfs has only those.
    identity_only: bool,
}

impl Groups {
    fn new() -> Result<Self, StartError> {
        let group = |report| sys::init(libc::FAN_CLASS_NOTIF | libc::FAN_CLOEXEC | libc::FAN_NONBLOCK | report);
        let both = group(libc::FAN_REPORT_FID).and_then(|contents| Ok((contents, group(libc::FAN_REPORT_DFID_NAME)?)));
        let (contents, names) = both.map_err(|error| {
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
        Ok(Self { contents, names, buffer: vec![0; BUFFER], identity_only: true })
    }

    /// File system and handle, laid out as in an event. An empty name is the directory itself.
    fn identity(&mut self, dir: &Dir, name: &std::ffi::CStr, key: &mut Vec<u8>) -> io::Result<()> {
        key.clear();
        sys::file_system_id(dir.as_fd(), key)?;
        let flags = if name.is_empty() { libc::AT_EMPTY_PATH } else { 0 };
        if self.identity_only {
            match sys::name_to_handle(dir.as_fd(), name, flags | libc::AT_HANDLE_FID, key) {
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => self.identity_only = false,
                other => return other,
            }
        }
        sys::name_to_handle(dir.as_fd(), name, flags, key)
    }
}

fn failed(error: io::Error) -> MarkError {
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::ENOMEM) => MarkError::Limit,
        Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP | libc::ESTALE) => MarkError::Gone,
        _ => MarkError::Failed(error),
    }
}

impl Marks for Groups {
    fn mark_dir(&mut self, dir: &Dir, extra: Extra, key: &mut Vec<u8>) -> Result<(), MarkError> {
        let mut mask = NAMES;
        if extra.attributes {
            mask |= libc::FAN_ATTRIB | libc::FAN_EVENT_ON_CHILD;
        }
        if extra.content {
            mask |= CONTENT | libc::FAN_EVENT_ON_CHILD;
        }
        let flags = libc::FAN_MARK_ADD | libc::FAN_MARK_ONLYDIR;
        sys::mark(self.names.as_fd(), flags, mask, dir.as_fd(), None).map_err(failed)?;
        self.identity(dir, c"", key).map_err(failed)
    }

    fn is(&mut self, dir: &Dir, _extra: Extra, key: &[u8]) -> bool {
        let mut own = Vec::with_capacity(key.len());
        self.identity(dir, c"", &mut own).is_ok() && own == key
    }

    fn mark_entry(&mut self, dir: &Dir, name: &[u8], file_type: FileType, key: &mut Vec<u8>) -> Result<(), MarkError> {
        let name = CString::new(name).map_err(|_| MarkError::Gone)?;
        // Reads and writes of a FIFO, socket or device change nothing that is stored.
        let mask = if file_type == FileType::Regular { CONTENT | GONE } else { libc::FAN_ATTRIB | GONE };
        let flags = libc::FAN_MARK_ADD | libc::FAN_MARK_DONT_FOLLOW;
        // If the name changes hands between the two calls, the directory's mark tells and both are made again.
        sys::mark(self.contents.as_fd(), flags, mask, dir.as_fd(), Some(&name)).map_err(failed)?;
        self.identity(dir, &name, key).map_err(failed)
    }

    fn identify(&mut self, dir: &Dir, name: &[u8], key: &mut Vec<u8>) -> bool {
        CString::new(name).is_ok_and(|name| self.identity(dir, &name, key).is_ok())
    }

    fn unmark(&mut self, _key: &[u8]) {}

    fn queues(&self) -> [BorrowedFd<'_>; 2] {
        [self.contents.as_fd(), self.names.as_fd()]
    }

    fn read(&mut self, queue: usize, see: &mut dyn FnMut(Event<'_>) -> bool) -> io::Result<usize> {
        let group = if queue == 0 { &self.contents } else { &self.names };
        let length = match rustix::io::read(group, &mut self.buffer[..]) {
            Ok(length) => length,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => 0,
            Err(errno) => return Err(errno.into()),
        };
        let mut count = 0;
        for event in records::fanotify(&self.buffer[..length]) {
            count += 1;
            match event {
                Ok(event) => tell(&event, see),
                Err(_) => {
                    see(Event::Gap);
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
