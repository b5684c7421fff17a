//! The worker's own side: confined first, then one job after the other.

use std::error::Error;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use platform::child::{self, Entrance, EntranceError};
use platform::confine::{self, ConfineError, Plan};
use platform::{FileId, FsError, Root};

use super::super::files::{Answer, Files, Job};
use super::super::frame::{self, FrameError};
use super::report::{Confinement, Opening, Report};
use super::{ARGUMENT, paths};

/// Does the jobs.
pub trait Handler {
    /// Does one.
    fn handle(&mut self, job: Job) -> Answer;
}

/// Why a worker did not work, or no longer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InsideError {
    /// It was not started as one, or its process could not be made one.
    #[error("cannot be a files worker")]
    Entrance(#[from] EntranceError),
    /// It was not told what it is to be.
    #[error("cannot read what is wanted of it")]
    Opening(#[source] FrameError),
    /// The gate was gone before its end could be noticed.
    #[error("the gate has ended")]
    Orphan,
    /// The folder it was given is not the root, or cannot be used.
    #[error("the folder that was handed over is not the root")]
    Root(#[source] Option<FsError>),
    /// It could not be confined.
    #[error(transparent)]
    Confine(#[from] ConfineError),
    /// Something of its confinement is missing, and a best effort was not asked for.
    #[error("nothing keeps it from {}", .missing.join(", nor from "))]
    NotEnforceable {
        /// What nothing keeps it from.
        missing: Vec<&'static str>,
    },
    /// It is confined, and did what it should not have been able to do.
    #[error("it could {what}")]
    Unproven {
        /// What it did.
        what: String,
    },
    /// A job could not be read.
    #[error("cannot read a job")]
    Job(#[source] FrameError),
    /// The gate could not be answered.
    #[error("cannot answer")]
    Answer(#[source] io::Error),
}

/// Is a files worker until the gate has no more jobs. To be called first thing in a process that was started as one.
///
/// `make` is called when the process is confined, so that nothing of the handler has ever run unconfined.
pub fn serve<H: Handler>(make: impl FnOnce(Arc<Root>) -> H) -> Result<(), InsideError> {
    let Entrance { mut channel, folder, parent } = child::enter()?;
    let opening: Opening = frame::read(&mut channel).map_err(InsideError::Opening)?;
    if opening.parent != parent {
        return Err(InsideError::Orphan);
    }
    let root = Root::from_dir(folder, Path::new(".")).map_err(|error| InsideError::Root(Some(error)));
    let confined = root.and_then(|root| Ok((confined(&root, opening)?, root)));
    let root = match confined {
        Ok((confinement, root)) => {
            frame::write(&mut channel, &Report::Confined(confinement)).map_err(InsideError::Answer)?;
            root
        }
        Err(error) => {
            // The gate says it to the person; if it is gone, nobody needs to know.
            let _ = frame::write(&mut channel, &Report::Refused(said(&error)));
            return Err(error);
        }
    };
    work(&mut channel, &mut make(Arc::new(root)))
}

impl Handler for Files {
    fn handle(&mut self, job: Job) -> Answer {
        self.run(job)
    }
}

/// Is a files worker of the product; returns the process's exit code: 0 when the gate had no more jobs, 2 if it never
/// was one, 1 if it broke off.
pub fn worker_main() -> u8 {
    match serve(Files::new) {
        Ok(()) => 0,
        Err(InsideError::Job(_) | InsideError::Answer(_)) => 1,
        Err(error) => {
            // Of a real worker nobody sees this: the gate has been told. A person who tried it does.
            let _ = writeln!(io::stderr(), "keep: {}: {ARGUMENT} is for keep gate to start", said(&error));
            2
        }
    }
}

fn confined(root: &Root, opening: Opening) -> Result<Confinement, InsideError> {
    let (dev, ino) = opening.root;
    if root.id() != (FileId { dev, ino }) {
        return Err(InsideError::Root(None));
    }
    let plan = Plan::new(confine::support());
    if !opening.best_effort && !plan.is_whole() {
        return Err(InsideError::NotEnforceable {
            missing: plan.missing().into_iter().map(confine::Axis::what).collect(),
        });
    }
    confine::confine(&plan, root.dir())?;
    let attempts = confine::attempts(root.dir(), &paths(opening.outside));
    if let Some(done) = confine::unproven(&plan, &attempts) {
        return Err(InsideError::Unproven { what: done.what.clone() });
    }
    Ok(Confinement::new(plan.support(), attempts))
}

fn work(channel: &mut File, handler: &mut impl Handler) -> Result<(), InsideError> {
    loop {
        let job = match frame::read(channel) {
            Ok(job) => job,
            Err(FrameError::Closed) => return Ok(()),
            Err(error) => return Err(InsideError::Job(error)),
        };
        frame::write(channel, &handler.handle(job)).map_err(InsideError::Answer)?;
    }
}

/// The error and its causes.
fn said(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
