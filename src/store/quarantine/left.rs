//! What was rejected and had to stay in its own directory: known again there, so that nobody is asked about it twice.
//!
//! Promise: a name alone proves nothing. Only the very object that was set aside counts, with the stamps it was left with;
//! once it is written to, linked, moved or replaced, it is something new. Limit: known to this run only.

use std::collections::HashMap;

use platform::Stat;

use super::{ASIDE, Quarantine};

/// The things left aside by their names, which are never given twice.
pub(super) type Left = HashMap<Vec<u8>, Stat>;

impl Quarantine {
    /// Notes that `name` is now what was set aside.
    pub(super) fn leave(&self, name: &[u8], stat: Stat) {
        self.left.lock().expect("no holder of this lock panics").insert(name.to_vec(), stat);
    }

    /// What was set aside in this run under this name, as it was left.
    pub fn left_as(&self, name: &[u8]) -> Option<Stat> {
        if !name.starts_with(ASIDE.as_bytes()) {
            return None;
        }
        self.left.lock().expect("no holder of this lock panics").get(name).copied()
    }
}
