//! A process that touches files, the thread that waits for it, and the jobs that wait for both.
//!
//! There are two. A search may take as long as the tree is large; in a process of its own it holds up other searches and
//! nothing else. All other jobs are short, and one process for them keeps their order: whoever reads after a write was
//! answered sees it.
//!
//! Promise: what has been decided goes before what is only looked at; clients take turns. The process is started by the
//! thread that uses it and ends with it: on Linux a child that is to die with its parent dies with that very thread.

use std::collections::VecDeque;
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::thread;

use crate::gate::files::Job;
use crate::gate::machine::Ticket;

use super::message::Message;
use super::parts::MakeHands;
use super::turns::Turns;

/// Said when a thread is gone that only a fault of ours can end.
pub(super) const GONE: &str = "the thread that works with files has ended";

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneName {
    /// Everything but searches.
    Short,
    /// Searches.
    Search,
}

/// One of the two, as the core knows it.
#[derive(Debug)]
pub(super) struct Lane {
    jobs: Sender<(Ticket, Box<Job>)>,
    /// What it is doing.
    busy: Option<Ticket>,
    decided: VecDeque<(Ticket, Box<Job>)>,
    turns: Turns<(Ticket, Box<Job>)>,
    /// What keeps the process from touching anything else, and what nothing keeps it from.
    pub(super) confinement: (Vec<String>, Vec<String>),
}

impl Lane {
    /// Starts the thread, and the process in it; an error if either does not start.
    pub(super) fn start(name: LaneName, make: MakeHands, to_core: Sender<Message>) -> Result<Self, String> {
        let (jobs, given) = channel::<(Ticket, Box<Job>)>();
        let (ready, started) = sync_channel(1);
        let work = move || {
            let mut hands = match make() {
                Ok(hands) => hands,
                Err(why) => {
                    // Whoever starts us waits for it.
                    let _ = ready.send(Err(why));
                    return;
                }
            };
            let _ = ready.send(Ok((hands.confinement(), hands.missing())));
            drop(ready);
            for (ticket, job) in given {
                let result = hands.run(&job);
                if to_core.send(Message::Files { lane: name, ticket, job, result }).is_err() {
                    return;
                }
            }
        };
        let title = match name {
            LaneName::Short => "files",
            LaneName::Search => "search",
        };
        thread::Builder::new()
            .name(title.to_owned())
            .spawn(work)
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        let confinement = started.recv().unwrap_or_else(|_| Err(GONE.to_owned()))?;
        Ok(Self { jobs, busy: None, decided: VecDeque::new(), turns: Turns::default(), confinement })
    }

    /// Adds a job that looks at something, for a client.
    pub(super) fn look(&mut self, connection: u64, ticket: Ticket, job: Job) {
        self.turns.push(connection, (ticket, Box::new(job)));
    }

    /// Adds a job that has been decided, or that the question on the screen waits for.
    pub(super) fn first(&mut self, ticket: Ticket, job: Job) {
        self.decided.push_back((ticket, Box::new(job)));
    }

    /// Gives the process its next job if it has none; what is not decided yet only for a client that `may` have results
    /// now. `false` if the thread is gone.
    #[must_use]
    pub(super) fn dispatch(&mut self, may: impl Fn(u64) -> bool) -> bool {
        if self.busy.is_some() {
            return true;
        }
        let Some((ticket, job)) = self.decided.pop_front().or_else(|| self.turns.next(may)) else { return true };
        self.busy = Some(ticket);
        self.jobs.send((ticket, job)).is_ok()
    }

    /// Notes that the process has done its job.
    pub(super) fn done(&mut self) {
        self.busy = None;
    }

    /// Whether it is busy with this call.
    pub(super) fn is_busy_with(&self, ticket: Ticket) -> bool {
        self.busy == Some(ticket)
    }

    /// Takes a call's job away, if it has not begun.
    pub(super) fn withdraw(&mut self, ticket: Ticket) {
        self.turns.retain(|(queued, _)| *queued != ticket);
        self.decided.retain(|(queued, _)| *queued != ticket);
    }

    /// Takes all jobs away that have not begun.
    pub(super) fn clear(&mut self) {
        self.turns = Turns::default();
        self.decided.clear();
    }
}
