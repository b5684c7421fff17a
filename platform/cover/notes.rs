//! What the events of one reading come to: places to look at, each once.
//!
//! Promise: an event about a name nobody asked for costs two look-ups and no allocation.

use std::collections::HashMap;

use crate::event::WatchSet;
use crate::relpath::{RelPath, is_name};

use super::Event;
use super::table::{Kind, NodeRef, Table};

/// Paths kept ready for events.
const PATHS_KEPT: usize = 1024;

/// An entry of a directory.
pub(super) type At = (NodeRef, Box<[u8]>);

/// See the module.
#[derive(Default)]
pub(super) struct Notes {
    /// Entries that are or were directories; with whether one had left.
    pub(super) moved: HashMap<At, bool>,
    /// Covered entries; with whether another object may have the name now.
    pub(super) touched: HashMap<At, bool>,
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
    /// Says to look at an entry that is or was a directory.
    pub(super) fn note_moved(&mut self, node: NodeRef, name: &[u8], left: bool) {
        *self.moved.entry((node, Box::from(name))).or_default() |= left;
    }

    /// Says to look at a covered entry.
    pub(super) fn note_touched(&mut self, node: NodeRef, name: &[u8], replaced: bool) {
        *self.touched.entry((node, Box::from(name))).or_default() |= replaced;
    }

    /// Notes an event. `false` if its key belongs to nothing in the table.
    pub(super) fn take(&mut self, event: Event<'_>, table: &Table, set: &WatchSet) -> bool {
        match event {
            Event::Entry { dir, name, is_dir, left } => self.entry(dir, name, is_dir, left, table, set),
            Event::Own(key) => self.own(key, false, table),
            Event::Unmarked(key) => self.own(key, true, table),
            Event::Attributes(key) => self.attributes(key, table),
            Event::Overflow => {
                self.overflow = true;
                true
            }
            Event::Unmounted => {
                self.unmounted = true;
                true
            }
            Event::Gap => {
                self.gap = true;
                true
            }
        }
    }

    fn entry(&mut self, dir: &[u8], name: &[u8], is_dir: bool, left: bool, table: &Table, set: &WatchSet) -> bool {
        let mut found = std::mem::take(&mut self.found);
        table.with_key(dir, &mut found);
        if !is_name(name) {
            self.gap = true;
        } else if is_dir {
            for &node in &found {
                self.note_moved(node, name, left);
            }
        } else {
            for &node in &found {
                if self.paths.len() >= PATHS_KEPT && !self.paths.contains_key(&node) {
                    self.paths.clear();
                }
                let path = self.paths.entry(node).or_insert_with(|| table.path(node));
                if set.interest.covers(table.root(node), path, name) {
                    self.note_touched(node, name, true);
                } else if table.has_children(node) && table.child(node, name).is_some() {
                    // A directory gave way to a file, in events the kernel merged.
                    self.note_moved(node, name, true);
                }
            }
        }
        let known = !found.is_empty();
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

    fn own(&mut self, key: &[u8], unmarked: bool, table: &Table) -> bool {
        let mut found = std::mem::take(&mut self.found);
        table.with_key(key, &mut found);
        for &node in &found {
            if unmarked {
                self.unmarked.push(node);
            }
            match table.parent(node) {
                None => self.roots.push(node),
                Some(parent) if table.kind(node) == Kind::Entry => {
                    self.note_touched(parent, table.name(node), unmarked);
                }
                Some(parent) => self.note_moved(parent, table.name(node), true),
            }
        }
        let known = !found.is_empty();
        self.found = found;
        known
    }
}
