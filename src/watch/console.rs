//! The terminal of a watch: which question stands on it, and which lines.
//!
//! Promise: on top of that of the [`Panel`], a storm of changes costs a few redraws a second, however many they are: a
//! person reads no faster. The questions of a gate in the same terminal are shown in turn with the watch's, and no key that
//! is meant for one answers the other: one of them is on the screen, and keys are its.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use platform::terminal::{RawGuard, Terminal};
use platform::{Clock, Moment, Notification, Place};

use crate::ask::{self, Bell, Block, Key, Panel, Reading, SharedPanel, Turn, Turns, Typed, Wanted};
use crate::gate::machine::{Question, QuestionId};
use crate::gate::screen::Screen;
use crate::gate::serve::{Board as _, GateKey};

use super::guest::Slate;
use super::hold::Asking;

/// The open question is drawn again once in this time on the average, be it for its own sake or for lines above it,
const DRAW_AGAIN: Duration = Duration::from_millis(50);
/// and as often as it takes while that is no more than this ahead: a few changes are shown at once, a storm is not.
const DRAW_AHEAD: Duration = Duration::from_secs(1);
/// A line that repeats is said again after this time.
const SAY_AGAIN: Duration = Duration::from_secs(30);

const LOST: &str = "keep watch: the terminal took nothing for a while; some lines were not shown, keep log has them";

/// The question on the screen.
struct Shown {
    asker: Asker,
    id: u64,
    version: u64,
    waiting: usize,
    members: Vec<Place>,
    words: Words,
    details: Vec<String>,
}

/// Who asks at the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// The watch, about what changed.
    Watch,
    /// The watch, about opens that are held.
    Hold,
    /// The gate beside it.
    Gate,
    /// The person, who wants to choose what to unlock.
    Choice,
}

/// What was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pressed {
    /// A key for the watch, or for whoever has the terminal.
    Watch(Key),
    /// A key for this question of the gate.
    Gate(QuestionId, GateKey),
    /// A key of the choice that is open.
    Choice(Typed),
}

/// The gate in this terminal.
struct Guest {
    screen: Screen,
    /// The question it has next, and how many wait behind it.
    wanted: Option<(Question, usize)>,
}

/// The terminal with its question and lines.
pub struct Console {
    panel: SharedPanel,
    guest: Option<Guest>,
    turns: Turns<Asker>,
    clock: Arc<dyn Clock>,
    shown: Option<Shown>,
    /// Which state of the choice is on the screen: its id and version, and how many questions wait.
    choosing: Option<(u64, u64, usize)>,
    /// Whether `u` does something.
    unlocks: bool,
    /// Whether `c` does something.
    asks_again: bool,
    /// Until when drawing has used up its share of time.
    drawn_for: Moment,
    /// Whether there is something newer to be shown than what was drawn.
    put_off: bool,
    /// Lines to be printed with the next drawing.
    unprinted: Vec<String>,
    /// When which line was last said, for those that would repeat.
    said: HashMap<String, (String, Moment)>,
}

/// The words of a question of the watch.
pub enum Words {
    /// About what changed.
    Change(ask::Question),
    /// About opens that are held.
    Open(Asking),
}

impl Words {
    fn block(&self) -> ask::Block {
        match self {
            Words::Change(words) => words.block(),
            Words::Open(words) => words.block(),
        }
    }

    fn list(&self) -> Vec<String> {
        match self {
            Words::Change(words) => words.list(),
            Words::Open(words) => words.list(),
        }
    }

    fn help(&self) -> Vec<String> {
        match self {
            Words::Change(words) => words.help(),
            Words::Open(words) => words.help(),
        }
    }

    /// What the desktop is told.
    pub fn notification(&self) -> Notification {
        match self {
            Words::Change(words) => words.notification(),
            Words::Open(words) => words.notification(),
        }
    }
}

/// A question of the watch that is on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnScreen {
    /// Which of its machines asks.
    pub asker: Asker,
    /// The machine's id of the question.
    pub id: u64,
    /// What was shown of it.
    pub version: u64,
    /// The paths that changed, if it is about that.
    pub members: Vec<Place>,
}

/// What is to be on the screen.
pub struct Picture {
    /// Which of the watch's machines asks.
    pub asker: Asker,
    /// The machine's id and version of the question.
    pub id: u64,
    /// Goes up when what is shown differs.
    pub version: u64,
    /// When it is answered by itself.
    pub deadline: Moment,
    /// How many others wait.
    pub waiting: usize,
    /// The paths that changed, if it is about that.
    pub members: Vec<Place>,
    /// Its words.
    pub words: Words,
    /// What `d` shows.
    pub details: Vec<String>,
}

impl Console {
    /// A terminal in raw mode, with nothing on it yet.
    pub fn new(terminal: Terminal, raw: RawGuard, colour: bool, clock: Arc<dyn Clock>) -> Self {
        Self {
            panel: SharedPanel::new(Panel::new(terminal, raw, colour, Arc::clone(&clock), LOST)),
            guest: None,
            turns: Turns::default(),
            clock,
            shown: None,
            choosing: None,
            unlocks: false,
            asks_again: false,
            drawn_for: Moment::default(),
            put_off: false,
            unprinted: Vec::new(),
            said: HashMap::new(),
        }
    }

