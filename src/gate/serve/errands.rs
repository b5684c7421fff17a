//! The thread for what is no file of the root: it does chores one by one, and tells what has become due.
//!
//! Promise: a chore that waits for a disk holds up other chores and nothing else. Limit: what is due by the clock on the
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

/// The longest sleep: the wall clock can be set meanwhile.
const LOOK: Duration = Duration::from_secs(30);

/// Something to do.
#[derive(Debug)]
pub(super) enum Errand {
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

/// Starts the thread.
pub(super) fn start(
    make: MakeChores,
    clock: Arc<dyn Clock>,
    to_core: Sender<Message>,
) -> Result<Sender<Errand>, String> {
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
    started.recv().unwrap_or_else(|_| Err("the thread for notes and reminders has ended".to_owned()))?;
    Ok(errands)
}

fn run(chores: &mut dyn Chores, given: &Receiver<Errand>, clock: &dyn Clock, to_core: &Sender<Message>) {
    loop {
        let due = chores.due(clock.wall());
        if !due.is_empty() && to_core.send(Message::Due(due)).is_err() {
            return;
        }
        let until = chores.wake_at().map_or(LOOK, |at| at.duration_since(clock.wall()).unwrap_or_default());
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
