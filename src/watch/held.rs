//! Who has protected files open for writing when the watch begins: what they write later passes every open that is seen.
//!
//! Promise: it takes a moment at most, however many files there are and whatever a process does to whoever looks at it; who
//! is not found by then is not taken for nobody. Limit: only processes that may be looked at are named.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use platform::witness::{Holder, Holders, holders};
use platform::{FileId, Place};

use crate::baseline::Content;

use super::lines;
use super::session::Session;

/// How long files are asked whether anybody has them open.
const ASKING: Duration = Duration::from_millis(50);
/// How long processes are looked at, if anybody has.
const LOOKING: Duration = Duration::from_millis(300);
/// Lines about them, at most.
const MOST_LINES: usize = 20;

impl Session {
    /// Names those who have protected files open for writing, and tells the account.
    pub(super) fn name_holders(&mut self) {
        let end = self.now() + ASKING;
        let mut open: BTreeMap<FileId, Place> = BTreeMap::new();
        let mut untold: BTreeSet<FileId> = BTreeSet::new();
        for (place, row) in self.baseline.rows() {
            let Some(id) = row.snapshot.id().filter(|_| matches!(row.snapshot.content, Content::Regular { .. })) else {
                continue;
            };
            if self.now() > end {
                untold.insert(id);
                continue;
            }
            let file = self.parts.roots.get(place.root).open_read(&place.path);
            match file.ok().and_then(|file| platform::file::is_open_for_writing(&file)) {
                Some(false) => {}
                Some(true) => {
                    open.insert(id, place.clone());
                }
                None => {
                    untold.insert(id);
                }
            }
        }
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
