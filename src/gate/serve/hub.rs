//! The core thread: one channel in, one loop, one owner of everything that changes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};

use platform::{Clock, LocalStream, Moment};

use crate::gate::audit::AuditEvent;
use crate::gate::machine::{Input, Machine, QuestionId, Ticket};
use crate::gate::tools::Tool;
use crate::gate::wire::ToolInfo;

use super::board::Board;
use super::call::OpenCall;
use super::connection::Connection;
use super::errands::{self, Errands};
use super::herald::Herald;
use super::lane::{GONE, Lane, LaneName};
use super::message::Message;
use super::parts::{Books, OnWake, Parts, Surroundings, Watch};

/// Why a gate ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// A signal, or what counts as one.
    Signal(&'static str),
    /// The only client it served has gone.
    Left,
    /// It cannot go on; one line says why.
    Broke(String),
}

/// The running gate.
pub struct Gate {
    pub(super) tools: Vec<(Tool, ToolInfo)>,
    pub(super) machine: Machine,
    pub(super) board: Box<dyn Board + Send>,
    pub(super) books: Box<dyn Books>,
    pub(super) short: Lane,
    pub(super) search: Lane,
    pub(super) errands: Errands,
    pub(super) herald: Herald,
    pub(super) on_wake: Option<OnWake>,
    pub(super) watch: Option<Box<dyn Watch>>,
    pub(super) clock: Arc<dyn Clock>,
    messages: Receiver<Message>,
    pub(super) to_core: Sender<Message>,
    /// What has come and is not handled yet, other than keys and signals.
    backlog: VecDeque<Message>,
    pub(super) connections: BTreeMap<u64, Connection>,
    /// Clients that were told the reason: ended once it is written, and at this moment at the latest.
    pub(super) parting: BTreeMap<u64, (Connection, Moment)>,
    pub(super) calls: BTreeMap<Ticket, OpenCall>,
    /// Bytes that the open calls hold.
    pub(super) held: usize,
    /// The client with which the gate ends.
    pub(super) only: Option<u64>,
    next_connection: u64,
    next_ticket: u64,
    /// The question on the screen, and how many waited behind it when it was drawn.
    pub(super) shown: Option<(QuestionId, usize)>,
    /// Lines that wait until no question is on the screen, and how many more there were.
    pub(super) later: (Vec<String>, usize),
    /// Why the grants could not be used, as last told.
    pub(super) fault: Option<String>,
    /// Why the audit could not be written, as last told.
    pub(super) audit_fault: Option<String>,
    /// Turns of the loop.
    pub(super) turn: u64,
    /// Answers of the process that changes files.
    pub(super) answers: u64,
    /// Which of them was the last change.
    pub(super) last_change: u64,
    /// Decided changes that are not done yet.
    pub(super) changing: usize,
    pub(super) end: Option<End>,
}

impl Gate {
    /// Starts the threads and processes, and writes the first entry of the audit. Nobody is served before [`Gate::run`].
    pub fn start(parts: Parts, command: &str) -> Result<Self, String> {
        let Parts { tools, machine, mut books, hands, searcher, chores, around } = parts;
        let Surroundings { board, herald, on_wake, watch, clock, messages, to_core } = around;
        let short = Lane::start(LaneName::Short, hands, to_core.clone())?;
        let search = Lane::start(LaneName::Search, searcher, to_core.clone())?;
        let errands = errands::start(chores, Arc::clone(&clock), to_core.clone())?;
        let started = AuditEvent::Started { command: command.to_owned(), pid: platform::process::own_pid() };
        books.write(&started, clock.wall())?;
        Ok(Self {
            tools,
            machine,
            board,
            books,
            short,
            search,
            errands,
            herald,
            on_wake,
            watch,
            clock,
            messages,
            to_core,
            backlog: VecDeque::new(),
            connections: BTreeMap::new(),
            parting: BTreeMap::new(),
            calls: BTreeMap::new(),
            held: 0,
            only: None,
            next_connection: 0,
            next_ticket: 0,
            shown: None,
            later: (Vec::new(), 0),
            fault: None,
            audit_fault: None,
            turn: 0,
            answers: 0,
            last_change: 0,
            changing: 0,
            end: None,
        })
    }