    /// Makes room for a gate, which asks at this terminal, too.
    pub fn share(&mut self) {
        self.guest = Some(Guest { screen: Screen::beside(self.panel.clone()), wanted: None });
    }

    /// Takes what the gate has to say.
    pub fn gate_says(&mut self, slate: Slate) {
        let Slate { settled, mut lines, more, question } = slate;
        if let Some(guest) = &mut self.guest {
            guest.wanted = question;
            if let Some((id, line)) = settled {
                if guest.screen.question() == Some(id) {
                    guest.screen.settled(&line);
                } else {
                    lines.insert(0, line);
                }
            }
        }
        lines.iter().for_each(|line| self.line(line));
        if more > 0 {
            self.line(&format!("keep gate: and {more} more lines"));
        }
    }

    /// Whether the gate has a question.
    pub fn gate_asks(&self) -> bool {
        self.guest.as_ref().is_some_and(|guest| guest.wanted.is_some())
    }

    /// Whose question is to be on the screen, if the watch's machines, and a choice, want these.
    pub fn turn(&mut self, watch: Option<Wanted>, hold: Option<Wanted>, choice: Option<Wanted>) -> Option<Turn<Asker>> {
        let wanted = self.guest.as_ref().and_then(|guest| guest.wanted.as_ref());
        let gate = wanted.map(|(question, waiting)| Wanted {
            id: question.id.0,
            deadline: question.deadline,
            waiting: *waiting,
        });
        self.turns.next(&[(Asker::Hold, hold), (Asker::Watch, watch), (Asker::Gate, gate), (Asker::Choice, choice)])
    }

    /// Puts a choice on the screen, or what has become of it.
    pub fn show_choice(&mut self, version: (u64, u64, usize), block: impl FnOnce() -> Block, deadline: Moment) {
        if self.choosing == Some(version) {
            return;
        }
        let (id, _, waiting) = version;
        let before = self.choosing.filter(|(known, ..)| *known == id);
        if before.is_none() {
            self.clear();
        }
        // A question that has come is heard, although it is not seen yet.
        let bell = if before.is_some_and(|(.., before)| before < waiting) { Bell::Ring } else { Bell::Silent };
        // It changes by the person's own keys: those go on counting.
        let reading = if before.is_some() { Reading::Known } else { Reading::Anew };
        self.print();
        self.panel.get().ask(block(), deadline, bell, reading);
        self.choosing = Some(version);
    }

    /// Puts the gate's question on the screen.
    pub fn show_gate(&mut self, waiting: usize) {
        if self.shown.is_some() || self.choosing.is_some() {
            self.clear();
        }
        if let Some(Guest { screen, wanted: Some((question, _)) }) = &mut self.guest {
            let _another_or_not = screen.show(question, waiting);
        }
    }

    /// Shows the difference that the gate's question is about.
    pub fn gate_details(&mut self) {
        if let Some(guest) = &mut self.guest {
            guest.screen.details();
        }
    }

    /// The gate, if its question is on the screen.
    fn asking_guest(&mut self) -> Option<&mut Guest> {
        self.guest.as_mut().filter(|guest| guest.screen.question().is_some())
    }

    /// Whether exactly this is on the screen already.
    pub fn shows(&self, asker: Asker, id: u64, version: u64, waiting: usize) -> bool {
        let is_it =
            |shown: &Shown| (shown.asker, shown.id, shown.version, shown.waiting) == (asker, id, version, waiting);
        self.shown.as_ref().is_some_and(is_it)
    }

    /// Whether no question is on the screen.
    pub fn is_free(&self) -> bool {
        self.shown.is_none()
            && self.choosing.is_none()
            && self.guest.as_ref().is_none_or(|guest| guest.screen.question().is_none())
    }

    /// Whether a change of the question with this id has to wait, because it was drawn too often. Another question
    /// never has to. Until it is drawn, keys are for what can be read.
    pub fn puts_off(&mut self, asker: Asker, id: u64) -> bool {
        let same = self.shown.as_ref().is_some_and(|shown| (shown.asker, shown.id) == (asker, id));
        self.put_off = same && !self.may_draw();
        self.put_off
    }

    /// Draws a question. Returns whether it is another one than before.
    pub fn show(&mut self, picture: Picture) -> bool {
        if let Some(guest) = self.asking_guest() {
            guest.screen.leave();
        }
        self.print();
        self.choosing = None;
        let Picture { asker, id, version, deadline, waiting, members, words, details } = picture;
        let before = self.shown.take();
        let bell = match &before {
            Some(shown) if (shown.asker, shown.id) == (asker, id) => Bell::Silent,
            _ => Bell::Ring,
        };
        // Only the number of those that wait differs: the person has read the rest already.
        let reading = match &before {
            Some(shown) if (shown.asker, shown.id, shown.version) == (asker, id, version) => Reading::Known,
            _ => Reading::Anew,
        };
        self.panel.get().ask(words.block(), deadline, bell, reading);
        self.shown = Some(Shown { asker, id, version, waiting, members, words, details });
        self.put_off = false;
        self.count_drawing();
        bell == Bell::Ring
    }

