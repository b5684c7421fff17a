//! What is marked, what is still to be marked, and which hints follow from an event.
//!
//! Promise: see [`super`]. Every step is small, so that the thread gets back to the kernel's queues in time; every place
//! is looked at as it is now, relative to an open handle, and what an identity does not prove is covered anew.
//! Limit: directories deeper than [`MAX_DEPTH`] are not entered, and that is said.

mod listing;
mod recovery;
mod walk;

use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::Arc;

use crate::clock::Moment;
use crate::dir::{Dir, FsError, means_exhaustion};
use crate::event::{Hint, LostCause, Names, Place, RootId, WatchSet};
use crate::host::{self, ListBuffer};
use crate::relpath::RelPath;
use crate::root::RootError;
use crate::stat::FileType;

use self::recovery::Recovery;
use super::notes::{Moved, Notes};
use super::table::{Kind, NodeRef, Table};
use super::{Extra, MarkError, Marks, Reading, Seat};

/// How deep directories may lie. Each level costs a look-up whenever the path is opened.
const MAX_DEPTH: u16 = 1000;

/// Directories kept open for their children, at most.
const HELD: usize = 64;

/// What a listing says about what it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// The first walk.
    First,
    /// A directory that appeared later.
    Later,
    /// A covered directory again, after events were lost.
    Again,
}

/// Directories to cover, all in one directory.
struct Batch {
    parent: NodeRef,
    dir: Option<Dir>,
    children: Vec<NodeRef>,
    /// The device of `dir`, once somebody has asked.
    device: Option<u64>,
    look: Look,
    /// The process that made what is covered, as far as an event tells; else 0.
    maker: u32,
}

/// A directory that is being listed.
struct Open {
    node: NodeRef,
    dir: Dir,
    path: RelPath,
    look: Look,
    maker: u32,
    found: Vec<NodeRef>,
    seen: HashSet<NodeRef>,
}

/// Something to do, in slices.
enum Job {
    Cover(Batch),
    List(Open),
    Relist(Vec<NodeRef>),
}

/// The lanes by urgency: known places, directories that appeared, recovery, the first walk.
const KNOWN: usize = 0;
const APPEARED: usize = 1;
const RECOVERY: usize = 2;
const WALK: usize = 3;
const LANES: usize = 4;

/// See the module.
pub(in crate::cover) struct Engine<M> {
    set: WatchSet,
    marks: M,
    table: Table,
    notes: Notes,
    lanes: [VecDeque<Job>; LANES],
    turn: u8,
    held: usize,
    walked: bool,
    limited: bool,
    recovery: Recovery,
    hints: Vec<Hint>,
    /// When the events that are being answered were taken from the kernel.
    at: Moment,
    /// When each queue was last seen empty.
    empty_since: [Moment; 2],
    buffer: ListBuffer,
    roots: Vec<NodeRef>,
}

fn is_gone(error: &FsError) -> bool {
    error.errno().is_some_and(host::means_no_directory)
}

impl<M: Marks> Engine<M> {
    /// Marks the roots. An error if one cannot be marked: then this kind of marks is not for this tree.
    pub(in crate::cover) fn new(set: WatchSet, marks: M, names: Option<Arc<dyn Names>>) -> Result<Self, MarkError> {
        let mut engine = Self {
            set,
            marks,
            table: Table::new(),
            notes: Notes::new(names),
            lanes: Default::default(),
            turn: 0,
            held: 0,
            walked: false,
            limited: false,
            recovery: Recovery::default(),
            hints: Vec::new(),
            at: Moment::default(),
            empty_since: [Moment::default(); 2],
            buffer: ListBuffer::new(),
            roots: Vec::new(),
        };
        let mut key = Vec::new();
        for (index, root) in engine.set.roots.iter().enumerate() {
            let node = engine.table.add_root(RootId(u16::try_from(index).expect("a run has few roots")));
            let extra = Extra { end: true, ..Extra::default() };
            let seat = Seat { device: Some(root.id().dev), near: None };
            engine.marks.mark_dir(root.dir(), extra, seat, &mut key)?;
            engine.table.set_extra(node, extra);
            engine.table.set_key(node, &key);
            engine.table.set_kind(node, Kind::Covered);
            engine.roots.push(node);
        }
        engine.begin();
        Ok(engine)
    }

