//! The gate's decisions, pure: calls, answers and time go in, effects come out.
//!
//! Promise: every call that comes in is let run or denied exactly once. It runs only if the policy allows all it would
//! reach, or grants cover the rest, or a person took an offer of a question about this very call, from this caller, with
//! these arguments, while the call waited or had just given up waiting. A policy's denial is looked at before any grant,
//! and under a ceiling of never no grant is looked at. What is remembered is what the taken offer names, for no longer
//! than the ceiling. A question that was put to the person stays the one on the screen until it is settled; the next one is
//! that of a caller who was asked about least recently, so that nobody's thousand calls keep another's from being seen.
//! Limit: it reads no clock, stores nothing and draws nothing; it believes what it is told of callers and of the file of
//! grants. How many calls may wait at a time is for whoever takes them in.

mod held;
mod kept;
mod open;
mod types;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use platform::Moment;

use super::action::Action;
use super::audit::AuditEvent;
use super::denial::Denial;
use super::host::{Host, HostName};
use super::kind::Kind;
use super::offer;
use super::path::{FilePath, NotePath};
use super::pattern::Grant;
use super::policy::{self, Policy};
use super::recall::{Recall, Ruling};
use held::Held;
use kept::{Kept, Verdict};
use open::Open;

pub use types::{Call, Caller, Choice, Effect, Input, Offer, OfferId, Question, QuestionId, Settlement, Ticket};

/// For so long after a caller gave up waiting, the same call joins its question or takes the answer.
pub const REJOIN: Duration = Duration::from_secs(600);

/// Questions of one caller that nobody waits for, since the caller gave up. One more is withdrawn with its call: whoever
/// calls and gives up over and over leaves no more than this behind.
pub const MOST_LEFT: usize = 32;

/// How a gate asks.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How long a question waits, from the call on, before it is denied by itself.
    pub ask_timeout: Duration,
    /// Whether unattended callers' actions are asked about.
    pub guarded: bool,
    /// Whether there is a terminal to ask at.
    pub has_terminal: bool,
}

/// Whether anybody can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Approver {
    There,
    Never,
    Gone,
}

/// What the policy and the grants say of a call.
enum Finding {
    /// The policy forbids this action of it.
    Forbidden(Action),
    /// It runs, by `policy` or `grant`.
    Free(&'static str),
    /// These actions have to be asked about, and a yes is remembered no longer than the ceiling.
    Uncovered(Vec<Action>, Recall),
}

/// The gate's decisions.
pub struct Machine {
    policy: Policy,
    settings: Settings,
    ids: Box<dyn FnMut() -> [u8; 16] + Send>,
    approver: Approver,
    held: Held,
    /// The first one is on the screen, once it was put there.
    queue: VecDeque<Open>,
    /// The first one of the queue, once it was its turn.
    first: Option<QuestionId>,
    /// The callers' connections, and when the last question of each came first.
    turns: BTreeMap<u64, u64>,
    turn: u64,
    kept: Vec<Kept>,
    questions: u64,
}

impl Machine {
    /// A gate with nothing granted. `ids` names the offers: bytes that nobody can guess and that never come again.
    pub fn new(policy: Policy, settings: Settings, ids: Box<dyn FnMut() -> [u8; 16] + Send>) -> Self {
        let approver = if settings.has_terminal { Approver::There } else { Approver::Never };
        Self {
            policy,
            settings,
            ids,
            approver,
            held: Held::default(),
            queue: VecDeque::new(),
            first: None,
            turns: BTreeMap::new(),
            turn: 0,
            kept: Vec::new(),
            questions: 0,
        }
    }

