//! A file system in memory: a watched directory `repo` and a place outside it, on one volume that may fold names.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::event::{Interest, Place};
use crate::relpath::RelPath;
use crate::stat::{FileId, FileType, Stat};
use crate::tree::{Listing, Tree, Unlisted};

use super::super::Flags;
use super::steps::Change;
use crate::simulation::{Few, Step};

#[derive(Debug)]
pub(super) enum Content {
    Directory(BTreeMap<String, u64>),
    File,
    Symlink,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) content: Content,
    pub(super) written: u64,
    pub(super) changed: u64,
    pub(super) shut: bool,
}

#[derive(Debug)]
pub(super) struct Volume {
    pub(super) nodes: BTreeMap<u64, Node>,
    clock: u64,
    folds: bool,
}

const TOP: u64 = 1;
pub(super) const REPO: u64 = 2;

/// Shared by the engine that looks and the test that changes.
#[derive(Debug, Clone)]
pub struct Disk(Arc<Mutex<Volume>>);

/// What is at a covered path: which object, when it was written, when it was changed.
pub type Contents = BTreeMap<Place, (u64, u64, u64)>;

fn fold(name: &str) -> String {
    name.to_lowercase().replace('é', "e\u{301}").replace('ü', "u\u{308}")
}

impl Volume {
    pub(super) fn find(&self, dir: u64, name: &str) -> Option<(String, u64)> {
        let Content::Directory(entries) = &self.nodes.get(&dir)?.content else { return None };
        let same = |(found, _): &(&String, &u64)| *found == name || (self.folds && fold(found) == fold(name));
        entries.iter().find(same).map(|(found, node)| (found.clone(), *node))
    }

    /// The directory a path lies in, and its last name.
    pub(super) fn parent<'p>(&self, path: &'p str) -> Option<(u64, &'p str)> {
        let (mut dir, path) = match path.strip_prefix("../") {
            Some(outside) => (TOP, outside),
            None => (REPO, path),
        };
        let mut names = path.split('/');
        let last = names.next_back()?;
        for name in names {
            dir = self.find(dir, name)?.1;
            // Whoever may not read a directory here may not go through it either.
            if self.nodes.get(&dir)?.shut {
                return None;
            }
        }
        matches!(self.nodes.get(&dir)?.content, Content::Directory(_)).then_some((dir, last))
    }

    pub(super) fn at(&self, path: &str) -> Option<u64> {
        if path.is_empty() {
            return Some(REPO);
        }
        let (dir, name) = self.parent(path)?;
        self.find(dir, name).map(|(_, node)| node)
    }

    pub(super) fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// The entries of a directory, to be changed.
    pub(super) fn entries(&mut self, dir: u64) -> &mut BTreeMap<String, u64> {
        let now = self.tick();
        let found = self.nodes.get_mut(&dir).expect("a node of this volume");
        found.changed = now;
        match &mut found.content {
            Content::Directory(entries) => entries,
            _ => panic!("not a directory"),
        }
    }

    pub(super) fn make(&mut self, path: &str, content: Content) -> Option<u64> {
        let (dir, name) = self.parent(path)?;
        if self.find(dir, name).is_some() {
            return None;
        }
        let now = self.tick();
        let node = now + 100;
        self.nodes.insert(node, Node { content, written: now, changed: now, shut: false });
        self.entries(dir).insert(name.to_owned(), node);
        Some(node)
    }

    pub(super) fn take(&mut self, path: &str) -> Option<u64> {
        let (dir, name) = self.parent(path)?;
        let (found, node) = self.find(dir, name)?;
        self.entries(dir).remove(&found);
        Some(node)
    }

    pub(super) fn kind(&self, node: u64) -> Flags {
        match self.nodes[&node].content {
            Content::Directory(_) => Flags::IS_DIR,
            Content::File => Flags::IS_FILE,
            Content::Symlink => Flags::IS_SYMLINK,
        }
    }

    pub(super) fn change(&self, path: &str, node: u64, flags: Flags) -> Change {
        Change { path: path.to_owned(), inode: node, flags: flags.with(self.kind(node)) }
    }

    pub(super) fn is_dir(&self, node: u64) -> bool {
        matches!(self.nodes[&node].content, Content::Directory(_))
    }

    pub(super) fn remove_all(&mut self, path: &str, changes: &mut Vec<Change>) {
        let Some(node) = self.at(path).filter(|node| !self.nodes[node].shut) else { return };
        if self.is_dir(node) {
            let names: Vec<_> = self.entries(node).keys().cloned().collect();
            for name in names {
                self.remove_all(&format!("{path}/{name}"), changes);
            }
        }
        if !self.is_dir(node) || self.entries(node).is_empty() {
            changes.push(self.change(path, node, Flags::REMOVED));
            self.take(path);
        }
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> Option<Vec<Change>> {
        let node = self.at(from)?;
        let (into, name) = self.parent(to)?;
        let over = self.find(into, name).map(|(_, node)| node);
        let inside = to.starts_with(&format!("{from}/")) || from.starts_with(&format!("{to}/"));
        let fits = over.is_none_or(|over| over == node || !self.is_dir(over) && !self.is_dir(node));
        if inside || !fits || (over == Some(node) && from == to) {
            return None;
        }
        let now = self.tick();
        self.take(from);
        self.take(to);
        let name = name.to_owned();
        self.entries(into).insert(name, node);
        self.nodes.get_mut(&node)?.changed = now;
        Some(vec![self.change(from, node, Flags::RENAMED), self.change(to, node, Flags::RENAMED)])
    }

    /// Every name of an object, as a path.
    pub(super) fn names_of(&self, node: u64) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![(TOP, String::from("../"))];
        while let Some((dir, path)) = open.pop() {
            let Content::Directory(entries) = &self.nodes[&dir].content else { continue };
            for (name, &child) in entries {
                let below = if child == REPO { String::new() } else { format!("{path}{name}") };
                if child == node {
                    found.push(below.clone());
                }
                if self.is_dir(child) {
                    open.push((child, if child == REPO { below } else { format!("{below}/") }));
                }
            }
        }
        found
    }

    fn stat(&self, node: u64) -> Stat {
        let found = &self.nodes[&node];
        let file_type = match found.content {
            Content::Directory(_) => FileType::Directory,
            Content::File => FileType::Regular,
            Content::Symlink => FileType::Symlink,
        };
        let time = |clock: u64| (i64::try_from(clock).expect("a short test"), 0);
        let id = FileId { dev: 1, ino: node };
        let names = |found: &Node| match &found.content {
            Content::Directory(entries) => entries.values().filter(|&&child| child == node).count() as u64,
            _ => 0,
        };
        let nlink = self.nodes.values().map(names).sum();
        Stat { file_type, id, nlink, mtime: time(found.written), ctime: time(found.changed), ..Stat::sample() }
    }
}