    /// Takes the question off: it was decided, or is none any more.
    pub fn clear(&mut self) {
        if let Some(guest) = self.asking_guest() {
            guest.screen.leave();
        }
        self.print();
        if self.choosing.take().is_some() | self.shown.take().is_some() {
            self.panel.get().withdraw();
            self.put_off = false;
        }
    }

    /// The question of the watch that is on the screen.
    pub fn on_screen(&self) -> Option<OnScreen> {
        let Shown { asker, id, version, members, .. } = self.shown.as_ref()?;
        Some(OnScreen { asker: *asker, id: *id, version: *version, members: members.clone() })
    }

    /// Takes bytes from the keyboard.
    pub fn key(&mut self, bytes: &[u8], at: Moment) -> Option<Pressed> {
        if let Some(guest) = self.asking_guest()
            && let Some(question) = guest.screen.question()
        {
            return guest.screen.key(bytes, at).map(|key| match key {
                GateKey::Interrupt => Pressed::Watch(Key::Interrupt),
                GateKey::Suspend => Pressed::Watch(Key::Suspend),
                key => Pressed::Gate(question, key),
            });
        }
        let typed = self.panel.get().key(bytes, at)?;
        match (typed, self.choosing) {
            (Typed::Interrupt | Typed::Suspend, _) | (_, None) => Key::of(typed).map(Pressed::Watch),
            (typed, Some(_)) => Some(Pressed::Choice(typed)),
        }
    }

    /// When the countdown, or a terminal that took no bytes, needs attention.
    pub fn wake_at(&self) -> Option<Moment> {
        let now = self.clock.now();
        let draw = (self.put_off || !self.unprinted.is_empty()).then(|| now + self.drawn_for.since(now + DRAW_AHEAD));
        let guest = self.guest.as_ref().and_then(|guest| guest.screen.wake_at());
        [self.panel.get().wake_at(), draw, guest].into_iter().flatten().min()
    }

    /// Draws the countdown, lines that are due, and what the terminal did not take before.
    pub fn tick(&mut self) {
        if self.may_draw() {
            self.print();
        }
        self.panel.get().tick();
        if let Some(guest) = self.asking_guest() {
            guest.screen.tick();
        }
    }

    /// A line above the question. In a burst, several are printed together.
    pub fn line(&mut self, line: &str) {
        if let Some(guest) = self.asking_guest() {
            // Nothing may push the gate's question out of sight, whoever causes the lines.
            return guest.screen.line(line);
        }
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

    /// There is something that `u` unlocks.
    pub fn offer_unlocking(&mut self) {
        self.unlocks = true;
    }

    /// There is something that `c` takes back.
    pub fn offer_asking_again(&mut self) {
        self.asks_again = true;
    }

    /// Shows the keys.
    pub fn help(&mut self) {
        self.print();
        if let Some(shown) = &self.shown {
            let mut lines = shown.words.help();
            if self.unlocks {
                lines.push("  u  choose what to unlock for a minute, once nothing is asked any more".to_owned());
            }
            if self.asks_again {
                lines.push(
                    "  c  choose a contested path to be asked about again, once nothing is asked any more".to_owned(),
                );
            }
            self.lines(&lines);
        }
    }

    /// Shows more of what changed.
    pub fn details(&mut self) {
        self.print();
        if let Some(shown) = &self.shown {
            let list = shown.words.list();
            let mut lines = if list.len() > 1 { list } else { Vec::new() };
            lines.extend(shown.details.iter().cloned());
            self.lines(&lines);
        }
    }

    fn lines(&mut self, lines: &[String]) {
        self.count_drawing();
        self.panel.get().lines(lines);
    }

    fn may_draw(&self) -> bool {
        self.clock.now() + DRAW_AHEAD >= self.drawn_for
    }

    fn count_drawing(&mut self) {
        self.drawn_for = self.drawn_for.max(self.clock.now()) + DRAW_AGAIN;
    }

    /// The terminal has another size.
    pub fn resize(&mut self) {
        self.panel.get().resize();
    }

    /// Undoes raw mode, stops the process, and comes back when it goes on.
    pub fn suspend(&mut self) {
        self.print();
        self.panel.get().suspend();
    }

    /// We were continued, by our own suspending or by somebody else.
    pub fn go_on(&mut self) {
        self.panel.get().go_on();
    }

    /// We go on after a stop: raw mode again, and the question below whatever was printed meanwhile.
    pub fn resume(&mut self) {
        self.panel.get().resume();
    }

    /// The terminal is gone: nothing is written any more.
    pub fn hang_up(&mut self) {
        self.panel.get().hang_up();
    }

    /// Leaves raw mode, the question taken off.
    pub fn finish(&mut self) {
        if let Some(guest) = self.asking_guest() {
            guest.screen.leave();
        }
        self.print();
        self.panel.get().finish();
    }
}
