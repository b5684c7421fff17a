//! Directories that were not there at the start, so that a restore may take them away again once they are empty.
//!
//! Promise: what is gone is forgotten with all below it; the set is never larger than the tree.

use std::collections::BTreeSet;

use platform::Place;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct NewDirs(BTreeSet<Place>);

impl NewDirs {
    /// A directory appeared.
    pub fn add(&mut self, dir: Place) {
        self.0.insert(dir);
    }

    /// Whether it was not there at the start.
    pub fn contains(&self, dir: &Place) -> bool {
        self.0.contains(dir)
    }

    /// The directory is gone, and so is all below it.
    pub fn gone(&mut self, dir: &Place) {
        // Bytes that start alike stand together; among them are neighbours such as `a-b` for `a`.
        let alike = |place: &&Place| place.root == dir.root && place.path.as_bytes().starts_with(dir.path.as_bytes());
        let below = self.0.range(dir..).take_while(alike).filter(|place| place.path.is_below(&dir.path));
        for place in below.cloned().collect::<Vec<_>>() {
            self.0.remove(&place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use platform::RelPath;

    fn at(path: &str) -> Place {
        Place::tree(RelPath::parse(path.as_bytes()).expect("a path"))
    }

    #[test]
    fn what_is_made_and_removed_all_the_time_leaves_nothing_behind() {
        let mut dirs = NewDirs::default();
        for number in 0..1_000 {
            dirs.add(at(&format!("a{number}")));
            dirs.add(at(&format!("a{number}/b")));
            dirs.gone(&at(&format!("a{number}")));
        }
        assert!(dirs.0.is_empty());
    }

    #[test]
    fn neighbours_whose_names_begin_alike_stay() {
        let mut dirs = NewDirs::default();
        for path in ["a", "a/b", "a/b/c", "a-b", "ab", "b"] {
            dirs.add(at(path));
        }
        dirs.gone(&at("a"));
        let left: Vec<_> =
            ["a", "a/b", "a/b/c", "a-b", "ab", "b"].into_iter().filter(|path| dirs.contains(&at(path))).collect();
        assert_eq!(left, ["a-b", "ab", "b"]);
    }
}
