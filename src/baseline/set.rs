//! The accepted snapshots of the whole protected set, and the directories that lead to them.
//!
//! Promise: the set never grows past its caps; the error names the path that would have done it, and the numbers.
//! Limit: contents are not in here. A row costs about 400 bytes and its path, so that 50,000 take some 20 MB.

use std::collections::BTreeMap;

use platform::{Dir, FsError, Place, RelPath, Root, RootError, xattr};

use super::index::Index;
use super::snapshot::{Content, Snapshot};
use crate::rules::Class;

/// How much may be protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Number of paths.
    pub files: usize,
    /// Bytes of all files together.
    pub all_bytes: u64,
}

impl Default for Caps {
    fn default() -> Self {
        Self { file_bytes: 5 << 20, files: 200_000, all_bytes: 4 << 30 }
    }
}

/// A cap that was reached. The paths are for [`crate::roots::Roots::shown`].
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum CapsError {
    /// One file is too large.
    #[error("{:?} has {size} bytes, and a protected file may have {max_bytes}", .place.path)]
    FileBytes {
        /// The file.
        place: Place,
        /// Its size.
        size: u64,
        /// The cap.
        max_bytes: u64,
    },
    /// There are too many paths.
    #[error("{:?} would be one more than the {max_files} paths that can be protected", .place.path)]
    Files {
        /// The first that has no room.
        place: Place,
        /// The cap.
        max_files: usize,
    },
    /// All files together are too large.
    #[error("with {:?} the protected files have {size} bytes in all, more than {max_bytes}", .place.path)]
    AllBytes {
        /// The first that has no room.
        place: Place,
        /// The size with it.
        size: u64,
        /// The cap.
        max_bytes: u64,
    },
}

/// One accepted path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The rule that names its changes, and what they lead to.
    pub class: Class,
    /// Its accepted state.
    pub snapshot: Snapshot,
}

