//! The backend `fsevents`: a stream for each root, and kqueue on covered entries and the folders they lie in.
//!
//! Promise: [`crate::fsevents`]. The stream of a root begins with the row that was the last before the first walk, so that
//! nothing lies between. kqueue is for latency, and for what FSEvents has no row for, such as a hard link: what is not held
//! open, because descriptors are few or an object cannot be opened, is only told later.
//! Limit: not yet run on a Mac. FSEvents tells of this machine's changes on a network volume alone.
//! Source: FSEvents.h; kqueue(2), `EVFILT_VNODE`; open(2), `O_EVTONLY`, `O_SYMLINK`; fcntl(2), `F_GETPATH`.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Resource, getrlimit};

use super::sys::fsevents::{Stream, current_event_id};
use super::sys::kqueue;
use crate::dir::stat_of;
use crate::event::{EventSource, Place, RootId, Sink, StartError, Subscription, WatchSet};
use crate::event_thread::Wake;
use crate::fsevents::vnodes::{Held, Token, Vnodes};
use crate::fsevents::work::{self, Stirred, System, Work};
use crate::fsevents::{Engine, Inbox, Spelling};
use crate::root::Root;
use crate::stat::FileType;
use crate::tree::Roots;

const NAME: &str = "fsevents";

/// Objects held open at most, whatever the limit on descriptors; a program starts with room for 256 here.
const MOST_OBJECTS: u64 = 2048;

/// Time between two looks at every directory, at least.
const BETWEEN_SWEEPS: Duration = Duration::from_secs(2);

/// The backend.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FsEvents;

impl EventSource for FsEvents {
    fn name(&self) -> &'static str {
        NAME
    }

    fn probe(&self) -> Result<(), StartError> {
        let inbox = Arc::new(Inbox::new(Box::new(|| {})));
        match Stream::start("/", current_event_id(), RootId::default(), inbox) {
            Some(_) => Ok(()),
            None => Err(unavailable("the system starts no stream of events")),
        }
    }

    fn start(&self, set: WatchSet, sink: Sink) -> Result<Box<dyn Subscription>, StartError> {
        let queue = queue().map_err(|error| unavailable(&format!("kqueue: {error}")))?;
        let waker = Arc::clone(&queue);
        // Whoever waits looks at everything whenever it returns, and a queue that is gone has nobody who waits.
        let wake: Wake = Arc::new(move || {
            let _ = kqueue::wake(&*waker);
        });
        let ring = Arc::clone(&wake);
        let inbox = Arc::new(Inbox::new(Box::new(move || ring())));
        let since = current_event_id();
        let mut system =
            Mac { queue, roots: set.roots.clone(), streams: Vec::new(), since, inbox, open: BTreeMap::new() };
        let mut spellings = Vec::new();
        for index in 0..set.roots.len() {
            let root = RootId(u16::try_from(index).expect("a run has few roots"));
            let (stream, spelling) = system.stream(root, since).map_err(|error| unavailable(&error.to_string()))?;
            system.streams.push(stream);
            spellings.push(spelling);
        }
        let inbox = Arc::clone(&system.inbox);
        let mut engine = Engine::new(Roots(set.roots), set.interest, set.known, spellings);
        engine.sweep_every(BETWEEN_SWEEPS);
        let half = getrlimit(Resource::Nofile).current.unwrap_or(MOST_OBJECTS) / 2;
        let vnodes = Vnodes::new(usize::try_from(half.min(MOST_OBJECTS)).expect("it is small"));
        work::start(NAME, Work { engine, inbox, system, vnodes }, wake, sink)
    }
}

fn unavailable(reason: &str) -> StartError {
    StartError::Unavailable { backend: NAME, reason: reason.to_owned() }
}

fn queue() -> io::Result<Arc<OwnedFd>> {
    let queue = rustix::event::kqueue::kqueue()?;
    rustix::io::fcntl_setfd(&queue, rustix::io::FdFlags::CLOEXEC)?;
    kqueue::allow_waking(&queue)?;
    Ok(Arc::new(queue))
}

/// The streams of a run, and what it holds open.
struct Mac {
    queue: Arc<OwnedFd>,
    roots: Vec<Arc<Root>>,
    streams: Vec<Stream>,
    since: u64,
    inbox: Arc<Inbox>,
    open: BTreeMap<Token, OwnedFd>,
}

impl Mac {
    /// A stream for the root, wherever it is now.
    fn stream(&self, root: RootId, since: u64) -> io::Result<(Stream, Spelling)> {
        let found = &self.roots[usize::from(root.0)];
        let path = rustix::fs::getpath(found.dir().as_fd())?;
        let text = path.to_str().map_err(|_| io::Error::other("the root's path is no UTF-8"))?;
        let refused = || io::Error::other(format!("the system starts no stream of events for {text}"));
        let stream = Stream::start(text, since, root, Arc::clone(&self.inbox)).ok_or_else(refused)?;
        Ok((stream, Spelling::new([path.to_bytes(), found.path().as_os_str().as_bytes()])))
    }

    /// Opens what is at the place only to be told of it.
    fn open_object(&self, place: &Place) -> Option<OwnedFd> {
        let root = self.roots.get(usize::from(place.root.0))?;
        let flags = OFlags::from_bits_retain(libc::O_EVTONLY.cast_unsigned()) | OFlags::SYMLINK | OFlags::NONBLOCK;
        let flags = flags | OFlags::CLOEXEC;
        if place.path.is_root() {
            return rustix::fs::openat(root.dir().as_fd(), c".", flags, Mode::empty()).ok();
        }
        let (dir, name) = root.parent(&place.path).ok()?;
        // A FIFO or a device may do something when it is opened.
        let harmless = [FileType::Regular, FileType::Directory, FileType::Symlink];
        if !harmless.contains(&dir.stat(name).ok()??.file_type) {
            return None;
        }
        rustix::fs::openat(dir.as_fd(), name, flags, Mode::empty()).ok()
    }
}

impl System for Mac {
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<Vec<Stirred>> {
        let told = kqueue::wait(&*self.queue, timeout)?;
        Ok(told.into_iter().map(|(number, dead)| Stirred { token: Token(number), dead }).collect())
    }

    fn flush(&mut self) {
        for stream in &self.streams {
            stream.flush();
        }
    }

    fn restart(&mut self, root: RootId, last: u64) -> io::Result<Spelling> {
        let (stream, spelling) = self.stream(root, if last == 0 { self.since } else { last })?;
        self.streams[usize::from(root.0)] = stream;
        Ok(spelling)
    }

    fn open(&mut self, place: &Place, token: Token, held: Held) -> bool {
        let Some(object) = self.open_object(place) else { return false };
        let is_it = stat_of(object.as_fd()).is_ok_and(|stat| stat.id == held.id);
        if !is_it || kqueue::watch_object(&*self.queue, &object, token.0).is_err() {
            return false;
        }
        self.open.insert(token, object);
        true
    }

    fn close(&mut self, token: Token) {
        self.open.remove(&token);
    }
}
