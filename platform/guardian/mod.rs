//! A small process beside the watch that keeps a few rights the watch has given up, and answers when the watch cannot.
//!
//! It keeps a duplicate of the group of permission events, so that killing the watch lets nothing through: it refuses what
//! waits, takes off what flags it set, and ends. While the watch is stopped it answers in its place: readers pass, writers
//! are refused; what it refused so it tells when the watch goes on. It makes objects immutable and undoes that, for objects it was handed, of one user. It can do nothing else:
//! no file by name, no socket, no process, no other capability.
//! It keeps duplicates of the watch's other groups as well, and reads none of them: the kernel keeps whoever closes the last
//! descriptor of a group waiting for every held open that the group has a mark for, be it another watch that holds it. That
//! is for the guardian to wait for, so that the watch ends at once; the group of opens goes first, and by then nothing of it
//! waits.
//! Promise: [`Guardian::start`] returns when the confinement is in force and was tried. Started by root it stays root in
//! name, so that no process of the user can kill, stop or trace it.
//! Limit: started by a program with capabilities and without root it is the user's process, and can be killed like the
//! watch. Where both are gone the kernel lets held opens through, and flags stay until the next start.
//! A group that is made when the watch has begun (a fourth volume of btrfs below the tree) is not the guardian's.
//! Source: fanotify(7); fs/notify/fanotify/fanotify_user.c: events go with the last descriptor of their group; unix(7),
//! `SCM_RIGHTS`; kill(2), "the real or effective user ID"; fs/notify/mark.c: `fsnotify_prepare_user_wait`, and group.c:
//! `fsnotify_destroy_group` waits for `user_waits`.

pub mod message;
pub mod note;
pub mod vigil;

use std::io;
use std::os::fd::BorrowedFd;

use crate::flags::{FlagError, Flags};
use crate::host;

/// What becomes of opens that wait when the watch is dead or stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDeath {
    /// They go through: they waited for a name only.
    Allow,
    /// They are refused; from a stopped watch, those for reading go through.
    Refuse,
}

/// How a guardian acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// For opens.
    pub on_death: OnDeath,
    /// Whether it may make objects immutable.
    pub may_flag: bool,
    /// Whose objects those are; of anybody, if it is root.
    pub user: u32,
}

/// Why there is no guardian.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuardianError {
    /// This system has nothing to guard with.
    #[error("this system has no guardian")]
    Unavailable,
    /// Other threads would be in the middle of something for ever.
    #[error("{count} threads run already")]
    Threads {
        /// How many.
        count: usize,
    },
    /// It would not have the right to make anything immutable.
    #[error("CAP_LINUX_IMMUTABLE is missing")]
    MayNotFlag,
    /// A call failed.
    #[error("cannot {operation}")]
    Call {
        /// What it was to do.
        operation: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// It was started, could not confine itself, and has ended.
    #[error("it is not confined: {0}")]
    Unfit(String),
    /// It ended before it was ready.
    #[error("it ended before it was ready")]
    Ended,
}

/// What the guardian lets the watch know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// It answered in the place of the watch.
    Note(note::Note),
    /// It has ended before it was told to. The last word.
    Ended,
}

/// The process. Dropped, it is told to end, and waited for until it has done what there is to do.
#[derive(Debug)]
pub struct Guardian {
    host: host::HostGuardian,
    may_flag: bool,
}

impl Guardian {
    /// Makes it from this process, which must have one thread and still its privilege. `permissions` is the group of opens;
    /// `others` are the watch's other groups, which it keeps open to the end.
    pub fn start(
        permissions: BorrowedFd<'_>,
        others: &[BorrowedFd<'_>],
        settings: Settings,
    ) -> Result<Self, GuardianError> {
        let host = host::HostGuardian::start(permissions, others, settings)?;
        Ok(Self { host, may_flag: settings.may_flag })
    }

    /// Whether it may make objects immutable.
    pub fn may_flag(&self) -> bool {
        self.may_flag
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.host.pid()
    }

    /// Makes the object immutable: a regular file or directory of the user, open for reading.
    pub fn set_immutable(&self, object: BorrowedFd<'_>) -> Result<(), FlagError> {
        self.host.request(message::Request::Set, Some(object))
    }

    /// Takes off what it set; what is not set is left alone.
    pub fn clear_immutable(&self, object: BorrowedFd<'_>) -> Result<(), FlagError> {
        self.host.request(message::Request::Clear, Some(object))
    }

    /// Takes off what an earlier guardian may have set and left, from an object of the user. Only before [`begin`](Self::begin).
    pub fn clear_earlier(&self, object: BorrowedFd<'_>) -> Result<(), FlagError> {
        self.host.request(message::Request::ClearEarlier, Some(object))
    }

    /// From now on it takes off only what it set itself. Irrevocable.
    pub fn begin(&self) -> Result<(), FlagError> {
        self.host.request(message::Request::Begin, None)
    }

    /// Tells it whether opens wait that the watch has read, so that it looks after them. Never blocks: what it does not take
    /// now is said again as soon as it does.
    pub fn waits(&self, waits: bool) {
        self.host.waits(waits);
    }

    /// Whether it has taken what was said last of that.
    pub fn has_heard(&self) -> bool {
        self.host.has_heard()
    }

    /// Has `hear` called, from a thread of its own, with what it lets us know. Once, when privilege was given up; before
    /// that what [`waits`](Self::waits) could not say at once is not said again.
    pub fn listen(&self, hear: Box<dyn Fn(Word) + Send>) -> Result<(), GuardianError> {
        self.host.listen(hear)
    }
}

impl Flags for Guardian {
    fn set(&self, object: BorrowedFd<'_>) -> Result<(), FlagError> {
        self.set_immutable(object)
    }

    /// Before the watch begins, also what an earlier guardian has left.
    fn clear(&self, object: BorrowedFd<'_>) -> Result<(), FlagError> {
        match self.clear_immutable(object) {
            Err(FlagError::NotOurs) => self.clear_earlier(object),
            done => done,
        }
    }
}
