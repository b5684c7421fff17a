//! The gate in a watch's terminal: what it says, and how it is told.
//!
//! The gate runs in a thread of its own, as it does alone; the terminal is the watch's. What the gate would show goes onto
//! a [`Slate`] in the watch's inbox, and the key that answers its question comes back with that question's number.
//!
//! Promise: however much a client makes the gate say while the watch is busy, what waits is bounded, and the last question
//! is the one that counts. Limit: lines beyond that are counted, not shown; the audit has what was decided.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};

use platform::lock::Lock;
use platform::signals::Signal;
use platform::{Clock, Hint, Listening};

use crate::gate::machine::{Question, QuestionId, Ticket};
use crate::gate::serve::{Board, Coming, End, Gate, GateKey, Message, Watch};
use crate::text::escaped;

use super::approvals::{Approvals, place_of};
use super::inbox::Post;

/// Lines that wait for the watch.
const MOST_LINES: usize = 100;

/// What the gate has said since the watch last looked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slate {
    /// The question that was on the screen, if it is settled, and the line that stays in its place.
    pub settled: Option<(QuestionId, String)>,
    /// Lines.
    pub lines: Vec<String>,
    /// How many more there were.
    pub more: usize,
    /// The question it has now, and how many wait behind it.
    pub question: Option<(Question, usize)>,
}

impl Slate {
    fn add(&mut self, line: &str) {
        if self.lines.len() < MOST_LINES {
            self.lines.push(line.to_owned());
        } else {
            self.more += 1;
        }
    }

    fn settle(&mut self, shown: Option<QuestionId>, line: &str) {
        match shown {
            Some(shown) if self.settled.is_none() => self.settled = Some((shown, line.to_owned())),
            _ => self.add(line),
        }
    }
}

/// The board of a gate whose terminal is a watch's.
#[derive(Debug)]
pub struct GuestBoard {
    post: Post,
    /// The question as the gate has it.
    question: Option<(Question, usize)>,
}

impl GuestBoard {
    /// The board that writes to this watch.
    pub fn new(post: Post) -> Self {
        Self { post, question: None }
    }

    /// Says something, and with it which question there is: the watch may have taken the slate before.
    fn say(&self, say: impl FnOnce(&mut Slate)) {
        self.post.gate(|slate| {
            say(slate);
            slate.question.clone_from(&self.question);
        });
    }
}

impl Board for GuestBoard {
    fn show(&mut self, question: &Question, waiting: usize) {
        self.question = Some((question.clone(), waiting));
        self.say(|_| {});
    }

    fn settled(&mut self, line: &str) {
        let shown = self.question.take().map(|(question, _)| question.id);
        self.say(|slate| slate.settle(shown, line));
    }

    fn line(&mut self, line: &str) {
        self.say(|slate| slate.add(line));
    }

    fn finish(&mut self) {
        self.question = None;
        self.say(|_| {});
    }
}

impl Drop for GuestBoard {
    /// However the gate ended, nobody can answer its question any more.
    fn drop(&mut self) {
        self.finish();
    }
}

/// Tells a watch what the person has answered at the gate.
pub struct Beside {
    /// What is allowed.
    pub approvals: Approvals,
    /// The way to the watch.
    pub post: Post,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

impl Watch for Beside {
    fn expect(&mut self, ticket: Ticket, coming: Vec<Coming>) {
        let coming = coming.into_iter().filter_map(|coming| Some((place_of(coming.path.as_str())?, coming.content)));
        self.approvals.add(ticket.0, coming);
    }

    fn is_over(&mut self, ticket: Ticket, was_done: bool) {
        if !was_done {
            return self.approvals.take_back(ticket.0);
        }
        let at = self.clock.now();
        for place in self.approvals.was_done(ticket.0, at) {
            self.post.hint(Hint::Touched { place, at });
        }
    }
}

impl Drop for Beside {
    /// However the gate ended, it does nothing any more.
    fn drop(&mut self) {
        self.approvals.nothing_is_coming();
    }
}

/// The running gate, as the watch knows it.
pub struct Guest {
    to_gate: Sender<Message>,
    thread: JoinHandle<()>,
    /// Where clients come in, and the lock that says whose the socket is.
    _doors: (Vec<Listening>, Lock),
}

impl Guest {
    /// Lets a gate serve.
    pub fn start(
        gate: Gate,
        to_gate: Sender<Message>,
        doors: (Vec<Listening>, Lock),
        post: Post,
    ) -> std::io::Result<Self> {
        let run = move || {
            if let End::Broke(why) = gate.run() {
                let line = format!("keep gate: it cannot go on: {}; the watch goes on", escaped(why.as_bytes()));
                post.gate(|slate| slate.add(&line));
            }
        };
        let thread = thread::Builder::new().name("gate".to_owned()).spawn(run)?;
        Ok(Self { to_gate, thread, _doors: doors })
    }

    /// A key for this question of the gate.
    pub fn press(&self, question: QuestionId, key: GateKey) {
        // A gate that has ended has no question any more.
        let _ = self.to_gate.send(Message::Pressed { question, key });
    }

    /// Ends it: what waits is denied, what was begun is finished. Takes a few seconds at most.
    pub fn end(self, signal: Signal) {
        let _it_may_have_ended = self.to_gate.send(Message::Signal(signal));
        // If it panicked, it has said so.
        let _ = self.thread.join();
    }
}

/// Lets the gate serve, once the watch does.
pub type Opening = Box<dyn FnOnce() -> Result<Guest, crate::cli::exit::Refusal>>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::inbox::{Message as Heard, inbox};
    use std::time::Duration;

    fn slate(inbox: &mut crate::watch::inbox::Inbox) -> Slate {
        match &inbox.wait(Duration::ZERO, 1)[..] {
            [Heard::Gate(slate)] => Slate::clone(slate),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn however_much_is_said_what_waits_is_bounded() {
        let (post, mut inbox) = inbox();
        let mut board = GuestBoard::new(post);
        for number in 0..1000 {
            board.line(&number.to_string());
        }
        let said = slate(&mut inbox);
        assert_eq!((said.lines.len(), said.more), (MOST_LINES, 1000 - MOST_LINES));
        board.line("again");
        assert_eq!(slate(&mut inbox).lines, ["again"]);
    }

    #[test]
    fn a_change_that_is_over_is_looked_at_at_once_if_it_was_done() {
        let (post, mut inbox) = inbox();
        let approvals = Approvals::default();
        let clock: Arc<dyn Clock> = Arc::new(platform::SystemClock);
        let mut beside = Beside { approvals: approvals.clone(), post, clock };
        let env = place_of(".env").expect("a path");
        let coming = || {
            let path = crate::gate::path::FilePath::parse(".env").expect("a path");
            vec![Coming { path, content: None }]
        };
        beside.expect(Ticket(1), coming());
        assert!(approvals.has(&env));
        beside.is_over(Ticket(1), false);
        assert!(!approvals.has(&env) && inbox.wait(Duration::ZERO, 9).is_empty());
        beside.expect(Ticket(2), coming());
        beside.is_over(Ticket(2), true);
        let heard = inbox.wait(Duration::ZERO, 9);
        assert!(matches!(&heard[..], [Heard::Hint(Hint::Touched { place, .. })] if *place == env), "{heard:?}");
    }
}