    /// Queues the directories of known places, then the roots.
    fn begin(&mut self) {
        let known = std::mem::take(&mut self.set.known);
        for place in &known {
            let Some(&root) = self.roots.get(usize::from(place.root.0)) else { continue };
            for path in place.path.ancestors().take_while(|path| self.set.interest.enters(place.root, path)) {
                let mut names = path.components();
                let name = names.next_back().expect("an ancestor of a path is not the root");
                let parent = names.try_fold(root, |node, name| self.table.child(node, name));
                let Some(parent) = parent else { break };
                if self.table.child(parent, name).is_none() {
                    let child = self.table.add(parent, name, Kind::Pending);
                    self.lanes[KNOWN].push_back(Job::Cover(Batch {
                        parent,
                        dir: None,
                        children: vec![child],
                        device: None,
                        look: Look::First,
                        maker: 0,
                    }));
                }
            }
        }
        for node in self.roots.clone() {
            if let Some(dir) = self.open(node) {
                let open = self.listing(node, dir, Look::First, 0);
                self.lanes[KNOWN].push_back(open);
            }
        }
    }

    /// The queues to wait for.
    pub(in crate::cover) fn marks(&self) -> &M {
        &self.marks
    }

    #[cfg(test)]
    pub(in crate::cover) fn marks_mut(&mut self) -> &mut M {
        &mut self.marks
    }

    /// Whether there are any to take.
    pub(in crate::cover) fn has_hints(&self) -> bool {
        !self.hints.is_empty()
    }

    /// The hints so far.
    pub(in crate::cover) fn take_hints(&mut self) -> Vec<Hint> {
        std::mem::take(&mut self.hints)
    }

    fn place(&self, node: NodeRef) -> Place {
        Place { root: self.table.root(node), path: self.table.path(node) }
    }

    /// Reads one of the queues and answers what it says. Returns the number of events.
    pub(in crate::cover) fn read(&mut self, queue: usize, now: impl Fn() -> Moment) -> io::Result<usize> {
        let before = now();
        let Self { set, marks, table, notes, .. } = self;
        notes.empty_since = self.empty_since[queue];
        let Reading { events, drained } = marks.read(queue, &mut |event| notes.take(event, table, set))?;
        if drained {
            self.seen_empty(queue, before);
        }
        if events > 0 {
            self.at = now();
            self.settle();
        }
        Ok(events)
    }

    /// One of the queues was empty at some time after `since`.
    pub(in crate::cover) fn seen_empty(&mut self, queue: usize, since: Moment) {
        self.empty_since[queue] = self.empty_since[queue].max(since);
    }

    fn settle(&mut self) {
        for node in std::mem::take(&mut self.notes.unmarked) {
            if self.table.lives(node) {
                self.table.set_key(node, b"");
            }
        }
        if std::mem::take(&mut self.notes.overflow) {
            self.lose(LostCause::Overflow);
        }
        if std::mem::take(&mut self.notes.unmounted) {
            self.lose(LostCause::Unmounted);
        }
        if std::mem::take(&mut self.notes.gap) {
            self.lose(LostCause::Gap);
        }
        for node in std::mem::take(&mut self.notes.roots) {
            self.hints.push(Hint::Vanished { place: self.place(node), at: self.at });
        }
        while !self.notes.touched.is_empty() || !self.notes.moved.is_empty() {
            let mut touched: Vec<_> = self.notes.touched.drain().collect();
            touched.sort_unstable_by_key(|((node, _), _)| *node);
            let mut last: Option<(NodeRef, Option<Dir>)> = None;
            for ((node, name), touched) in touched {
                if !self.table.lives(node) {
                    continue;
                }
                let place = self.place(node).join(&name);
                if touched.replaced {
                    if last.as_ref().is_none_or(|(of, _)| *of != node) {
                        last = Some((node, self.open(node)));
                    }
                    if let Some((_, Some(dir))) = &last
                        && self.table.lives(node)
                    {
                        self.arm(node, dir, &name);
                    }
                }
                self.hints.push(Hint::Touched { place, at: self.at });
            }
            let moved: Vec<_> = self.notes.moved.drain().collect();
            for ((node, name), moved) in moved {
                self.look_at_directory(node, &name, moved);
            }
        }
    }

