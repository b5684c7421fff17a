//! What privilege lets a process do here, each found out by doing it.
//!
//! What needs the privilege itself is opened and tried by [`Powers::open`], while there still is some; the rest by
//! [`Powers::try_in`] when it is given up, which shows at once that it works on without.
//!
//! Promise: nothing but files without a name is touched, and of the directory nothing is read; [`Trial::Works`] means that
//! the result was looked at. Limit: it is true of this directory's file system and this moment.
//! Source: fanotify(7), fanotify_mark(2), ioctl_iflags(2), netlink(7).

use crate::dir::Dir;
use crate::host;
use crate::trial::Trial;

/// Something privilege gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Power {
    /// One mark tells of everything on a file system, and who did it.
    WholeFileSystem,
    /// The opening of a file waits until it is answered, and fails if that is no.
    HeldOpens,
    /// Whoever opens is told by a handle that stays with that very process.
    ProcessHandles,
    /// The kernel tells of every process that is made.
    ProcessFeed,
    /// A flag that refuses every change can be set and taken off.
    ImmutableFlag,
}

impl Power {
    /// Every one, in the order in which they are told.
    pub const ALL: [Power; 5] =
        [Power::WholeFileSystem, Power::HeldOpens, Power::ProcessHandles, Power::ProcessFeed, Power::ImmutableFlag];
}

/// Where a process has its privilege from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is root.
    Root,
    /// Its program's file has capabilities.
    Capabilities,
    /// It has none.
    None,
    /// This system has none of this to give.
    Absent,
}

/// Descriptors that only privilege opens, and what was tried with it.
pub struct Powers(host::Powers);

impl Powers {
    /// Opens and tries what needs privilege, on the file system of `dir`. To be called before it is given up.
    pub fn open(dir: &Dir) -> Self {
        Self(host::Powers::open(dir))
    }

    /// Where the privilege was from.
    pub fn standing(&self) -> Standing {
        self.0.standing()
    }

    /// Tries the rest on a file without a name in `dir`. Starts a thread, and waits for it a bounded time.
    pub fn try_in(self, dir: &Dir) -> Vec<(Power, Trial)> {
        self.0.try_in(dir)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_tried_once_or_there_is_nothing_to_try() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let dir = Dir::open_ambient(folder.path()).expect("it exists");
        let powers = Powers::open(&dir);
        let standing = powers.standing();
        let trials = powers.try_in(&dir);
        let told: Vec<Power> = trials.iter().map(|(power, _)| *power).collect();
        assert!(told == Power::ALL || standing == Standing::Absent, "{told:?}");
        assert_eq!(dir.list().expect("lists"), [], "something was left");
        for (power, trial) in trials {
            if let Trial::Fails(reason) = trial {
                assert!(!reason.is_empty(), "{power:?}");
            }
        }
    }
}
