//! The terminal of a watch: which question stands on it, and which lines.
//!
//! Promise: on top of that of the [`Panel`], a storm of changes costs a few redraws a second, however many they are: a
//! person reads no faster.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use platform::terminal::{RawGuard, Terminal};
use platform::{Clock, Moment, Place};

use crate::ask::{self, Bell, Key, Panel, Reading};

/// The open question is drawn again once in this time on the average, be it for its own sake or for lines above it,
const DRAW_AGAIN: Duration = Duration::from_millis(50);
/// and as often as it takes while that is no more than this ahead: a few changes are shown at once, a storm is not.
const DRAW_AHEAD: Duration = Duration::from_secs(1);
/// A line that repeats is said again after this time.
const SAY_AGAIN: Duration = Duration::from_secs(30);

const LOST: &str = "keep watch: the terminal took nothing for a while; some lines were not shown, keep log has them";

/// The question on the screen.
struct Shown {
    id: u64,
    version: u64,
    waiting: usize,
    members: Vec<Place>,
    words: ask::Question,
    details: Vec<String>,
}

/// The terminal with its question and lines.
pub struct Console {
    panel: Panel,
    clock: Arc<dyn Clock>,
    shown: Option<Shown>,
    /// Until when drawing has used up its share of time.
    drawn_for: Moment,
    /// Whether there is something newer to be shown than what was drawn.
    put_off: bool,
    /// Lines to be printed with the next drawing.
    unprinted: Vec<String>,
    /// When which line was last said, for those that would repeat.
    said: HashMap<String, (String, Moment)>,
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
        Self {
            panel: Panel::new(terminal, raw, colour, Arc::clone(&clock), LOST),
            clock,
            shown: None,
            drawn_for: Moment::default(),
            put_off: false,
            unprinted: Vec::new(),
            said: HashMap::new(),
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
        // Only the number of those that wait differs: the person has read the rest already.
        let reading = match &before {
            Some(shown) if (shown.id, shown.version) == (id, version) => Reading::Known,
            _ => Reading::Anew,
        };
        self.panel.ask(words.block(), deadline, bell, reading);
        self.shown = Some(Shown { id, version, waiting, members, words, details });
        self.put_off = false;
        self.count_drawing();
        bell == Bell::Ring
    }

    /// Takes the question off: it was decided, or is none any more.
    pub fn clear(&mut self) {
        self.print();
        if self.shown.take().is_some() {
            self.panel.withdraw();
            self.put_off = false;
        }
    }

    /// The question that is on the screen, and the paths it is about.
    pub fn on_screen(&self) -> Option<(u64, u64, Vec<Place>)> {
        self.shown.as_ref().map(|shown| (shown.id, shown.version, shown.members.clone()))
    }

    /// Takes bytes from the keyboard.
    pub fn key(&mut self, bytes: &[u8], at: Moment) -> Option<Key> {
        self.panel.key(bytes, at).and_then(Key::of)
    }

    /// When the countdown, or a terminal that took no bytes, needs attention.
    pub fn wake_at(&self) -> Option<Moment> {
        let now = self.clock.now();
        let draw = (self.put_off || !self.unprinted.is_empty()).then(|| now + self.drawn_for.since(now + DRAW_AHEAD));
        [self.panel.wake_at(), draw].into_iter().flatten().min()
    }

    /// Draws the countdown, lines that are due, and what the terminal did not take before.
    pub fn tick(&mut self) {
        if self.may_draw() {
            self.print();
        }
        self.panel.tick();
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
        self.count_drawing();
        self.panel.lines(lines);
    }

    fn may_draw(&self) -> bool {
        self.clock.now() + DRAW_AHEAD >= self.drawn_for
    }

    fn count_drawing(&mut self) {
        self.drawn_for = self.drawn_for.max(self.clock.now()) + DRAW_AGAIN;
    }

    /// The terminal has another size.
    pub fn resize(&mut self) {
        self.panel.resize();
    }

    /// Undoes raw mode, stops the process, and comes back when it goes on.
    pub fn suspend(&mut self) {
        self.print();
        self.panel.suspend();
    }

    /// We were continued, by our own suspending or by somebody else.
    pub fn go_on(&mut self) {
        self.panel.go_on();
    }

    /// We go on after a stop: raw mode again, and the question below whatever was printed meanwhile.
    pub fn resume(&mut self) {
        self.panel.resume();
    }

    /// The terminal is gone: nothing is written any more.
    pub fn hang_up(&mut self) {
        self.panel.hang_up();
    }

    /// Leaves raw mode, the question taken off.
    pub fn finish(&mut self) {
        self.print();
        self.panel.finish();
    }
}
