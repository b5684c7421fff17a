//! The rules of a run: the rule file, git's files and the options, read and put together.

use std::sync::Arc;

use platform::Root;

use crate::git::{self, Committed};
use crate::roots::Roots;
use crate::rules::assemble::{self, Flags, ScopeSource};
use crate::rules::file::{self, RuleFile};
use crate::rules::glob::Glob;
use crate::rules::set::RuleSet;
use crate::text::escaped;

use super::exit::{Refusal, RefusalCode, causes};
use super::ground::Ground;

/// What options say about the rules.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// `--lock-deps`.
    pub lock_deps: bool,
    /// `--allow-only`.
    pub allow_only: Vec<String>,
}

/// The rules, the roots they cover, and what the person should know of them.
pub struct Assembled {
    /// The rules.
    pub rules: RuleSet,
    /// The tree and the folders outside it.
    pub roots: Roots,
    /// Whether dependencies are frozen.
    pub frozen: bool,
    /// The allowed area.
    pub scope: Option<Vec<ScopeSource>>,
    /// Refusals until a path is contested; 0 = never.
    pub contest_limit: u32,
    /// Warnings, a line each.
    pub warnings: Vec<String>,
}

/// A path is contested after so many refusals, unless the rule file says otherwise.
const CONTEST_LIMIT: u32 = 3;

/// Puts the rules together. `rule_file` is the content of `.cage.yaml`.
pub fn assemble(ground: &Ground, rule_file: Option<&[u8]>, asked: &Asked) -> Result<Assembled, Refusal> {
    let file = match rule_file {
        Some(bytes) => file::parse(bytes).map_err(|fault| invalid(&format!(".cage.yaml: {fault}")))?,
        None => RuleFile::default(),
    };
    let compile = |text: &String| {
        Glob::compile(text).map_err(|error| invalid(&format!("--allow-only {}: {error}", escaped(text.as_bytes()))))
    };
    let allow_only = asked.allow_only.iter().map(compile).collect::<Result<_, _>>()?;
    let view =
        ground.repository.as_ref().map(|repository| git::read(repository, &ground.tree, &ground.sources, rule_file));
    let mut warnings = Vec::new();
    if let Some(view) = &view {
        warnings.extend(view.warnings.iter().map(|warning| format!("keep watch: warning: {warning}")));
        let state = match view.committed {
            Some(Committed::Untracked) => Some("is not tracked by git"),
            Some(Committed::Modified) => Some("differs from what git has"),
            Some(Committed::Unknown) => Some("could not be compared with what git has"),
            Some(Committed::Same) | None => None,
        };
        warnings
            .extend(state.map(|state| format!("keep watch: warning: .cage.yaml {state}; its rules apply as they are")));
    }
    let rules = assemble::assemble(file, Flags { lock_deps: asked.lock_deps, allow_only }, view);
    let mut roots = vec![Arc::clone(&ground.tree)];
    for path in rules.set.external_roots() {
        let root = Root::open(path).map_err(|error| {
            Refusal::new(RefusalCode::Root, causes(&error), "a folder that holds git's control files must be readable")
        })?;
        roots.push(Arc::new(root));
    }
    Ok(Assembled {
        rules: rules.set,
        roots: Roots::new(roots),
        frozen: rules.frozen,
        scope: (!rules.scope_sources.is_empty()).then_some(rules.scope_sources),
        contest_limit: rules.contest_limit.unwrap_or(CONTEST_LIMIT),
        warnings,
    })
}

/// Reads `.cage.yaml`.
pub fn read_rule_file(ground: &Ground) -> Result<Option<Vec<u8>>, Refusal> {
    file::read(ground.tree.dir()).map_err(|error| invalid(&causes(&error)))
}

fn invalid(message: &str) -> Refusal {
    Refusal::new(RefusalCode::ConfigInvalid, message, "correct the line named; docs/rules.md describes the file")
}
