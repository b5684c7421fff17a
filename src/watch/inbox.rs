//! What waits for the core thread: hints, what the person types, signals, opens that are held.
//!
//! Promise: whoever posts never waits, and what waits is bounded however long the core thread is busy. A hint that already
//! waits is not taken twice, since one look answers both; where there are more places than there is room for,
//! [`Message::Overflow`] stands for the rest, so that nothing goes unlooked at. Hints come out in the order in which they
//! were posted; what the person says and what programs wait for comes before them.
//! Limit: the paths that a walk finds are not counted: they are as many as the tree has, and one left out would pass for
//! one that was added.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use platform::signals::Signal;
use platform::terminal::InputEvent;
use platform::{HeldId, Hint, LostCause, Moment, Opening};

use crate::baseline::Caps;

use super::guest::Slate;
use super::hold::{Away, News, Notes, Trouble};

/// Room for hints beyond the largest protected set: listing all of that again must not overflow by itself.
const SPARE_ROOM: usize = 1 << 16;

/// Pieces of input that wait. A person types fewer; of what a program types, the rest is thrown away.
const MOST_INPUT: usize = 1024;

const CTRL_C: u8 = 0x03;

/// What reaches the core thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// A backend says: look here.
    Hint(Hint),
    /// There were more hints than there is room for: everything must be compared and listed again.
    Overflow,
    /// Bytes from the terminal, or its end.
    Input(InputEvent),
    /// A signal.
    Signal(Signal),
    /// What the gate in this terminal has to say.
    Gate(Box<Slate>),
    /// About an open that is held.
    Held(News),
}

/// An empty inbox, and the way into it.
pub fn inbox() -> (Post, Inbox) {
    with_room(Caps::default().files + SPARE_ROOM)
}

fn with_room(room: usize) -> (Post, Inbox) {
    let shared = Arc::new(Shared { waiting: Mutex::default(), arrived: Condvar::new(), room });
    (Post { shared: Arc::clone(&shared) }, Inbox { shared, taken: VecDeque::new() })
}

#[derive(Debug)]
struct Shared {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
    /// How many hints may wait.
    room: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Input and signals.
    voices: VecDeque<Message>,
    slate: Option<Slate>,
    held: Notes,
    hints: VecDeque<Hint>,
    /// The hints that wait, without their times.
    known: HashSet<Hint>,
    /// How many of them count.
    counted: usize,
    overflowed: bool,
    closed: bool,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Every state of it is sound: one who panicked took nothing with him but what he was about to post.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.voices.is_empty()
            && self.slate.is_none()
            && self.held.is_empty()
            && self.hints.is_empty()
            && !self.overflowed
    }

    fn hint(&mut self, hint: Hint, room: usize) {
        let timeless = timeless(&hint);
        if self.known.contains(&timeless) {
            return;
        }
        if counts(&hint) {
            if self.counted >= room {
                self.overflowed = true;
                return;
            }
            self.counted += 1;
        }
        self.known.insert(timeless);
        self.hints.push_back(hint);
    }

    fn input(&mut self, event: InputEvent) {
        let is_full = self.voices.len() >= MOST_INPUT;
        let message = Message::Input(event);
        let fits = match &message {
            Message::Input(InputEvent::Bytes { bytes, .. }) if is_full => {
                bytes.contains(&CTRL_C) && self.voices.len() < 2 * MOST_INPUT
            }
            Message::Input(InputEvent::Bytes { .. }) => true,
            other => !self.voices.contains(other),
        };
        if fits {
            self.voices.push_back(message);
        }
    }

    fn signal(&mut self, signal: Signal) {
        // The last one of a kind counts: of a stop and a continuation, that decides where it ends.
        self.voices.retain(|message| *message != Message::Signal(signal));
        self.voices.push_back(Message::Signal(signal));
    }
}

/// The hint as it is known while it waits: of several alike, the first one's time stays.
fn timeless(hint: &Hint) -> Hint {
    let at = Moment::from_nanos(0);
    match hint {
        Hint::Touched { place, .. } => Hint::Touched { place: place.clone(), at },
        Hint::Vanished { place, .. } => Hint::Vanished { place: place.clone(), at },
        // The first one ends the walk; a later one says nothing more.
        Hint::Walked { .. } => Hint::Walked { directories: 0 },
        other => other.clone(),
    }
}

