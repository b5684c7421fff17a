//! The one thread of a covering backend: events first, covering in slices between them.
//!
//! Promise: no event waits for more than a slice; hints leave before anything else is done, and none leaves after the
//! subscription was dropped. It never prints, hashes or opens a file's content.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::clock::{Clock, Moment, SystemClock};
use crate::event::{Hint, Names, Sink, StartError, Subscription, WatchSet};
use crate::host::MountWatch;

use super::Marks;
use super::engine::Engine;

/// How long covering goes on before the queues are looked at again.
const SLICE: Duration = Duration::from_millis(1);

/// A reading of more events than this is load: the next one waits for more to come. A burst of small files brings some
/// six events a millisecond; waking up for each costs ten times what looking at it does.
const LOAD: usize = 4;

/// How long that wait is.
const GATHER: Duration = Duration::from_millis(2);

/// So is a reading of which nothing comes, this soon after another: where a whole file system is marked, most names are
/// others' business. One that comes alone is not: waiting for more would be a wake-up of its own.
const DENSE: Duration = Duration::from_millis(4);

#[derive(Default)]
struct Control {
    stop: AtomicBool,
    rescan: AtomicBool,
}

struct Running {
    control: Arc<Control>,
    wake: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn wake(&self) {
        if let Some(wake) = &self.wake {
            // A full pipe wakes just as well.
            let _ = rustix::io::write(wake, &[0]);
        }
    }
}

impl Subscription for Running {
    fn rescan(&self) {
        self.control.rescan.store(true, Ordering::Release);
        self.wake();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.control.stop.store(true, Ordering::Release);
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Marks the roots, here and now, and covers the rest from a thread named after the backend. `names` hears who did what,
/// as far as the marks' events tell.
pub fn start<M: Marks + 'static>(
    backend: &'static str,
    marks: M,
    names: Option<Arc<dyn Names>>,
    set: WatchSet,
    sink: Sink,
) -> Result<Box<dyn Subscription>, StartError> {
    let mounts = MountWatch::new(&set.roots);
    let roots = set.roots.clone();
    let engine = Engine::new(set, marks, names).map_err(|error| {
        let paths: Vec<_> = roots.iter().map(|root| root.path().display().to_string()).collect();
        let cause =
            std::error::Error::source(&error).map_or_else(|| error.to_string(), |source| format!("{error}: {source}"));
        StartError::Unavailable { backend, reason: format!("{} in {}", cause, paths.join(", ")) }
    })?;
    let (wait, wake) = pipe().map_err(StartError::Thread)?;
    let control = Arc::new(Control::default());
    let mut work = Work { engine, mounts, wait, control: Arc::clone(&control), alarm: Alarm(sink), clock: SystemClock };
    let thread = std::thread::Builder::new()
        .name(backend.to_owned())
        .spawn(move || {
            if let Err(error) = work.run() {
                let _ = (work.alarm.0)(Hint::Broken(error.to_string()));
            }
        })
        .map_err(StartError::Thread)?;
    Ok(Box::new(Running { control, wake: Some(wake), thread: Some(thread) }))
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe()?;
    for fd in [&read, &write] {
        rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(fd, true)?;
    }
    Ok((read, write))
}

/// Says that the backend is broken if its thread panics: silence would look like peace.
struct Alarm(Sink);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = (self.0)(Hint::Broken("the event thread panicked".to_owned()));
        }
    }
}

struct Work<M> {
    engine: Engine<M>,
    mounts: Option<MountWatch>,
    wait: OwnedFd,
    control: Arc<Control>,
    alarm: Alarm,
    clock: SystemClock,
}

/// What to do after hints were sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    Stop,
}

/// What is ready to be read.
#[derive(Default)]
struct Ready {
    woken: bool,
    queues: [bool; 2],
    mounts: bool,
}

impl<M: Marks> Work<M> {
    fn run(&mut self) -> io::Result<()> {
        let (mut loaded, mut last_read) = (false, Moment::default());
        loop {
            let deferred = self.engine.tick(self.clock.now());
            if self.send() == Flow::Stop {
                return Ok(());
            }
            let busy = self.engine.is_busy();
            let mut timeout = deferred;
            if busy {
                timeout = Some(Duration::ZERO);
            } else if loaded && self.poll(Some(GATHER), 1)?.woken {
                // Only the names wait; what happens to covered files themselves, or is asked of us, does not. That it was
                // asked is known only once.
                timeout = Some(Duration::ZERO);
            }
            let ready = self.poll(timeout, 2)?;
            if self.control.stop.load(Ordering::Acquire) {
                return Ok(());
            }
            if self.control.rescan.swap(false, Ordering::AcqRel) {
                self.engine.rescan(self.clock.now());
            }
            let (mut events, mut is_ours) = (0, false);
            for queue in [0, 1] {
                if ready.queues[queue] {
                    let clock = self.clock;
                    events += self.engine.read(queue, || clock.now())?;
                    is_ours |= self.engine.has_hints();
                    if self.send() == Flow::Stop {
                        return Ok(());
                    }
                }
            }
            let mut now = self.clock.now();
            loaded = events > LOAD || (events > 0 && !is_ours && now.since(last_read) < DENSE);
            last_read = if events > 0 { now } else { last_read };
            if ready.mounts
                && let Some(cause) = self.mounts.as_mut().and_then(MountWatch::changed)
            {
                self.engine.lose(cause);
            }
            let end = now + SLICE;
            while self.engine.is_busy() && now < end {
                self.engine.step(now);
                now = self.clock.now();
            }
        }
    }

    /// Waits until something can be read or the time is over. Looks at the first `queues` queues only.
    fn poll(&mut self, timeout: Option<Duration>, queues: usize) -> io::Result<Ready> {
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        let before = self.clock.now();
        let watched = self.engine.marks().queues();
        let mut fds = vec![PollFd::new(&self.wait, PollFlags::IN)];
        fds.extend(watched[..queues].iter().map(|queue| PollFd::from_borrowed_fd(*queue, PollFlags::IN)));
        let mounts = self.mounts.as_ref().and_then(MountWatch::queue).filter(|_| queues == watched.len());
        fds.extend(mounts.map(|mounts| PollFd::from_borrowed_fd(mounts, PollFlags::PRI)));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let is_ready = |index: usize| fds.get(index).is_some_and(|fd| !fd.revents().is_empty());
        let ready = Ready {
            woken: is_ready(0),
            queues: [is_ready(1), queues == 2 && is_ready(2)],
            mounts: queues == 2 && is_ready(3),
        };
        for queue in (0..queues).filter(|&queue| !ready.queues[queue]) {
            self.engine.seen_empty(queue, before);
        }
        if ready.woken {
            let mut bytes = [0; 64];
            let _ = rustix::io::read(&self.wait, &mut bytes);
        }
        Ok(ready)
    }

    fn send(&mut self) -> Flow {
        for hint in self.engine.take_hints() {
            if self.control.stop.load(Ordering::Acquire) || !(self.alarm.0)(hint) {
                return Flow::Stop;
            }
        }
        Flow::On
    }
}
