//! What goes into the machine and what comes out of it.

use platform::Moment;

use crate::digest::Digest;
use crate::gate::action::Action;
use crate::gate::audit::AuditEvent;
use crate::gate::denial::Denial;
use crate::gate::pattern::Grant;
use crate::gate::recall::Recall;
use crate::gate::tools::Tool;

/// The gate's number for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// The gate's number for a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuestionId(pub u64);

/// Names one offer of one question; nobody can guess it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfferId(pub [u8; 16]);

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Caller {
    /// The connection.
    pub connection: u64,
    /// What the client calls itself: hostile text.
    pub name: String,
    /// Whether nobody watches it.
    pub unattended: bool,
}

/// A call that has to be decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Its number.
    pub ticket: Ticket,
    /// Who calls.
    pub caller: Caller,
    /// What.
    pub tool: Tool,
    /// Over the tool, its arguments and what they were found to change: two calls with one digest are the same call.
    pub digest: Digest,
    /// What it is going to reach: each has to be allowed.
    pub actions: Vec<Action>,
    /// Facts for the question, a line each, computed by us and escaped.
    pub facts: Vec<String>,
    /// What `d` shows, a line each, escaped; empty if there is nothing to show.
    pub difference: Vec<String>,
}

impl Call {
    /// Whether another call is this one come again, or one beside it: who, what, with which arguments, and what it reaches.
    pub fn is_same(&self, other: &Self) -> bool {
        let Self { ticket: _, caller, tool, digest, actions, facts: _, difference: _ } = self;
        (caller, tool, digest, actions) == (&other.caller, &other.tool, &other.digest, &other.actions)
    }
}

/// One answer a person can give, other than no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Choice {
    /// `o`: this call.
    Once,
    /// `s`: these very targets, until the gate ends.
    Session,
    /// `a`: these very targets, from now on.
    Always,
    /// `w`: the widening, until the gate ends.
    WidenSession,
    /// `W`: the widening, from now on.
    WidenAlways,
}

impl Choice {
    /// Its name in the audit, and on the line that stays on the terminal.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Always => "always",
            Self::WidenSession => "widen session",
            Self::WidenAlways => "widen always",
        }
    }
}

/// An answer that can be given to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Its name.
    pub id: OfferId,
    /// What it is.
    pub choice: Choice,
    /// What it would grant: nothing for once.
    pub grants: Vec<Grant>,
    /// How long.
    pub recall: Recall,
}

/// A question for the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Its number.
    pub id: QuestionId,
    /// The call it is about.
    pub call: Call,
    /// The action that is asked about: the first that no grant covers. The others of the call are facts.
    pub action: Action,
    /// The answers, in the order they are shown in; once is always the first.
    pub offers: Vec<Offer>,
    /// When it is denied by itself.
    pub deadline: Moment,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A call has to be decided.
    Called(Call),
    /// The person took an offer of the question on the screen.
    Answered {
        /// The question.
        question: QuestionId,
        /// The offer; one that was not minted for this question is a no.
        offer: OfferId,
    },
    /// The person said no.
    Declined {
        /// The question.
        question: QuestionId,
    },
    /// The caller withdrew a call.
    Cancelled {
        /// The call.
        ticket: Ticket,
        /// Whether it only gave up waiting.
        timed_out: bool,
    },
    /// A caller went away with all its calls.
    Disconnected {
        /// Its connection.
        connection: u64,
    },
    /// What `grants.json` holds now: all of it.
    Grants(Vec<Grant>),
    /// Forget what was granted for the session.
    ForgetSession,
    /// The terminal is gone, or the gate ends.
    ApproverGone,
    /// Time has passed.
    Tick,
}

/// How a question ended, for the line that stays on the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// Allowed by this choice.
    Allowed(Choice),
    /// A grant given meanwhile covers it.
    Covered,
    /// Denied.
    Denied(Denial),
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Carry the call out.
    Run {
        /// The call.
        ticket: Ticket,
        /// Whether the person was asked about this very call and said yes: no grant and no policy is an answer.
        answered: bool,
    },
    /// Tell the caller that it is denied.
    Deny {
        /// The call.
        ticket: Ticket,
        /// Which of its actions.
        action: Action,
        /// Why.
        denial: Denial,
    },
    /// A question that had been on the screen, or waited for it, is over.
    Settled {
        /// The question.
        question: QuestionId,
        /// What it was about.
        action: Action,
        /// How it ended.
        settlement: Settlement,
    },
    /// Store these grants in `grants.json`.
    Remember(Vec<Grant>),
    /// Write this down.
    Audit(AuditEvent),
}
