//! What the machine wants done, and what is on the screen.
//!
//! Promise: an effect is carried out only if everything that has to be written down about it has been; a question is shown
//! only with facts that were looked at after the last change.

use crate::digest::Digest;
use crate::gate::Action;
use crate::gate::audit::AuditEvent;
use crate::gate::denial::Denial;
use crate::gate::files::Job;
use crate::gate::machine::{Choice, Effect, Input, QuestionId, Settlement, Ticket};
use crate::gate::pattern::Grant;
use crate::gate::wire::Outcome;

use crate::text::escaped;

use super::call::{Decided, Stage};
use super::hub::Gate;

/// Lines that wait until no question is on the screen; more are counted.
const MOST_LATER: usize = 20;

impl Gate {
    /// Tells the machine something, and does what it says.
    pub(super) fn step(&mut self, input: Input) {
        let effects = self.machine.step(input, self.clock.now());
        self.carry_out(effects);
    }

    /// Lets the machine forget a call that is decided anew under another number, which its client does not notice.
    pub(super) fn forget(&mut self, ticket: Ticket) {
        self.step(Input::Cancelled { ticket, timed_out: false });
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        let unwritten = self.write_down(&effects).err();
        let grants = |effect: &Effect| matches!(effect, Effect::Audit(AuditEvent::Granted { .. }));
        let has_unwritten_grant = unwritten.is_some() && effects.iter().any(grants);
        let (mut stores, mut is_kept) = (false, true);
        for effect in effects {
            match effect {
                Effect::Audit(_) => {}
                Effect::Remember(grants) => {
                    stores = true;
                    is_kept = self.remember(&grants, unwritten.as_deref());
                }
                Effect::Run { ticket, answered } => match &unwritten {
                    None => self.run_call(ticket, answered),
                    Some(why) => self.close(
                        ticket,
                        Outcome::Failed(format!("not done, since the gate cannot write its audit: {why}")),
                    ),
                },
                Effect::Deny { ticket, action, denial } => {
                    self.close(ticket, Outcome::Denied { action: action.to_string(), denial });
                }
                Effect::Settled { question, action, settlement } => {
                    let said = match settlement {
                        Settlement::Allowed(_) | Settlement::Covered if unwritten.is_some() => {
                            "allowed, and not done".to_owned()
                        }
                        Settlement::Allowed(Choice::Always | Choice::WidenAlways) if !is_kept => {
                            "allowed, and not remembered".to_owned()
                        }
                        settlement => outcome(settlement),
                    };
                    self.settled(question, &action, settlement, &said);
                }
            }
        }
        if has_unwritten_grant {
            // A grant nobody could find the reason of later is none; which ones for the session that is, is not told apart.
            self.step(Input::ForgetSession);
        }
        if stores {
            // Stored or not, what holds is what the file says now; it may settle what waits.
            self.read_grants();
            // If it says what it said before, the next question still has to be put.
            self.step(Input::Tick);
        }
    }

    /// Writes the audit's entries, in order, up to the first that cannot be written.
    fn write_down(&mut self, effects: &[Effect]) -> Result<(), String> {
        let at = self.clock.wall();
        for effect in effects {
            if let Effect::Audit(event) = effect
                && let Err(why) = self.books.write(event, at)
            {
                if self.audit_fault.as_ref() != Some(&why) {
                    let shown = escaped(why.as_bytes());
                    self.board.line(&format!("keep gate: the audit cannot be written, so nothing is allowed: {shown}"));
                    self.audit_fault = Some(why.clone());
                }
                return Err(why);
            }
        }
        self.audit_fault = None;
        Ok(())
    }

    /// Stores grants; returns whether they are.
    fn remember(&mut self, grants: &[Grant], unwritten: Option<&str>) -> bool {
        let stored = match unwritten {
            // A grant nobody could find the reason of later is none.
            Some(why) => Err(format!("the audit cannot be written: {why}")),
            None => self.books.remember(grants),
        };
        let Err(why) = stored else { return true };
        let targets: Vec<String> = grants.iter().map(|grant| escaped(grant.target().as_bytes())).collect();
        self.board.line(&format!(
            "keep gate: the answer about {} is not remembered: {}",
            targets.join(", "),
            escaped(why.as_bytes())
        ));
        self.note_fault(why);
        false
    }

    /// An entry in the audit about something that went wrong.
    fn note_fault(&mut self, what: String) {
        // If it is the audit that went wrong, the person has been told.
        let _ = self.books.write(&AuditEvent::Fault { what }, self.clock.wall());
    }

