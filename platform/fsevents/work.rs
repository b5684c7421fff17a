//! The one thread of the backend: rows first, looking in slices between them.
//!
//! Promise: no row waits for more than a slice; no hint leaves after the subscription was dropped; a thread that ends for
//! another reason says so. Everything that is macOS is behind [`System`], so that the thread is tested everywhere.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::clock::{Clock, SystemClock};
use crate::event::{Hint, LostCause, Place, RootId, Sink, StartError, Subscription};
use crate::tree::Tree;

use super::engine::Engine;
use super::inbox::Inbox;
use super::spelling::Spelling;
use super::vnodes::{Held, Order, Token, Vnodes};

/// How long looking goes on before rows are asked for again.
const SLICE: Duration = Duration::from_millis(1);

/// An opened object that something happened to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stirred {
    /// Which.
    pub token: Token,
    /// Whether nothing will be told of it any more.
    pub dead: bool,
}

/// What the thread asks of the system.
pub trait System: Send {
    /// Waits until it is woken, an opened object stirs, or the time is over.
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<Vec<Stirred>>;

    /// Asks for what the streams still hold back.
    fn flush(&mut self);

    /// Begins a root's stream again after row `last`, under the path that leads to the root now.
    fn restart(&mut self, root: RootId, last: u64) -> io::Result<Spelling>;

    /// Holds what is at the place open. `false` if that is not what was expected, or cannot be opened.
    fn open(&mut self, place: &Place, token: Token, held: Held) -> bool;

    /// Lets it go.
    fn close(&mut self, token: Token);
}

/// What wakes a system that waits.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

#[derive(Default)]
struct Control {
    stop: AtomicBool,
    rescan: AtomicBool,
}

struct Running {
    control: Arc<Control>,
    wake: Wake,
    thread: Option<JoinHandle<()>>,
}

impl Subscription for Running {
    fn rescan(&self) {
        self.control.rescan.store(true, Ordering::Release);
        (self.wake)();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.control.stop.store(true, Ordering::Release);
        (self.wake)();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
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

/// What the thread works with.
pub struct Work<T, S> {
    /// What turns rows into hints.
    pub engine: Engine<T>,
    /// Where rows come in.
    pub inbox: Arc<Inbox>,
    /// The system.
    pub system: S,
    /// Which objects to hold open.
    pub vnodes: Vnodes,
}

/// Starts the thread.
pub fn start<T: Tree + 'static, S: System + 'static>(
    name: &'static str,
    mut work: Work<T, S>,
    wake: Wake,
    sink: Sink,
) -> Result<Box<dyn Subscription>, StartError> {
    let control = Arc::new(Control::default());
    let shared = Arc::clone(&control);
    let alarm = Alarm(sink);
    let run = move || {
        if let Err(error) = work.run(&shared, &alarm) {
            let _ = (alarm.0)(Hint::Broken(error.to_string()));
        }
    };
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run).map_err(StartError::Thread)?;
    Ok(Box::new(Running { control, wake, thread: Some(thread) }))
}

/// What to do after hints were sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    Stop,
}

impl<T: Tree, S: System> Work<T, S> {
    fn run(&mut self, control: &Control, alarm: &Alarm) -> io::Result<()> {
        self.system.flush();
        loop {
            let left = self.engine.tick(SystemClock.now());
            self.follow();
            if self.send(control, alarm) == Flow::Stop {
                return Ok(());
            }
            let timeout = if self.engine.is_busy() { Some(Duration::ZERO) } else { left };
            let stirred = self.system.wait(timeout)?;
            if control.stop.load(Ordering::Acquire) {
                return Ok(());
            }
            self.hear(&stirred);
            if control.rescan.swap(false, Ordering::AcqRel) {
                self.system.flush();
                self.engine.rescan(SystemClock.now());
            }
            for root in self.engine.take_root_changed() {
                let spelling = self.system.restart(root, self.engine.last(root))?;
                self.engine.respell(root, spelling);
            }
            if self.send(control, alarm) == Flow::Stop {
                return Ok(());
            }
            let end = SystemClock.now() + SLICE;
            while self.engine.is_busy() && SystemClock.now() < end {
                self.engine.step(SystemClock.now());
            }
        }
    }

    /// Takes in what came.
    fn hear(&mut self, stirred: &[Stirred]) {
        let now = SystemClock.now();
        for Stirred { token, dead } in stirred {
            let Some(place) = self.vnodes.place(*token).cloned() else { continue };
            if *dead {
                self.vnodes.forget(*token);
                self.system.close(*token);
                self.engine.rearm(place.clone());
            }
            self.engine.stirred(&place, now);
        }
        let (batches, lost) = self.inbox.take();
        if lost {
            self.engine.lose(LostCause::Overflow);
        }
        for batch in batches {
            self.engine.rows(batch.root, &batch.rows, batch.at);
        }
    }

    /// Opens and closes what is to be held open.
    fn follow(&mut self) {
        let places = self.engine.take_rearmed();
        if places.is_empty() {
            return;
        }
        let engine = &self.engine;
        for order in self.vnodes.follow(places, |place| engine.held(place)) {
            match order {
                Order::Close(token) => self.system.close(token),
                // What cannot be opened, or is another thing by now, has a row that is on its way.
                Order::Open { place, token, held } => {
                    if !self.system.open(&place, token, held) {
                        self.vnodes.forget(token);
                    }
                }
            }
        }
    }

    fn send(&mut self, control: &Control, alarm: &Alarm) -> Flow {
        for hint in self.engine.take_hints() {
            if control.stop.load(Ordering::Acquire) || !(alarm.0)(hint) {
                return Flow::Stop;
            }
        }
        Flow::On
    }
}
