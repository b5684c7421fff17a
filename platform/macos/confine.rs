//! Confining a process on macOS: limits only.

use std::path::PathBuf;

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::confine::{Attempt, ConfineError, Plan, Support};
use crate::dir::Dir;
use crate::privilege;

pub(crate) fn confine_support() -> Support {
    Support { landlock: None, filter: false, is_expected: false }
}

pub(crate) fn confine(_plan: &Plan, _folder: &Dir) -> Result<(), ConfineError> {
    privilege::harden().map_err(ConfineError::Harden)?;
    let files = Rlimit { current: Some(1024), maximum: Some(1024) };
    setrlimit(Resource::Nofile, files).map_err(|errno| ConfineError::Limit { what: "open files", source: errno.into() })
}

/// Nothing holds anything, so there is nothing to show.
pub(crate) fn forbidden_attempts(_folder: &Dir, _outside: &[PathBuf]) -> Vec<Attempt> {
    Vec::new()
}
