//! One open question, and the calls that wait for its answer.
//!
//! Promise: every call that joined gets exactly one of run and denied: when it is withdrawn, or when the question ends.
//! A question is settled exactly once, by being consumed.

use platform::Moment;

use super::REJOIN;
use super::types::{Call, Effect, Offer, Question, QuestionId, Settlement, Ticket};
use crate::gate::action::Action;
use crate::gate::audit::AuditEvent;
use crate::gate::denial::Denial;

/// An open question.
pub(super) struct Open {
    question: Question,
    /// What the offers are about; the first is the question's action.
    uncovered: Vec<Action>,
    /// The calls that wait, in the order they came.
    waiters: Vec<Ticket>,
    /// When callers gave up waiting whose calls have not come again, in order.
    given_up: Vec<Moment>,
    shown: bool,
}

impl Open {
    /// A question about `uncovered`, which is not empty.
    pub(super) fn new(
        id: QuestionId,
        call: Call,
        uncovered: Vec<Action>,
        offers: Vec<Offer>,
        deadline: Moment,
    ) -> Self {
        let waiters = vec![call.ticket];
        let action = uncovered[0].clone();
        let question = Question { id, call, action, offers, deadline };
        Self { question, uncovered, waiters, given_up: Vec::new(), shown: false }
    }

    pub(super) const fn question(&self) -> &Question {
        &self.question
    }

    /// Whose call it is about.
    pub(super) const fn connection(&self) -> u64 {
        self.question.call.caller.connection
    }

    /// Whether nobody waits for it any more, and somebody may come again.
    pub(super) const fn is_left(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Whether it is, or was, on the screen.
    pub(super) const fn is_shown(&self) -> bool {
        self.shown
    }

    /// Whether its answer is for this call, too.
    pub(super) fn is_about(&self, call: &Call) -> bool {
        self.question.call.is_same(call)
    }

    /// What its offers are about.
    pub(super) fn uncovered(&self) -> &[Action] {
        &self.uncovered
    }

    /// Whether its offers are about these very actions.
    pub(super) fn asks_about(&self, uncovered: &[Action]) -> bool {
        self.uncovered == uncovered
    }

    /// Asks about these actions, which are not empty, instead. Only before it is shown.
    pub(super) fn ask_about(&mut self, uncovered: Vec<Action>, offers: Vec<Offer>) {
        self.question.action = uncovered[0].clone();
        self.question.offers = offers;
        self.uncovered = uncovered;
    }

    /// Notes that it is put to the person; returns what to write down.
    pub(super) fn show(&mut self) -> AuditEvent {
        self.shown = true;
        let call = &self.question.call;
        AuditEvent::Asked {
            question: self.question.id.0,
            caller: call.caller.name.clone(),
            tool: call.tool.name().to_owned(),
            actions: call.actions.iter().map(Action::info).collect(),
            digest: call.digest.to_string(),
        }
    }

    pub(super) fn has(&self, ticket: Ticket) -> bool {
        self.waiters.contains(&ticket)
    }

    /// Lets the same call wait, too. It may be one that had given up: then that one has come again.
    pub(super) fn join(&mut self, ticket: Ticket) {
        self.waiters.push(ticket);
        if !self.given_up.is_empty() {
            self.given_up.remove(0);
        }
    }

    /// Denies one call that was withdrawn, at `gave_up` if its caller only gave up waiting. Returns whether the question
    /// stays: other calls wait, or this one may come again.
    pub(super) fn withdraw(&mut self, ticket: Ticket, gave_up: Option<Moment>, effects: &mut Vec<Effect>) -> bool {
        self.waiters.retain(|waiter| *waiter != ticket);
        self.given_up.extend(gave_up);
        self.deny_one(ticket, Denial::Cancelled, effects);
        gave_up.is_some() || !self.waiters.is_empty()
    }

    /// Forgets the callers who gave up too long ago to come again.
    pub(super) fn forget_given_up(&mut self, now: Moment) {
        self.given_up.retain(|gave_up| *gave_up + REJOIN > now);
    }

    /// Whether no call waits for it and none may come again.
    pub(super) fn is_abandoned(&self) -> bool {
        self.waiters.is_empty() && self.given_up.is_empty()
    }

    /// Until when a call that had given up may take the answer; `None` if there is none.
    pub(super) fn rejoins_until(&self) -> Option<Moment> {
        self.given_up.last().map(|gave_up| *gave_up + REJOIN)
    }

    /// When it ends by itself, or changes.
    pub(super) fn ends(&self) -> Moment {
        let abandoned = self.given_up.first().map(|gave_up| *gave_up + REJOIN);
        abandoned.map_or(self.question.deadline, |abandoned| abandoned.min(self.question.deadline))
    }

    /// Writes down that its calls run without an answer.
    pub(super) fn audit_allowed(&self, by: &str, effects: &mut Vec<Effect>) {
        for _ in &self.waiters {
            effects.push(Effect::Audit(super::allowed(&self.question.call, by)));
        }
    }

    /// Ends it: its calls run.
    pub(super) fn run(self, settlement: Settlement, effects: &mut Vec<Effect>) {
        let answered = matches!(settlement, Settlement::Allowed(_));
        effects.push(self.settled(settlement));
        effects.extend(self.waiters.into_iter().map(|ticket| Effect::Run { ticket, answered }));
    }

    /// Ends it: its calls are denied.
    pub(super) fn deny(self, denial: Denial, effects: &mut Vec<Effect>) {
        effects.push(self.settled(Settlement::Denied(denial)));
        for ticket in &self.waiters {
            self.deny_one(*ticket, denial, effects);
        }
    }

    fn settled(&self, settlement: Settlement) -> Effect {
        Effect::Settled { question: self.question.id, action: self.question.action.clone(), settlement }
    }

    fn deny_one(&self, ticket: Ticket, denial: Denial, effects: &mut Vec<Effect>) {
        let action = self.question.action.clone();
        effects.push(Effect::Audit(super::denied(&self.question.call, &action, denial)));
        effects.push(Effect::Deny { ticket, action, denial });
    }
}
