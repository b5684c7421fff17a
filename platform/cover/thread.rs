//! The one thread of a covering backend: events first, covering in slices between them.
//!
//! Promise: no event waits for more than a slice; hints leave before anything else is done, and none leaves after the
//! subscription was dropped. It never prints, hashes or opens a file's content.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::clock::{Clock, Moment, SystemClock};
use crate::event::{Names, Sink, StartError, Subscription, WatchSet};
use crate::event_thread::{self, Flow, Voice};
use crate::host::MountWatch;
use crate::unix::pipe;

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
    let mut work = Work { engine, mounts, wait, clock: SystemClock };
    let wake = Arc::new(move || {
        // A full pipe wakes just as well.
        let _ = rustix::io::write(&wake, &[0]);
    });
    event_thread::start(backend, wake, sink, move |voice| work.run(voice))
}

struct Work<M> {
    engine: Engine<M>,
    mounts: Option<MountWatch>,
    wait: OwnedFd,
    clock: SystemClock,
}

/// What is ready to be read.
#[derive(Default)]
struct Ready {
    woken: bool,
    queues: [bool; 2],
    mounts: bool,
}

impl<M: Marks> Work<M> {
    fn run(&mut self, voice: &Voice) -> io::Result<()> {
        let (mut loaded, mut last_read) = (false, Moment::default());
        loop {
            let deferred = self.engine.tick(self.clock.now());
            if voice.say(self.engine.take_hints()) == Flow::Stop {
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
            if voice.orders().is_over() {
                return Ok(());
            }
            if voice.orders().take_rescan() {
                self.engine.rescan(self.clock.now());
            }
            let (mut events, mut is_ours) = (0, false);
            for queue in [0, 1] {
                if ready.queues[queue] {
                    let clock = self.clock;
                    events += self.engine.read(queue, || clock.now())?;
                    is_ours |= self.engine.has_hints();
                    if voice.say(self.engine.take_hints()) == Flow::Stop {
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
}
