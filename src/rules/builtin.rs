//! The built-in rules: one table, one line a group of paths.
//!
//! Promise: whatever stands in [`TABLE`] is protected, in the order of the table; nothing in a repository can take a
//! line away. Limit: git's own files depend on where a git directory lies; they are [`super::gitdir`]'s.
//!
//! A pattern is a path. Its last segment may hold one `*`, or be `**`: everything below the folder. A folder that a
//! pattern goes through is covered itself, as anything but a directory: a link in its place would bring files of
//! anybody's choice where the rule's files are looked for.

use std::collections::HashMap;

use super::filter::Filter;
use super::{Mode, Rule};

/// Where a pattern may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// In any directory of the tree.
    Anywhere,
    /// At the root only.
    AtRoot,
}

/// When a rule applies, and how strongly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strength {
    /// Always restored.
    Restore,
    /// Reported; restored when dependencies are frozen.
    ReportUnlessFrozen,
    /// Free; restored when dependencies are frozen.
    OnlyFrozen,
}

/// One line of the table.
#[derive(Debug)]
pub struct Row {
    /// The rule it belongs to.
    pub rule: Rule,
    /// How strongly it protects.
    pub strength: Strength,
    /// Where its patterns start.
    pub start: Start,
    /// The patterns, separated by blanks.
    pub patterns: &'static str,
    /// Names that are free all the same, separated by blanks.
    pub except: &'static str,
}

const fn row(rule: Rule, start: Start, patterns: &'static str) -> Row {
    Row { rule, strength: Strength::Restore, start, patterns, except: "" }
}

const fn named(rule: Rule, strength: Strength, patterns: &'static str) -> Row {
    Row { rule, strength, start: Start::Anywhere, patterns, except: "" }
}

use Rule::{
    AgentConfig, CageConfig, CiConfig, DependencyManifest, EditorTasks, HookManagers, Lockfile, PackageRegistry,
    Secrets,
};
use Start::{Anywhere, AtRoot};
use Strength::{OnlyFrozen, ReportUnlessFrozen};

/// Every built-in rule but `git_control`.
#[rustfmt::skip]
pub const TABLE: &[Row] = &[
    Row { except: ".env.example .env.sample .env.template", ..row(Secrets, Anywhere, ".env .env.* .envrc") },
    row(CiConfig, AtRoot, ".github/workflows/** .github/actions/** .circleci/** .buildkite/**"),
    row(CiConfig, AtRoot, ".gitlab-ci.yml azure-pipelines.yml Jenkinsfile bitbucket-pipelines.yml"),
    row(AgentConfig, Anywhere, ".claude/** .codex/** .agents/** .gemini/** .cursor/** .windsurf/** .opencode/** .clinerules/**"),
    row(AgentConfig, Anywhere, ".mcp.json CLAUDE.md AGENTS.md GEMINI.md .cursorrules"),
    row(EditorTasks, Anywhere, ".vscode/settings.json .vscode/tasks.json .vscode/launch.json .vscode/extensions.json"),
    row(EditorTasks, Anywhere, ".idea/** .devcontainer/**"),
    row(HookManagers, Anywhere, ".husky/** .githooks/** lefthook.yml .pre-commit-config.yaml .gitmodules"),
    row(PackageRegistry, Anywhere, ".npmrc .yarnrc.yml .pypirc pip.conf .cargo/config.toml"),
    row(CageConfig, AtRoot, ".cage.yaml"),
    named(Lockfile, ReportUnlessFrozen, "package-lock.json npm-shrinkwrap.json pnpm-lock.yaml yarn.lock bun.lock bun.lockb"),
    named(Lockfile, ReportUnlessFrozen, "Cargo.lock poetry.lock Pipfile.lock pdm.lock uv.lock go.sum Gemfile.lock composer.lock"),
    named(Lockfile, ReportUnlessFrozen, "flake.lock mix.lock pubspec.lock Package.resolved deno.lock"),
    named(DependencyManifest, OnlyFrozen, "package.json Cargo.toml pyproject.toml requirements*.txt setup.py setup.cfg Pipfile"),
    named(DependencyManifest, OnlyFrozen, "go.mod Gemfile *.gemspec composer.json build.gradle build.gradle.kts pom.xml"),
    named(DependencyManifest, OnlyFrozen, "Package.swift mix.exs pubspec.yaml deno.json"),
];

/// Directories that hold what tools install or build: not searched when git ignores them.
pub const DEPENDENCY_DIRS: [&[u8]; 8] =
    [b"node_modules", b".venv", b"venv", b"__pycache__", b"target", b"dist", b"build", b"vendor"];

/// What a line of the table says of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match {
    /// The rule.
    pub rule: Rule,
    /// Its mode.
    pub mode: Mode,
    /// Whether a directory there is nobody's change: a folder a pattern goes through, or something below one.
    pub may_be_directory: bool,
}

/// What must stand above a name, and what then holds.
#[derive(Debug, Clone)]
struct Candidate {
    found: Match,
    start: Start,
    /// Names above, nearest first.
    above: Vec<&'static [u8]>,
    except: &'static str,
}

