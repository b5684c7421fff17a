//! What can be done to a file system in memory, and which names a change is about.

use std::collections::BTreeMap;

use super::super::Flags;
use super::memory::{Content, REPO, Volume};
use crate::simulation::Step;

/// What a step did to one name.
#[derive(Debug, Clone)]
pub struct Change {
    pub path: String,
    pub inode: u64,
    pub flags: Flags,
}

impl Volume {
    /// Does it, if it can be done now.
    pub(super) fn act(&mut self, step: &Step) -> Option<Vec<Change>> {
        let made = Flags::CREATED;
        Some(match step {
            Step::Write(path) => vec![self.write(path)?],
            Step::Remove(path) => {
                let node = self.at(path).filter(|&node| !self.is_dir(node))?;
                self.take(path);
                vec![self.change(path, node, Flags::REMOVED)]
            }
            Step::RemoveAll(path) => {
                let mut changes = Vec::new();
                self.remove_all(path, &mut changes);
                changes
            }
            Step::MakeDirs(path) => {
                let ends = path.match_indices('/').map(|(end, _)| end).filter(|&end| &path[..end] != "..");
                let all: Vec<_> = ends.chain([path.len()]).map(|end| &path[..end]).collect();
                let make = |path: &&str| {
                    let node = self.make(path, Content::Directory(BTreeMap::new()))?;
                    Some(self.change(path, node, made))
                };
                all.iter().filter_map(make).collect()
            }
            Step::Rename(from, to) => self.rename(from, to)?,
            Step::Exchange(one, other) => self.exchange(one, other)?,
            Step::Link(from, to) => {
                let node = self.at(from).filter(|&node| !self.is_dir(node))?;
                let (dir, name) = self.parent(to)?;
                if self.find(dir, name).is_some() {
                    return None;
                }
                let name = name.to_owned();
                self.entries(dir).insert(name, node);
                // The system has no row for this: see the corpus.
                vec![]
            }
            Step::Symlink(path) => {
                let node = self.make(path, Content::Symlink)?;
                vec![self.change(path, node, made)]
            }
            Step::Bits(path) => {
                let node = self.at(path)?;
                let now = self.tick();
                self.nodes.get_mut(&node)?.changed = now;
                vec![self.change(path, node, Flags::INODE_META_MOD)]
            }
            Step::Shut(path) | Step::Open(path) => {
                let node = self.at(path).filter(|&node| node != REPO && self.is_dir(node))?;
                self.nodes.get_mut(&node)?.shut = matches!(step, Step::Shut(_));
                vec![self.change(path, node, Flags::INODE_META_MOD)]
            }
        })
    }

    fn write(&mut self, path: &str) -> Option<Change> {
        let Some(node) = self.at(path) else {
            let node = self.make(path, Content::File)?;
            return Some(self.change(path, node, Flags::CREATED.with(Flags::MODIFIED)));
        };
        if self.kind(node) != Flags::IS_FILE {
            return None;
        }
        let now = self.tick();
        let found = self.nodes.get_mut(&node)?;
        (found.written, found.changed) = (now, now);
        let links = if self.names_of(node).len() > 1 { Flags::IS_HARDLINK } else { Flags::default() };
        Some(self.change(path, node, Flags::MODIFIED.with(Flags::INODE_META_MOD).with(links)))
    }

    fn exchange(&mut self, one: &str, other: &str) -> Option<Vec<Change>> {
        let (first, second) = (self.at(one)?, self.at(other)?);
        if first == second || self.is_dir(first) || self.is_dir(second) {
            return None;
        }
        let now = self.tick();
        for (path, node) in [(one, second), (other, first)] {
            self.take(path);
            let (dir, name) = self.parent(path)?;
            let name = name.to_owned();
            self.entries(dir).insert(name, node);
            self.nodes.get_mut(&node)?.changed = now;
        }
        Some(vec![self.change(one, second, Flags::RENAMED), self.change(other, first, Flags::RENAMED)])
    }
}
