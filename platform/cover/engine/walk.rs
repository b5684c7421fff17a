//! Covering directories, one small step at a time.

use crate::clock::Moment;
use crate::dir::Dir;
use crate::event::{Hint, LostCause};

use super::{
    Batch, Engine, HELD, Job, KNOWN, Kind, LANES, Look, MAX_DEPTH, MarkError, Marks, NodeRef, RECOVERY, Seat, WALK,
    is_gone,
};

impl<M: Marks> Engine<M> {
    /// Whether something is left to cover.
    pub(in crate::cover) fn is_busy(&self) -> bool {
        self.lanes.iter().any(|lane| !lane.is_empty())
    }

    /// Does one small piece of covering.
    pub(in crate::cover) fn step(&mut self, now: Moment) {
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
            let open = self.listing(node, dir, Look::Again, 0);
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
        let open = self.cover(&dir, batch.device, node, batch.look, batch.maker);
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
    fn cover(&mut self, parent: &Dir, device: Option<u64>, node: NodeRef, look: Look, maker: u32) -> Option<Job> {
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
            Err(error) if error.is_exhaustion() => {
                self.lose(LostCause::Gap);
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
        let seat = Seat { device: Some(stat.id.dev), near: above.filter(|_| device == Some(stat.id.dev)) };
        match self.marks.mark_dir(&dir, self.table.extra(node), seat, &mut key) {
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
        Some(self.listing(node, dir, look, maker))
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
}
