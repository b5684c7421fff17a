//! The rules of one run, put together: which rule covers a path, and where covered paths can lie.
//!
//! Promise: built once, then a value; the same question has the same answer for the whole run, whatever happens to the
//! files the rules were read from. What [`RuleSet::classify`] names, `covers` says yes to, and every directory above it
//! is entered. Limit: rules look at names only; what lies there is for others to see.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use platform::{Interest, Place, RelPath, RootId};

use super::builtin::{DEPENDENCY_DIRS, Table};
use super::filter::Filter;
use super::gitdir::{self, Part, split_first};
use super::glob::Glob;
use super::zone::Zone;
use super::{Class, Mode, Rule};
use crate::git::ignore::IgnoreSet;
use crate::git::index::Tracked;

/// A folder outside the tree that holds control files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalRoot {
    /// The directory to open: above the folder, so that a swap of the folder itself is seen.
    pub path: PathBuf,
    /// What is covered below it.
    pub zones: Vec<Zone>,
}

/// A `protect:` entry.
#[derive(Debug, Clone)]
pub enum Target {
    /// A file, or a folder and all below it.
    Path(RelPath),
    /// Every file that matches.
    Glob(Glob),
}

/// The area changes are allowed in; everything else that git would track is out of scope.
#[derive(Debug)]
pub struct Scope {
    /// What is allowed.
    pub allowed: Vec<Glob>,
    /// What git tracks.
    pub tracked: Tracked,
}

/// All that a [`RuleSet`] is made of.
#[derive(Debug, Default)]
pub struct Parts {
    /// Whether the tree is a git working tree, so that `git_control` applies.
    pub git: bool,
    /// Whether lockfiles and manifests are restored.
    pub frozen: bool,
    /// The entries of `.cage.yaml`.
    pub entries: Vec<(Target, Mode)>,
    /// The allowed area, if there is one.
    pub scope: Option<Scope>,
    /// Control files in unusual places of the tree.
    pub zones: Vec<Zone>,
    /// Control files elsewhere. The first becomes root 1, and so on.
    pub external: Vec<ExternalRoot>,
    /// What git ignores.
    pub ignored: IgnoreSet,
}

/// The rules of one run.
#[derive(Debug)]
pub struct RuleSet {
    git: bool,
    table: Table,
    paths: PathEntries,
    globs: Vec<(Glob, Mode)>,
    scope: Option<Scope>,
    /// By root.
    zones: Vec<Vec<Zone>>,
    external: Vec<PathBuf>,
    ignored: IgnoreSet,
}

/// `path:` entries, by directory and name, so that a path is looked up without putting it together.
#[derive(Debug, Default)]
struct PathEntries {
    entries: HashMap<Vec<u8>, HashMap<Vec<u8>, Mode>>,
    /// Every directory above an entry.
    ways: HashSet<Vec<u8>>,
    /// First components of the entries.
    firsts: Filter,
}

impl PathEntries {
    fn add(&mut self, path: &RelPath, mode: Mode) {
        let (Some(dir), Some(name)) = (path.parent(), path.name()) else { return };
        self.firsts.add(split_first(path.as_bytes()).0);
        self.ways.extend(path.ancestors().map(|way| way.as_bytes().to_vec()));
        let known = self.entries.entry(dir.as_bytes().to_vec()).or_default().entry(name.to_vec()).or_insert(mode);
        *known = mode.max(*known);
    }

    /// The strongest mode of an entry that is this path or a directory above it.
    fn find(&self, dir: &[u8], name: &[u8]) -> Option<Mode> {
        if self.entries.is_empty() || !self.firsts.admits(if dir.is_empty() { name } else { split_first(dir).0 }) {
            return None;
        }
        let own = self.entries.get(dir).and_then(|names| names.get(name)).copied();
        own.max(self.above(dir))
    }

    /// The same for the directory alone.
    fn above(&self, dir: &[u8]) -> Option<Mode> {
        let mut best = None;
        let (mut parent, mut start) = (&dir[..0], 0);
        for part in dir.split(|&byte| byte == b'/') {
            best = best.max(self.entries.get(parent).and_then(|names| names.get(part)).copied());
            parent = &dir[..start + part.len()];
            start += part.len() + 1;
        }
        best
    }

    fn enters(&self, dir: &[u8]) -> bool {
        !self.entries.is_empty() && (self.ways.contains(dir) || self.above(dir).is_some())
    }
}

/// A rule's word on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Found {
    class: Class,
    may_be_directory: bool,
}

