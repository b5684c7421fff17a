//! Marks and events by inotify, for kernels and containers without fanotify.
//!
//! Promise: a watch is put on an open handle through `/proc/self/fd`, never on a path, so that no symlink and no renaming
//! leads it astray; the watch's number is the identity, as the kernel gives one to an inode and none twice.
//! Two instances: names of directories in one, covered files themselves in the other.
//! Limit: only adjacent equal events are merged, so a storm of names can fill the queue of names; that is said.
//! Source: inotify(7). Watch numbers go up until they wrap (idr_alloc_cyclic in fs/notify/inotify).

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::cover::{self, Event, Extra, MarkError, Marks, Reading, Seat};
use crate::dir::Dir;
use crate::event::{EventSource, Sink, StartError, Subscription, WatchSet};
use crate::stat::FileType;

use super::files::stat_fd;
use super::later;
use super::records;

const NAME: &str = "inotify";
const BUFFER: usize = 256 * 1024;

const CONTENTS: usize = 0;
const NAMES: usize = 1;

/// The backend.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inotify;

impl EventSource for Inotify {
    fn name(&self) -> &'static str {
        NAME
    }

    fn probe(&self) -> Result<(), StartError> {
        let root = Dir::open_ambient(std::path::Path::new("/"))
            .map_err(|error| StartError::Unavailable { backend: NAME, reason: error.source.to_string() })?;
        let mut instances = Instances::new()?;
        let marked = instances.mark_dir(&root, Extra::default(), Seat::default(), &mut Vec::new());
        later::close(instances);
        marked.map_err(|error| {
            let reason = match error {
                MarkError::Limit => format!(
                    "all {} watches of this user are in use; raise fs.inotify.max_user_watches",
                    limit("max_user_watches")
                ),
                MarkError::Gone => "/proc is not mounted".to_owned(),
                MarkError::Failed(error) => format!("a directory cannot be watched: {error}"),
            };
            StartError::Unavailable { backend: NAME, reason }
        })
    }

    fn start(&self, set: WatchSet, sink: Sink) -> Result<Box<dyn Subscription>, StartError> {
        cover::start(NAME, Instances::new()?, None, set, sink)
    }
}

fn limit(name: &str) -> String {
    std::fs::read_to_string(format!("/proc/sys/fs/inotify/{name}"))
        .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

/// The two instances.
struct Instances {
    queues: [OwnedFd; 2],
    buffer: Vec<u8>,
    /// Watches whose events belong to nothing any more.
    stale: Vec<i32>,
}

impl Instances {
    fn new() -> Result<Self, StartError> {
        let instance = || inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK);
        let both = instance().and_then(|contents| Ok([contents, instance()?]));
        let queues = both.map_err(|errno| {
            let reason = match errno {
                Errno::MFILE => format!(
                    "all {} instances of this user or all descriptors of this process are in use; raise fs.inotify.max_user_instances",
                    limit("max_user_instances")
                ),
                Errno::NOSYS => "this kernel is built without it".to_owned(),
                other => io::Error::from(other).to_string(),
            };
            StartError::Unavailable { backend: NAME, reason }
        })?;
        Ok(Self { queues, buffer: vec![0; BUFFER], stale: Vec::new() })
    }

    fn watch(&self, queue: usize, object: BorrowedFd<'_>, flags: WatchFlags) -> Result<i32, MarkError> {
        let path = format!("/proc/self/fd/{}", object.as_raw_fd());
        inotify::add_watch(&self.queues[queue], path, flags).map_err(|errno| match errno {
            Errno::NOSPC | Errno::NOMEM => MarkError::Limit,
            // The object is open, so only /proc itself can be missing.
            other => MarkError::Failed(other.into()),
        })
    }
}

fn key_of(queue: usize, watch: i32) -> [u8; 5] {
    let [a, b, c, d] = watch.to_ne_bytes();
    [queue as u8, a, b, c, d]
}

fn watch_of(key: &[u8]) -> Option<(usize, i32)> {
    let (&queue, watch) = key.split_first()?;
    Some((usize::from(queue), i32::from_ne_bytes(*watch.first_chunk()?)))
}

fn directory_flags(extra: Extra) -> WatchFlags {
    let mut flags = WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVE | WatchFlags::ONLYDIR;
    flags |= WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
    if extra.attributes {
        flags |= WatchFlags::ATTRIB;
    }
    if extra.content {
        flags |= WatchFlags::ATTRIB | WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE;
    }
    flags
}

