//! What the tree was when it was last looked at: directories and covered entries, by place and by inode.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::Place;
use crate::stat::{FileId, Stat};

use super::index::Index;
use super::names::Names;

/// Which directory it is, and when it had last changed before it was listed.
type Listed = (FileId, (i64, u32));

/// See the module.
#[derive(Debug, Default)]
pub(super) struct State {
    directories: BTreeMap<Place, Listed>,
    entries: BTreeMap<Place, Stat>,
    unreadable: BTreeSet<Place>,
    by_inode: BTreeMap<u64, BTreeSet<Place>>,
    index: Index,
}

/// The keys and values at and below `place`.
fn below<'m, V>(map: &'m BTreeMap<Place, V>, place: &'m Place) -> impl Iterator<Item = (&'m Place, &'m V)> {
    let near = |found: &Place| found.root == place.root && found.path.as_bytes().starts_with(place.path.as_bytes());
    map.range(place.clone()..)
        .take_while(move |(found, _)| near(found))
        .filter(|(found, _)| found.path.is_below(&place.path))
}

impl State {
    /// How many directories there are.
    pub(super) fn directories(&self) -> usize {
        self.directories.len()
    }

    pub(super) fn directory(&self, place: &Place) -> Option<FileId> {
        self.directories.get(place).map(|(id, _)| *id)
    }

    /// The directory as it was when it was listed.
    pub(super) fn directory_as_listed(&self, place: &Place) -> Option<Listed> {
        self.directories.get(place).copied()
    }

    /// Every directory.
    pub(super) fn all_directories(&self) -> Vec<Place> {
        self.directories.keys().cloned().collect()
    }

    pub(super) fn entry(&self, place: &Place) -> Option<&Stat> {
        self.entries.get(place)
    }

    /// Whether it is a directory that could not be read.
    pub(super) fn is_unreadable(&self, place: &Place) -> bool {
        self.unreadable.contains(place)
    }

    /// The covered entries that are, or were, this inode.
    pub(super) fn with_inode(&self, inode: u64) -> impl Iterator<Item = &Place> {
        self.by_inode.get(&inode).into_iter().flatten()
    }

    /// Whether a covered entry lies right in the directory.
    pub(super) fn has_entries(&self, dir: &Place) -> bool {
        self.index.children(dir).any(|place| self.entries.contains_key(&place))
    }

    /// The directories right in this one.
    pub(super) fn directories_in(&self, dir: &Place) -> BTreeSet<Place> {
        let is_dir = |place: &Place| self.directories.contains_key(place) || self.unreadable.contains(place);
        self.index.children(dir).filter(is_dir).collect()
    }

    /// The covered entries right in the directory.
    pub(super) fn entries_in(&self, dir: &Place) -> BTreeSet<Place> {
        self.index.children(dir).filter(|place| self.entries.contains_key(place)).collect()
    }

    /// What is known in a directory under other names that the volume may take for `name`.
    pub(super) fn alike(&self, dir: &Place, name: &[u8], names: Names) -> Vec<Place> {
        self.index.alike(dir, name, names)
    }

    /// Takes in a directory.
    pub(super) fn put_directory(&mut self, place: &Place, stat: &Stat) {
        self.remove_entry(place);
        self.unreadable.remove(place);
        self.directories.insert(place.clone(), (stat.id, stat.ctime));
        self.index.add(place);
    }

    /// Takes in a directory that cannot be read. Whether it was not known to be one.
    pub(super) fn put_unreadable(&mut self, place: &Place) -> bool {
        let new = self.unreadable.insert(place.clone());
        self.index.add(place);
        new
    }

    /// Takes in a covered entry. Whether it is another object than before, or there was none.
    pub(super) fn put_entry(&mut self, place: &Place, stat: Stat) -> bool {
        let old = self.entries.insert(place.clone(), stat);
        if let Some(old) = old.filter(|old| old.id != stat.id) {
            self.forget_inode(old.id.ino, place);
        }
        self.by_inode.entry(stat.id.ino).or_default().insert(place.clone());
        self.index.add(place);
        old.is_none_or(|old| old.id != stat.id)
    }

    fn forget_inode(&mut self, inode: u64, place: &Place) {
        if let Some(places) = self.by_inode.get_mut(&inode) {
            places.remove(place);
            if places.is_empty() {
                self.by_inode.remove(&inode);
            }
        }
    }

    /// Takes out a covered entry. Whether there was one.
    pub(super) fn remove_entry(&mut self, place: &Place) -> bool {
        let Some(old) = self.entries.remove(place) else { return false };
        self.forget_inode(old.id.ino, place);
        self.index.remove(place);
        true
    }

    /// Takes out a directory with all below it. Returns the covered entries that were there.
    pub(super) fn remove_directory(&mut self, place: &Place) -> Vec<Place> {
        let entries: Vec<_> = below(&self.entries, place).map(|(found, _)| found.clone()).collect();
        for entry in &entries {
            self.remove_entry(entry);
        }
        let gone: Vec<_> = below(&self.directories, place).map(|(found, _)| found.clone()).collect();
        let is_below = |found: &&Place| found.root == place.root && found.path.is_below(&place.path);
        let unread: Vec<_> = self.unreadable.iter().filter(is_below).cloned().collect();
        for directory in gone.iter().chain(&unread) {
            self.directories.remove(directory);
            self.unreadable.remove(directory);
            self.index.remove(directory);
        }
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relpath::RelPath;

    fn place(path: &str) -> Place {
        Place::tree(RelPath::parse(path.as_bytes()).expect("a relative path"))
    }

    fn id(ino: u64) -> FileId {
        FileId { dev: 1, ino }
    }

    fn stat(ino: u64) -> Stat {
        Stat { id: id(ino), ..Stat::sample() }
    }

    #[test]
    fn what_lies_below_a_removed_directory_goes_with_it_and_its_neighbours_stay() {
        let mut state = State::default();
        for (ino, path) in [(1, "a"), (2, "a/b"), (3, "a-b"), (4, "aa")] {
            state.put_directory(&place(path), &stat(ino));
        }
        state.put_unreadable(&place("a/shut"));
        state.put_entry(&place("a/b/.env"), stat(5));
        state.put_entry(&place("a-b/.env"), stat(5));
        assert_eq!(state.remove_directory(&place("a")), [place("a/b/.env")]);
        assert_eq!(state.directories(), 2);
        assert!(!state.is_unreadable(&place("a/shut")));
        assert_eq!(state.with_inode(5).collect::<Vec<_>>(), [&place("a-b/.env")]);
        assert!(state.entries_in(&place("a/b")).is_empty() && state.directories_in(&place("a")).is_empty());
    }

    #[test]
    fn an_entry_that_became_another_object_is_found_by_the_new_inode_alone() {
        let mut state = State::default();
        assert!(state.put_entry(&place(".env"), stat(1)));
        assert!(!state.put_entry(&place(".env"), stat(1)));
        assert!(state.put_entry(&place(".env"), stat(2)));
        assert_eq!(state.with_inode(1).count(), 0);
        assert_eq!(state.with_inode(2).count(), 1);
        state.put_directory(&place(".env"), &stat(3));
        assert_eq!(state.with_inode(2).count(), 0);
        assert_eq!((state.entry(&place(".env")), state.directory(&place(".env"))), (None, Some(id(3))));
    }
}
