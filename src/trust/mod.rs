//! The programs a person trusts with held opens: what `config.toml` says, and whether a process is one of them.
//!
//! Promise: a process is one only if the file it runs has the very digest that was written down, and nothing else is seen to
//! have a say in it; whatever cannot be told is a no. Limit: a program does what it is told by arguments, settings and
//! scripts; whoever trusts an interpreter trusts every script, and any process of the user can tell a trusted program what
//! to do (`docs/hold.md`).

mod check;
mod examine;
mod file;
mod vetting;

use platform::Access;

use crate::digest::Digest;
use crate::rules::Rule;
use crate::rules::glob::Glob;

pub use check::Fit;
pub use examine::{Examined, Examiner};
pub use file::{FILE_NAME, FileError, read};
pub use vetting::{Examine, Report, Vetting};

/// One entry of `config.toml`.
#[derive(Debug, Clone)]
pub struct Trusted {
    /// The program's path, without symlinks.
    pub program: Vec<u8>,
    /// The digest of its file.
    pub digest: Digest,
    /// What it may open a file for.
    pub may: Vec<Access>,
    /// Only files under these rules; none means any.
    pub rules: Vec<Rule>,
    /// Only these paths; none means any.
    pub paths: Vec<Glob>,
}

/// What a process wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// The program it says it runs.
    pub exe: Vec<u8>,
    /// What it opens a file for.
    pub access: Access,
    /// The file's rule.
    pub rule: Rule,
    /// The file's path, relative to the tree, or absolute.
    pub path: Vec<u8>,
}

impl Trusted {
    /// Whether the entry is about this, as far as that can be told without looking at the program.
    pub fn is_about(&self, wish: &Wish) -> bool {
        let parts: Vec<&[u8]> = wish.path.split(|byte| *byte == b'/').collect();
        self.program == wish.exe
            && self.may.contains(&wish.access)
            && (self.rules.is_empty() || self.rules.contains(&wish.rule))
            && (self.paths.is_empty() || self.paths.iter().any(|glob| glob.matches(&parts)))
    }
}