impl Marks for Instances {
    fn mark_dir(&mut self, dir: &Dir, extra: Extra, _seat: Seat<'_>, key: &mut Vec<u8>) -> Result<(), MarkError> {
        let watch = self.watch(NAMES, dir.as_fd(), directory_flags(extra))?;
        key.clear();
        key.extend_from_slice(&key_of(NAMES, watch));
        Ok(())
    }

    fn is(&mut self, dir: &Dir, extra: Extra, key: &[u8]) -> bool {
        // Asking for the number is asking for a watch. If that is a new one and nobody wants it, its first event ends it.
        let flags = directory_flags(extra) | WatchFlags::MASK_ADD;
        self.watch(NAMES, dir.as_fd(), flags).is_ok_and(|watch| key_of(NAMES, watch) == key)
    }

    fn mark_entry(&mut self, dir: &Dir, name: &[u8], file_type: FileType, key: &mut Vec<u8>) -> Result<(), MarkError> {
        let name = CString::new(name).map_err(|_| MarkError::Gone)?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let object = rustix::fs::openat(dir, &name, flags, Mode::empty()).map_err(|errno| match errno {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP => MarkError::Gone,
            other => MarkError::Failed(other.into()),
        })?;
        if stat_fd(object.as_fd()).map_err(|errno| MarkError::Failed(errno.into()))?.file_type != file_type {
            return Err(MarkError::Gone);
        }
        let mut flags = WatchFlags::ATTRIB | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        // Reads and writes of a FIFO, socket or device change nothing that is stored.
        if file_type == FileType::Regular {
            flags |= WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE;
        }
        let watch = self.watch(CONTENTS, object.as_fd(), flags)?;
        key.clear();
        key.extend_from_slice(&key_of(CONTENTS, watch));
        Ok(())
    }

    fn unmark(&mut self, key: &[u8]) {
        if let Some((queue, watch)) = watch_of(key)
            && let Some(queue) = self.queues.get(queue)
        {
            // The kernel has taken it off itself if the object is gone.
            let _ = inotify::remove_watch(queue, watch);
        }
    }

    fn queues(&self) -> [BorrowedFd<'_>; 2] {
        [self.queues[CONTENTS].as_fd(), self.queues[NAMES].as_fd()]
    }

    fn read(&mut self, queue: usize, see: &mut dyn FnMut(Event<'_>) -> bool) -> io::Result<Reading> {
        let length = match rustix::io::read(&self.queues[queue], &mut self.buffer[..]) {
            Ok(length) => length,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(errno) => return Err(errno.into()),
        };
        let mut events = 0;
        for event in records::inotify(&self.buffer[..length]) {
            events += 1;
            let Ok(event) = event else {
                see(Event::Gap);
                continue;
            };
            if !tell(queue, &event, see) && self.stale.last() != Some(&event.watch) {
                self.stale.push(event.watch);
            }
        }
        for watch in std::mem::take(&mut self.stale) {
            self.unmark(&key_of(queue, watch));
        }
        Ok(Reading { events, drained: length < BUFFER / 2 })
    }
}

/// Tells of an event. `false` if its watch belongs to nothing and is still there.
fn tell(queue: usize, event: &records::Inotify<'_>, see: &mut dyn FnMut(Event<'_>) -> bool) -> bool {
    use rustix::fs::inotify::ReadFlags as Flags;

    let mask = Flags::from_bits_retain(event.mask);
    let key = key_of(queue, event.watch);
    if mask.contains(Flags::QUEUE_OVERFLOW) {
        see(Event::Overflow);
        return true;
    }
    if mask.contains(Flags::UNMOUNT) {
        see(Event::Unmounted);
    }
    if mask.contains(Flags::IGNORED) {
        see(Event::Unmarked(&key));
        return true;
    }
    let gone = mask.intersects(Flags::DELETE_SELF | Flags::MOVE_SELF | Flags::UNMOUNT);
    if !event.name.is_empty() {
        return see(Event::Entry {
            dir: &key,
            name: event.name,
            is_dir: mask.contains(Flags::ISDIR),
            left: mask.intersects(Flags::DELETE | Flags::MOVED_FROM),
            moved: mask.intersects(Flags::MOVED_FROM),
            pid: 0,
        });
    }
    // A directory's own attributes are nobody's concern here; its end and its moving are.
    if queue == NAMES && !gone { true } else { see(Event::Own { key: &key, pid: 0 }) }
}
