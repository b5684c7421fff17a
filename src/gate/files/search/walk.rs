//! The walk through the tree, by several threads.
//!
//! Promise: every directory is opened below the root handle without following a link, and left alone if another file system
//! is mounted there. Handles are open for directories in work only, not for those that wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use grep_searcher::Searcher;
use platform::{Dir, FileType, FsError, RelPath, Root, RootError};

use super::content::Wanted;
use super::found::Found;
use super::ignored::{self, Chain};
use super::queue::{Queue, Turn};
use crate::gate::files::unfinished::is_unfinished;
use crate::rules::glob::Glob;

/// Entries looked at before the walk stops.
pub(super) const MOST_VISITED: u64 = 5_000_000;
/// More threads than this wait for the disk and for each other.
const MOST_THREADS: usize = 8;
/// Files of one directory that are searched in one go: a directory of many is everybody's work.
const BATCH: usize = 128;
/// Git's own folder.
const GIT: &[u8] = b".git";

/// A search by name and content.
pub(super) struct Walk<'a> {
    pub(super) root: &'a Root,
    pub(super) base: &'a RelPath,
    pub(super) glob: &'a Glob,
    pub(super) wanted: Option<&'a Wanted>,
    pub(super) all: bool,
    pub(super) found: &'a Found,
}

/// What a walk says besides its hits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told {
    /// Directories and files that could not be read.
    pub(super) unreadable: u64,
    /// Whether it gave up.
    pub(super) stopped: bool,
}

enum Work {
    Directory { path: RelPath, chain: Chain },
    Files { dir: Arc<Dir>, path: RelPath, names: Vec<Vec<u8>> },
}

#[derive(Default)]
struct Counters {
    visited: AtomicU64,
    unreadable: AtomicU64,
}

impl Counters {
    fn cannot_read(&self) {
        self.unreadable.fetch_add(1, Ordering::Relaxed);
    }
}

impl Walk<'_> {
    /// Walks.
    pub(super) fn run(&self) -> Told {
        let chain = if self.all { None } else { ignored::above(self.root, self.base) };
        let queue = Queue::new(Work::Directory { path: self.base.clone(), chain });
        let counters = Counters::default();
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
        std::thread::scope(|scope| {
            for _ in 1..threads {
                // With fewer threads than hoped for it only takes longer.
                let _ = std::thread::Builder::new().spawn_scoped(scope, || self.work(&queue, &counters));
            }
            self.work(&queue, &counters);
        });
        Told { unreadable: counters.unreadable.into_inner(), stopped: counters.visited.into_inner() >= MOST_VISITED }
    }

    fn work(&self, queue: &Queue<Work>, counters: &Counters) {
        let mut searcher = Wanted::searcher();
        while let Some((work, mut turn)) = queue.next() {
            if counters.visited.load(Ordering::Relaxed) >= MOST_VISITED {
                continue;
            }
            match work {
                Work::Directory { path, chain } => self.directory(&path, chain, &mut searcher, &mut turn, counters),
                Work::Files { dir, path, names } => self.files(&dir, &path, &names, &mut searcher, counters),
            }
        }
    }

    fn directory(
        &self,
        path: &RelPath,
        mut chain: Chain,
        searcher: &mut Searcher,
        turn: &mut Turn<'_, Work>,
        counters: &Counters,
    ) {
        let prefix = prefix(path);
        if self.found.is_beyond(&prefix) {
            return;
        }
        let dir = match self.root.open_dir(path) {
            Ok(dir) => dir,
            Err(RootError::NoParent { .. } | RootError::Mounted { .. }) => return,
            Err(_) => return counters.cannot_read(),
        };
        let mut entries: Vec<(Vec<u8>, Option<FileType>)> = Vec::new();
        if dir.each_entry(|name, file_type| entries.push((name.to_vec(), file_type))).is_err() {
            counters.cannot_read();
        }
        counters.visited.fetch_add(entries.len() as u64, Ordering::Relaxed);
        // The last directory that is added is entered first: so the first paths are found early, and late ones need no look.
        entries.sort_unstable_by(|one, other| other.0.cmp(&one.0));
        let mut names: Vec<&[u8]> = path.components().collect();
        if !self.all && entries.iter().any(|(name, _)| name == ignored::NAME) {
            chain = ignored::entered(chain, names.len(), &dir);
        }
        let mut to_search = Vec::new();
        for (name, file_type) in &entries {
            let file_type = match file_type {
                Some(known) => *known,
                None => match dir.stat(name) {
                    Ok(Some(stat)) => stat.file_type,
                    _ => continue,
                },
            };
            let is_directory = file_type == FileType::Directory;
            let candidate = match file_type {
                FileType::Directory => self.all || name != GIT,
                FileType::Regular => self.matches(&mut names, name),
                FileType::Symlink => self.wanted.is_none() && self.matches(&mut names, name),
                _ => false,
            };
            if !candidate || is_unfinished(name) {
                continue;
            }
            if !self.all && chain.is_some() {
                names.push(name);
                let ignored = ignored::is_ignored(&chain, &names, is_directory);
                names.pop();
                if ignored {
                    continue;
                }
            }
            if is_directory {
                turn.add(Work::Directory { path: path.join(name), chain: chain.clone() });
            } else if self.wanted.is_some() {
                to_search.push(name.clone());
            } else {
                self.found.add([&prefix, name.as_slice()].concat(), Vec::new());
            }
        }
        to_search.reverse();
        if to_search.len() <= BATCH {
            return self.files(&dir, path, &to_search, searcher, counters);
        }
        let dir = Arc::new(dir);
        for names in to_search.chunks(BATCH).rev() {
            turn.add(Work::Files { dir: Arc::clone(&dir), path: path.clone(), names: names.to_vec() });
        }
    }

    /// Whether the glob admits the entry `name` of the directory with these `names`.
    fn matches<'n>(&self, names: &mut Vec<&'n [u8]>, name: &'n [u8]) -> bool {
        if !self.glob.admits_name(name) {
            return false;
        }
        names.push(name);
        let matches = self.glob.matches(&names[self.base.components().count()..]);
        names.pop();
        matches
    }

    fn files(&self, dir: &Dir, path: &RelPath, names: &[Vec<u8>], searcher: &mut Searcher, counters: &Counters) {
        let Some(wanted) = self.wanted else { return };
        let prefix = prefix(path);
        for name in names {
            let whole = [&prefix, name.as_slice()].concat();
            if self.found.is_beyond(&whole) {
                // They are sorted.
                return;
            }
            let lines = match dir.open_listed(name) {
                Ok((file, stat)) if self.root.admits(stat.mount) => wanted.lines(searcher, &file),
                Ok(_) => continue,
                Err(error) if is_other_by_now(&error) => continue,
                Err(error) => Err(error.source),
            };
            match lines {
                Ok(lines) if lines.is_empty() => {}
                Ok(lines) => self.found.add(whole, lines),
                Err(_) => counters.cannot_read(),
            }
        }
    }
}

/// What the paths in a directory begin with.
fn prefix(path: &RelPath) -> Vec<u8> {
    if path.is_root() { Vec::new() } else { [path.as_bytes(), b"/"].concat() }
}

/// Whether the file is gone, or something else has its name since it was listed.
fn is_other_by_now(error: &FsError) -> bool {
    use std::io::ErrorKind::{InvalidInput, NotFound};
    matches!(error.source.kind(), NotFound | InvalidInput)
}
