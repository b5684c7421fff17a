//! The one thread of the backend: rows first, looking in slices between them.
//!
//! Promise: no row waits for more than a slice. Everything that is macOS is behind [`System`], so that the thread is tested everywhere.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Clock, SystemClock};
use crate::event::{LostCause, Place, RootId, Sink, StartError, Subscription};
use crate::event_thread::{self, Flow, Voice, Wake};
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

/// Starts the thread. `wake` ends a wait of the system.
pub fn start<T: Tree + 'static, S: System + 'static>(
    name: &'static str,
    mut work: Work<T, S>,
    wake: Wake,
    sink: Sink,
) -> Result<Box<dyn Subscription>, StartError> {
    event_thread::start(name, wake, sink, move |voice| work.run(voice))
}

impl<T: Tree, S: System> Work<T, S> {
    fn run(&mut self, voice: &Voice) -> io::Result<()> {
        self.system.flush();
        loop {
            let left = self.engine.tick(SystemClock.now());
            self.follow();
            if voice.say(self.engine.take_hints()) == Flow::Stop {
                return Ok(());
            }
            let timeout = if self.engine.is_busy() { Some(Duration::ZERO) } else { left };
            let stirred = self.system.wait(timeout)?;
            if voice.orders().is_over() {
                return Ok(());
            }
            self.hear(&stirred);
            if voice.orders().take_rescan() {
                self.system.flush();
                self.engine.rescan(SystemClock.now());
            }
            for root in self.engine.take_root_changed() {
                let spelling = self.system.restart(root, self.engine.last(root))?;
                self.engine.respell(root, spelling);
            }
            if voice.say(self.engine.take_hints()) == Flow::Stop {
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
}
