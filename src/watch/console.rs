//! The terminal of a watch: what stands on it, since when, and which keys count.
//!
//! Promise: a key counts only for the question that is on the screen, in the form that has been there long enough; a
//! terminal that takes no bytes delays nothing but its own picture. A storm of changes costs a few redraws a second, however
//! many they are: a person reads no faster. Limit: what the terminal program does with the bytes is out of our hands.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use platform::terminal::{RawGuard, Terminal, WriteState};
use platform::{Clock, Moment, Place};

use crate::ask::{self, Bell, Frame, Key, Keys, Screen};

/// How often a terminal that took no bytes is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(10);
/// The open question is drawn again once in this time on the average, be it for its own sake or for lines above it,
const DRAW_AGAIN: Duration = Duration::from_millis(50);
/// and as often as it takes while that is no more than this ahead: a few changes are shown at once, a storm is not.
const DRAW_AHEAD: Duration = Duration::from_secs(1);
/// A line that repeats is said again after this time.
const SAY_AGAIN: Duration = Duration::from_secs(30);

/// The question on the screen.
struct Shown {
    id: u64,
    version: u64,
    waiting: usize,
    deadline: Moment,
    members: Vec<Place>,
    words: ask::Question,
    details: Vec<String>,
    /// When all of it had been written; `None` while the terminal has not taken it.
    since: Option<Moment>,
}

/// The terminal with its screen and keys.
pub struct Console {
    terminal: Terminal,
    /// Raw mode; `None` once it is over.
    raw: Option<RawGuard>,
    screen: Screen,
    keys: Keys,
    clock: Arc<dyn Clock>,
    shown: Option<Shown>,
    next_tick: Option<Moment>,
    /// Until when drawing has used up its share of time.
    drawn_for: Moment,
    /// Whether there is something newer to be shown than what was drawn.
    put_off: bool,
    /// Lines to be printed with the next drawing.
    unprinted: Vec<String>,
    /// When which line was last said, for those that would repeat.
    said: HashMap<String, (String, Moment)>,
    hung_up: bool,
    /// We stopped ourselves, and the signal that continued us is still to be read.
    suspended: Option<Moment>,
}

/// What is to be on the screen.
pub struct Picture {
    /// The machine's id and version of the question.
    pub id: u64,
    /// Goes up when what is shown differs.
    pub version: u64,
    /// When it is answered by itself.
    pub deadline: Moment,
    /// How many others wait.
    pub waiting: usize,
    /// The paths it is about.
    pub members: Vec<Place>,
    /// Its words.
    pub words: ask::Question,
    /// What `d` shows.
    pub details: Vec<String>,
}

impl Console {
    /// A terminal in raw mode, with nothing on it yet.
    pub fn new(terminal: Terminal, raw: RawGuard, colour: bool, clock: Arc<dyn Clock>) -> Self {
        let (columns, rows) = terminal.size();
        Self {
            terminal,
            raw: Some(raw),
            screen: Screen::new(columns, rows, colour),
            keys: Keys::new(),
            clock,
            shown: None,
            next_tick: None,
            drawn_for: Moment::default(),
            put_off: false,
            unprinted: Vec::new(),
            said: HashMap::new(),
            hung_up: false,
            suspended: None,
        }
    }

    /// Whether exactly this is on the screen already.
    pub fn shows(&self, id: u64, version: u64, waiting: usize) -> bool {
        self.shown.as_ref().is_some_and(|shown| (shown.id, shown.version, shown.waiting) == (id, version, waiting))
    }

    /// Whether no question is on the screen.
    pub fn is_free(&self) -> bool {
        self.shown.is_none()
    }

    /// Whether a change of the question with this id has to wait, because it was drawn too often. Another question
    /// never has to. Until it is drawn, keys are for what can be read.
    pub fn puts_off(&mut self, id: u64) -> bool {
        let same = self.shown.as_ref().is_some_and(|shown| shown.id == id);
        self.put_off = same && !self.may_draw();
        self.put_off
    }

