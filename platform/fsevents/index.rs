//! Places by directory and name, found by every name the volume may take for theirs.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::Place;

use super::names::{Likeness, Names};

/// Names of one directory: those of ASCII by their lower case, the others together.
type Children = BTreeMap<Option<Vec<u8>>, BTreeSet<Vec<u8>>>;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Index(BTreeMap<Place, Children>);

fn key_of(name: &[u8]) -> Option<Vec<u8>> {
    name.is_ascii().then(|| name.to_ascii_lowercase())
}

/// The directory a place lies in.
pub(super) fn parent_of(place: &Place) -> Option<Place> {
    place.path.parent().map(|path| Place { root: place.root, path })
}

impl Index {
    pub(super) fn add(&mut self, place: &Place) {
        if let (Some(parent), Some(name)) = (parent_of(place), place.path.name()) {
            self.0.entry(parent).or_default().entry(key_of(name)).or_default().insert(name.to_vec());
        }
    }

    pub(super) fn remove(&mut self, place: &Place) {
        let (Some(parent), Some(name)) = (parent_of(place), place.path.name()) else { return };
        let Some(children) = self.0.get_mut(&parent) else { return };
        let key = key_of(name);
        if let Some(names) = children.get_mut(&key) {
            names.remove(name);
            if names.is_empty() {
                children.remove(&key);
            }
        }
        if children.is_empty() {
            self.0.remove(&parent);
        }
    }

    /// Everything in the directory.
    pub(super) fn children(&self, dir: &Place) -> impl Iterator<Item = Place> {
        let dir = dir.clone();
        self.0.get(&dir).into_iter().flat_map(BTreeMap::values).flatten().map(move |name| dir.join(name))
    }

    /// What is in the directory under another name that the volume may take for `name`.
    pub(super) fn alike(&self, dir: &Place, name: &[u8], names: Names) -> Vec<Place> {
        let Some(children) = self.0.get(dir).filter(|_| names.folds()) else { return Vec::new() };
        let other = |found: &&Vec<u8>| &found[..] != name && names.likeness(found, name) != Likeness::Other;
        let found: Vec<_> = match key_of(name) {
            // An ASCII name is alike to one bucket at most, and perhaps to names that are not ASCII.
            Some(key) => [Some(key), None].iter().filter_map(|key| children.get(key)).flatten().filter(other).collect(),
            None => children.values().flatten().filter(other).collect(),
        };
        found.into_iter().map(|name| dir.join(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relpath::RelPath;

    fn place(path: &str) -> Place {
        Place::tree(RelPath::parse(path.as_bytes()).expect("a relative path"))
    }

    #[test]
    fn a_name_is_found_by_its_other_spellings_in_its_directory_alone() {
        let mut index = Index::default();
        for path in ["a/.env", "a/caf\u{e9}", "b/.env"] {
            index.add(&place(path));
        }
        let folding = Names::known(true, true);
        assert_eq!(index.alike(&place("a"), b".ENV", folding), [place("a/.env"), place("a/caf\u{e9}")]);
        assert_eq!(index.alike(&place("a"), "cafe\u{301}".as_bytes(), folding).len(), 2);
        assert_eq!(index.alike(&place("a"), b".env", folding), [place("a/caf\u{e9}")], "itself is not another name");
        assert!(index.alike(&place("a"), b".ENV", Names::known(false, false)).is_empty());
        assert!(index.alike(&place("c"), b".ENV", folding).is_empty());
    }

    #[test]
    fn what_was_taken_out_leaves_nothing_behind() {
        let mut index = Index::default();
        for path in ["a/.env", "a/.ENV"] {
            index.add(&place(path));
        }
        index.remove(&place("a/.env"));
        assert_eq!(index.children(&place("a")).collect::<Vec<_>>(), [place("a/.ENV")]);
        index.remove(&place("a/.ENV"));
        assert!(index.0.is_empty());
    }
}
