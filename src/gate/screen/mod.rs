//! The gate's question on the terminal.
//!
//! Promise: a question is written once, as plain lines, and stays in the scrollback; only its last line is drawn again, to
//! count the seconds and those that wait. A key is an answer only if it is offered by the question that is on the screen,
//! and only once that has been there long enough ([`crate::ask::Panel`]). While a question is open, few other lines are
//! printed: whoever can cause lines cannot push it out of sight.
//! Limit: after a stop, after lines that got lost and in a window that became too narrow, the question is written once
//! more, for otherwise nobody could read it. What an answer means is decided elsewhere ([`super::machine`]).

mod words;

use std::sync::Arc;
use std::time::Duration;

use platform::terminal::{RawGuard, Terminal};
use platform::{Clock, Moment};

use crate::ask::panel::Glass;
use crate::ask::{Bell, Block, Panel, Printed, Reading, SharedPanel, Typed, certain};
use crate::gate::machine::{Question, QuestionId};
use crate::gate::serve::{Board, GateKey};

use words::Words;
pub use words::in_words;

/// Another number of those that wait is drawn no sooner than this after the one before.
const COUNT_AGAIN: Duration = Duration::from_millis(250);
/// The bell rings no more often.
const RING_AGAIN: Duration = Duration::from_secs(1);
/// Lines that are printed while one question is open; more wait until it is settled.
const LINES_BESIDE: usize = 8;
/// Lines that wait; more are counted.
const MOST_LATER: usize = 100;
/// Lines, and bytes, of the difference that are shown at one time: a terminal takes so much at once.
const PAGE: usize = 100;
const PAGE_BYTES: usize = 16 << 10;

const LOST: &str = "keep gate: the terminal took nothing for a while; some lines were not shown";

/// The question on the screen.
struct Shown {
    id: QuestionId,
    deadline: Moment,
    words: Words,
    difference: Vec<String>,
    /// Lines of the difference that have been shown.
    seen: usize,
    /// How many wait behind it, and how many of them the screen tells.
    waiting: usize,
    told: usize,
    drawn: Moment,
    is_tall: bool,
    /// Lines printed since it is open.
    beside: usize,
}

/// The terminal of a gate.
pub struct Screen {
    panel: SharedPanel,
    shown: Option<Shown>,
    rung: Option<Moment>,
    /// Lines for when the question is settled, and how many more there were.
    later: Vec<String>,
    dropped: usize,
}

impl Screen {
    /// A terminal in raw mode, with nothing on it yet.
    pub fn new(terminal: Terminal, raw: RawGuard, colour: bool, clock: Arc<dyn Clock>) -> Self {
        Self::beside(SharedPanel::new(Panel::new(terminal, raw, colour, clock, LOST)))
    }

    /// Whatever shows bytes, with nothing on it yet.
    pub fn on(glass: Box<dyn Glass>, colour: bool, clock: Arc<dyn Clock>) -> Self {
        Self::beside(SharedPanel::new(Panel::on(glass, colour, clock, LOST)))
    }

    /// On a panel that somebody else draws on, too: only one may have a question on it at a time.
    pub fn beside(panel: SharedPanel) -> Self {
        Self { panel, shown: None, rung: None, later: Vec::new(), dropped: 0 }
    }

    /// Puts a question on the screen; if it is there already, only the number of those that wait behind it.
    /// Returns whether it is another one than before.
    pub fn show(&mut self, question: &Question, waiting: usize) -> bool {
        if let Some(shown) = &mut self.shown
            && shown.id == question.id
        {
            shown.waiting = waiting;
            self.count_again();
            return false;
        }
        self.leave();
        let now = self.panel.get().now();
        let words = Words::of(question);
        let is_tall = !self.panel.get().has_room_for(&words.block(waiting, false), question.deadline);
        let shown = Shown {
            id: question.id,
            deadline: question.deadline,
            words,
            difference: question.call.difference.clone(),
            seen: 0,
            waiting,
            told: waiting,
            drawn: now,
            is_tall,
            beside: 0,
        };
        let bell = match self.rung {
            Some(rung) if now.since(rung) < RING_AGAIN => Bell::Silent,
            _ => Bell::Ring,
        };
        if bell == Bell::Ring {
            self.rung = Some(now);
        }
        self.panel.get().ask(shown.block(), shown.deadline, bell, Reading::Anew);
        self.shown = Some(shown);
        true
    }

    /// The question on the screen.
    pub fn question(&self) -> Option<QuestionId> {
        self.shown.as_ref().map(|shown| shown.id)
    }

    /// The question on the screen is none any more, and nothing is to be said of it.
    pub fn leave(&mut self) {
        if self.shown.take().is_some() {
            self.panel.get().close();
        }
        self.print_later();
    }

