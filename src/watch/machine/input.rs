//! What the machine is told.

use std::collections::BTreeSet;

use platform::{Moment, Place};

use crate::baseline::Change;
use crate::journal::Asked;
use crate::rules::Class;

use super::Seen;

/// What a person can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Keep all that is shown.
    Accept,
    /// Put back all that is shown.
    Reject,
    /// Ask about each one by itself.
    Each,
}

/// Which process: its number, and when it started.
pub type By = (u32, Option<u64>);

/// What happened.
#[derive(Debug, Clone)]
pub enum Input {
    /// A protected path was compared with the baseline.
    Looked {
        /// The path.
        place: Place,
        /// Its rule and mode.
        class: Class,
        /// How it differs; `None` if it does not.
        change: Option<Change>,
        /// When the kernel's hint was read, or the look was made.
        detected: Moment,
        /// Which process did it, if one is named: its number, and its start time.
        by: Option<By>,
    },
    /// It is known, or known better, who changed the path.
    Named(Place),
    /// A protected path is as the person has allowed it to be at another question, and its content is stored.
    Approved(Seen, Asked),
    /// A path that is as accepted was found to differ a moment ago, too shortly to be asked about.
    Passed(Seen),
    /// A key that counts. For an accept the caller has looked at every member again just before.
    Answer {
        /// What was answered.
        answer: Answer,
        /// [`Question::id`](super::super::Question::id) of what was on screen.
        question: u64,
        /// [`Question::version`](super::super::Question::version) of what was on screen.
        version: u64,
        /// Members that cannot be accepted now (content not read, not stored): they stay open.
        held: BTreeSet<Place>,
    },
    /// An accept asked for by [`Effect::Accept`](super::Effect::Accept) is durable and the baseline has moved.
    Accepted(Place),
    /// An accept could not be carried out: the change is pending again, under the deadline it had.
    NotAccepted(Place),
    /// A restore asked for by [`Effect::Restore`](super::Effect::Restore) was done and proven.
    Restored(Place),
    /// A restore failed; it is tried again at [`Input::Retry`].
    NotRestored(Place),
    /// The person takes back that a path is contested: its refusals are counted anew.
    AskAgain(Place),
    /// Time to try failed restores again.
    Retry,
    /// Nothing but time passed.
    Tick,
    /// The watch ends.
    Stop,
}