fn stronger(best: &mut Option<Found>, rule: Rule, mode: Mode, may_be_directory: bool) {
    let rank = |class: &Class| (std::cmp::Reverse(class.mode), class.rule);
    let found = Found { class: Class { rule, mode }, may_be_directory };
    match best {
        Some(known) if rank(&known.class) < rank(&found.class) => known.may_be_directory &= may_be_directory,
        Some(known) if rank(&known.class) == rank(&found.class) => known.may_be_directory &= may_be_directory,
        _ => {
            let and = best.is_none_or(|known| known.may_be_directory);
            *best = Some(Found { may_be_directory: found.may_be_directory && and, ..found });
        }
    }
}

impl RuleSet {
    /// Puts the parts together.
    pub fn new(parts: Parts) -> Self {
        let (mut paths, mut globs) = (PathEntries::default(), Vec::new());
        for (target, mode) in parts.entries {
            match target {
                Target::Path(path) => paths.add(&path, mode),
                Target::Glob(glob) => globs.push((glob, mode)),
            }
        }
        let mut zones = vec![parts.zones];
        let mut external = Vec::new();
        for root in parts.external {
            zones.push(root.zones);
            external.push(root.path);
        }
        let table = Table::new(parts.frozen);
        Self { git: parts.git, table, paths, globs, scope: parts.scope, zones, external, ignored: parts.ignored }
    }

    /// The first walk is over: ignore files that appear or change from here on take no protection away.
    pub fn freeze(&self) {
        self.ignored.freeze();
    }

    /// The directories outside the tree to be opened as roots; the first is root 1.
    pub fn external_roots(&self) -> &[PathBuf] {
        &self.external
    }

    /// The globs of the allowed area, as they were written.
    pub fn scope(&self) -> Option<Vec<&str>> {
        self.scope.as_ref().map(|scope| scope.allowed.iter().map(Glob::text).collect())
    }

    /// The rule that names a change of this path, and its mode; `None` if the path is free.
    pub fn classify(&self, place: &Place) -> Option<Class> {
        self.find_place(place).map(|found| found.class)
    }

    /// Whether a directory at this path is nobody's change. True below `.claude/**` and for `.claude` itself, which is
    /// covered only because a link there would stand for the whole folder; false for `.env`.
    pub fn may_be_directory(&self, place: &Place) -> bool {
        self.find_place(place).is_none_or(|found| found.may_be_directory)
    }

    /// Whether whatever is made in this folder is restored, so that nothing free can be made there: `.git/hooks`,
    /// `.claude` and what lies in them. Never true for a root or a git directory itself, where git works, and not for what
    /// a glob or a scope covers, which may leave names free. Names that end in `.sample` are the exception in a folder of
    /// hooks: nothing runs them, and nothing but `git init` makes them.
    pub fn covers_whole(&self, folder: &Place) -> bool {
        let dir = folder.path.as_bytes();
        let Some(zones) = self.zones.get(usize::from(folder.root.0)) else { return false };
        if dir.is_empty() {
            return false;
        }
        if zones.iter().any(|zone| zone.part(dir, NO_NAME) == Some(Part::Folder)) {
            return true;
        }
        if folder.root != RootId::default() {
            return false;
        }
        let (_, name) = split_last(dir);
        if name == b".git" {
            return false;
        }
        if let Some(inside) = inside_git(dir) {
            return self.git && gitdir::part(inside, NO_NAME) == Some(Part::Folder) && !self.skips(dir);
        }
        let by_name = self.table.find(dir, NO_NAME).is_some_and(|found| found.mode == Mode::Restore);
        self.paths.above(dir) == Some(Mode::Restore) || by_name && !self.skips(dir)
    }

    fn find_place(&self, place: &Place) -> Option<Found> {
        let (dir, name) = split_last(place.path.as_bytes());
        if name.is_empty() { None } else { self.find(place.root, dir, name) }
    }

