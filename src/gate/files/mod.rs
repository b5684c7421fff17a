//! The file tools: what the files worker is asked, and what it answers.
//!
//! The gate asks in two steps about whatever changes something: [`Job::Prepare`] resolves the path, looks at what is there
//! and tells the facts; [`Job::Act`] does it, if what is there is still what was looked at. Reads are one step.
//!
//! Promise: whoever answers touches nothing but what lies below its root handle.

mod base64;
mod compare;
mod error;
mod facts;
mod listing;
mod parents;
mod plan;
mod reading;
mod relocate;
mod remove;
mod resolve;
mod run;
mod search;
#[cfg(test)]
mod tests;
mod unfinished;
mod write;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use error::FilesError;
pub use run::Files;
pub use unfinished::is_unfinished;

use super::tools::request::{FileList, FileMove, FileRead, FileRemove, FileSearch, FileStat, FileWrite};

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Job {
    /// `file_read`
    Read(FileRead),
    /// `file_list`
    List(FileList),
    /// `file_stat`
    Stat(FileStat),
    /// `file_search`
    Search(FileSearch),
    /// Say what a change would do, and do nothing.
    Prepare(Change),
    /// Do it, if it would still do the same.
    Act {
        /// What to do.
        change: Change,
        /// [`Prepared::state`] of the question that was answered.
        state: String,
    },
}

/// A change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Change {
    /// `file_write`
    Write(FileWrite),
    /// `file_remove`
    Remove(FileRemove),
    /// `file_move`
    Move(FileMove),
}

/// What came of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    /// It was done: the tool's structured result.
    Done(Map<String, Value>),
    /// What a change would do.
    Prepared(Prepared),
    /// It could not be done; why, for the agent.
    Failed(String),
    /// [`Job::Act`] found something else than was looked at, and did nothing.
    Stale,
}

/// What a change would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prepared {
    /// The paths that are changed, resolved through symlinks inside the root: of a move what leaves, then where it arrives.
    pub paths: Vec<String>,
    /// Facts for the question, a line each, such as `overwrite, 310 bytes, +2 -1`. Escaped, without contents.
    pub facts: Vec<String>,
    /// What `d` shows, a line each; empty if there is nothing to show. Escaped; of a secret file keys only.
    pub difference: Vec<String>,
    /// What is there now, in a form that only [`Job::Act`] reads: identity, type, size and times.
    pub state: String,
    /// The digest of the content the path will have, and its permission bits, for a watch that guards it; `None` if the
    /// path will be absent.
    pub after: Vec<After>,
}

/// What one of the changed paths will be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct After {
    /// The path, as in [`Prepared::paths`].
    pub path: String,
    /// SHA-256 of its content in hex; `None` if it will be absent, or is no regular file.
    pub digest: Option<String>,
}