    /// What keeps the processes from touching anything but the root.
    pub fn confinement(&self) -> &[String] {
        &self.short.confinement.0
    }

    /// What nothing keeps them from.
    pub fn missing(&self) -> &[String] {
        &self.short.confinement.1
    }

    /// A line for the person.
    pub fn say(&mut self, line: &str) {
        self.board.line(line);
    }

    /// Serves this client and no other, until it goes.
    pub fn serve_only(&mut self, stream: LocalStream) -> Result<(), String> {
        let id = self.admit(stream, None).map_err(|error| format!("cannot start a thread: {error}"))?;
        self.only = Some(id);
        Ok(())
    }

    /// Serves until something ends it, and then ends it in order.
    pub fn run(mut self) -> End {
        self.read_grants();
        while self.end.is_none() {
            self.turn += 1;
            for message in self.wait() {
                self.take(message);
            }
            if self.end.is_some() {
                // Nothing that came meanwhile is begun any more.
                break;
            }
            if let Some(message) = self.backlog.pop_front() {
                self.take(message);
            }
            let now = self.now();
            if self.machine.wake_at().is_some_and(|at| at <= now) {
                self.step(Input::Tick);
            }
            self.draw();
            self.board.tick();
            self.herald.tick(now);
            self.parting.retain(|_, (_, until)| *until > now);
            self.dispatch();
        }
        self.finish()
    }

    pub(super) fn now(&self) -> Moment {
        self.clock.now()
    }

    pub(super) fn end_with(&mut self, end: End) {
        self.end.get_or_insert(end);
    }

    /// The next number for a call.
    pub(super) fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        Ticket(self.next_ticket)
    }

    pub(super) fn admit(&mut self, stream: LocalStream, place: Option<super::message::Place>) -> std::io::Result<u64> {
        self.next_connection += 1;
        let id = self.next_connection;
        let connection = Connection::open(id, stream, place, &self.to_core)?;
        self.connections.insert(id, connection);
        Ok(id)
    }

    /// Sleeps until there is something to do. Returns what the person did, which is handled before anything that clients
    /// sent meanwhile: however busy they are, a key waits for one message of theirs at most.
    fn wait(&mut self) -> Vec<Message> {
        let mut urgent = Vec::new();
        if self.backlog.is_empty() {
            let parting = self.parting.values().map(|(_, until)| *until).min();
            let wake = [self.machine.wake_at(), self.board.wake_at(), self.herald.wake_at(), parting];
            let wake = wake.into_iter().flatten().min();
            let first = match wake {
                Some(at) => self.messages.recv_timeout(at.since(self.now())),
                None => self.messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match first {
                Ok(message) => self.sort(message, &mut urgent),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("a sender is among our own parts"),
            }
        }
        // As much as there can be: clients are held back until the core has handled what they sent.
        while let Ok(message) = self.messages.try_recv() {
            self.sort(message, &mut urgent);
        }
        urgent
    }

    fn sort(&mut self, message: Message, urgent: &mut Vec<Message>) {
        match message {
            Message::Input(_) | Message::Pressed { .. } | Message::Signal(_) => urgent.push(message),
            other => self.backlog.push_back(other),
        }
    }

    /// What comes next while the gate ends.
    pub(super) fn next_before(&mut self, deadline: Moment) -> Option<Message> {
        let left = deadline.since(self.now());
        self.backlog.pop_front().or_else(|| self.messages.recv_timeout(left).ok())
    }

    /// Gives the processes their next jobs, and the thread for chores its next one.
    pub(super) fn dispatch(&mut self) {
        let connections = &self.connections;
        let may = |id: u64| connections.get(&id).is_some_and(Connection::is_ready);
        let lanes = self.short.dispatch(may) && self.search.dispatch(may);
        let errands = self.errands.dispatch(may);
        if !lanes {
            self.end_with(End::Broke(GONE.to_owned()));
        }
        if !errands {
            self.end_with(End::Broke(errands::GONE.to_owned()));
        }
    }
}
