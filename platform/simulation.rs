//! What simulated kernels of every system have in common: the changes, what is covered, and one property.
//!
//! Whatever is another thing afterwards was told, or a loss was.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use crate::event::{Hint, Interest, LostCause, Place, RootId};
use crate::relpath::RelPath;

/// What can be done. Paths are relative to the watched directory; `../x` lies outside.
#[derive(Debug, Clone)]
pub enum Step {
    Write(String),
    Remove(String),
    RemoveAll(String),
    MakeDirs(String),
    Rename(String, String),
    Exchange(String, String),
    Link(String, String),
    Symlink(String),
    Bits(String),
    /// Takes away the permission to list a directory.
    Shut(String),
    /// Gives it back.
    Open(String),
}

/// Covers the names of a few files.
pub struct Few;

impl Interest for Few {
    fn covers(&self, _root: RootId, _dir: &RelPath, name: &[u8]) -> bool {
        name == b".env" || name == b"config" || name == b"Jenkinsfile" || name.ends_with(b"secret")
    }

    fn enters(&self, _root: RootId, dir: &RelPath) -> bool {
        dir.components().all(|name| name != b"ignored")
    }

    fn first(&self, _root: RootId, dir: &RelPath) -> bool {
        dir.name() == Some(b".git")
    }
}

const DIRECTORIES: [&str; 9] = ["", "a", "a/b", "a/b/c", "d", "café", "café/e", "cafe\u{301}", "A"];
const NAMES: [&str; 6] = [".env", "config", "other", ".ENV", "é.secret", "e\u{301}.secret"];

fn directory() -> impl Strategy<Value = String> {
    proptest::sample::select(&DIRECTORIES[1..]).prop_map(str::to_owned)
}

fn file() -> impl Strategy<Value = String> {
    (proptest::sample::select(&DIRECTORIES[..]), proptest::sample::select(&NAMES[..]))
        .prop_map(|(dir, name)| if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") })
}

pub fn step() -> impl Strategy<Value = Step> {
    let aside = || "../aside".to_owned();
    prop_oneof![
        6 => file().prop_map(Step::Write),
        2 => file().prop_map(Step::Remove),
        4 => directory().prop_map(Step::MakeDirs),
        1 => directory().prop_map(Step::RemoveAll),
        2 => (file(), file()).prop_map(|(from, to)| Step::Rename(from, to)),
        2 => (directory(), directory()).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => (file(), directory()).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => (file(), file()).prop_map(|(one, other)| Step::Exchange(one, other)),
        2 => (file(), file()).prop_map(|(from, to)| Step::Link(from, to)),
        1 => file().prop_map(move |from| Step::Link(from, "../alias".to_owned())),
        1 => Just(Step::Write("../alias".to_owned())),
        1 => file().prop_map(Step::Symlink),
        1 => file().prop_map(Step::Bits),
        1 => directory().prop_map(Step::Bits),
        1 => directory().prop_map(Step::Shut),
        1 => directory().prop_map(Step::Open),
        1 => directory().prop_map(move |from| Step::Rename(from, aside())),
        1 => directory().prop_map(move |to| Step::Rename(aside(), to)),
        1 => (file(), Just("../aside/b/.env".to_owned())).prop_map(|(_, path)| Step::Write(path)),
        1 => Just(Step::Write("../aside/.env".to_owned())),
    ]
}

/// What changed and was not told. `name` is the same for places that a volume takes for the same.
pub fn missed<V: PartialEq>(
    before: &BTreeMap<Place, V>,
    after: &BTreeMap<Place, V>,
    hints: &[Hint],
    name: impl Fn(&Place) -> Vec<u8>,
) -> Vec<String> {
    fn named<'c, V>(all: &'c BTreeMap<Place, V>, name: &impl Fn(&Place) -> Vec<u8>) -> BTreeMap<Vec<u8>, &'c V> {
        all.iter().map(|(place, found)| (name(place), found)).collect()
    }
    let (before, after) = (named(before, &name), named(after, &name));
    let below = |dir: &Place, path: &[u8]| {
        let dir = name(dir);
        dir.is_empty() || (path.starts_with(&dir) && path.get(dir.len()) == Some(&b'/'))
    };
    let told = |path: &[u8]| {
        hints.iter().any(|hint| match hint {
            Hint::Touched { place, .. } | Hint::Found(place) => name(place) == path,
            Hint::Vanished { place, .. } => below(place, path),
            Hint::Lost(LostCause::Unreadable(place)) => below(place, path),
            Hint::Lost(_) => true,
            _ => false,
        })
    };
    let paths: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let changed = paths.into_iter().filter(|path| before.get(*path) != after.get(*path));
    changed.filter(|path| !told(path)).map(|path| String::from_utf8_lossy(path).into_owned()).collect()
}