    /// Draws a question. Returns whether it is another one than before.
    pub fn show(&mut self, picture: Picture) -> bool {
        self.print();
        let Picture { id, version, deadline, waiting, members, words, details } = picture;
        let before = self.shown.take();
        let bell = match &before {
            Some(shown) if shown.id == id => Bell::Silent,
            _ => Bell::Ring,
        };
        let same_content = before.as_ref().is_some_and(|shown| (shown.id, shown.version) == (id, version));
        let frame = self.screen.question(words.block(), seconds_left(deadline, self.clock.now()), bell);
        self.emit(&frame);
        let since = match before {
            // Only the number of those that wait differs: the person has read the rest already.
            Some(shown) if same_content => shown.since,
            _ => None,
        };
        self.shown = Some(Shown { id, version, waiting, deadline, members, words, details, since });
        self.put_off = false;
        self.count_drawing();
        self.note_shown();
        self.schedule();
        bell == Bell::Ring
    }

    /// Takes the question off: it was decided, or is none any more.
    pub fn clear(&mut self) {
        self.print();
        if self.shown.take().is_some() {
            let frame = self.screen.withdraw();
            self.emit(&frame);
            self.keys.withdrawn();
            self.next_tick = None;
            self.put_off = false;
        }
    }

    /// The question that is on the screen, and the paths it is about.
    pub fn on_screen(&self) -> Option<(u64, u64, Vec<Place>)> {
        self.shown.as_ref().map(|shown| (shown.id, shown.version, shown.members.clone()))
    }

    /// Takes bytes from the keyboard.
    pub fn key(&mut self, bytes: &[u8], at: Moment) -> Option<Key> {
        self.keys.take(bytes, at)
    }

    /// When the countdown, or a terminal that took no bytes, needs attention.
    pub fn wake_at(&self) -> Option<Moment> {
        let again = (!self.terminal.is_clear() && !self.hung_up).then(|| self.clock.now() + TRY_AGAIN);
        let now = self.clock.now();
        let draw = (self.put_off || !self.unprinted.is_empty()).then(|| now + self.drawn_for.since(now + DRAW_AHEAD));
        [self.next_tick, again, draw].into_iter().flatten().min()
    }

    /// Draws the countdown, lines that are due, and what the terminal did not take before.
    pub fn tick(&mut self) {
        let now = self.clock.now();
        if self.may_draw() {
            self.print();
        }
        if !self.terminal.is_clear() {
            let state = self.terminal.flush_pending();
            self.wrote(state);
            self.note_shown();
        }
        if self.next_tick.is_some_and(|at| at <= now)
            && let Some(shown) = &self.shown
        {
            let frame = self.screen.tick(seconds_left(shown.deadline, now));
            if let Some(frame) = frame {
                self.emit(&frame);
            }
            self.schedule();
        }
    }

    /// A line above the question. In a burst, several are printed together.
    pub fn line(&mut self, line: &str) {
        self.unprinted.push(line.to_owned());
        if self.shown.is_none() || self.may_draw() {
            self.print();
        }
    }

    fn print(&mut self) {
        if !self.unprinted.is_empty() {
            let lines = std::mem::take(&mut self.unprinted);
            self.lines(&lines);
        }
    }

    /// A line about a path, at most one a second.
    pub fn line_now_and_then(&mut self, about: &str, line: &str, now: Moment) {
        if self.said.get(about).is_none_or(|(_, at)| now.since(*at) >= super::tally::LINE_INTERVAL) {
            self.remember(about, line, now);
            self.line(line);
        }
    }

    /// A line that is not said again as long as it would be the same.
    pub fn line_if_new(&mut self, about: &str, line: &str, now: Moment) {
        if self.said.get(about).is_none_or(|(said, at)| said != line || now.since(*at) >= SAY_AGAIN) {
            self.remember(about, line, now);
            self.line(line);
        }
    }

    fn remember(&mut self, about: &str, line: &str, now: Moment) {
        const MOST: usize = 1024;
        if self.said.len() >= MOST {
            self.said.retain(|_, (_, at)| now.since(*at) < SAY_AGAIN);
        }
        if self.said.len() < MOST {
            self.said.insert(about.to_owned(), (line.to_owned(), now));
        }
    }