#[derive(Debug)]
struct Wild {
    prefix: &'static [u8],
    suffix: &'static [u8],
    candidate: Candidate,
}

/// The table in a form that answers in a few dozen nanoseconds.
#[derive(Debug)]
pub struct Table {
    names: HashMap<&'static [u8], Vec<Candidate>>,
    /// Folders that are covered whole, by their last name.
    folders: HashMap<&'static [u8], Vec<Candidate>>,
    wild: Vec<Wild>,
    name_filter: Filter,
    folder_filter: Filter,
}

impl Table {
    /// Compiles the lines that apply; `frozen`: dependencies may not change.
    pub fn new(frozen: bool) -> Self {
        let (mut names, mut folders, mut wild) = (HashMap::new(), HashMap::new(), Vec::new());
        for row in TABLE {
            let mode = match (row.strength, frozen) {
                (Strength::Restore, _) | (_, true) => Mode::Restore,
                (ReportUnlessFrozen, false) => Mode::Report,
                (OnlyFrozen, false) => continue,
            };
            for pattern in row.patterns.split(' ') {
                let segments: Vec<&'static [u8]> = pattern.split('/').map(str::as_bytes).collect();
                for (index, &name) in segments.iter().enumerate() {
                    let above = segments[..index].iter().rev().copied().collect();
                    let last = index + 1 == segments.len();
                    let found = Match { rule: row.rule, mode, may_be_directory: !last };
                    let candidate = Candidate { found, start: row.start, above, except: row.except };
                    if name == b"**" {
                        let mut candidate = candidate;
                        candidate.found.may_be_directory = true;
                        let folder = candidate.above.remove(0);
                        insert(&mut folders, folder, candidate);
                    } else if let Some(star) = name.iter().position(|&byte| byte == b'*') {
                        wild.push(Wild { prefix: &name[..star], suffix: &name[star + 1..], candidate });
                    } else {
                        insert(&mut names, name, candidate);
                    }
                }
            }
        }
        let (name_filter, folder_filter) = (names.keys().copied().collect(), folders.keys().copied().collect());
        Self { names, folders, wild, name_filter, folder_filter }
    }

    /// Whether the directory is a folder of the table, or lies in one.
    pub fn is_folder(&self, dir: &[u8]) -> bool {
        self.find(dir, b"").is_some() || {
            let (above, name) = dir
                .iter()
                .rposition(|&byte| byte == b'/')
                .map_or((&b""[..], dir), |slash| (&dir[..slash], &dir[slash + 1..]));
            self.find(above, name).is_some_and(|found| found.may_be_directory)
        }
    }

    /// The strongest, then first, line that covers the entry `name` of the directory `dir`.
    pub fn find(&self, dir: &[u8], name: &[u8]) -> Option<Match> {
        let mut best = None;
        if self.name_filter.admits(name)
            && let Some(candidates) = self.names.get(name)
        {
            candidates
                .iter()
                .filter(|candidate| candidate.holds(dir, name))
                .for_each(|found| stronger(&mut best, found));
        }
        for wild in &self.wild {
            let (prefix, suffix) = (wild.prefix, wild.suffix);
            let long_enough = name.len() >= prefix.len() + suffix.len();
            if long_enough && name.starts_with(prefix) && name.ends_with(suffix) && wild.candidate.holds(dir, name) {
                stronger(&mut best, &wild.candidate);
            }
        }
        let mut end = 0;
        for part in dir.split(|&byte| byte == b'/') {
            let start = end;
            end = start + part.len() + 1;
            if self.folder_filter.admits(part)
                && let Some(candidates) = self.folders.get(part)
            {
                let above = &dir[..start.saturating_sub(1)];
                candidates
                    .iter()
                    .filter(|folder| folder.holds(above, part))
                    .for_each(|found| stronger(&mut best, found));
            }
        }
        best
    }
}

fn insert(map: &mut HashMap<&'static [u8], Vec<Candidate>>, key: &'static [u8], candidate: Candidate) {
    let list: &mut Vec<Candidate> = map.entry(key).or_default();
    let known = list.iter().any(|other| {
        other.found == candidate.found && other.above == candidate.above && other.start == candidate.start
    });
    if !known {
        list.push(candidate);
    }
}

impl Candidate {
    /// Whether the directory ends in the names that must stand above, and nothing else stands there if it must not.
    fn holds(&self, dir: &[u8], name: &[u8]) -> bool {
        let mut rest = dir;
        for &wanted in &self.above {
            let cut = rest.iter().rposition(|&byte| byte == b'/');
            if &rest[cut.map_or(0, |slash| slash + 1)..] != wanted {
                return false;
            }
            rest = &rest[..cut.unwrap_or(0)];
        }
        (self.start == Anywhere || rest.is_empty()) && !self.except.split(' ').any(|free| free.as_bytes() == name)
    }
}

fn stronger(best: &mut Option<Match>, candidate: &Candidate) {
    let found = candidate.found;
    let rank = |found: &Match| (std::cmp::Reverse(found.mode), found.rule, found.may_be_directory);
    if best.as_ref().is_none_or(|known| rank(&found) < rank(known)) {
        *best = Some(found);
    }
}
