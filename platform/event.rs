//! The seam of every event backend: what to cover, and what a backend says about it.
//!
//! Promise of every backend: nothing that changed goes unreported. After any change of a covered path, or of a directory
//! above it, either [`Hint::Touched`] names it or [`Hint::Lost`] says that everything must be compared. More hints are
//! fine, missed ones are not. Limit: a hint never says what changed; only comparison does.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Moment;
use crate::relpath::RelPath;
use crate::root::Root;

/// Which of several roots; 0 is the tree the person named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RootId(pub u16);

/// A path below one of the roots.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The root.
    pub root: RootId,
    /// The path below it.
    pub path: RelPath,
}

impl Place {
    /// A path below the tree the person named.
    pub fn tree(path: RelPath) -> Self {
        Self { root: RootId::default(), path }
    }

    /// The entry `name` of this directory.
    pub fn join(&self, name: &[u8]) -> Self {
        Self { root: self.root, path: self.path.join(name) }
    }
}

/// What policy is interested in. Asked from a backend's thread for every name it meets: must be fast and must not block.
pub trait Interest: Send + Sync {
    /// Whether the entry `name` of `dir`, if it is not a directory, is a path to report. May say yes too often.
    fn covers(&self, root: RootId, dir: &RelPath, name: &[u8]) -> bool;

    /// Whether something to report can lie in the directory `dir` or below, so that it must be covered.
    fn enters(&self, root: RootId, dir: &RelPath) -> bool;

    /// Whether the directory should be covered before others: known places, which then answer within milliseconds.
    fn first(&self, root: RootId, dir: &RelPath) -> bool;
}

/// Hears which process an event speaks of. Called from a backend's thread, and only for what policy is interested in: must be
/// fast and must not wait for anybody.
pub trait Names: Send + Sync {
    /// The process with the number `pid` changed the place: a covered path, or a directory that was moved away with all that
    /// was below it. `empty_since` is a moment at which the kernel's queue was empty, before the event was put into it: who
    /// has had the number since before that is who it was.
    fn named(&self, place: &Place, pid: u32, empty_since: Moment);

    /// Events were dropped, so that somebody was not named.
    fn lost(&self) {}
}

/// What a backend has to cover.
#[derive(Clone)]
pub struct WatchSet {
    /// The roots; the index is the [`RootId`].
    pub roots: Vec<Arc<Root>>,
    /// What matters below them.
    pub interest: Arc<dyn Interest>,
    /// Paths known from an earlier run: covered first, whether they exist or not.
    pub known: Vec<Place>,
    /// How often a polling backend compares.
    pub interval: Duration,
}

/// Why a backend can no longer say what changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LostCause {
    /// The kernel's queue was full and events were dropped.
    Overflow,
    /// A limit on watches or marks was reached; paths below this one are only seen by the sweep.
    Limit(Place),
    /// A file system below a root was unmounted.
    Unmounted,
    /// Something was mounted above or below a root.
    Mounted,
    /// The directory could not be read or marked (permissions, I/O error).
    Unreadable(Place),
    /// We, or the machine, did not run for a while.
    Stopped,
    /// The stream of events had a gap.
    Gap,
}

/// What a backend says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Hint {
    /// First walk: a covered path exists. It is marked, so later changes will be hinted.
    Found(Place),
    /// Something happened to a covered path, or it was found in a directory that appeared. Look there.
    Touched {
        /// Where to look.
        place: Place,
        /// When the event was taken from the kernel.
        at: Moment,
    },
    /// A directory appeared after the first walk had passed its parent.
    Appeared(Place),
    /// A directory that was covered is gone, or is another one now: every covered path below it must be looked at.
    Vanished {
        /// The directory.
        place: Place,
        /// When the event was taken from the kernel.
        at: Moment,
    },
    /// The first walk is over: everything is covered. Said again after each [`Subscription::rescan`].
    Walked {
        /// How many directories are covered.
        directories: usize,
    },
    /// Everything must be compared.
    Lost(LostCause),
    /// The backend cannot go on; polling must take over.
    Broken(String),
}

/// Where hints go. Called from the backend's thread; `false` means that nobody listens any more.
pub type Sink = Box<dyn Fn(Hint) -> bool + Send>;

/// Why a backend did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// This system does not have the facility, or not for us.
    #[error("{backend} is not available: {reason}")]
    Unavailable {
        /// The backend's name.
        backend: &'static str,
        /// Why, and what would make it available.
        reason: String,
    },
    /// The thread could not be started.
    #[error("cannot start a thread")]
    Thread(#[source] std::io::Error),
}

/// A running backend; dropping it ends its thread and waits for that. No hint comes after.
pub trait Subscription: Send {
    /// Asks for hints about everything again, ended by [`Hint::Walked`]: for tests and after a stop.
    fn rescan(&self);
}

/// What a backend can do beyond telling of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Powers {
    /// One mark covers the file system of the first root.
    pub whole_file_system: bool,
    /// Its events and the opens it marks say who changed something.
    pub names_the_writer: bool,
}

/// A way to learn of changes.
pub trait EventSource: Send {
    /// Its name in start lines and reports: `fanotify`, `inotify`, `fsevents`, `poll`.
    fn name(&self) -> &'static str;

    /// What it can do besides for this set.
    fn powers(&self, _set: &WatchSet) -> Powers {
        Powers::default()
    }

    /// Whether it works here, found out by trying; the error says why not.
    fn probe(&self) -> Result<(), StartError>;

    /// Covers the set and reports from a thread of its own. Hints of the first walk end with [`Hint::Walked`].
    fn start(&self, set: WatchSet, sink: Sink) -> Result<Box<dyn Subscription>, StartError>;
}
