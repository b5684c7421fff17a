//! Puts flags, `.cage.yaml` and what git says together into the rules of one run.

use super::file::RuleFile;
use super::glob::Glob;
use super::set::{Parts, RuleSet, Scope};
use crate::git::GitView;
use crate::git::index::Tracked;

/// What the command line adds to the rules.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// `--lock-deps`.
    pub lock_deps: bool,
    /// `--allow-only`.
    pub allow_only: Vec<Glob>,
}

/// A glob of the allowed area, and who named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeSource {
    /// The glob as it was written.
    pub glob: String,
    /// `--allow-only` or `.cage.yaml`.
    pub source: &'static str,
}

/// The rules of one run, and what reports say about them.
#[derive(Debug)]
pub struct Rules {
    /// The rules.
    pub set: RuleSet,
    /// Whether lockfiles and manifests are restored.
    pub frozen: bool,
    /// The allowed area; empty if there is none.
    pub scope_sources: Vec<ScopeSource>,
    /// After how many refusals a path is contested, if the file says so; 0 is never.
    pub contest_limit: Option<u32>,
}

/// Puts them together. The allowed area is the union of what flags and file name; freezing needs only one of them.
pub fn assemble(file: RuleFile, flags: Flags, git: Option<GitView>) -> Rules {
    let frozen = file.frozen || flags.lock_deps;
    let named = |source| move |glob: &Glob| ScopeSource { glob: glob.text().to_owned(), source };
    let from_flags = flags.allow_only.iter().map(named("--allow-only"));
    let scope_sources = from_flags.chain(file.allow_only.iter().map(named(".cage.yaml"))).collect::<Vec<_>>();

    let is_git = git.is_some();
    let (places, ignored, tracked) = match git {
        Some(view) => (view.places, view.ignored, view.tracked),
        None => (Default::default(), Default::default(), Tracked::none()),
    };
    let allowed: Vec<Glob> = flags.allow_only.into_iter().chain(file.allow_only).collect();
    let scope = (!allowed.is_empty()).then_some(Scope { allowed, tracked });
    let set = RuleSet::new(Parts {
        git: is_git,
        frozen,
        entries: file.entries,
        scope,
        zones: places.zones,
        external: places.external,
        ignored,
    });
    Rules { set, frozen, scope_sources, contest_limit: file.contest_limit }
}
