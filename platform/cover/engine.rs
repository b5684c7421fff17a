//! What is marked, what is still to be marked, and which hints follow from an event.
//!
//! Promise: see [`super`]. Every step is small, so that the thread gets back to the kernel's queues in time; every place
//! is looked at as it is now, relative to an open handle, and what an identity does not prove is covered anew.
//! Limit: directories deeper than [`MAX_DEPTH`] are not entered, and that is said.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::time::Duration;

use crate::clock::Moment;
use crate::dir::{Dir, FsError};
use crate::event::{Hint, LostCause, Place, RootId, WatchSet};
use crate::host::{self, ListBuffer};
use crate::relpath::RelPath;
use crate::root::RootError;
use crate::stat::FileType;

use super::notes::Notes;
use super::table::{Kind, NodeRef, Table};
use super::{Extra, MarkError, Marks};

/// How deep directories may lie. Each level costs a look-up whenever the path is opened.
const MAX_DEPTH: u16 = 1000;

/// Recoveries begin no more often than this; what is lost meanwhile is recovered by the next one.
const BETWEEN_RECOVERIES: Duration = Duration::from_secs(1);

/// A loss is said no more often than this.
const BETWEEN_LOSSES: Duration = Duration::from_millis(100);

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
}

/// A directory that is being listed.
struct Open {
    node: NodeRef,
    dir: Dir,
    path: RelPath,
    look: Look,
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

/// Where the comparison after a loss is.
#[derive(Debug, Default)]
struct Recovery {
    running: bool,
    /// Whether every covered entry is to be hinted, not only those that are new.
    tell_all: bool,
    started: Option<Moment>,
    /// Whether events were lost since it began.
    again: bool,
    said: Option<Moment>,
    /// A loss that was not said yet.
    unsaid: Option<LostCause>,
}

/// See the module.
pub(super) struct Engine<M> {
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
    buffer: ListBuffer,
    roots: Vec<NodeRef>,
}

fn is_gone(error: &FsError) -> bool {
    error.errno().is_some_and(host::means_no_directory)
}

impl<M: Marks> Engine<M> {
    /// Marks the roots. An error if one cannot be marked: then this kind of marks is not for this tree.
    pub(super) fn new(set: WatchSet, marks: M) -> Result<Self, MarkError> {
        let mut engine = Self {
            set,
            marks,
            table: Table::new(),
            notes: Notes::default(),
            lanes: Default::default(),
            turn: 0,
            held: 0,
            walked: false,
            limited: false,
            recovery: Recovery::default(),
            hints: Vec::new(),
            at: Moment::default(),
            buffer: ListBuffer::default(),
            roots: Vec::new(),
        };
        let mut key = Vec::new();
        for (index, root) in engine.set.roots.iter().enumerate() {
            let node = engine.table.add_root(RootId(u16::try_from(index).expect("a run has few roots")));
            engine.marks.mark_dir(root.dir(), Extra::default(), None, &mut key)?;
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
                    }));
                }
            }
        }
        for node in self.roots.clone() {
            if let Some(dir) = self.open(node) {
                let open = self.listing(node, dir, Look::First);
                self.lanes[KNOWN].push_back(open);
            }
        }
    }

    /// The queues to wait for.
    pub(super) fn marks(&self) -> &M {
        &self.marks
    }

    #[cfg(test)]
    pub(super) fn marks_mut(&mut self) -> &mut M {
        &mut self.marks
    }

    /// The hints so far.
    pub(super) fn take_hints(&mut self) -> Vec<Hint> {
        std::mem::take(&mut self.hints)
    }

    fn place(&self, node: NodeRef) -> Place {
        Place { root: self.table.root(node), path: self.table.path(node) }
    }

    // Events.

    /// Reads one of the queues and answers what it says. Returns the number of events.
    pub(super) fn read(&mut self, queue: usize, now: impl Fn() -> Moment) -> io::Result<usize> {
        let Self { set, marks, table, notes, .. } = self;
        let count = marks.read(queue, &mut |event| notes.take(event, table, set))?;
        if count > 0 {
            self.at = now();
            self.settle();
        }
        Ok(count)
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
            for ((node, name), replaced) in touched {
                if !self.table.lives(node) {
                    continue;
                }
                let place = self.place(node).join(&name);
                if replaced {
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
            for ((node, name), left) in moved {
                self.look_at_directory(node, &name, left);
            }
        }
    }

    /// Sees which directory has the name now, if any has.
    fn look_at_directory(&mut self, parent: NodeRef, name: &[u8], left: bool) {
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
                        if left {
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
        }));
    }

    /// The directory of the node, if it still is the one that was marked. Otherwise it has vanished, or is unreadable now.
    fn open(&mut self, node: NodeRef) -> Option<Dir> {
        let root = &self.set.roots[usize::from(self.table.root(node).0)];
        let Some(parent) = self.table.parent(node) else { return root.dir().reopen().ok() };
        match root.open_dir(&self.table.path(node)) {
            Ok(dir) => {
                let key = self.table.key(node);
                if key.is_empty() || self.marks.is(&dir, self.table.extra(node), key) {
                    return Some(dir);
                }
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
            Err(MarkError::Failed(_)) => self.hear_more(node, dir, Extra { content: true, ..self.table.extra(node) }),
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
        match self.marks.mark_dir(dir, extra, None, &mut key) {
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

    // Losses.

    /// Says that events were lost and relists everything, neither of them too often.
    pub(super) fn lose(&mut self, cause: LostCause) {
        self.recovery.unsaid.get_or_insert(cause);
        self.recovery.again = true;
        self.tick(self.at);
    }

    /// Hints everything again.
    pub(super) fn rescan(&mut self, now: Moment) {
        self.at = now;
        self.recovery.tell_all = true;
        self.limited = false;
        self.recover(now);
    }

    /// Says and begins what had to wait. Returns how long the rest has to.
    pub(super) fn tick(&mut self, now: Moment) -> Option<Duration> {
        self.at = self.at.max(now);
        let recovery = &mut self.recovery;
        let wait = |last: Option<Moment>, between: Duration| {
            last.map_or(Duration::ZERO, |last| between.saturating_sub(now.since(last)))
        };
        let mut next = None;
        if let Some(cause) = recovery.unsaid.take() {
            let left = wait(recovery.said, BETWEEN_LOSSES);
            if left.is_zero() {
                recovery.said = Some(now);
                self.hints.push(Hint::Lost(cause));
            } else {
                recovery.unsaid = Some(cause);
                next = Some(left);
            }
        }
        if recovery.again && !recovery.running {
            let left = wait(recovery.started, BETWEEN_RECOVERIES);
            if left.is_zero() {
                self.recover(now);
            } else {
                next = Some(next.map_or(left, |other| left.min(other)));
            }
        }
        next
    }

    fn recover(&mut self, now: Moment) {
        self.recovery.running = true;
        self.recovery.again = false;
        self.recovery.started = Some(now);
        self.lanes[RECOVERY].push_back(Job::Relist(self.table.directories()));
    }

    // Covering.

    /// Whether something is left to cover.
    pub(super) fn is_busy(&self) -> bool {
        self.lanes.iter().any(|lane| !lane.is_empty())
    }

    /// Does one small piece of covering.
    pub(super) fn step(&mut self, now: Moment) {
        self.at = now;
        self.turn = self.turn.wrapping_add(1);
        let mut busy = (0..LANES).filter(|&lane| !self.lanes[lane].is_empty());
        // Every eighth step goes to the last in line, so that a storm of new directories does not starve the walk.
        let lane = if self.turn.is_multiple_of(8) { busy.next_back() } else { busy.next() };
        if let Some(lane) = lane
            && let Some(job) = self.lanes[lane].pop_front()
        {
            match job {
                Job::Cover(batch) => self.cover_next(lane, batch),
                Job::List(open) => self.list_next(lane, open),
                Job::Relist(nodes) => self.relist_next(lane, nodes),
            }
            self.settle();
        }
        if !self.walked && self.lanes[KNOWN].is_empty() && self.lanes[WALK].is_empty() {
            self.walked = true;
            self.hints.push(Hint::Walked { directories: self.table.covered() });
        }
        if self.recovery.running && self.lanes[RECOVERY].is_empty() {
            self.recovery.running = false;
            if std::mem::take(&mut self.recovery.tell_all) && self.walked {
                self.hints.push(Hint::Walked { directories: self.table.covered() });
            }
        }
    }

    fn relist_next(&mut self, lane: usize, mut nodes: Vec<NodeRef>) {
        let Some(node) = nodes.pop() else { return };
        if !nodes.is_empty() {
            self.lanes[lane].push_front(Job::Relist(nodes));
        }
        if self.table.lives(node)
            && self.table.kind(node) == Kind::Covered
            && let Some(dir) = self.open(node)
        {
            let open = self.listing(node, dir, Look::Again);
            self.lanes[lane].push_front(open);
        }
    }

    fn cover_next(&mut self, lane: usize, mut batch: Batch) {
        let held = batch.dir.is_some();
        let dir = match batch.dir.take() {
            Some(dir) => Some(dir),
            None if self.table.lives(batch.parent) => self.open(batch.parent),
            None => None,
        };
        let next = batch.children.pop();
        let (Some(dir), Some(node), true) = (dir, next, self.table.lives(batch.parent)) else {
            self.held -= usize::from(held);
            return;
        };
        if batch.device.is_none() {
            batch.device = dir.own_stat().ok().map(|stat| stat.id.dev);
        }
        let open = self.cover(&dir, batch.device, node, batch.look);
        if batch.children.is_empty() || !self.table.lives(batch.parent) {
            self.held -= usize::from(held);
        } else {
            let hold = held || self.held < HELD;
            self.held += usize::from(hold && !held);
            self.lanes[lane].push_front(Job::Cover(Batch { dir: hold.then_some(dir), ..batch }));
        }
        if let Some(open) = open {
            self.lanes[lane].push_front(open);
        }
    }

    /// Marks a directory; what remains is to list it.
    fn cover(&mut self, parent: &Dir, device: Option<u64>, node: NodeRef, look: Look) -> Option<Job> {
        if !self.table.lives(node) || self.table.kind(node) != Kind::Pending {
            return None;
        }
        if self.table.depth(node) > MAX_DEPTH {
            self.unreadable(node, Some(parent));
            return None;
        }
        let (dir, stat) = match parent.open_dir(self.table.name(node)).and_then(|dir| Ok((dir.own_stat()?, dir))) {
            Ok((stat, dir)) => (dir, stat),
            Err(error) if is_gone(&error) => {
                self.forget(node);
                return None;
            }
            Err(_) => {
                self.unreadable(node, Some(parent));
                // It may have become readable before we listened for that.
                if self.table.lives(node) && parent.open_dir(self.table.name(node)).is_ok() {
                    let name = self.table.name(node).to_vec();
                    if let Some(above) = self.table.parent(node) {
                        self.notes.note_moved(above, &name, false);
                    }
                }
                return None;
            }
        };
        let root = &self.set.roots[usize::from(self.table.root(node).0)];
        if !root.admits(stat.mount) {
            if look != Look::First || self.walked {
                self.forget(node);
                return None;
            }
            root.admit_mount(stat.mount);
        }
        let mut key = Vec::new();
        let above = self.table.parent(node).map(|above| self.table.key(above)).filter(|key| !key.is_empty());
        let near = above.filter(|_| device == Some(stat.id.dev));
        match self.marks.mark_dir(&dir, self.table.extra(node), near, &mut key) {
            Ok(()) if self.is_own_ancestor(node, &key) => {
                self.unreadable(node, None);
                return None;
            }
            Ok(()) => {
                self.table.set_key(node, &key);
                self.see_to_others(node, &key);
            }
            Err(MarkError::Gone) => {
                self.forget(node);
                return None;
            }
            // Listed all the same: what is in it now becomes known, and the caller's sweep sees to that.
            Err(MarkError::Limit) => self.limited(self.place(node)),
            Err(MarkError::Failed(_)) => {
                self.unreadable(node, Some(parent));
                return None;
            }
        }
        if !self.table.lives(node) {
            return None;
        }
        self.table.set_kind(node, Kind::Covered);
        Some(self.listing(node, dir, look))
    }

    /// A directory mounted below itself.
    fn is_own_ancestor(&self, node: NodeRef, key: &[u8]) -> bool {
        let mut found = Vec::new();
        self.table.with_key(key, &mut found);
        let mut above = self.table.parent(node);
        while let (Some(at), false) = (above, found.is_empty()) {
            if found.contains(&at) {
                return true;
            }
            above = self.table.parent(at);
        }
        false
    }

    /// The same directory under another name: it was moved, or is mounted twice. Opening the other name tells.
    fn see_to_others(&mut self, node: NodeRef, key: &[u8]) {
        let mut found = Vec::new();
        self.table.with_key(key, &mut found);
        for other in found {
            if other != node && self.table.lives(other) && self.table.parent(other).is_some() {
                self.open(other);
            }
        }
    }

    fn listing(&self, node: NodeRef, dir: Dir, look: Look) -> Job {
        let path = self.table.path(node);
        Job::List(Open { node, dir, path, look, found: Vec::new(), seen: HashSet::new() })
    }

    fn list_next(&mut self, lane: usize, mut open: Open) {
        if !self.table.lives(open.node) {
            return;
        }
        let root = self.table.root(open.node);
        let (mut directories, mut entries) = (Vec::new(), Vec::new());
        let Self { set, buffer, .. } = self;
        let more = host::list_some(&open.dir, buffer, |name, file_type| {
            let file_type = file_type.or_else(|| open.dir.stat(name).ok().flatten().map(|stat| stat.file_type));
            match file_type {
                Some(FileType::Directory) => directories.push(name.to_vec()),
                _ if set.interest.covers(root, &open.path, name) => entries.push(name.to_vec()),
                _ => {}
            }
        });
        for name in entries {
            let changed = self.arm(open.node, &open.dir, &name);
            if open.look == Look::Again
                && let Some(child) = self.table.child(open.node, &name)
            {
                open.seen.insert(child);
            }
            let place = Place { root, path: open.path.join(&name) };
            match open.look {
                Look::First => self.hints.push(Hint::Found(place)),
                Look::Again if !changed && !self.recovery.tell_all => {}
                Look::Later | Look::Again => self.hints.push(Hint::Touched { place, at: self.at }),
            }
        }
        for name in directories {
            self.meet(&mut open, &name);
        }
        match more {
            Ok(true) => self.lanes[lane].push_front(Job::List(open)),
            Ok(false) => self.listed(lane, open),
            Err(_) => self.unreadable(open.node, None),
        }
    }

    /// A directory that a listing shows.
    fn meet(&mut self, open: &mut Open, name: &[u8]) {
        let place = Place { root: self.table.root(open.node), path: open.path.join(name) };
        let known = self.table.child(open.node, name);
        let covers = self.set.interest.covers(place.root, &open.path, name);
        if covers && (open.look == Look::Later || (open.look == Look::Again && known.is_none())) {
            self.hints.push(Hint::Touched { place: place.clone(), at: self.at });
        }
        if !self.set.interest.enters(place.root, &place.path) {
            return;
        }
        match known.map(|child| (child, self.table.kind(child))) {
            Some((child, Kind::Covered)) => {
                open.seen.insert(child);
                return;
            }
            Some((child, Kind::Unreadable | Kind::Pending)) => {
                open.seen.insert(child);
                self.table.set_kind(child, Kind::Pending);
                open.found.push(child);
                return;
            }
            Some((child, Kind::Entry | Kind::Free)) => {
                self.hints.push(Hint::Touched { place: place.clone(), at: self.at });
                self.forget(child);
            }
            None => {}
        }
        let child = self.table.add(open.node, name, Kind::Pending);
        open.seen.insert(child);
        if open.look == Look::First && self.set.interest.first(place.root, &place.path) {
            let children = vec![child];
            self.lanes[KNOWN].push_back(Job::Cover(Batch {
                parent: open.node,
                dir: None,
                children,
                device: None,
                look: Look::First,
            }));
            return;
        }
        open.found.push(child);
        if open.look != Look::First {
            self.hints.push(Hint::Appeared(place));
        }
    }

    /// A listing is at its end: queue what it found, and look at what it did not find any more.
    fn listed(&mut self, lane: usize, open: Open) {
        let Open { node, dir, look, found, seen, .. } = open;
        if look == Look::Again {
            for child in self.table.children(node) {
                if seen.contains(&child) {
                    continue;
                }
                let name = self.table.name(child).to_vec();
                match self.table.kind(child) {
                    Kind::Entry => self.notes.note_touched(node, &name, true),
                    Kind::Covered | Kind::Unreadable => self.notes.note_moved(node, &name, true),
                    Kind::Pending | Kind::Free => {}
                }
            }
        }
        if found.is_empty() {
            return;
        }
        let hold = self.held < HELD;
        self.held += usize::from(hold);
        let look = if look == Look::Again { Look::Later } else { look };
        let batch = Job::Cover(Batch { parent: node, dir: hold.then_some(dir), children: found, device: None, look });
        // What lies below a known place is not itself known.
        match lane {
            KNOWN => self.lanes[WALK].push_back(batch),
            _ => self.lanes[lane].push_front(batch),
        }
    }
}
