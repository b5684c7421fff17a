//! Confining this very process to one folder, for good.
//!
//! Promise: after [`confine`] returns `Ok` what the [`Plan`] holds is in force for this process and every thread it starts,
//! and nothing it does can undo it; [`attempts`] shows it by trying. Limit: [`Plan::missing`] names what is not held.
//! Source: landlock(7), seccomp(2), capabilities(7), setrlimit(2); on macOS sandbox_init(3), which is deprecated without a
//! successor for a process of one's own, and whose language ([`crate::seatbelt`]) is undocumented: what it holds there is
//! what the attempts show.

mod plan;

use std::io;
use std::path::PathBuf;

use crate::dir::{Dir, FsError};
use crate::host;
use crate::privilege::PrivilegeError;
use crate::seatbelt::PathError;

pub use plan::{Axis, Means, Plan, Right, Support};

/// Why the process was not confined. It must end: some of it may be in force.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfineError {
    /// The threads of the process could not be counted.
    #[error("cannot count the threads of this process")]
    Count(#[source] io::Error),
    /// Other threads would stay what they are.
    #[error("{count} threads run already")]
    Threads {
        /// How many.
        count: usize,
    },
    /// The process could not be closed to tracing.
    #[error("cannot close the process to others")]
    Harden(#[source] PrivilegeError),
    /// A limit was not set.
    #[error("cannot limit {what}")]
    Limit {
        /// Of what.
        what: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// Capabilities were not given up.
    #[error("cannot give up capabilities")]
    Capabilities(#[source] io::Error),
    /// The way to new privileges was not closed.
    #[error("cannot refuse new privileges")]
    NewPrivileges(#[source] io::Error),
    /// Landlock refused what its version says it has.
    #[error("cannot confine by Landlock")]
    Landlock(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// All calls said yes, and yet Landlock does not hold all of it.
    #[error("Landlock holds only a part of what was asked of it")]
    Partial,
    /// The folder has no path that a profile can name.
    #[error("cannot name the folder in a profile")]
    Path(#[source] PathError),
    /// Seatbelt did not take the profile.
    #[error("cannot confine by Seatbelt")]
    Seatbelt(#[source] io::Error),
    /// Seatbelt took the profile, and the process is in no sandbox.
    #[error("Seatbelt says yes and does nothing")]
    NoSandbox,
    /// The profile keeps the process from its own folder, too.
    #[error("the folder itself cannot be reached any more")]
    Shut(#[source] FsError),
    /// The filter could not be made, or was not taken.
    #[error("cannot filter system calls")]
    Filter(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Something forbidden that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// What it is kept from.
    pub axis: Axis,
    /// What was to refuse it.
    pub means: Means,
    /// What was tried, such as `list /`.
    pub what: String,
    /// Whether it was refused, in the way those means refuse.
    pub was_refused: bool,
}

/// What this system has.
pub fn support() -> Support {
    host::confine_support()
}

/// Confines this process, which must have one thread, to what lies below the folder. Irrevocable.
///
/// Limits, capabilities and tracing are taken away whatever the plan holds.
pub fn confine(plan: &Plan, folder: &Dir) -> Result<(), ConfineError> {
    host::confine(plan, folder)
}

/// Tries what a process confined to the folder may not do, without any effect if it could: `outside` are more paths to
/// open, of which those that do not exist are passed over.
pub fn attempts(folder: &Dir, outside: &[PathBuf]) -> Vec<Attempt> {
    host::forbidden_attempts(folder, outside)
}

/// What a process can do although the plan says that it cannot.
pub fn unproven<'a>(plan: &Plan, attempts: &'a [Attempt]) -> Option<&'a Attempt> {
    attempts.iter().find(|attempt| !attempt.was_refused && plan.uses(attempt.means))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_plan_holds_and_yet_can_be_done_is_unproven() {
        let attempt = |axis, means, was_refused| Attempt { axis, means, what: "it".into(), was_refused };
        let plan = Plan::new(Support { landlock: None, filter: true, seatbelt: false, is_expected: true });
        let read = attempt(Axis::Read, Means::Landlock, false);
        let tried = [read.clone(), attempt(Axis::Tcp, Means::Filter, true)];
        assert_eq!(unproven(&plan, &tried), None, "nothing is said to hold reading");
        let tried = [read, attempt(Axis::Tcp, Means::Filter, false)];
        assert_eq!(unproven(&plan, &tried), Some(&tried[1]));
    }
}