    /// Takes in what happened; returns what is to be done, in this order.
    ///
    /// After an [`Effect::Remember`], say with [`Input::Grants`] what the file holds then, whether storing worked or not,
    /// before the next question is drawn: the grants may settle it.
    pub fn step(&mut self, input: Input, now: Moment) -> Vec<Effect> {
        let mut effects = Vec::new();
        // Time first: an answer that comes at the deadline is too late.
        self.expire(now, &mut effects);
        match input {
            Input::Called(call) => self.called(call, now, &mut effects),
            Input::Answered { question, offer } => self.answered(question, Some(offer), &mut effects),
            Input::Declined { question } => self.answered(question, None, &mut effects),
            Input::Cancelled { ticket, timed_out } => self.cancelled(ticket, timed_out, now, &mut effects),
            Input::Disconnected { connection } => self.disconnected(connection, &mut effects),
            Input::Grants(grants) => {
                let (given, taken) = self.held.replace(grants);
                effects.extend(given.iter().map(|grant| Effect::Audit(granted(grant, Recall::Always))));
                effects.extend(taken.iter().map(|grant| Effect::Audit(revoked(grant, Recall::Always))));
                self.look_again(&mut effects);
            }
            Input::ForgetSession => {
                let taken = self.held.forget_session();
                effects.extend(taken.iter().map(|grant| Effect::Audit(revoked(grant, Recall::Session))));
                self.look_again(&mut effects);
            }
            Input::ApproverGone => {
                self.approver = Approver::Gone;
                self.kept.clear();
                for open in std::mem::take(&mut self.queue) {
                    open.deny(Denial::Gone, &mut effects);
                }
            }
            Input::Tick => {}
        }
        self.take_turns();
        // What is being stored may settle the next question: it is put to the person when that is known.
        if !effects.iter().any(|effect| matches!(effect, Effect::Remember(_))) {
            self.put_first(&mut effects);
        }
        effects
    }

    /// The question on the screen.
    pub fn question(&self) -> Option<&Question> {
        self.queue.front().map(Open::question)
    }

    /// How many questions wait behind it.
    pub fn waiting(&self) -> usize {
        self.queue.len().saturating_sub(1)
    }

    /// When [`Input::Tick`] is due at the latest.
    pub fn wake_at(&self) -> Option<Moment> {
        let questions = self.queue.iter().map(Open::ends);
        questions.chain(self.kept.iter().map(Kept::ends)).min()
    }

    /// What is granted for the session, sorted.
    pub fn session_grants(&self) -> Vec<Grant> {
        self.held.session()
    }

    fn called(&mut self, call: Call, now: Moment, effects: &mut Vec<Effect>) {
        let (uncovered, ceiling) = match self.find(&call) {
            Finding::Forbidden(action) => return deny(&call, action, Denial::Policy, effects),
            Finding::Free(by) => {
                // It came again and runs: the answer that was kept for it must not let it run once more.
                kept::take(&mut self.kept, &call);
                effects.push(Effect::Audit(allowed(&call, by)));
                return effects.push(Effect::Run { ticket: call.ticket, answered: false });
            }
            Finding::Uncovered(actions, ceiling) => (actions, ceiling),
        };
        if let Err(denial) = self.can_ask(&call.caller) {
            let first = uncovered.into_iter().next();
            return deny(&call, first.unwrap_or_else(|| unnamed(Kind::File)), denial, effects);
        }
        if let Some(open) = self.queue.iter_mut().find(|open| open.is_about(&call)) {
            return open.join(call.ticket);
        }
        match kept::take(&mut self.kept, &call) {
            Some(Verdict::Run) => {
                effects.push(Effect::Audit(allowed(&call, "answer")));
                return effects.push(Effect::Run { ticket: call.ticket, answered: true });
            }
            Some(Verdict::Deny(action)) => return deny(&call, action, Denial::Declined, effects),
            None => {}
        }
        let id = QuestionId(self.questions);
        self.questions += 1;
        let deadline = now + self.settings.ask_timeout;
        let offers = offer::mint(offer::offerable(&uncovered, ceiling), &mut self.ids);
        self.queue.push_back(Open::new(id, call, uncovered, offers, deadline));
    }

