//! Opens of protected files that the kernel holds until they are answered: who decides about them, and what follows.
//!
//! The [`Door`] says on the thread that reads the opens whether one is held at all. What is held comes into the inbox of the
//! core thread, where the pure [`Machine`] makes questions of it; what it decides is answered, written down and said by the
//! session. What an opener that was let writes, the [`Passes`] know.
//!
//! Promise: an open is answered once, or its opener is gone; none waits past its time; without an answer it is refused. What
//! the guardian refused while the watch was stopped is written down and said like every other decision, when it goes on.
//! Limit: only opening is held. What needs no open (renaming over, removing, linking, bits, cutting by path), and what was
//! open before, is found afterwards like any change.

mod acting;
mod asking;
mod door;
mod group;
mod machine;
mod note;
mod passes;
mod relief;
mod repeats;
mod types;
mod words;

#[cfg(test)]
mod tests;

use platform::{Answered, HeldId, Verdict};

use crate::trust::Vetting;

pub use door::{Door, Manner, Sight, Sighted};
pub use group::{Item, Question};
pub use machine::Machine;
pub use note::{Away, Crowd, News, Notes, Trouble};
pub use passes::{Passes, Why};
pub use types::{Answer, Decision, Effect, Held, Input, Settings, Standing};
pub use words::Asking;

/// Where answers go. Dropping it refuses what is still held.
pub trait Answers: Send {
    /// Lets the open go on, or makes it fail, unless there is nothing to answer any more.
    fn answer(&self, id: HeldId, verdict: Verdict) -> Answered;
}

/// What a watch that holds opens is made of.
pub struct Hold {
    /// Where answers go.
    pub answers: Box<dyn Answers>,
    /// Which objects are protected.
    pub sight: Sight,
    /// The programs that need not be asked about.
    pub vetting: Vetting,
}