/// A directory above protected paths, as it has to be made again if it vanishes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Directory {
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Extended attributes, default ACLs among them.
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Directory {
    /// What the directory at `path` is now; `None` if there is none, or a symlink in its place.
    pub fn look(root: &Root, path: &RelPath) -> Result<Option<Self>, RootError> {
        match root.open_dir(path) {
            Ok(dir) => Ok(Some(Self::of(&dir)?)),
            Err(RootError::NoParent { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn of(dir: &Dir) -> Result<Self, FsError> {
        let stat = dir.own_stat()?;
        Ok(Self { mode: stat.mode, uid: stat.uid, gid: stat.gid, xattrs: xattr::read_dir(dir)? })
    }
}

/// The accepted snapshots by place.
#[derive(Debug)]
pub struct Baseline {
    rows: BTreeMap<Place, Row>,
    directories: BTreeMap<Place, Directory>,
    caps: Caps,
    bytes: u64,
    /// The rows by object, where somebody asks for them.
    index: Option<Index>,
}

impl Baseline {
    /// An empty one.
    pub fn new(caps: Caps) -> Self {
        Self { rows: BTreeMap::new(), directories: BTreeMap::new(), caps, bytes: 0, index: None }
    }

    /// An empty one that keeps this index, too.
    pub fn indexed(caps: Caps, index: Index) -> Self {
        Self { index: Some(index), ..Self::new(caps) }
    }

    /// The caps it keeps to.
    pub fn caps(&self) -> Caps {
        self.caps
    }

    /// Takes `row` as the accepted state of `place`, in place of the one before, which it returns. On an error nothing has
    /// changed.
    pub fn accept(&mut self, place: Place, row: Row) -> Result<Option<Row>, CapsError> {
        let size = size_of(&row);
        let before = self.rows.get(&place);
        let all = self.bytes - before.map_or(0, size_of);
        if size > self.caps.file_bytes {
            return Err(CapsError::FileBytes { place, size, max_bytes: self.caps.file_bytes });
        }
        if before.is_none() && self.rows.len() >= self.caps.files {
            return Err(CapsError::Files { place, max_files: self.caps.files });
        }
        if all + size > self.caps.all_bytes {
            return Err(CapsError::AllBytes { place, size: all + size, max_bytes: self.caps.all_bytes });
        }
        self.bytes = all + size;
        if let Some(index) = &self.index {
            let before = before.and_then(|row| row.snapshot.id());
            index.moved(&place, before, row.snapshot.id().map(|object| (object, row.class)));
        }
        Ok(self.rows.insert(place, row))
    }

    /// The accepted state of `place`, if it is known.
    pub fn get(&self, place: &Place) -> Option<&Row> {
        self.rows.get(place)
    }

    /// Forgets `place`.
    pub fn remove(&mut self, place: &Place) -> Option<Row> {
        let removed = self.rows.remove(place);
        self.bytes -= removed.as_ref().map_or(0, size_of);
        if let (Some(index), Some(row)) = (&self.index, &removed) {
            index.moved(place, row.snapshot.id(), None);
        }
        removed
    }

    /// Notes that the accepted object was looked at again: its stamps, for the quick check. Nothing else changes.
    pub fn looked_again(&mut self, place: &Place, stat: platform::Stat) {
        if let Some(row) = self.rows.get_mut(place) {
            let before = row.snapshot.stat.replace(stat).map(|stat| stat.id);
            if let Some(index) = &self.index
                && before != Some(stat.id)
            {
                index.moved(place, before, Some((stat.id, row.class)));
            }
        }
    }

    /// All rows in order of root and path.
    pub fn rows(&self) -> impl Iterator<Item = (&Place, &Row)> {
        self.rows.iter()
    }

    /// The rows themselves, for going through them in turns.
    pub fn table(&self) -> &BTreeMap<Place, Row> {
        &self.rows
    }

    /// The rows at and below `dir`, in order.
    pub fn below<'b>(&'b self, dir: &'b Place) -> impl Iterator<Item = (&'b Place, &'b Row)> {
        // Bytes that start alike stand together; among them are neighbours such as `a-b` for `a`.
        self.rows
            .range(dir..)
            .take_while(|(place, _)| place.root == dir.root && place.path.as_bytes().starts_with(dir.path.as_bytes()))
            .filter(|(place, _)| place.path.is_below(&dir.path))
    }

    /// How many paths are known, absent ones among them.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of all accepted files together.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes `directory` as the accepted state of a directory above protected paths.
    pub fn accept_directory(&mut self, place: Place, directory: Directory) {
        self.directories.insert(place, directory);
    }

    /// The accepted state of a directory above protected paths.
    pub fn directory(&self, place: &Place) -> Option<&Directory> {
        self.directories.get(place)
    }

    /// All of these directories in order.
    pub fn directories(&self) -> impl Iterator<Item = (&Place, &Directory)> {
        self.directories.iter()
    }
}

fn size_of(row: &Row) -> u64 {
    match &row.snapshot.content {
        Content::Regular { size, .. } => *size,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::index::Found;
    use super::*;
    use crate::digest::Digest;
    use crate::rules::{Mode, Rule};
    use platform::RootId;
    use proptest::prelude::*;

    fn place(path: &str) -> Place {
        Place::tree(RelPath::parse(path.as_bytes()).expect("a valid path"))
    }

    fn row(size: u64) -> Row {
        let content = Content::Regular { digest: Digest::of(b""), size };
        let class = Class { rule: Rule::Secrets, mode: Mode::Restore };
        Row { class, snapshot: Snapshot { content, ..Snapshot::absent() } }
    }

    #[test]
    fn the_first_path_past_a_cap_is_named_and_not_taken() {
        let mut set = Baseline::new(Caps { file_bytes: 10, files: 2, all_bytes: 15 });
        let refused = set.accept(place("big"), row(11)).expect_err("refuses");
        assert_eq!(refused, CapsError::FileBytes { place: place("big"), size: 11, max_bytes: 10 });
        set.accept(place("a"), row(10)).expect("fits");
        let refused = set.accept(place("b"), row(6)).expect_err("refuses");
        assert_eq!(refused, CapsError::AllBytes { place: place("b"), size: 16, max_bytes: 15 });
        assert_eq!(refused.to_string(), "with \"b\" the protected files have 16 bytes in all, more than 15");
        set.accept(place("b"), row(5)).expect("fits");
        let refused = set.accept(place("c"), row(0)).expect_err("refuses");
        assert_eq!(refused, CapsError::Files { place: place("c"), max_files: 2 });
        assert_eq!((set.len(), set.bytes()), (2, 15));
    }

    #[test]
    fn a_row_that_is_replaced_or_removed_gives_its_room_back() {
        let mut set = Baseline::new(Caps { file_bytes: 10, files: 1, all_bytes: 10 });
        set.accept(place("a"), row(10)).expect("fits");
        assert_eq!(set.accept(place("a"), row(9)).expect("fits in its own room"), Some(row(10)));
        assert_eq!(set.remove(&place("a")), Some(row(9)));
        assert_eq!((set.len(), set.bytes()), (0, 0));
        set.accept(place("b"), row(10)).expect("fits");
    }

    #[test]
    fn a_name_that_only_starts_alike_is_not_below() {
        let mut set = Baseline::new(Caps::default());
        for path in ["a", "a-b", "a/c", "a/c/d", "a.d", "ab", "b"] {
            set.accept(place(path), row(0)).expect("fits");
        }
        let elsewhere = Place { root: RootId(1), path: RelPath::parse(b"a/x").expect("a valid path") };
        set.accept(elsewhere, row(0)).expect("fits");
        let found: Vec<String> = set.below(&place("a")).map(|(place, _)| format!("{:?}", place.path)).collect();
        assert_eq!(found, ["\"a\"", "\"a/c\"", "\"a/c/d\""]);
        assert_eq!(set.below(&Place::tree(RelPath::root())).count(), 7);
    }

    proptest! {
        #[test]
        fn the_sum_of_sizes_is_always_right(steps in proptest::collection::vec((0..6u8, 0..2000u64, any::<bool>()), 0..60)) {
            let mut set = Baseline::new(Caps { file_bytes: 1500, files: 4, all_bytes: 4000 });
            for (name, size, remove) in steps {
                let at = place(&name.to_string());
                if remove {
                    set.remove(&at);
                } else {
                    let _ = set.accept(at, row(size));
                }
                prop_assert_eq!(set.bytes(), set.rows().map(|(_, row)| size_of(row)).sum::<u64>());
                prop_assert!(set.bytes() <= 4000 && set.len() <= 4);
            }
        }

        #[test]
        fn the_index_says_of_every_object_what_the_rows_say(
            steps in proptest::collection::vec((0..4u8, proptest::option::of(0..4u64), 0..3u8), 0..60)
        ) {
            let index = Index::default();
            let mut set = Baseline::indexed(Caps { files: 3, ..Caps::default() }, index.clone());
            for (name, ino, what) in steps {
                let at = place(&name.to_string());
                let stat = |ino| platform::Stat { id: platform::FileId { dev: 1, ino }, ..platform::Stat::sample() };
                match (what, ino) {
                    (0, _) => {
                        set.remove(&at);
                    }
                    (1, Some(ino)) => set.looked_again(&at, stat(ino)),
                    _ => {
                        let mut row = row(0);
                        row.snapshot.stat = ino.map(stat);
                        let _ = set.accept(at, row);
                    }
                }
                for ino in 0..4 {
                    let object = platform::FileId { dev: 1, ino };
                    let places: Vec<&Place> =
                        set.rows().filter(|(_, row)| row.snapshot.id() == Some(object)).map(|(place, _)| place).collect();
                    match index.find(object) {
                        Found::Known(place, class) => prop_assert!(places.contains(&&place) && class.rule == Rule::Secrets),
                        found => prop_assert!(places.is_empty() && found == Found::Unknown),
                    }
                }
            }
        }
    }
}
