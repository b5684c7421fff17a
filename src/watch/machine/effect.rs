//! What the machine asks for, and what it says of a change.

use platform::{Moment, Place};

use crate::baseline::Change;
use crate::journal::Asked;
use crate::rules::Class;

/// What a decision came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The person kept it.
    Accepted,
    /// The person refused it.
    Rejected,
    /// Nobody answered in time.
    TimedOut,
    /// The path was contested.
    AutoRestored,
    /// The watch ended before an answer.
    RestoredAtExit,
}

impl Outcome {
    /// The name in reports and the journal.
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Accepted => "accepted",
            Outcome::Rejected => "rejected",
            Outcome::TimedOut => "timed_out",
            Outcome::AutoRestored => "auto_restored",
            Outcome::RestoredAtExit => "restored_at_exit",
        }
    }
}

/// The change of one path, as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The path.
    pub place: Place,
    /// Its rule and mode.
    pub class: Class,
    /// The change, as last seen.
    pub change: Change,
    /// When the path was first seen to differ.
    pub detected: Moment,
}

/// A refused change on its way back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// What is refused.
    pub seen: Seen,
    /// Why it is refused.
    pub outcome: Outcome,
    /// How many tries to put the path back failed so far.
    pub failures: u32,
}

/// What is to be done, in this order.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Put the path back, then say [`Input::Restored`](super::Input::Restored) or
    /// [`Input::NotRestored`](super::Input::NotRestored).
    Restore(Refused),
    /// The change was accepted: move the baseline to it, then say [`Input::Accepted`](super::Input::Accepted) or
    /// [`Input::NotAccepted`](super::Input::NotAccepted) before anything else about the path.
    Accept(Seen),
    /// The change was allowed at another question: as [`Effect::Accept`].
    AcceptApproved(Seen, Asked),
    /// A report-mode change: name it, list it, and move the baseline to it.
    Keep(Seen),
    /// The path is contested from now on.
    Contest(Place),
    /// A change that was seen is gone without a decision.
    Transient(Seen),
    /// A restore that had failed is no longer needed: the path is as it should be.
    Settled(Refused),
}