    /// An answer to the question on the screen; `None` is a no, and so is an offer that was not minted for it.
    fn answered(&mut self, question: QuestionId, taken: Option<OfferId>, effects: &mut Vec<Effect>) {
        if self.first != Some(question) || self.queue.front().is_none_or(|open| open.question().id != question) {
            // Settled meanwhile, or not on the screen: the key was meant for something else.
            return;
        }
        self.put_first(effects);
        let Some(open) = self.queue.pop_front() else { return };
        let asked = open.question();
        let offer = taken.and_then(|id| asked.offers.iter().find(|offer| offer.id == id)).cloned();
        let answer = offer.as_ref().map_or("no", |offer| offer.choice.name());
        effects.push(Effect::Audit(AuditEvent::Answered {
            question: asked.id.0,
            actions: asked.call.actions.iter().map(Action::info).collect(),
            answer: answer.to_owned(),
        }));
        let Some(offer) = offer else {
            if let Some(until) = open.rejoins_until() {
                self.kept.push(Kept::new(&asked.call, Verdict::Deny(asked.action.clone()), until));
            }
            return open.deny(Denial::Declined, effects);
        };
        // Offers above the ceiling are not minted; this holds whatever the offer says.
        let recall = offer.recall.min(self.ceiling(open.uncovered(), asked.call.caller.unattended));
        match recall {
            Recall::Never => {
                if let Some(until) = open.rejoins_until() {
                    self.kept.push(Kept::new(&asked.call, Verdict::Run, until));
                }
            }
            Recall::Session => {
                let given = self.held.remember_session(offer.grants, asked.call.caller.unattended);
                effects.extend(given.iter().map(|grant| Effect::Audit(granted(grant, Recall::Session))));
            }
            Recall::Always => effects.push(Effect::Remember(offer.grants)),
        }
        open.run(Settlement::Allowed(offer.choice), effects);
        if recall == Recall::Session {
            self.look_again(effects);
        }
    }

    fn cancelled(&mut self, ticket: Ticket, timed_out: bool, now: Moment, effects: &mut Vec<Effect>) {
        let Some(at) = self.queue.iter().position(|open| open.has(ticket)) else { return };
        let caller = self.queue[at].connection();
        let left = self.queue.iter().filter(|open| open.is_left() && open.connection() == caller).count();
        let gave_up = (timed_out && left < MOST_LEFT).then_some(now);
        if self.queue[at].withdraw(ticket, gave_up, effects) {
            return;
        }
        if let Some(open) = self.queue.remove(at) {
            open.deny(Denial::Cancelled, effects);
        }
    }

    fn disconnected(&mut self, connection: u64, effects: &mut Vec<Effect>) {
        self.kept.retain(|kept| kept.connection() != connection);
        self.turns.remove(&connection);
        self.drop_where(|open| open.connection() == connection, Denial::Cancelled, effects);
    }

    fn expire(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        self.kept.retain(|kept| kept.ends() > now);
        self.drop_where(|open| open.question().deadline <= now, Denial::Timeout, effects);
        for open in &mut self.queue {
            open.forget_given_up(now);
        }
        // Nobody waits for these any more, and nobody may come back for them.
        self.drop_where(Open::is_abandoned, Denial::Cancelled, effects);
    }

    /// Ends the questions for which `over` holds.
    fn drop_where(&mut self, over: impl Fn(&Open) -> bool, denial: Denial, effects: &mut Vec<Effect>) {
        if !self.queue.iter().any(&over) {
            return;
        }
        for open in std::mem::take(&mut self.queue) {
            if over(&open) {
                open.deny(denial, effects);
            } else {
                self.queue.push_back(open);
            }
        }
    }

    /// Looks at every waiting question again: what grants cover by now runs, and what is still to be asked is asked about
    /// the first action that is not covered. The question on the screen stays as it is shown.
    fn look_again(&mut self, effects: &mut Vec<Effect>) {
        for mut open in std::mem::take(&mut self.queue) {
            match self.find(&open.question().call) {
                Finding::Free(by) => {
                    open.audit_allowed(by, effects);
                    open.run(Settlement::Covered, effects);
                    continue;
                }
                Finding::Uncovered(actions, ceiling) if !open.is_shown() && !open.asks_about(&actions) => {
                    let offers = offer::mint(offer::offerable(&actions, ceiling), &mut self.ids);
                    open.ask_about(actions, offers);
                }
                Finding::Uncovered(..) | Finding::Forbidden(_) => {}
            }
            self.queue.push_back(open);
        }
    }

    /// Lets the question come first whose turn it is, if the one that was first is over: of the callers, the one whose
    /// last turn is longest ago; of its questions, the oldest.
    fn take_turns(&mut self) {
        if self.first.is_some() && self.queue.front().map(|open| open.question().id) == self.first {
            return;
        }
        let turn = |at: usize| self.turns.get(&self.queue[at].connection()).copied();
        let next = (0..self.queue.len()).min_by_key(|at| (turn(*at), *at));
        self.first = next.and_then(|next| self.queue.remove(next)).map(|open| {
            self.turn += 1;
            self.turns.insert(open.connection(), self.turn);
            let id = open.question().id;
            self.queue.push_front(open);
            id
        });
    }

