//! The person's terminal with one question on it: what of it has been written, since when it can be read, which keys count.
//!
//! Promise: a key counts only for the question that is on the screen, in the form that has been there long enough; a
//! terminal that takes no bytes delays nothing but its own picture, and what it lost is drawn again before any key counts.
//! Limit: what the terminal program does with the bytes is out of our hands.

use std::sync::Arc;
use std::time::Duration;

use platform::terminal::{RawGuard, Terminal, WriteState};
use platform::{Clock, Moment};

use super::keys::{Keys, Typed};
use super::screen::{Bell, Block, Frame, Printed, Screen};

mod shared;

pub use shared::SharedPanel;

/// How often a terminal that took no bytes is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(10);

/// What a panel needs of a terminal.
pub trait Glass: Send {
    /// Columns and rows.
    fn size(&self) -> (u16, u16);
    /// Writes, or keeps for later what is not taken now.
    fn write(&self, bytes: &[u8]) -> WriteState;
    /// Like [`Glass::write`], for bytes that need not be written if others come first.
    fn write_passing(&self, bytes: &[u8]) -> WriteState;
    /// Tries again to write what was not taken.
    fn flush_pending(&self) -> WriteState;
    /// Whether everything was taken.
    fn is_clear(&self) -> bool;
    /// Stops this job until somebody continues it, and goes on then; returns whether that worked.
    fn suspend(&self) -> bool;
    /// Goes on after a stop.
    fn resume(&self);
}

impl Glass for Terminal {
    fn size(&self) -> (u16, u16) {
        self.size()
    }

    fn write(&self, bytes: &[u8]) -> WriteState {
        self.write(bytes)
    }

    fn write_passing(&self, bytes: &[u8]) -> WriteState {
        self.write_passing(bytes)
    }

    fn flush_pending(&self) -> WriteState {
        self.flush_pending()
    }

    fn is_clear(&self) -> bool {
        self.is_clear()
    }

    fn suspend(&self) -> bool {
        self.suspend().is_ok()
    }

    fn resume(&self) {
        self.resume();
    }
}

/// Whether the person has read a question already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Something else is asked: keys count once it has been there long enough.
    Anew,
    /// The same as before is asked; only the number of those that wait differs.
    Known,
}

/// The question on the screen.
#[derive(Debug)]
struct Open {
    deadline: Moment,
    /// When all of it had been written; `None` while the terminal has not taken it.
    since: Option<Moment>,
}

/// The terminal with its screen and keys.
pub struct Panel {
    glass: Box<dyn Glass>,
    /// Raw mode; `None` once it is over.
    raw: Option<RawGuard>,
    screen: Screen,
    keys: Keys,
    clock: Arc<dyn Clock>,
    open: Option<Open>,
    next_tick: Option<Moment>,
    /// What is said when the terminal lost lines.
    lost: &'static str,
    hung_up: bool,
    /// We stopped ourselves, and the signal that continued us is still to be read.
    suspended: Option<Moment>,
}

impl Panel {
    /// A terminal in raw mode, with nothing on it yet. `lost` is said when the terminal took nothing for so long that lines
    /// were given up.
    pub fn new(terminal: Terminal, raw: RawGuard, colour: bool, clock: Arc<dyn Clock>, lost: &'static str) -> Self {
        let mut panel = Self::on(Box::new(terminal), colour, clock, lost);
        panel.raw = Some(raw);
        panel
    }

    /// Whatever shows bytes, with nothing on it yet.
    pub fn on(glass: Box<dyn Glass>, colour: bool, clock: Arc<dyn Clock>, lost: &'static str) -> Self {
        let (columns, rows) = glass.size();
        let mut keys = Keys::new();
        keys.idle(clock.now());
        Self {
            glass,
            raw: None,
            screen: Screen::new(columns, rows, colour),
            keys,
            clock,
            open: None,
            next_tick: None,
            lost,
            hung_up: false,
            suspended: None,
        }
    }

    /// The time.
    pub fn now(&self) -> Moment {
        self.clock.now()
    }

    /// Puts a question on the screen, in the place of the one that is there.
    pub fn ask(&mut self, block: Block, deadline: Moment, bell: Bell, reading: Reading) {
        let since = self.open.take().and_then(|open| open.since).filter(|_| reading == Reading::Known);
        if since.is_none() {
            self.keys.withdrawn();
        }
        self.open = Some(Open { deadline, since });
        let frame = self.screen.question(block, seconds_left(deadline, self.now()), bell);
        self.emit(&frame);
        self.note_shown();
        self.schedule();
    }

    /// Whether the whole of this question can be seen at once.
    pub fn has_room_for(&self, block: &Block, deadline: Moment) -> bool {
        self.screen.has_room_for(block, seconds_left(deadline, self.now()))
    }

    /// The person needs time to read again: keys count later.
    pub fn read_again(&mut self) {
        self.unread();
        self.note_shown();
    }

    /// Until all of it has been written, no key counts for what stands there.
    fn unread(&mut self) {
        match &mut self.open {
            Some(open) => {
                open.since = None;
                self.keys.withdrawn();
            }
            None => self.keys.idle(self.clock.now()),
        }
    }

    /// Takes the question off without a trace.
    pub fn withdraw(&mut self) {
        let frame = self.screen.withdraw();
        self.no_question(&frame);
    }