    /// Tells the machine what `grants.json` holds, if that is something else than before.
    pub(super) fn read_grants(&mut self) {
        let Some(reading) = self.books.grants() else { return };
        if reading.fault != self.fault {
            if let Some(fault) = &reading.fault {
                self.board.line(&format!("keep gate: no remembered answer holds: {}", escaped(fault.as_bytes())));
                self.note_fault(fault.clone());
            }
            self.fault = reading.fault;
        }
        self.step(Input::Grants(reading.grants));
    }

    fn settled(&mut self, question: QuestionId, action: &Action, settlement: Settlement, said: &str) {
        let line = format!("keep gate: {}: {said}", escaped(action.to_string().as_bytes()));
        if self.shown.is_some_and(|(shown, _)| shown == question) {
            self.shown = None;
            self.board.settled(&line);
            self.herald.answered(question.0);
        } else if !matches!(settlement, Settlement::Denied(Denial::Cancelled | Denial::Gone)) {
            self.say_when_free(line);
        }
    }

    /// Puts the machine's question on the screen, if it is not there, or another number waits behind it.
    pub(super) fn draw(&mut self) {
        let Some(question) = self.machine.question() else { return self.say_later() };
        let waiting = self.machine.waiting();
        if let Some((id, drawn)) = self.shown
            && id == question.id
        {
            if drawn != waiting {
                self.shown = Some((id, waiting));
                self.board.show(question, waiting);
            }
            return;
        }
        let (id, digest) = (question.id, question.call.digest);
        if !self.is_fresh(digest) {
            return self.look_again(digest);
        }
        self.say_later();
        let Some(question) = self.machine.question() else { return };
        self.shown = Some((id, waiting));
        self.herald.question(id.0, &question.action.to_string());
        self.board.show(question, waiting);
    }

    /// A line for when no question is on the screen.
    pub(super) fn say_when_free(&mut self, line: String) {
        let (lines, more) = &mut self.later;
        if lines.len() < MOST_LATER {
            lines.push(line);
        } else {
            *more += 1;
        }
    }

    fn say_later(&mut self) {
        let (lines, more) = std::mem::take(&mut self.later);
        lines.iter().for_each(|line| self.board.line(line));
        if more > 0 {
            self.board.line(&format!("keep gate: and {more} lines more like these"));
        }
    }

    /// Whether what a question would say was looked at in this turn, and nothing was changed since. A call that changes no
    /// file, or whose client has given up waiting, has nothing to look at again.
    fn is_fresh(&self, digest: Digest) -> bool {
        let mut is_known = false;
        for call in self.calls.values() {
            match &call.stage {
                Stage::Deciding(decided) => match &**decided {
                    Decided::Change(_, found) if found.digest == digest => {
                        is_known = true;
                        if found.turn == self.turn && found.looked > self.last_change && self.changing == 0 {
                            return true;
                        }
                    }
                    Decided::Change(..) | Decided::Chore(_) => {}
                },
                Stage::Refreshing { before, .. } => is_known |= before.digest == digest,
                Stage::Looking | Stage::Preparing | Stage::Acting | Stage::Errand => {}
            }
        }
        !is_known
    }

    /// Lets a process look again at what a question is about, unless it does already.
    fn look_again(&mut self, digest: Digest) {
        let mut ticket = None;
        for (known, call) in &self.calls {
            match &call.stage {
                Stage::Refreshing { before, .. } if before.digest == digest => return,
                Stage::Deciding(decided) => match &**decided {
                    Decided::Change(_, found) if found.digest == digest => ticket = ticket.or(Some(*known)),
                    Decided::Change(..) | Decided::Chore(_) => {}
                },
                _ => {}
            }
        }
        let Some(ticket) = ticket else { return };
        let Some(call) = self.calls.get_mut(&ticket) else { return };
        match std::mem::replace(&mut call.stage, Stage::Preparing) {
            Stage::Deciding(decided) => match *decided {
                Decided::Change(change, found) => {
                    call.stage = Stage::Refreshing { before: Box::new(found), runs: false };
                    self.short.first(ticket, Job::Prepare(change));
                }
                chore => call.stage = Stage::Deciding(Box::new(chore)),
            },
            other => call.stage = other,
        }
    }
}

/// How a question ended, in the line that stays.
fn outcome(settlement: Settlement) -> String {
    let text = match settlement {
        Settlement::Allowed(Choice::Once) => "allowed once",
        Settlement::Allowed(Choice::Session) => "allowed, and for this session",
        Settlement::Allowed(Choice::Always) => "allowed, from now on",
        Settlement::Allowed(Choice::WidenSession) => "allowed, with what lies beside it, for this session",
        Settlement::Allowed(Choice::WidenAlways) => "allowed, with what lies beside it, from now on",
        Settlement::Covered => "allowed, by what was granted meanwhile",
        Settlement::Denied(denial) => return format!("denied ({denial})"),
    };
    text.to_owned()
}
