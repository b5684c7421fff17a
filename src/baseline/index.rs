//! Which accepted paths an object has: the baseline by device and inode, for threads that do not own it.
//!
//! Promise: whoever asks never waits; while the owner writes, the answer is [`Found::Busy`], which a careful caller takes
//! for a yes. Limit: an object is known from the moment its state was accepted, not from that at which it got its name.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use platform::{FileId, Place};

use crate::rules::{Class, Mode};

/// The paths by object.
type Paths = HashMap<FileId, Vec<(Place, Class)>>;

/// The paths by object; copies are the same one.
#[derive(Debug, Clone, Default)]
pub struct Index(Arc<RwLock<Paths>>);

/// What the index says of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It is accepted at this path; of several, at one that is restored.
    Known(Place, Class),
    /// It is accepted nowhere.
    Unknown,
    /// The baseline moves just now.
    Busy,
}

impl Index {
    /// What is known of the object.
    pub fn find(&self, object: FileId) -> Found {
        let paths = match self.0.try_read() {
            Ok(paths) => paths,
            Err(TryLockError::Poisoned(paths)) => paths.into_inner(),
            Err(TryLockError::WouldBlock) => return Found::Busy,
        };
        let Some(paths) = paths.get(&object) else { return Found::Unknown };
        let strict = paths.iter().find(|(_, class)| class.mode == Mode::Restore);
        match strict.or(paths.first()) {
            Some((place, class)) => Found::Known(place.clone(), *class),
            None => Found::Unknown,
        }
    }

    /// How many objects are known.
    pub fn len(&self) -> usize {
        self.read().len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.read().is_empty()
    }

    /// The path is now that object, and no longer what it was before.
    pub(super) fn moved(&self, place: &Place, before: Option<FileId>, now: Option<(FileId, Class)>) {
        if before.is_none() && now.is_none() {
            return;
        }
        let mut paths = self.write();
        if let Some(before) = before
            && let Some(known) = paths.get_mut(&before)
        {
            known.retain(|(known, _)| known != place);
            if known.is_empty() {
                paths.remove(&before);
            }
        }
        if let Some((object, class)) = now {
            paths.entry(object).or_default().push((place.clone(), class));
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Paths> {
        // Every state of it is sound: a writer who panicked has left out one path at most, and the watch ends with him.
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Paths> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rule;
    use platform::RelPath;

    const KEPT: Class = Class { rule: Rule::Lockfile, mode: Mode::Report };
    const SECRET: Class = Class { rule: Rule::Secrets, mode: Mode::Restore };

    fn place(path: &str) -> Place {
        Place::tree(RelPath::parse(path.as_bytes()).expect("a path"))
    }

    fn object(ino: u64) -> FileId {
        FileId { dev: 1, ino }
    }

    #[test]
    fn of_two_names_of_one_object_the_one_that_is_restored_counts_and_each_goes_by_itself() {
        let index = Index::default();
        index.moved(&place("Cargo.lock"), None, Some((object(7), KEPT)));
        index.moved(&place(".env"), None, Some((object(7), SECRET)));
        assert_eq!(index.find(object(7)), Found::Known(place(".env"), SECRET));
        index.moved(&place(".env"), Some(object(7)), Some((object(8), SECRET)));
        assert_eq!(index.find(object(7)), Found::Known(place("Cargo.lock"), KEPT));
        assert_eq!(index.find(object(8)), Found::Known(place(".env"), SECRET));
        index.moved(&place("Cargo.lock"), Some(object(7)), None);
        assert_eq!((index.find(object(7)), index.len()), (Found::Unknown, 1));
    }

    #[test]
    fn while_it_is_written_nobody_waits() {
        let index = Index::default();
        let writing = index.write();
        assert_eq!(index.find(object(1)), Found::Busy);
        drop(writing);
        assert_eq!(index.find(object(1)), Found::Unknown);
    }
}