    /// Leaves the question where it is, to be read later, and goes on below it.
    pub fn close(&mut self) {
        let frame = self.screen.close();
        self.no_question(&frame);
    }

    fn no_question(&mut self, frame: &Frame) {
        self.open = None;
        self.emit(frame);
        self.keys.idle(self.clock.now());
        self.next_tick = None;
    }

    /// Prints lines above the question; what is too wide is wrapped by the terminal.
    pub fn lines(&mut self, lines: &[String]) {
        let frame = self.screen.lines(lines);
        self.emit(&frame);
    }

    /// Prints lines above what is drawn again of the question; what is too wide is wrapped by us.
    pub fn print(&mut self, lines: &[Printed]) {
        let frame = self.screen.printed(lines);
        self.emit(&frame);
    }

    /// Takes bytes from the keyboard.
    pub fn key(&mut self, bytes: &[u8], at: Moment) -> Option<Typed> {
        self.keys.take(bytes, at)
    }

    /// When the countdown, or a terminal that took no bytes, needs attention.
    pub fn wake_at(&self) -> Option<Moment> {
        let again = (!self.glass.is_clear() && !self.hung_up).then(|| self.now() + TRY_AGAIN);
        [self.next_tick, again].into_iter().flatten().min()
    }

    /// Draws the countdown, and what the terminal did not take before.
    pub fn tick(&mut self) {
        if !self.glass.is_clear() {
            let state = self.glass.flush_pending();
            self.wrote(state);
            self.note_shown();
        }
        let now = self.now();
        if self.next_tick.is_some_and(|at| at <= now)
            && let Some(open) = &self.open
        {
            let frame = self.screen.tick(seconds_left(open.deadline, now));
            if let Some(frame) = frame {
                self.emit(&frame);
            }
            self.schedule();
        }
    }

    /// The terminal has another size.
    pub fn resize(&mut self) {
        let (columns, rows) = self.glass.size();
        let anew = !self.screen.head_fits(columns);
        let frame = self.screen.resize(columns, rows);
        self.emit(&frame);
        if anew {
            self.read_again();
        }
    }

    /// Takes the question off, undoes raw mode, stops the process, and comes back when it goes on. A question that is none any
    /// more by then has left nothing on the screen.
    pub fn suspend(&mut self) {
        let frame = self.screen.hide();
        self.emit(&frame);
        // What cannot be stopped goes on; the person sees that.
        let stopped = self.glass.suspend();
        if !stopped {
            self.glass.resume();
        }
        self.draw_again();
        self.suspended = stopped.then(|| self.now());
    }

    /// We were continued, perhaps by our own suspending: that has drawn already.
    pub fn go_on(&mut self) {
        let now = self.now();
        if self.suspended.take().is_some_and(|since| now.since(since) < Duration::from_secs(1)) {
            return;
        }
        self.resume();
    }

    /// We go on after a stop: raw mode again, and the question below whatever was printed meanwhile.
    pub fn resume(&mut self) {
        self.glass.resume();
        self.draw_again();
    }

    fn draw_again(&mut self) {
        let (columns, rows) = self.glass.size();
        self.screen.has_size(columns, rows);
        let frame = self.screen.redraw();
        self.emit(&frame);
        self.read_again();
    }

    /// The terminal is gone: nothing is written any more.
    pub fn hang_up(&mut self) {
        self.hung_up = true;
    }

    /// Whether the terminal is gone.
    pub fn is_gone(&self) -> bool {
        self.hung_up
    }

    /// Leaves raw mode.
    pub fn finish(&mut self) {
        let _pending_or_not = self.glass.flush_pending();
        self.raw = None;
    }

    fn schedule(&mut self) {
        let now = self.now();
        let left = self.open.as_ref().map(|open| open.deadline.since(now)).filter(|left| !left.is_zero());
        self.next_tick = left.map(|left| {
            // What remains of this second; a whole one, if it has just begun.
            let part = Duration::from_nanos(u64::from(left.subsec_nanos()));
            now + if part.is_zero() { Duration::from_secs(1) } else { part }
        });
    }

    /// Notes since when the question can be read.
    fn note_shown(&mut self) {
        if !self.glass.is_clear() {
            return;
        }
        let now = self.now();
        if let Some(open) = &mut self.open
            && open.since.is_none()
        {
            open.since = Some(now);
            self.keys.shown(now);
        }
    }

    fn emit(&mut self, frame: &Frame) {
        if self.hung_up {
            return;
        }
        let state = match frame {
            Frame::Lasting(bytes) => self.glass.write(bytes),
            Frame::Passing(bytes) => self.glass.write_passing(bytes),
        };
        self.wrote(state);
    }

    fn wrote(&mut self, state: WriteState) {
        match state {
            WriteState::Written | WriteState::Pending => {}
            // What is on the glass is not what the screen believes: everything is drawn again, below it.
            WriteState::Lost => {
                self.unread();
                let frame = self.screen.redraw();
                self.emit(&frame);
                let line = self.screen.line(self.lost);
                self.emit(&line);
            }
            WriteState::HungUp => self.hung_up = true,
        }
    }
}

/// The seconds to show: what is left, rounded up.
fn seconds_left(deadline: Moment, now: Moment) -> u64 {
    let left = deadline.since(now);
    left.as_secs() + u64::from(left.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod window;