    fn find(&self, root: RootId, dir: &[u8], name: &[u8]) -> Option<Found> {
        let mut best = None;
        for zone in self.zones.get(usize::from(root.0))? {
            if let Some(part) = zone.part(dir, name) {
                stronger(&mut best, Rule::GitControl, Mode::Restore, part == Part::Folder);
            }
        }
        if root != RootId::default() {
            return best;
        }
        if let Some(mode) = self.paths.find(dir, name) {
            stronger(&mut best, Rule::CageProtect, mode, true);
        }
        match inside_git(dir) {
            Some(inside) => {
                if self.git
                    && let Some(part) = gitdir::part(inside, name)
                    && !self.skips(dir)
                {
                    stronger(&mut best, Rule::GitControl, Mode::Restore, part == Part::Folder);
                }
                return best;
            }
            None if name == b".git" => {
                // A directory is a repository; a file or a link says where one is.
                if self.git && !self.skips(dir) {
                    stronger(&mut best, Rule::GitControl, Mode::Restore, true);
                }
                return best;
            }
            None => {}
        }
        let by_name = self.table.find(dir, name);
        let by_glob = self.glob(dir, name);
        if (by_name.is_some() || by_glob.is_some()) && !self.skips(dir) {
            if let Some(found) = by_name {
                stronger(&mut best, found.rule, found.mode, found.may_be_directory);
            }
            if let Some(mode) = by_glob {
                stronger(&mut best, Rule::CageProtect, mode, true);
            }
        }
        // Scope comes last in the table and restores: only a report can still be beaten by it.
        if best.is_none_or(|found| found.class.mode == Mode::Report) && self.is_out_of_scope(dir, name) {
            stronger(&mut best, Rule::OutOfScope, Mode::Restore, true);
        }
        best
    }

    fn glob(&self, dir: &[u8], name: &[u8]) -> Option<Mode> {
        let mut best = None;
        for (glob, mode) in &self.globs {
            if glob.admits_name(name) && best < Some(*mode) && glob.matches(&components(dir, name)) {
                best = Some(*mode);
            }
        }
        best
    }

    fn is_out_of_scope(&self, dir: &[u8], name: &[u8]) -> bool {
        let Some(scope) = &self.scope else { return false };
        let path = components(dir, name);
        !scope.allowed.iter().any(|glob| glob.matches(&path))
            && (!self.ignored.ignores_file(dir, name) || scope.tracked.contains(dir, name))
    }

    /// Whether the directory is, or lies in, a dependency folder that git ignores.
    fn skips(&self, dir: &[u8]) -> bool {
        let mut end = 0;
        dir.split(|&byte| byte == b'/').any(|part| {
            end += part.len() + 1;
            DEPENDENCY_DIRS.contains(&part) && self.ignored.ignores_dir(&dir[..end - 1])
        })
    }
}

impl Interest for RuleSet {
    fn covers(&self, root: RootId, dir: &RelPath, name: &[u8]) -> bool {
        self.find(root, dir.as_bytes(), name).is_some()
    }

    fn enters(&self, root: RootId, dir: &RelPath) -> bool {
        let Some(zones) = self.zones.get(usize::from(root.0)) else { return false };
        let dir = dir.as_bytes();
        if zones.iter().any(|zone| zone.enters(dir)) {
            return true;
        }
        if root != RootId::default() {
            return dir.is_empty();
        }
        if dir.is_empty() || self.paths.enters(dir) {
            return true;
        }
        if let Some(inside) = inside_git(dir) {
            return self.git && gitdir::enters(inside) && !self.skips(dir);
        }
        !self.skips(dir) || self.scope.as_ref().is_some_and(|scope| scope.tracked.has_below(dir))
    }

    fn first(&self, root: RootId, dir: &RelPath) -> bool {
        if root != RootId::default() {
            return true;
        }
        let dir = dir.as_bytes();
        let (first, rest) = split_first(dir);
        if dir.is_empty() || self.zones[0].iter().any(|zone| zone.enters(dir)) || self.paths.enters(dir) {
            return true;
        }
        if first == b".git" {
            return gitdir::enters(rest) && split_first(rest).0 != b"modules";
        }
        // Folders of rules begin with a dot, and lie at the root or in a package just below it.
        first.starts_with(b".") && !DEPENDENCY_DIRS.contains(&first) && self.table.is_folder(dir)
    }
}

/// A name that no entry of a directory can have: what covers it covers all.
const NO_NAME: &[u8] = b"\0";

/// The directory and the last component.
fn split_last(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}

fn components<'a>(dir: &'a [u8], name: &'a [u8]) -> Vec<&'a [u8]> {
    dir.split(|&byte| byte == b'/').filter(|part| !part.is_empty()).chain([name]).collect()
}

/// What follows the first `.git` in the directory's path.
fn inside_git(dir: &[u8]) -> Option<&[u8]> {
    let mut start = 0;
    for part in dir.split(|&byte| byte == b'/') {
        if part == b".git" {
            return Some(dir.get(start + 5..).unwrap_or(b""));
        }
        start += part.len() + 1;
    }
    None
}