    /// Puts the first question to the person, if it is not on the screen yet.
    fn put_first(&mut self, effects: &mut Vec<Effect>) {
        if let Some(open) = self.queue.front_mut()
            && !open.is_shown()
        {
            effects.push(Effect::Audit(open.show()));
        }
    }

    /// Asks the policy, then the grants.
    fn find(&self, call: &Call) -> Finding {
        let unattended = call.caller.unattended;
        let rule = |action: &Action| self.policy.rule(action.kind(), unattended);
        if let Some(kind) = policy::checked_as(call.tool)
            && call.actions.is_empty()
        {
            // Our own mistake, if it ever happens; a call must not run because nobody said what it reaches.
            return Finding::Forbidden(unnamed(kind));
        }
        if let Some(forbidden) = call.actions.iter().find(|action| rule(action) == Ruling::Deny) {
            return Finding::Forbidden(forbidden.clone());
        }
        let mut by = "policy";
        let mut uncovered = Vec::new();
        let mut lowest = Recall::Always;
        for action in &call.actions {
            match rule(action) {
                Ruling::Allow => {}
                Ruling::Ask { ceiling } if ceiling > Recall::Never && self.held.covers(action, unattended) => {
                    by = "grant"
                }
                Ruling::Ask { ceiling } => {
                    lowest = lowest.min(ceiling);
                    uncovered.push(action.clone());
                }
                Ruling::Deny => return Finding::Forbidden(action.clone()),
            }
        }
        if uncovered.is_empty() { Finding::Free(by) } else { Finding::Uncovered(uncovered, lowest) }
    }

    /// The longest that a yes to these actions may be remembered.
    fn ceiling(&self, actions: &[Action], unattended: bool) -> Recall {
        let ceilings = actions.iter().map(|action| match self.policy.rule(action.kind(), unattended) {
            Ruling::Ask { ceiling } => ceiling,
            Ruling::Allow | Ruling::Deny => Recall::Never,
        });
        ceilings.min().unwrap_or(Recall::Never)
    }

    fn can_ask(&self, caller: &Caller) -> Result<(), Denial> {
        match self.approver {
            Approver::Gone => Err(Denial::Gone),
            Approver::Never => Err(Denial::Unattended),
            Approver::There if caller.unattended && !self.settings.guarded => Err(Denial::Unattended),
            Approver::There => Ok(()),
        }
    }
}

fn deny(call: &Call, action: Action, denial: Denial, effects: &mut Vec<Effect>) {
    effects.push(Effect::Audit(denied(call, &action, denial)));
    effects.push(Effect::Deny { ticket: call.ticket, action, denial });
}

fn denied(call: &Call, action: &Action, reason: Denial) -> AuditEvent {
    let (caller, tool) = (call.caller.name.clone(), call.tool.name().to_owned());
    AuditEvent::Denied { caller, tool, action: action.info(), reason }
}

fn allowed(call: &Call, by: &str) -> AuditEvent {
    AuditEvent::Allowed {
        caller: call.caller.name.clone(),
        tool: call.tool.name().to_owned(),
        actions: call.actions.iter().map(Action::info).collect(),
        by: by.to_owned(),
    }
}

fn granted(grant: &Grant, recall: Recall) -> AuditEvent {
    AuditEvent::Granted { grant: grant.info(), recall: recall.name().to_owned() }
}

fn revoked(grant: &Grant, recall: Recall) -> AuditEvent {
    AuditEvent::Revoked { grant: grant.info(), recall: recall.name().to_owned() }
}

/// Stands for a target that a call should have named.
fn unnamed(kind: Kind) -> Action {
    const HOLDS: &str = "the name is canonical";
    match kind {
        Kind::Net => Action::net(Host { name: HostName::Name("unnamed.invalid".to_owned()), port: None }),
        Kind::File => Action::file(FilePath::parse("unnamed").expect(HOLDS)),
        Kind::Notify => Action::notify(),
        Kind::Remind => Action::remind(),
        Kind::Memory => Action::memory(NotePath::parse("unnamed.md").expect(HOLDS)),
    }
}