/// Whether there can be any number of such hints, and comparing and listing everything makes up for one.
fn counts(hint: &Hint) -> bool {
    match hint {
        Hint::Found(_) | Hint::Walked { .. } | Hint::Broken(_) => false,
        Hint::Lost(cause) => matches!(cause, LostCause::Limit(_) | LostCause::Unreadable(_)),
        _ => true,
    }
}

/// The way into the inbox, for any thread.
#[derive(Debug, Clone)]
pub struct Post {
    shared: Arc<Shared>,
}

impl Post {
    /// Leaves a hint. `false` if nobody will look.
    pub fn hint(&self, hint: Hint) -> bool {
        let room = self.shared.room;
        self.leave(|waiting| waiting.hint(hint, room))
    }

    /// Leaves what came from the terminal.
    pub fn input(&self, event: InputEvent) {
        self.leave(|waiting| waiting.input(event));
    }

    /// Leaves a signal.
    pub fn signal(&self, signal: Signal) {
        self.leave(|waiting| waiting.signal(signal));
    }

    /// Lets the gate in this terminal say something.
    pub fn gate(&self, say: impl FnOnce(&mut Slate)) {
        self.leave(|waiting| say(waiting.slate.get_or_insert_default()));
    }

    /// Leaves an open that is held. Where nobody looks any more, whoever ends the watch refuses it.
    pub fn held(&self, id: HeldId, opening: Opening) {
        self.leave(|waiting| waiting.held.held(id, opening));
    }

    /// The opener of a held open is gone.
    pub fn held_is_gone(&self, id: HeldId) {
        self.leave(|waiting| waiting.held.gone(id));
    }

    /// The guardian has refused a held open while we were stopped.
    pub fn held_is_relieved(&self, id: HeldId) {
        self.leave(|waiting| waiting.held.relieved(id));
    }

    /// It has refused opens that nobody had read.
    pub fn turned_away(&self, away: Away) {
        self.leave(|waiting| waiting.held.away(away));
    }

    /// Whether the person trusts the opener of a held open.
    pub fn held_is_vetted(&self, id: HeldId, trusted: bool) {
        self.leave(|waiting| waiting.held.vetted(id, trusted));
    }

    /// Those who read opens are in trouble.
    pub fn held_trouble(&self, trouble: Trouble) {
        self.leave(|waiting| waiting.held.trouble(trouble));
    }

    fn leave(&self, put: impl FnOnce(&mut Waiting)) -> bool {
        let mut waiting = self.shared.waiting();
        if waiting.closed {
            return false;
        }
        put(&mut waiting);
        drop(waiting);
        self.shared.arrived.notify_one();
        true
    }
}

/// Where the core thread waits.
#[derive(Debug)]
pub struct Inbox {
    shared: Arc<Shared>,
    /// Hints taken out and not given on yet: whoever posts meanwhile is held up by nothing.
    taken: VecDeque<Hint>,
}

impl Inbox {
    /// Waits until something is there, but not longer than this; returns all that the person said, and no more than so many
    /// hints.
    pub fn wait(&mut self, timeout: Duration, most: usize) -> Vec<Message> {
        let timeout = if self.taken.is_empty() { timeout } else { Duration::ZERO };
        let waiting = self.shared.waiting();
        let arrived = self.shared.arrived.wait_timeout_while(waiting, timeout, |waiting| waiting.is_empty());
        let (mut waiting, _) = arrived.unwrap_or_else(PoisonError::into_inner);
        let voices = std::mem::take(&mut waiting.voices);
        let slate = waiting.slate.take().map(|slate| Message::Gate(Box::new(slate)));
        let held = waiting.held.take().map(Message::Held);
        let mut overflowed = false;
        let mut known = HashSet::new();
        if self.taken.is_empty() {
            overflowed = std::mem::take(&mut waiting.overflowed);
            known = std::mem::take(&mut waiting.known);
            waiting.counted = 0;
            self.taken = std::mem::take(&mut waiting.hints);
        }
        drop(waiting);
        // May be large, and nobody has to wait for that.
        drop(known);
        let hints = self.taken.drain(..self.taken.len().min(most)).map(Message::Hint);
        voices
            .into_iter()
            .chain(held)
            .chain(slate)
            .chain(overflowed.then_some(Message::Overflow))
            .chain(hints)
            .collect()
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.shared.waiting().closed = true;
    }
}

#[cfg(test)]
mod tests;
