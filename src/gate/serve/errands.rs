//! The thread for what is no file of the root: it does chores one by one, and tells what has become due.
//!
//! Promise: a chore that waits for a disk holds up other chores and nothing else; clients take turns, and of a client that
//! calls and withdraws over and over no chore is left. Limit: what is due by the clock on the
//! wall is told up to half a minute late if somebody sets that clock.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use platform::Clock;

use crate::gate::machine::Ticket;
use crate::gate::tools::Request;

use super::message::Message;
use super::parts::{Chores, MakeChores};
use super::turns::Turns;

/// Said when the thread is gone, which only a fault of ours can end.
pub(super) const GONE: &str = "the thread for notes and reminders has ended";

/// The longest sleep: the wall clock can be set meanwhile.
const LOOK: Duration = Duration::from_secs(30);

/// Something to do.
#[derive(Debug)]
enum Errand {
    /// A client's call.
    Run {
        /// Which.
        ticket: Ticket,
        /// What.
        request: Box<Request>,
        /// Whose.
        connection: u64,
    },
    /// A client is gone.
    Gone(u64),
}

/// The thread, as the core knows it: it has one chore at a time, and the others wait here.
#[derive(Debug)]
pub(super) struct Errands {
    thread: Sender<Errand>,
    busy: Option<Ticket>,
    turns: Turns<(Ticket, u64, Box<Request>)>,
}

impl Errands {
    /// Adds a client's chore.
    pub(super) fn add(&mut self, connection: u64, ticket: Ticket, request: Request) {
        self.turns.push(connection, (ticket, connection, Box::new(request)));
    }

    /// Gives the thread its next chore if it has none, of a client that `may` have results now. `false` if it is gone.
    #[must_use]
    pub(super) fn dispatch(&mut self, may: impl Fn(u64) -> bool) -> bool {
        if self.busy.is_some() {
            return true;
        }
        let Some((ticket, connection, request)) = self.turns.next(may) else { return true };
        self.busy = Some(ticket);
        self.thread.send(Errand::Run { ticket, request, connection }).is_ok()
    }

    /// Notes that the chore is done.
    pub(super) fn done(&mut self) {
        self.busy = None;
    }

    /// Whether this call's chore has begun.
    pub(super) fn is_busy_with(&self, ticket: Ticket) -> bool {
        self.busy == Some(ticket)
    }

    /// Takes a call's chore away, if it has not begun.
    pub(super) fn withdraw(&mut self, ticket: Ticket) {
        self.turns.retain(|(queued, ..)| *queued != ticket);
    }

    /// Takes all away that have not begun.
    pub(super) fn clear(&mut self) {
        self.turns = Turns::default();
    }

    /// Says that a client is gone.
    pub(super) fn gone(&self, connection: u64) {
        // A thread that has ended is noticed by the next chore.
        let _ = self.thread.send(Errand::Gone(connection));
    }
}

/// Starts the thread.
pub(super) fn start(make: MakeChores, clock: Arc<dyn Clock>, to_core: Sender<Message>) -> Result<Errands, String> {
    let (errands, given) = channel();
    let (ready, started) = sync_channel(1);
    let work = move || match make() {
        Ok(mut chores) => {
            // Whoever starts us waits for it.
            let _ = ready.send(Ok(()));
            run(&mut *chores, &given, &*clock, &to_core);
        }
        Err(why) => {
            let _ = ready.send(Err(why));
        }
    };
    thread::Builder::new()
        .name("errands".to_owned())
        .spawn(work)
        .map_err(|error| format!("cannot start a thread: {error}"))?;
    started.recv().unwrap_or_else(|_| Err(GONE.to_owned()))?;
    Ok(Errands { thread: errands, busy: None, turns: Turns::default() })
}

fn run(chores: &mut dyn Chores, given: &Receiver<Errand>, clock: &dyn Clock, to_core: &Sender<Message>) {
    loop {
        let due = chores.due(clock.wall(), clock.now());
        if !due.is_empty() && to_core.send(Message::Due(due)).is_err() {
            return;
        }
        let (wall, now) = (clock.wall(), clock.now());
        let until = chores.wake_at(wall, now).map_or(LOOK, |at| at.duration_since(wall).unwrap_or_default());
        match given.recv_timeout(until.min(LOOK)) {
            Ok(Errand::Run { ticket, request, connection }) => {
                let result = chores.run(&request, connection, clock.wall(), clock.now());
                if to_core.send(Message::Chore { ticket, result }).is_err() {
                    return;
                }
            }
            Ok(Errand::Gone(connection)) => chores.gone(connection),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