impl Disk {
    pub fn new(folds: bool) -> Self {
        let directory = |entries| Node { content: Content::Directory(entries), written: 0, changed: 0, shut: false };
        let top = directory(BTreeMap::from([("repo".to_owned(), REPO)]));
        let nodes = BTreeMap::from([(TOP, top), (REPO, directory(BTreeMap::new()))]);
        Self(Arc::new(Mutex::new(Volume { nodes, clock: 0, folds })))
    }

    fn volume(&self) -> MutexGuard<'_, Volume> {
        self.0.lock().expect("no panic while it is held")
    }

    /// Does it, if it can be done now.
    pub fn act(&self, step: &Step) -> Vec<Change> {
        self.volume().act(step).unwrap_or_default()
    }

    pub fn inode(&self, path: &str) -> Option<u64> {
        self.volume().at(path)
    }

    /// Every name of an object, as a path.
    pub fn names_of(&self, node: u64) -> Vec<String> {
        self.volume().names_of(node)
    }

    /// What is at every covered path, whether it may be read or not.
    pub fn contents(&self) -> Contents {
        let volume = self.volume();
        let mut found = Contents::new();
        let mut open = vec![(Place::tree(RelPath::root()), REPO)];
        while let Some((dir, node)) = open.pop() {
            let Content::Directory(entries) = &volume.nodes[&node].content else { continue };
            for (name, &child) in entries {
                let below = dir.join(name.as_bytes());
                if volume.is_dir(child) {
                    if Few.enters(below.root, &below.path) {
                        open.push((below, child));
                    }
                } else if Few.covers(below.root, &dir.path, name.as_bytes()) {
                    let node = &volume.nodes[&child];
                    found.insert(below, (child, node.written, node.changed));
                }
            }
        }
        found
    }

    /// Whether names are the same in any case and form.
    pub fn folds(&self) -> bool {
        self.volume().folds
    }
}

impl Tree for Disk {
    fn list(&self, place: &Place, _admit: bool, wanted: &mut dyn FnMut(&[u8]) -> bool) -> Result<Listing, Unlisted> {
        let volume = self.volume();
        let path = std::str::from_utf8(place.path.as_bytes()).map_err(|_| Unlisted::Absent)?;
        let node = volume.at(path).ok_or(Unlisted::Absent)?;
        let Content::Directory(entries) = &volume.nodes[&node].content else { return Err(Unlisted::Absent) };
        if volume.nodes[&node].shut {
            return Err(Unlisted::Unreadable);
        }
        let mut listing = Listing { own: volume.stat(node), directories: Vec::new(), entries: Vec::new() };
        for (name, &child) in entries {
            if volume.is_dir(child) {
                listing.directories.push(name.clone().into_bytes());
            } else if wanted(name.as_bytes()) {
                listing.entries.push((name.clone().into_bytes(), volume.stat(child)));
            }
        }
        Ok(listing)
    }

    fn stat(&self, place: &Place) -> Option<Stat> {
        let volume = self.volume();
        let path = std::str::from_utf8(place.path.as_bytes()).ok()?;
        volume.at(path).map(|node| volume.stat(node))
    }
}