    /// Sees which directory has the name now, if any has.
    fn look_at_directory(&mut self, parent: NodeRef, name: &[u8], moved: Moved) {
        if !self.table.lives(parent) {
            return;
        }
        let place = self.place(parent).join(name);
        let parent_path = place.path.parent().expect("the path has a name");
        if self.set.interest.covers(place.root, &parent_path, name) {
            self.hints.push(Hint::Touched { place: place.clone(), at: self.at });
        }
        let child = self.table.child(parent, name);
        if child.is_none() && !self.set.interest.enters(place.root, &place.path) {
            return;
        }
        let Some(dir) = self.open(parent) else { return };
        match dir.open_dir(name) {
            Err(error) if is_gone(&error) => {
                if let Some(child) = child {
                    self.vanish(child);
                }
                return;
            }
            Ok(found) => match child.map(|child| (child, self.table.kind(child))) {
                Some((child, Kind::Covered)) => {
                    if self.marks.is(&found, self.table.extra(child), self.table.key(child)) {
                        if moved.left {
                            self.hints.push(Hint::Vanished { place, at: self.at });
                        }
                        return;
                    }
                    self.vanish(child);
                }
                Some((child, Kind::Entry)) => self.forget(child),
                _ => {}
            },
            // It exists but may not be opened: covering it says so.
            Err(_) if child.is_some_and(|child| self.table.kind(child) == Kind::Unreadable) => return,
            Err(_) => {}
        }
        // One that is pending already is queued once more: what comes second finds it covered and does nothing.
        let child = match self.table.child(parent, name) {
            Some(child) => child,
            None => {
                self.hints.push(Hint::Appeared(place));
                self.table.add(parent, name, Kind::Pending)
            }
        };
        self.table.set_kind(child, Kind::Pending);
        let children = vec![child];
        self.lanes[APPEARED].push_back(Job::Cover(Batch {
            parent,
            dir: None,
            children,
            device: None,
            look: Look::Later,
            maker: moved.pid,
        }));
    }

    /// The directory of the node, if it still is the one that was marked. Otherwise it has vanished, or is unreadable now.
    fn open(&mut self, node: NodeRef) -> Option<Dir> {
        let root = &self.set.roots[usize::from(self.table.root(node).0)];
        let Some(parent) = self.table.parent(node) else {
            let opened = root.dir().reopen();
            if opened.as_ref().is_err_and(FsError::is_exhaustion) {
                self.lose(LostCause::Gap);
            }
            return opened.ok();
        };
        match root.open_dir(&self.table.path(node)) {
            Ok(dir) => {
                let key = self.table.key(node);
                if key.is_empty() || self.marks.is(&dir, self.table.extra(node), key) {
                    return Some(dir);
                }
            }
            // It may be as readable as before: everything is listed again, until that goes well.
            Err(RootError::Fs(error)) if error.is_exhaustion() => {
                self.lose(LostCause::Gap);
                return None;
            }
            Err(RootError::Fs(error)) if !is_gone(&error) => {
                self.unreadable(node, None);
                return None;
            }
            Err(_) => {}
        }
        let name = self.table.name(node).to_vec();
        self.vanish(node);
        self.notes.note_moved(parent, &name, true);
        None
    }

