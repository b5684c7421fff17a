//! The end of a gate: what waits is denied, what was begun is finished, and everybody is told.
//!
//! Promise: it takes a few seconds at most, whoever does not play along. What was not begun is not done.

use std::time::Duration;

use crate::gate::audit::AuditEvent;
use crate::gate::machine::{Input, Ticket};
use crate::gate::wire::Outcome;

use super::call::Stage;
use super::hub::{End, Gate};
use super::message::Message;

/// How long a change that was begun may take to its end.
const TO_FINISH: Duration = Duration::from_secs(2);
/// How long clients have to take what they are told.
const TO_TELL: Duration = Duration::from_secs(1);

impl Gate {
    pub(super) fn finish(mut self) -> End {
        let end = self.end.take().unwrap_or(End::Left);
        self.step(Input::ApproverGone);
        self.short.clear();
        self.search.clear();
        self.errands.clear();
        let open: Vec<Ticket> = self.calls.keys().copied().collect();
        for ticket in open {
            // A client that does not take what it is told is gone with all its calls.
            let Some(call) = self.calls.get(&ticket) else { continue };
            let is_change = self.short.is_busy_with(ticket) && matches!(call.stage, Stage::Acting);
            if !(is_change || self.errands.is_busy_with(ticket)) {
                self.close(ticket, Outcome::Failed("the gate has ended before this was done".to_owned()));
            }
        }
        let deadline = self.now() + TO_FINISH;
        while !self.calls.is_empty()
            && let Some(message) = self.next_before(deadline)
        {
            if matches!(message, Message::Files { .. } | Message::Chore { .. } | Message::Closed { .. }) {
                self.take(message);
                // What would be decided anew is not: nobody can be asked.
                self.close_what_waits();
            }
        }
        self.tell_everybody();
        let why = match &end {
            End::Signal("SIGHUP") | End::Left => "hangup",
            End::Signal("SIGINT") => "interrupt",
            End::Signal(_) => "signal",
            End::Broke(_) => "fault",
        };
        // There is nobody left to tell if it cannot be written.
        let _ = self.books.write(&AuditEvent::Ended { why: why.to_owned() }, self.clock.wall());
        self.board.finish();
        end
    }

    fn close_what_waits(&mut self) {
        let waiting: Vec<Ticket> = self
            .calls
            .iter()
            .filter(|(_, call)| !matches!(call.stage, Stage::Acting | Stage::Errand))
            .map(|(ticket, _)| *ticket)
            .collect();
        for ticket in waiting {
            self.close(ticket, Outcome::Failed("the gate has ended before this was done".to_owned()));
        }
        self.short.clear();
    }

    /// Lets each client take what waits for it.
    fn tell_everybody(&mut self) {
        let deadline = self.now() + TO_TELL;
        for (id, mut connection) in std::mem::take(&mut self.connections) {
            connection.finish();
            self.parting.insert(id, (connection, deadline));
        }
        while !self.parting.is_empty()
            && let Some(message) = self.next_before(deadline)
        {
            if let Message::Written { connection } = message {
                self.parting.remove(&connection);
            }
        }
    }
}
