//! Who has protected files open for writing when the watch begins: what they write later passes every open that is seen.
//!
//! Promise: each file is asked before it is read for the baseline, which costs a microsecond; processes are looked at only if
//! one is open, for a moment at most, whatever a process does to whoever looks at it. Who is not found by then is not taken
//! for nobody. Limit: only processes that may be looked at are named.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use platform::witness::{Holder, Holders, holders};
use platform::{FileId, Place};

use super::lines;
use super::session::Session;

/// How long processes are looked at, if anybody has.
const LOOKING: Duration = Duration::from_secs(1);
/// Lines about them, at most.
const MOST_LINES: usize = 20;

/// What the first walk found.
#[derive(Debug, Default)]
pub(super) struct AlreadyOpen {
    /// Files that somebody had open for writing when they were read.
    open: BTreeMap<FileId, Place>,
    /// Files of which that could not be told.
    untold: BTreeSet<FileId>,
}

impl AlreadyOpen {
    /// Notes what was told of a file before it was read.
    pub(super) fn note(&mut self, id: FileId, place: &Place, is_open: Option<bool>) {
        match is_open {
            Some(false) => {}
            Some(true) => {
                self.open.insert(id, place.clone());
            }
            None => {
                self.untold.insert(id);
            }
        }
    }
}

impl Session {
    /// Names those who have protected files open for writing, and tells the account.
    pub(super) fn name_holders(&mut self) {
        let AlreadyOpen { open, untold } = std::mem::take(&mut self.already_open);
        let Holders { found, .. } = match open.is_empty() {
            true => Holders::default(),
            false => holders(&open.keys().copied().collect(), LOOKING),
        };
        let mut said = Vec::new();
        for Holder { object, is_mapped, by } in &found {
            self.parts.account.held(*object, Some(by));
            if let Some(place) = open.get(object) {
                let program = (crate::text::escaped(&by.program.name), by.program.pid);
                said.push(lines::held(&self.parts.roots.shown(place), Some(program), *is_mapped));
            }
        }
        for (object, place) in &open {
            if !found.iter().any(|holder| holder.object == *object) {
                self.parts.account.held(*object, None);
                said.push(lines::held(&self.parts.roots.shown(place), None, false));
            }
        }
        untold.iter().for_each(|object| self.parts.account.held(*object, None));
        let more = said.len().saturating_sub(MOST_LINES);
        for line in said.iter().take(MOST_LINES) {
            self.say(line);
        }
        if more > 0 {
            self.say(&format!("keep watch: warning: {more} more are held open for writing"));
        }
    }
}