    fn print_later(&mut self) {
        let mut lines: Vec<Printed> = self.later.drain(..).map(|line| certain(&line).into()).collect();
        if self.dropped > 0 {
            lines.push(format!("keep gate: and {} more lines", self.dropped).into());
            self.dropped = 0;
        }
        if !lines.is_empty() {
            self.panel.get().print(&lines);
        }
    }

    /// The last line tells how many wait; in a storm of calls only now and then.
    fn count_again(&mut self) {
        let now = self.panel.get().now();
        if let Some(shown) = &mut self.shown
            && shown.told != shown.waiting
            && now.since(shown.drawn) >= COUNT_AGAIN
        {
            (shown.told, shown.drawn) = (shown.waiting, now);
            self.panel.get().ask(shown.block(), shown.deadline, Bell::Silent, Reading::Known);
        }
    }
}

impl Board for Screen {
    fn show(&mut self, question: &Question, waiting: usize) {
        let _another_or_not = Self::show(self, question, waiting);
    }

    /// The question on the screen is settled: this one line stays below it.
    fn settled(&mut self, line: &str) {
        if self.shown.take().is_some() {
            self.panel.get().close();
        }
        self.panel.get().print(&[certain(line).into()]);
        self.print_later();
    }

    /// A line above the last one of the question, if there is one.
    fn line(&mut self, line: &str) {
        if let Some(shown) = &mut self.shown {
            if shown.beside >= LINES_BESIDE {
                if self.later.len() < MOST_LATER {
                    self.later.push(line.to_owned());
                } else {
                    self.dropped += 1;
                }
                return;
            }
            shown.beside += 1;
        }
        self.panel.get().print(&[certain(line).into()]);
    }

    /// Takes bytes from the keyboard. A key that is not offered is none.
    fn key(&mut self, bytes: &[u8], at: Moment) -> Option<GateKey> {
        let typed = self.panel.get().key(bytes, at)?;
        let key = match typed {
            Typed::Interrupt => return Some(GateKey::Interrupt),
            Typed::Suspend => return Some(GateKey::Suspend),
            Typed::Byte(key) => key,
            Typed::Idle(_) | Typed::Escape => return None,
        };
        let shown = self.shown.as_ref()?;
        match key {
            b'n' => Some(GateKey::No),
            b'd' => (!shown.difference.is_empty()).then_some(GateKey::Details),
            other => shown.words.offer(other).map(GateKey::Offer),
        }
    }

    /// Shows the difference, or the next page of it, above the last line of the question. The person has to have time to
    /// read it before a key counts.
    fn details(&mut self) {
        let Some(shown) = &mut self.shown else { return };
        if shown.difference.is_empty() {
            return;
        }
        if shown.seen >= shown.difference.len() {
            shown.seen = 0;
        }
        let mut bytes = 0;
        let mut lines: Vec<Printed> = shown.difference[shown.seen..]
            .iter()
            .take(PAGE)
            .map(|line| words::quoted(line))
            .take_while(|line| {
                let first = bytes == 0;
                bytes += line.text.len();
                first || bytes <= PAGE_BYTES
            })
            .collect();
        shown.seen += lines.len();
        let more = shown.difference.len() - shown.seen;
        if more > 0 {
            lines.push(format!("  … {more} more lines; [d] shows the next").into());
        }
        self.panel.get().print(&lines);
        self.panel.get().read_again();
    }

    /// When the countdown, or a terminal that took no bytes, needs attention.
    fn wake_at(&self) -> Option<Moment> {
        let count =
            self.shown.as_ref().filter(|shown| shown.told != shown.waiting).map(|shown| shown.drawn + COUNT_AGAIN);
        [self.panel.get().wake_at(), count].into_iter().flatten().min()
    }

    /// Draws the countdown, and what the terminal did not take before.
    fn tick(&mut self) {
        self.count_again();
        self.panel.get().tick();
    }

    /// The terminal has another size.
    fn resize(&mut self) {
        self.panel.get().resize();
    }

    /// Undoes raw mode, stops the process, and comes back when it goes on.
    fn suspend(&mut self) {
        self.panel.get().suspend();
    }

    /// We were continued, by our own suspending or by somebody else.
    fn go_on(&mut self) {
        self.panel.get().go_on();
    }

    /// We go on after a stop, or are back in the foreground: raw mode again, and the question below whatever was printed
    /// meanwhile.
    fn resume(&mut self) {
        self.panel.get().resume();
    }

    /// The terminal is gone: nothing is written any more, and no key counts.
    fn hang_up(&mut self) {
        self.panel.get().hang_up();
        self.shown = None;
    }

    /// Leaves the terminal as it was found; a question that is open stays in the scrollback.
    fn finish(&mut self) {
        self.leave();
        self.panel.get().finish();
    }
}

impl Shown {
    fn block(&self) -> Block {
        self.words.block(self.told, self.is_tall)
    }
}

#[cfg(test)]
mod tests;