    /// Says that a directory is gone and takes it out, with all below it.
    fn vanish(&mut self, node: NodeRef) {
        if self.table.kind(node) != Kind::Entry {
            self.hints.push(Hint::Vanished { place: self.place(node), at: self.at });
        }
        self.forget(node);
    }

    fn forget(&mut self, node: NodeRef) {
        let marks = &mut self.marks;
        self.table.remove(node, |key| marks.unmark(key));
    }

    /// Marks the covered entry `name`, whatever has the name now. Whether it is another one than before.
    fn arm(&mut self, node: NodeRef, dir: &Dir, name: &[u8]) -> bool {
        let known = self.table.child(node, name);
        let mut key = Vec::new();
        let marked = match dir.stat(name) {
            Ok(Some(stat)) if stat.file_type == FileType::Directory => {
                self.notes.note_moved(node, name, false);
                return false;
            }
            Ok(Some(stat)) => self.marks.mark_entry(dir, name, stat.file_type, &mut key),
            Ok(None) => Err(MarkError::Gone),
            Err(error) => Err(MarkError::Failed(error.source)),
        };
        let known = match known {
            Some(child) if self.table.kind(child) != Kind::Entry => {
                self.vanish(child);
                None
            }
            known => known,
        };
        match marked {
            Ok(()) => {
                let child = known.unwrap_or_else(|| self.table.add(node, name, Kind::Entry));
                let changed = known.is_none() || self.table.key(child) != key;
                if let Some(old) = self.table.set_key(child, &key) {
                    self.marks.unmark(&old);
                }
                return changed;
            }
            Err(MarkError::Gone) => {
                if let Some(child) = known {
                    self.forget(child);
                }
                return known.is_some();
            }
            Err(MarkError::Limit) => self.limited(self.place(node).join(name)),
            Err(MarkError::Failed(error)) => {
                if means_exhaustion(&error) {
                    self.lose(LostCause::Gap);
                }
                self.hear_more(node, dir, Extra { content: true, ..self.table.extra(node) });
            }
        }
        true
    }

    /// Asks for events about all entries of a directory, because one of them cannot be marked itself.
    fn hear_more(&mut self, node: NodeRef, dir: &Dir, extra: Extra) {
        if self.table.extra(node) == extra {
            return;
        }
        self.table.set_extra(node, extra);
        let mut key = Vec::new();
        match self.marks.mark_dir(dir, extra, Seat::default(), &mut key) {
            Ok(()) | Err(MarkError::Gone) => {}
            Err(MarkError::Limit) => self.limited(self.place(node)),
            Err(MarkError::Failed(_)) => self.hints.push(Hint::Lost(LostCause::Unreadable(self.place(node)))),
        }
    }

    fn limited(&mut self, place: Place) {
        if !std::mem::replace(&mut self.limited, true) {
            self.hints.push(Hint::Lost(LostCause::Limit(place)));
        }
    }

    /// Says, once, that a directory cannot be read, and listens for that to change.
    fn unreadable(&mut self, node: NodeRef, parent_dir: Option<&Dir>) {
        if self.table.kind(node) == Kind::Unreadable {
            return;
        }
        self.table.set_kind(node, Kind::Unreadable);
        self.hints.push(Hint::Lost(LostCause::Unreadable(self.place(node))));
        let Some(parent) = self.table.parent(node) else { return };
        let opened = if parent_dir.is_none() { self.open(parent) } else { None };
        let Some(dir) = parent_dir.or(opened.as_ref()) else { return };
        self.hear_more(parent, dir, Extra { attributes: true, ..self.table.extra(parent) });
        let mut key = Vec::new();
        if self.table.key(node).is_empty() && self.marks.identify(dir, self.table.name(node), &mut key) {
            self.table.set_key(node, &key);
        }
    }
}
