//! The thread that reads opens of marked files while the kernel holds them, and sees to it that each is answered.
//!
//! Promise: an open of this very process goes through at once, from whatever thread, so that no access of ours waits for
//! ourselves; every other one is named, ruled on, and answered once. The thread opens nothing below a root and waits for
//! nobody. There is room for a bounded number of held opens; beyond it they are refused, not let through. When the thread
//! ends, by whatever cause, no mark is left in force and nothing waits.
//! Limit: what is opened on a file system in user space is neither held nor named, as the program behind it could hold our
//! thread in return; a thread that dies alone, as its process starts another program, is answered only when its time is up.
//! Source: fanotify(7), "Monitoring permission events"; pidfd_open(2); Linux commit "fanotify: add FAN_REPORT_PIDFD" (5.15).

pub mod access;
pub mod elsewhere;
pub mod table;
pub mod trial;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Moment;
use crate::host;
use crate::opening::{Access, Answered, Doorkeeper, HeldId, Marker, Verdict};
use crate::process::Process;
use crate::stat::FileId;
use crate::writer::{Certainty, Program, Writer};

/// Why opens cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpeningsError {
    /// This system holds no opens.
    #[error("this system cannot hold opens")]
    Unavailable,
    /// A call failed.
    #[error("cannot {operation}")]
    Call {
        /// What it was to do.
        operation: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// The thread could not be started.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
}

/// A process that waits in an open.
#[derive(Debug)]
pub struct Opener<'e> {
    /// Its number; 0 if it is in a part of the system that we do not see.
    pub pid: u32,
    /// A descriptor of it, from the event.
    pub pidfd: Option<BorrowedFd<'e>>,
    /// What the system tells of it, read while it waits; `None` if nothing.
    pub process: Option<Process>,
}

/// Who tells openers from each other, and is told what was let through. Called while the opener waits: must be fast and must
/// open nothing below a root.
pub trait Identify: Send + Sync {
    /// Names a process that waits in an open.
    fn identify(&self, opener: &Opener<'_>) -> Writer;

    /// The open goes through now.
    fn opened(&self, object: FileId, by: &Writer, access: Access, at: Moment);
}

/// Takes the numbers under which the guardian answered what we had read.
pub type Relief = Box<dyn Fn(&[i32]) + Send + Sync>;

/// Knows of a process what one line of the system says, and keeps nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct ByNumber;

impl Identify for ByNumber {
    fn identify(&self, opener: &Opener<'_>) -> Writer {
        let process = opener.process.as_ref();
        // It waits in its open, so that its number is its own.
        let certainty = if process.is_some() { Certainty::Certain } else { Certainty::Unknown };
        let name = process.map(|process| process.name.clone()).unwrap_or_default();
        let started = process.map(|process| process.start_time);
        let program = Program { started, name, ..Program::unknown(opener.pid) };
        Writer { program, ancestors: Vec::new(), certainty }
    }

    fn opened(&self, _object: FileId, _by: &Writer, _access: Access, _at: Moment) {}
}

/// A new group for opens that wait: what [`Openings::start`] reads. Needs `CAP_SYS_ADMIN`; no mark is in it yet.
pub fn group() -> io::Result<OwnedFd> {
    host::permission_group()
}

/// The running thread. Dropped, it refuses what is held, takes all marks off, and ends.
#[derive(Debug)]
pub struct Openings(host::HostOpenings);

impl Openings {
    /// Reads the group's events from now on. Marks are put on files of the user this process is, or of any if it is root.
    pub fn start(
        group: OwnedFd,
        doorkeeper: Arc<dyn Doorkeeper>,
        witness: Arc<dyn Identify>,
    ) -> Result<Self, OpeningsError> {
        host::HostOpenings::start(group, doorkeeper, witness).map(Self)
    }

    /// Whoever marks files.
    pub fn marker(&self) -> Arc<dyn Marker> {
        self.0.marker()
    }

    /// Answers a held open.
    pub fn answer(&self, id: HeldId, verdict: Verdict) -> Answered {
        self.0.answer(id, verdict)
    }

    /// Who takes the numbers of what the guardian answered. To be told of each once.
    pub fn relief(&self) -> Relief {
        self.0.relief()
    }

    /// How many wait: those that are held, and those that cannot be told from them yet.
    pub fn waiting(&self) -> usize {
        self.0.waiting()
    }

    /// Has each open that is held refused after this time, as if its opener were gone, whatever keeps whoever is to answer.
    pub fn answer_within(&self, longest: Duration) {
        self.0.answer_within(longest);
    }

    /// Sets who hears when the first open begins to wait (`true`), and when none does any more. From any thread; must not
    /// block, and must not answer.
    pub fn notice(&self, hear: Box<dyn Fn(bool) + Send + Sync>) {
        self.0.notice(hear);
    }
}
