//! Who changed a path: the program, the processes above it, and how sure that is.
//!
//! Promise: [`Certainty::Certain`] is said only of what the kernel proves: a process that was stopped in open(2) while it
//! was read, or one whose number cannot have been used again since the event. Whatever is a conclusion is `likely`.
//! Limit: a program's name is the program's own choice, its file is not; and a process that handed its open file to
//! another is named in place of that one.
//! Source: fanotify(7) on `FAN_REPORT_PIDFD` and permission events, proc(5).

use crate::clock::Moment;
use crate::event::Place;
use crate::stat::FileId;

/// How sure it is that the process is the one that wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Certainty {
    /// Nothing but a number is known of it, or not even that.
    Unknown,
    /// Everything that is known speaks for it.
    Likely,
    /// The kernel proves it.
    Certain,
}

impl Certainty {
    /// The name in reports and the journal.
    pub const fn name(self) -> &'static str {
        match self {
            Certainty::Unknown => "unknown",
            Certainty::Likely => "likely",
            Certainty::Certain => "certain",
        }
    }
}

/// A process, as far as it could be read. Everything but numbers is bytes that the process may have chosen.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Program {
    /// Its number.
    pub pid: u32,
    /// When it started, as [`crate::process::Process::start_time`]: with the number, which process it is.
    pub started: Option<u64>,
    /// Its short name.
    pub name: Vec<u8>,
    /// The file it runs.
    pub exe: Option<Vec<u8>>,
    /// The first word of its arguments.
    pub argv0: Option<Vec<u8>>,
    /// Whether it lives in another mount namespace: the path of its file then means something else than here.
    pub is_elsewhere: bool,
    /// Its real user.
    pub uid: Option<u32>,
    /// Its control group, which tells containers and services apart.
    pub cgroup: Option<Vec<u8>>,
}

impl Program {
    /// One of which only the number is known.
    pub const fn unknown(pid: u32) -> Self {
        Self {
            pid,
            started: None,
            name: Vec::new(),
            exe: None,
            argv0: None,
            is_elsewhere: false,
            uid: None,
            cgroup: None,
        }
    }
}

/// Who changed something.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Writer {
    /// The process.
    pub program: Program,
    /// The processes above it, nearest first, up to the leader of its session.
    pub ancestors: Vec<Program>,
    /// How sure that is.
    pub certainty: Certainty,
}

impl Writer {
    /// A process of which only the number is known, or not even that.
    pub fn unknown(pid: u32) -> Self {
        Self { program: Program::unknown(pid), ancestors: Vec::new(), certainty: Certainty::Unknown }
    }
}

/// A point between what an account has heard and what it will hear; see [`Account::mark`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    /// How much it had heard by then.
    pub number: u64,
    /// Whether nobody had the file open for writing then.
    pub is_closed: bool,
}

/// Who may be asked about a change after it was seen.
pub trait Account: Send + Sync {
    /// Who had this number at that moment, as far as it is known: never more than likely, since nobody held it then.
    fn opener(&self, pid: u32, at: Moment) -> Writer {
        let _nothing_is_remembered = at;
        Writer::unknown(pid)
    }

    /// Who changed the path, which is or was this object, since it was last [`settled`](Self::settled). `None` if nothing
    /// at all is known.
    fn writer(&self, place: &Place, object: Option<FileId>) -> Option<Writer>;

    /// To be taken before a path is looked at that may turn out to be as accepted. `is_closed` says whether it is sure that
    /// nobody has the object open for writing now; it is asked after what has been heard is counted, and only if that matters.
    fn mark(&self, place: &Place, object: Option<FileId>, is_closed: &dyn Fn() -> bool) -> Mark;

    /// The path was looked at after `before` was taken, and is as accepted: who had it open for writing before and has it
    /// no longer is not who changes it later.
    fn settled(&self, place: &Place, object: Option<FileId>, before: Mark);

    /// Somebody had the object open for writing before openings were seen; `None` if it is not known who.
    fn held(&self, _object: FileId, _by: Option<&Writer>) {}

    /// Something may have been missed: everything is compared.
    fn missed(&self) {}
}

/// The account of a backend that knows nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Account for Nobody {
    fn writer(&self, _place: &Place, _object: Option<FileId>) -> Option<Writer> {
        None
    }

    fn mark(&self, _place: &Place, _object: Option<FileId>, _is_closed: &dyn Fn() -> bool) -> Mark {
        Mark::default()
    }

    fn settled(&self, _place: &Place, _object: Option<FileId>, _before: Mark) {}
}
