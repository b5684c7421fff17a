//! Listing a marked directory, piece by piece: what is in it is marked, hinted or queued.

use std::collections::HashSet;

use crate::dir::{Dir, means_exhaustion};
use crate::event::{Hint, LostCause, Place};
use crate::host;
use crate::stat::FileType;

use super::{Batch, Engine, HELD, Job, KNOWN, Kind, Look, Marks, NodeRef, Open, WALK};

impl<M: Marks> Engine<M> {
    pub(super) fn listing(&self, node: NodeRef, dir: Dir, look: Look, maker: u32) -> Job {
        let path = self.table.path(node);
        Job::List(Open { node, dir, path, look, maker, found: Vec::new(), seen: HashSet::new() })
    }

    pub(super) fn list_next(&mut self, lane: usize, mut open: Open) {
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
                Look::Later | Look::Again => {
                    self.notes.name_maker(&place, open.maker);
                    self.hints.push(Hint::Touched { place, at: self.at });
                }
            }
        }
        for name in directories {
            self.meet(&mut open, &name);
        }
        match more {
            Ok(true) => self.lanes[lane].push_front(Job::List(open)),
            Ok(false) => self.listed(lane, open),
            // It was removed meanwhile (`ENOENT`): opening it anew says so.
            Err(error) if error.raw_os_error().is_some_and(host::means_no_directory) => {
                self.open(open.node);
            }
            Err(error) if means_exhaustion(&error) => self.lose(LostCause::Gap),
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
                maker: 0,
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
        let Open { node, dir, look, maker, found, seen, .. } = open;
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
        let batch =
            Job::Cover(Batch { parent: node, dir: hold.then_some(dir), children: found, device: None, look, maker });
        // What lies below a known place is not itself known.
        match lane {
            KNOWN => self.lanes[WALK].push_back(batch),
            _ => self.lanes[lane].push_front(batch),
        }
    }
}
