//! What the machine of held opens is told, and what it asks for.

use std::time::Duration;

use platform::{Access, FileId, HeldId, Moment, Place, Verdict, Writer};

use crate::journal::HeldOutcome;
use crate::rules::Class;

/// How long and how often.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Time from reading an open to refusing it without an answer.
    pub decision_timeout: Duration,
    /// Refusals after which opens of a path are refused without asking; 0 = never.
    pub contest_limit: u32,
}

/// An open that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Its number.
    pub id: HeldId,
    /// The object.
    pub object: FileId,
    /// The protected path it is.
    pub place: Place,
    /// Its rule and mode.
    pub class: Class,
    /// What for.
    pub access: Access,
    /// Who.
    pub by: Writer,
    /// When it was read.
    pub at: Moment,
}

/// What is known of an opener when its open comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing: the person is asked.
    Stranger,
    /// Its program may be a trusted one; [`Input::Vetted`] will tell.
    Vetting,
    /// This very process was let open this very file for this a moment ago, and is not done with it.
    Covered,
}

/// What an open came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decision {
    /// The person let it.
    Allowed,
    /// The person refused it.
    Refused,
    /// Nobody answered in time.
    TimedOut,
    /// The path was contested.
    AutoRefused,
    /// More were held than can be asked about.
    NoRoom,
    /// The watch ended before an answer.
    RefusedAtExit,
    /// A program the person trusts with it.
    Trusted,
    /// The opener went away before an answer.
    Gone,
    /// The guardian refused it while the watch was stopped.
    WhileStopped,
}

impl Decision {
    /// What it is in reports and the journal.
    pub const fn outcome(self) -> HeldOutcome {
        match self {
            Decision::Allowed => HeldOutcome::Allowed,
            Decision::Refused => HeldOutcome::Refused,
            Decision::TimedOut => HeldOutcome::TimedOut,
            Decision::AutoRefused | Decision::NoRoom => HeldOutcome::AutoRefused,
            Decision::RefusedAtExit => HeldOutcome::RefusedAtExit,
            Decision::Trusted => HeldOutcome::Trusted,
            Decision::Gone => HeldOutcome::Gone,
            Decision::WhileStopped => HeldOutcome::RefusedWhileStopped,
        }
    }

    /// What is said to the kernel; `None` if there is nobody to say it to.
    pub const fn verdict(self) -> Option<Verdict> {
        match self {
            Decision::Allowed | Decision::Trusted => Some(Verdict::Allow),
            Decision::Gone | Decision::WhileStopped => None,
            Decision::Refused
            | Decision::TimedOut
            | Decision::AutoRefused
            | Decision::NoRoom
            | Decision::RefusedAtExit => Some(Verdict::Refuse),
        }
    }

    /// Whether a program can bring it about as often as it likes, without a person.
    pub(super) const fn repeats(self) -> bool {
        matches!(
            self,
            Decision::AutoRefused | Decision::NoRoom | Decision::Trusted | Decision::Gone | Decision::WhileStopped
        )
    }
}

/// What a person can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Let all that is shown.
    Allow,
    /// Refuse all that is shown.
    Refuse,
    /// Ask about each file by itself.
    Each,
}

/// What happened.
#[derive(Debug, Clone)]
pub enum Input {
    /// An open is held.
    Opened {
        /// It.
        held: Held,
        /// What is known of its opener.
        standing: Standing,
    },
    /// What became of looking at an opener's program.
    Vetted {
        /// The open.
        id: HeldId,
        /// Whether the person trusts the program with it.
        trusted: bool,
    },
    /// The opener is gone.
    Gone(HeldId),
    /// The guardian refused it while the watch was stopped.
    Relieved(HeldId),
    /// More were held at once than there was room for.
    NoRoom {
        /// All of them.
        ids: Vec<HeldId>,
        /// The first, which stands for them in what is written down, if it is of a protected path.
        one: Option<Held>,
    },
    /// A key that counts.
    Answer {
        /// What was answered.
        answer: Answer,
        /// [`Question::id`](super::Question::id) of what was on screen.
        question: u64,
        /// [`Question::version`](super::Question::version) of what was on screen.
        version: u64,
    },
    /// The person takes back that a path is contested: refusals of its opens are counted anew.
    AskAgain(Place),
    /// Nothing but time passed.
    Tick,
    /// The watch ends.
    Stop,
}

/// What is to be done, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Answer the open by what it came to.
    Answer(Held, Decision),
    /// Refuse one of which nothing but its number was kept.
    Refuse(HeldId),
    /// Write down and say what opens of one path by one program came to.
    Decided {
        /// One of them.
        held: Held,
        /// What they came to.
        decision: Decision,
        /// How many.
        opens: u32,
    },
    /// Opens of the path for this are refused without asking from now on.
    Contest(Place, Access),
}
