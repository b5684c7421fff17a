//! The files worker: a confined process of this program that does the file tools' jobs.
//!
//! Promise: a worker that gets a job has shown that what is to confine it does: it tried what it may not do and was refused.
//! One that cannot is not started, but for a best effort that was asked for or a system that has no such means, and then
//! [`FilesWorker::missing`] says what is not held. A worker that dies or takes too long is an error of that one job; the
//! next job has a new worker. Limit: what a worker answers is what it says. One that a file's content has taken over could
//! lie about files of the root, which it may read and write anyway; it cannot reach beyond them.

mod inside;
mod report;

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::time::Duration;

use platform::child::{Child, ChildError};
use platform::confine::{self, Plan};
use platform::{Dir, FileId, FsError, Root, process};

use super::files::{Answer, Job};
use super::frame::{self, FrameError};

pub use inside::{Handler, InsideError, serve, worker_main};
pub use report::{Confinement, Tried};
use report::{Opening, Report};

/// The one argument this program is started with as a files worker. No person has a use for it.
pub const ARGUMENT: &str = "files-worker";

/// How long a worker has to be confined and ready.
const START_LIMIT: Duration = Duration::from_secs(20);

/// Why there is no worker, or no answer of one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// This system lacks what confines a worker, and a best effort was not asked for.
    #[error("this system cannot keep a files worker from {}", .missing.join(", nor from "))]
    NotEnforceable {
        /// What it cannot keep it from.
        missing: Vec<&'static str>,
    },
    /// The root's handle could not be used.
    #[error("cannot hand the root to a files worker")]
    Root(#[source] FsError),
    /// The process was not started.
    #[error("cannot start a files worker")]
    Start(#[source] ChildError),
    /// It was not told what it is to be, or did not say that it is ready.
    #[error("the files worker ended before it was ready")]
    Opening(#[source] FrameError),
    /// It did not confine itself.
    #[error("the files worker is not confined: {why}")]
    Refused {
        /// Why, as it says.
        why: String,
    },
    /// It did what it was to be kept from.
    #[error("the files worker is not confined: it could {what}")]
    Unproven {
        /// What it did.
        what: String,
    },
    /// It took too long and was killed.
    #[error("the files worker took longer than {} s and was ended; it is not known how far it came", .limit.as_secs())]
    TimedOut {
        /// How long it had.
        limit: Duration,
    },
    /// It ended, or said something that is no answer, and was killed.
    #[error("the files worker ended within the call; it is not known how far it came")]
    Gone(#[source] FrameError),
}

/// How a worker is to be.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Whether it may start though something of its confinement is missing.
    pub best_effort: bool,
    /// Paths outside the root that it has to fail to read: the control folder.
    pub outside: Vec<PathBuf>,
    /// How long a job may take.
    pub time_limit: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { best_effort: false, outside: Vec::new(), time_limit: Duration::from_secs(60) }
    }
}

/// A files worker, and what is needed to start the next one.
#[derive(Debug)]
pub struct FilesWorker {
    root: Dir,
    id: FileId,
    settings: Settings,
    child: Option<Child>,
    confinement: Confinement,
}

impl FilesWorker {
    /// Starts a worker for the root.
    pub fn start(root: &Root, best_effort: bool) -> Result<Self, WorkerError> {
        Self::start_with(root, Settings { best_effort, ..Settings::default() })
    }

    /// Starts a worker that is as told.
    pub fn start_with(root: &Root, settings: Settings) -> Result<Self, WorkerError> {
        let dir = root.dir().try_clone().map_err(WorkerError::Root)?;
        let (child, confinement) = begin(&dir, root.id(), &settings)?;
        Ok(Self { root: dir, id: root.id(), settings, child: Some(child), confinement })
    }

    /// Does a job. After an error the worker is gone, and the next job starts another.
    pub fn run(&mut self, job: &Job) -> Result<Answer, WorkerError> {
        // One that was killed between two jobs has begun nothing: the job can go to the next one.
        let mut child = match self.child.take().filter(Child::is_idle) {
            Some(child) => child,
            None => {
                let (child, confinement) = begin(&self.root, self.id, &self.settings)?;
                self.confinement = confinement;
                child
            }
        };
        let limit = self.settings.time_limit;
        let channel = child.channel();
        channel.allow(limit);
        let answer = frame::write(channel, job).map_err(FrameError::Read).and_then(|()| frame::read(channel));
        match answer {
            Ok(answer) => {
                self.child = Some(child);
                Ok(answer)
            }
            Err(error) => {
                child.kill();
                Err(if is_late(&error) { WorkerError::TimedOut { limit } } else { WorkerError::Gone(error) })
            }
        }
    }

    /// What confines it, in lines for the start.
    pub fn confinement(&self) -> Vec<String> {
        self.confinement.lines()
    }

    /// What nothing keeps it from, in lines for the start; empty if all is held.
    pub fn missing(&self) -> Vec<String> {
        self.confinement.missing()
    }

    /// What is in force for it, as it found out itself before its first job.
    pub fn report(&self) -> &Confinement {
        &self.confinement
    }

    /// The process's number, while there is one.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::pid)
    }
}

fn is_late(error: &FrameError) -> bool {
    matches!(error, FrameError::Read(error) if error.kind() == io::ErrorKind::TimedOut)
}

fn begin(root: &Dir, id: FileId, settings: &Settings) -> Result<(Child, Confinement), WorkerError> {
    let plan = Plan::new(confine::support());
    if !settings.best_effort && !plan.is_whole() {
        let missing = plan.missing().into_iter().map(confine::Axis::what).collect();
        return Err(WorkerError::NotEnforceable { missing });
    }
    let mut child = Child::start(ARGUMENT, root).map_err(WorkerError::Start)?;
    let opening = Opening {
        parent: process::own_pid(),
        root: (id.dev, id.ino),
        best_effort: settings.best_effort,
        outside: settings.outside.iter().map(|path| path.as_os_str().as_bytes().to_vec()).collect(),
    };
    let channel = child.channel();
    channel.allow(START_LIMIT);
    let report = frame::write(channel, &opening).map_err(FrameError::Read).and_then(|()| frame::read(channel));
    match report.map_err(WorkerError::Opening)? {
        Report::Confined(confinement) => match confinement.unproven(&plan) {
            None => Ok((child, confinement)),
            Some(what) => Err(WorkerError::Unproven { what }),
        },
        Report::Refused(why) => Err(WorkerError::Refused { why }),
    }
}

/// Paths as the other process sent them.
fn paths(bytes: Vec<Vec<u8>>) -> Vec<PathBuf> {
    bytes.into_iter().map(OsString::from_vec).map(PathBuf::from).collect()
}