    /// Shows the keys.
    pub fn help(&mut self) {
        self.print();
        if let Some(shown) = &self.shown {
            let lines = shown.words.help();
            self.lines(&lines);
        }
    }

    /// Shows more of what changed.
    pub fn details(&mut self) {
        self.print();
        if let Some(shown) = &self.shown {
            let mut lines = if shown.members.len() > 1 { shown.words.list() } else { Vec::new() };
            lines.extend(shown.details.iter().cloned());
            self.lines(&lines);
        }
    }

    fn lines(&mut self, lines: &[String]) {
        let frame = self.screen.lines(lines);
        self.count_drawing();
        self.emit(&frame);
    }

    fn may_draw(&self) -> bool {
        self.clock.now() + DRAW_AHEAD >= self.drawn_for
    }

    fn count_drawing(&mut self) {
        self.drawn_for = self.drawn_for.max(self.clock.now()) + DRAW_AGAIN;
    }

    /// The terminal has another size.
    pub fn resize(&mut self) {
        let (columns, rows) = self.terminal.size();
        let frame = self.screen.resize(columns, rows);
        self.emit(&frame);
    }

    /// Undoes raw mode, stops the process, and comes back when it goes on.
    pub fn suspend(&mut self) {
        self.print();
        // What cannot be stopped goes on; the person sees that.
        let stopped = self.terminal.suspend();
        self.resume();
        self.suspended = stopped.is_ok().then(|| self.clock.now());
    }

    /// We were continued by somebody else than our own suspending: that one has drawn already.
    pub fn go_on(&mut self) {
        let now = self.clock.now();
        if self.suspended.take().is_some_and(|since| now.since(since) < Duration::from_secs(1)) {
            return;
        }
        self.resume();
    }

    /// We go on after a stop: raw mode again, and the question below whatever was printed meanwhile.
    pub fn resume(&mut self) {
        self.terminal.resume();
        let (columns, rows) = self.terminal.size();
        let _ = self.screen.resize(columns, rows);
        let frame = self.screen.redraw();
        self.emit(&frame);
        // The person has to be able to read it anew.
        if let Some(shown) = &mut self.shown {
            shown.since = None;
        }
        self.note_shown();
    }

    /// The terminal is gone: nothing is written any more.
    pub fn hang_up(&mut self) {
        self.hung_up = true;
    }

    /// Leaves raw mode, the question taken off.
    pub fn finish(&mut self) {
        self.print();
        let _pending_or_not = self.terminal.flush_pending();
        self.raw = None;
    }

    fn schedule(&mut self) {
        let now = self.clock.now();
        self.next_tick = self.shown.as_ref().map(|shown| {
            let left = shown.deadline.since(now);
            now + left
                .checked_sub(Duration::from_secs(seconds_left(shown.deadline, now).saturating_sub(1)))
                .unwrap_or(left)
        });
    }

    /// Notes since when the question can be read.
    fn note_shown(&mut self) {
        if !self.terminal.is_clear() {
            return;
        }
        let now = self.clock.now();
        if let Some(shown) = &mut self.shown
            && shown.since.is_none()
        {
            shown.since = Some(now);
            self.keys.shown(now);
        }
    }

    fn emit(&mut self, frame: &Frame) {
        if self.hung_up {
            return;
        }
        let state = match frame {
            Frame::Lasting(bytes) => self.terminal.write(bytes),
            Frame::Passing(bytes) => self.terminal.write_passing(bytes),
        };
        self.wrote(state);
    }

    fn wrote(&mut self, state: WriteState) {
        match state {
            WriteState::Written | WriteState::Pending => {}
            // What is on the glass is not what the screen believes: everything is drawn again, below it.
            WriteState::Lost => {
                let frame = self.screen.redraw();
                if let Some(shown) = &mut self.shown {
                    shown.since = None;
                }
                self.emit(&frame);
                self.line(
                    "keep watch: the terminal took nothing for a while; some lines were not shown, keep log has them",
                );
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
