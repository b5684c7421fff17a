//! What a search has found so far: the first so many paths, and whether there are more.
//!
//! Promise: the result does not depend on the order things are added in. Once there is one more than wanted, whatever
//! comes after it need not be looked at.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// A line that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// Its number; the first is 1.
    pub(super) number: u64,
    /// Its text, cut.
    pub(super) text: String,
}

/// A path and its lines.
pub(super) type Hit = (Vec<u8>, Vec<Line>);

/// Paths and their lines.
pub(super) struct Found {
    most: usize,
    hits: Mutex<BTreeMap<Vec<u8>, Vec<Line>>>,
    /// Whether there is one more than wanted: then, and only then, a look into the map saves work.
    full: AtomicBool,
}

impl Found {
    pub(super) fn new(most: usize) -> Self {
        Self { most, hits: Mutex::default(), full: AtomicBool::new(false) }
    }

    /// Adds a path.
    pub(super) fn add(&self, path: Vec<u8>, lines: Vec<Line>) {
        let mut hits = self.hits.lock().expect("no holder of this lock panics");
        hits.insert(path, lines);
        if hits.len() > self.most {
            if hits.len() > self.most + 1 {
                hits.pop_last();
            }
            self.full.store(true, Ordering::Relaxed);
        }
    }

    /// Whether this path, or everything whose path begins so, comes after all that will be told.
    pub(super) fn is_beyond(&self, path: &[u8]) -> bool {
        if !self.full.load(Ordering::Relaxed) {
            return false;
        }
        let hits = self.hits.lock().expect("no holder of this lock panics");
        hits.last_key_value().is_some_and(|(last, _)| path > last.as_slice())
    }

    /// The first paths in order, and whether there are more.
    pub(super) fn into_sorted(self) -> (Vec<Hit>, bool) {
        let hits = self.hits.into_inner().expect("no holder of this lock panics");
        let more = hits.len() > self.most;
        (hits.into_iter().take(self.most).collect(), more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_paths_come_out_whatever_the_order(paths in proptest::collection::vec("[a-c/]{0,3}", 0..30), most in 1..6usize) {
            let found = Found::new(most);
            for path in &paths {
                if !found.is_beyond(path.as_bytes()) {
                    found.add(path.clone().into_bytes(), Vec::new());
                }
            }
            let mut wanted: Vec<Vec<u8>> = paths.into_iter().map(String::into_bytes).collect();
            wanted.sort();
            wanted.dedup();
            let more = wanted.len() > most;
            wanted.truncate(most);
            let (hits, told) = found.into_sorted();
            prop_assert_eq!((hits.into_iter().map(|(path, _)| path).collect::<Vec<_>>(), told), (wanted, more));
        }
    }
}
