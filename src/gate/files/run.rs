//! Jobs carried out.

use std::io::Read as _;
use std::sync::Arc;

use platform::{Root, Stat};
use serde_json::{Map, Value, json};

use super::error::FilesError;
use super::parents::{Parents, sync};
use super::plan::Plan;
use super::resolve::Resolved;
use super::unfinished::Cleared;
use super::{Answer, Change, Job, Prepared, facts, listing, reading, relocate, remove, search, write};
use crate::rules::builtin::Table;

/// The file tools over one root.
pub struct Files {
    root: Arc<Root>,
    /// Tells which files hold secrets.
    table: Table,
    cleared: Cleared,
}

impl Files {
    /// Nothing is done yet.
    pub fn new(root: Arc<Root>) -> Self {
        Self { root, table: Table::new(false), cleared: Cleared::default() }
    }

    /// Does a job.
    pub fn run(&mut self, job: Job) -> Answer {
        let done = match &job {
            Job::Read(request) => reading::read(&self.root, request).map(Answer::Done),
            Job::List(request) => listing::list(&self.root, request).map(Answer::Done),
            Job::Stat(request) => listing::stat(&self.root, request).map(Answer::Done),
            Job::Search(request) => search::search(&self.root, request).map(Answer::Done),
            Job::Prepare(change) => self.prepare(change).map(Answer::Prepared),
            Job::Act { change, state } => self.act(change, state).map(Answer::Done),
        };
        done.unwrap_or_else(|error| match error {
            // Only a change that was decided finds this; whoever decided can look anew.
            FilesError::Changed { .. } => Answer::Stale,
            error => Answer::Failed(error.to_string()),
        })
    }

    /// What a change would do.
    pub fn prepare(&self, change: &Change) -> Result<Prepared, FilesError> {
        facts::prepared(&self.root, &self.table, &Plan::of(&self.root, change)?)
    }

    /// Does it, if it still does what was asked about.
    pub fn act(&mut self, change: &Change, state: &str) -> Result<Map<String, Value>, FilesError> {
        let plan = Plan::of(&self.root, change)?;
        // Of two identical calls that share an answer, the second finds its work done.
        let done = matches!(&plan, Plan::Write { at, content } if self.holds(at, content));
        if !done && plan.state() != state {
            let path = plan.paths()[0].path.clone();
            return Err(FilesError::Changed { path });
        }
        match &plan {
            Plan::Write { at, content } => {
                if !done {
                    self.write(at, content)?;
                }
                let created = at.stat.is_none();
                Ok(object(json!({"path": text(at), "bytesWritten": content.len(), "created": created})))
            }
            Plan::Remove { at } => {
                remove::remove(&self.root, &at.path, at.present()?)?;
                Ok(object(json!({"path": text(at), "removed": true})))
            }
            Plan::Move { from, to } => {
                let (overwritten, ends) = (to.stat.is_some(), (text(from), text(to)));
                relocate::relocate(&self.root, from, to)?;
                Ok(object(json!({"from": ends.0, "to": ends.1, "overwritten": overwritten})))
            }
        }
    }

    fn write(&mut self, at: &Resolved, content: &[u8]) -> Result<(), FilesError> {
        let mut parents = Parents::of(&self.root, &at.path)?;
        self.cleared.clear(&parents.dir);
        let name = at.path.name().ok_or_else(|| FilesError::IsDirectory { path: at.path.clone() })?;
        let written = write::write(&parents.dir, name, &at.path, at.stat.as_ref(), content);
        if written.is_err() {
            parents.undo();
            return written;
        }
        sync(&parents.dir)?;
        parents.sync()
    }

    /// Whether the file has this very content.
    fn holds(&self, at: &Resolved, content: &[u8]) -> bool {
        let Some(Stat { size, .. }) = at.stat else { return false };
        if size != content.len() as u64 {
            return false;
        }
        let mut there = Vec::with_capacity(content.len() + 1);
        let read = self.root.open_read(&at.path).map(|file| file.take(size + 1).read_to_end(&mut there));
        matches!(read, Ok(Ok(_))) && there == content
    }
}

fn text(at: &Resolved) -> String {
    facts::path_text(at)
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
