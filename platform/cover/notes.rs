//! What the events of one reading come to: places to look at, each once.
//!
//! Promise: an event about a name nobody asked for costs two look-ups and no allocation. No event brings up a name in a
//! directory that could not be listed.

use std::collections::HashMap;
use std::sync::Arc;

use crate::clock::Moment;
use crate::event::{Names, Place, WatchSet};
use crate::relpath::{RelPath, is_name};

use super::Event;
use super::table::{Kind, NodeRef, Table};

/// Paths kept ready for events.
const PATHS_KEPT: usize = 1024;

/// An entry of a directory.
pub(super) type At = (NodeRef, Box<[u8]>);

/// What is to be seen about an entry that is or was a directory.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Moved {
    /// Whether one had left.
    pub(super) left: bool,
    /// The process that did it last; 0 if that is not known.
    pub(super) pid: u32,
}

/// What is to be seen about a covered entry.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Touched {
    /// Whether another object may have the name now.
    pub(super) replaced: bool,
    /// The process that was named last.
    named: u32,
}

/// See the module.
#[derive(Default)]
pub(super) struct Notes {
    /// Entries that are or were directories.
    pub(super) moved: HashMap<At, Moved>,
    /// Covered entries.
    pub(super) touched: HashMap<At, Touched>,
    /// Who hears which process did it.
    names: Option<Arc<dyn Names>>,
    /// Since when the queue that is being read has not been seen empty.
    pub(super) empty_since: Moment,
    /// Roots that were themselves moved or removed.
    pub(super) roots: Vec<NodeRef>,
    /// Nodes that lost their mark.
    pub(super) unmarked: Vec<NodeRef>,
    pub(super) overflow: bool,
    pub(super) unmounted: bool,
    pub(super) gap: bool,
    paths: HashMap<NodeRef, RelPath>,
    found: Vec<NodeRef>,
}

impl Notes {
    pub(super) fn new(names: Option<Arc<dyn Names>>) -> Self {
        Self { names, ..Self::default() }
    }

    /// Says to look at an entry that is or was a directory.
    pub(super) fn note_moved(&mut self, node: NodeRef, name: &[u8], left: bool) {
        self.note_moved_by(node, name, left, 0);
    }

    fn note_moved_by(&mut self, node: NodeRef, name: &[u8], left: bool, pid: u32) {
        let moved = self.moved.entry((node, Box::from(name))).or_default();
        moved.left |= left;
        if pid != 0 {
            moved.pid = pid;
        }
    }

    /// Says to look at a covered entry.
    pub(super) fn note_touched(&mut self, node: NodeRef, name: &[u8], replaced: bool) {
        self.touched.entry((node, Box::from(name))).or_default().replaced |= replaced;
    }

    /// The same, told by an event of the process `pid`: each of several in a row is named once.
    fn note_touched_by(&mut self, node: NodeRef, name: &[u8], replaced: bool, pid: u32, table: &Table) {
        let touched = self.touched.entry((node, Box::from(name))).or_default();
        touched.replaced |= replaced;
        let is_news = pid != touched.named;
        if is_news
            && pid != 0
            && let Some(names) = &self.names
        {
            touched.named = pid;
            let place = Place { root: table.root(node), path: table.path(node).join(name) };
            names.named(&place, pid, self.empty_since);
        }
    }

    /// Says who moved a covered directory away, with all that is below it.
    fn name_mover(&self, node: NodeRef, name: &[u8], pid: u32, table: &Table) {
        if pid != 0
            && let Some(names) = &self.names
            && table.child(node, name).is_some()
        {
            names.named(&Place { root: table.root(node), path: table.path(node).join(name) }, pid, self.empty_since);
        }
    }

    /// Says that somebody was not named.
    fn lost(&self) {
        if let Some(names) = &self.names {
            names.lost();
        }
    }

    /// Says who made the directory a covered path was found in: it may be who made that, too, and is no proof.
    pub(super) fn name_maker(&self, place: &Place, pid: u32) {
        if pid != 0
            && let Some(names) = &self.names
        {
            names.named(place, pid, Moment::default());
        }
    }

    /// Notes an event. `false` if its key belongs to nothing in the table.
    pub(super) fn take(&mut self, event: Event<'_>, table: &Table, set: &WatchSet) -> bool {
        match event {
            Event::Entry { .. } => self.entry(event, table, set),
            Event::Own { key, pid } => self.own(key, pid, false, table),
            Event::Unmarked(key) => self.own(key, 0, true, table),
            Event::Attributes(key) => self.attributes(key, table),
            Event::Overflow => {
                self.lost();
                self.overflow = true;
                self.lose_names();
                true
            }
            Event::Unmounted => {
                self.unmounted = true;
                true
            }
            Event::Gap => {
                self.lost();
                self.gap = true;
                self.lose_names();
                true
            }
        }
    }

    fn lose_names(&self) {
        if let Some(names) = &self.names {
            names.lost();
        }
    }

    fn entry(&mut self, event: Event<'_>, table: &Table, set: &WatchSet) -> bool {
        let Event::Entry { dir, name, is_dir, left, moved, pid } = event else { return true };
        let mut found = std::mem::take(&mut self.found);
        table.with_key(dir, &mut found);
        let known = !found.is_empty();
        found.retain(|&node| may_name(node, name, table));
        if !is_name(name) {
            self.gap = true;
        } else if is_dir {
            for &node in &found {
                self.note_moved_by(node, name, left, pid);
                if left && moved {
                    self.name_mover(node, name, pid, table);
                }
            }
        } else {
            for &node in &found {
                if self.paths.len() >= PATHS_KEPT && !self.paths.contains_key(&node) {
                    self.paths.clear();
                }
                let path = self.paths.entry(node).or_insert_with(|| table.path(node));
                if set.interest.covers(table.root(node), path, name) {
                    self.note_touched_by(node, name, true, pid, table);
                } else if table.has_children(node) && table.child(node, name).is_some() {
                    // A directory gave way to a file, in events the kernel merged.
                    self.note_moved(node, name, true);
                }
            }
        }
        self.found = found;
        known
    }

    /// An unreadable directory may be readable now; of others it does not matter.
    fn attributes(&mut self, key: &[u8], table: &Table) -> bool {
        let mut found = std::mem::take(&mut self.found);
        table.with_key(key, &mut found);
        for &node in found.iter().filter(|&&node| table.kind(node) == Kind::Unreadable) {
            if let Some(parent) = table.parent(node) {
                self.note_moved(parent, table.name(node), false);
            }
        }
        let known = !found.is_empty();
        self.found = found;
        known
    }

    fn own(&mut self, key: &[u8], pid: u32, unmarked: bool, table: &Table) -> bool {
        let mut found = std::mem::take(&mut self.found);
        table.with_key(key, &mut found);
        for &node in &found {
            if unmarked {
                self.unmarked.push(node);
            }
            match table.parent(node) {
                None => self.roots.push(node),
                Some(parent) if table.kind(node) == Kind::Entry => {
                    self.note_touched_by(parent, table.name(node), unmarked, pid, table);
                }
                Some(parent) => self.note_moved(parent, table.name(node), true),
            }
        }
        let known = !found.is_empty();
        self.found = found;
        known
    }
}

/// Whether an event may bring up this name. A directory that is not covered is known to its events, too, where the whole file
/// system is marked, and who may not list it may not learn names by them. What was known before is no news.
fn may_name(node: NodeRef, name: &[u8], table: &Table) -> bool {
    table.kind(node) == Kind::Covered || table.child(node, name).is_some()
}
