//! Listing one directory: what is in it is compared with what was, and what differs is said.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::event::{Hint, LostCause, Place};
use crate::stat::{FileId, Stat};
use crate::tree::{Listing, Tree, Unlisted};

use super::super::index::parent_of;
use super::super::looks::is_one_name;
use super::super::names::Names;
use super::{Engine, Job, MAX_DEPTH, Purpose};

impl<T: Tree> Engine<T> {
    pub(super) fn look(&mut self, place: &Place, above: &Arc<[FileId]>, job: &mut Job) {
        let names = self.names_at(place);
        let covered = self.covered();
        let wanted = &mut |name: &[u8]| covered.is(place, name) || !covered.alike(place, name, names).is_empty();
        let first = job.purpose == Purpose::Walk && !self.walked;
        match self.tree.list(place, first, wanted) {
            Ok(listing) if above.contains(&listing.own.id) || above.len() > MAX_DEPTH => self.unreadable(place),
            Ok(listing) => self.merge(place, &listing, above, job),
            Err(Unlisted::Unreadable) => self.unreadable(place),
            Err(Unlisted::Absent) => {
                if self.state.directory(place).is_some() || self.state.is_unreadable(place) {
                    self.vanish(place);
                }
            }
        }
    }

    fn names_at(&self, place: &Place) -> Names {
        let known = |place: &Place| self.state.directory(place).and_then(|id| self.volumes.get(&id.dev)).copied();
        known(place).or_else(|| parent_of(place).and_then(|parent| known(&parent))).unwrap_or_default()
    }

    /// Takes in what a listing shows.
    fn merge(&mut self, place: &Place, listing: &Listing, above: &Arc<[FileId]>, job: &mut Job) {
        let own = listing.own.id;
        let before = self.state.directory(place);
        if before.is_some_and(|before| before != own) {
            self.vanish(place);
        }
        self.state.put_directory(place, &listing.own);
        if before != Some(own) {
            self.rearmed.insert(place.clone());
            if job.purpose != Purpose::Walk && !place.path.is_root() {
                self.hints.push(Hint::Appeared(place.clone()));
            }
        }
        self.learn(place, listing);
        let names = self.names_at(place);
        self.merge_directories(place, listing, above, job, before == Some(own));
        let listed: BTreeSet<_> = listing.entries.iter().map(|(name, _)| place.join(name)).collect();
        let mut gone = self.state.entries_in(place);
        for (name, stat) in &listing.entries {
            for found in self.covered_as(place, name, *stat, names, &listed) {
                gone.remove(&found);
                let old = self.state.entry(&found).copied();
                self.put(&found, *stat);
                match job.purpose {
                    Purpose::Walk => self.hints.push(Hint::Found(found)),
                    Purpose::Compare if old == Some(*stat) => {}
                    _ => self.hints.push(Hint::Touched { place: found, at: self.at }),
                }
            }
        }
        for place in gone {
            // Another spelling of the name may have been listed: the volume is asked.
            self.touch(&place);
        }
    }

    /// The covered places that a listed entry is at: those that are not listed and that the volume takes for the same, else
    /// its own.
    fn covered_as(&self, dir: &Place, name: &[u8], stat: Stat, names: Names, listed: &BTreeSet<Place>) -> Vec<Place> {
        let covered = self.covered();
        let mut found = covered.alike(dir, name, names);
        found.extend(self.state.alike(dir, name, names).into_iter().filter(|other| self.state.entry(other).is_some()));
        found.retain(|place| !listed.contains(place) && self.tree.stat(place).is_some_and(|other| other.id == stat.id));
        if covered.is(dir, name) && (found.is_empty() || !is_one_name(&stat)) {
            found.push(dir.join(name));
        }
        found
    }

    /// The directory that a listing calls `place`, under the name it is known by.
    fn known_as(&self, place: Place, name: &[u8], names: Names, listed: &BTreeSet<Place>) -> Place {
        let Some(dir) = parent_of(&place).filter(|_| self.state.directory(&place).is_none()) else { return place };
        let is_dir = |other: &Place| self.state.directory(other).is_some() && !listed.contains(other);
        let alike = self.state.alike(&dir, name, names).into_iter().filter(is_dir);
        let same =
            |other: &Place| self.tree.stat(other).map(|stat| stat.id) == self.tree.stat(&place).map(|stat| stat.id);
        alike.into_iter().find(same).unwrap_or(place)
    }

    fn merge_directories(
        &mut self,
        place: &Place,
        listing: &Listing,
        above: &Arc<[FileId]>,
        job: &mut Job,
        was_known: bool,
    ) {
        let listed: BTreeSet<_> = listing.directories.iter().map(|name| place.join(name)).collect();
        let mut gone = self.state.directories_in(place);
        let names = self.names_at(place);
        let start = job.open.len();
        let above: Arc<[FileId]> = [above, &[listing.own.id][..]].concat().into();
        for name in &listing.directories {
            let below = self.known_as(place.join(name), name, names, &listed);
            let is_new = !gone.remove(&below);
            if is_new && job.purpose != Purpose::Walk && self.covered().is(place, name) {
                self.hints.push(Hint::Touched { place: below.clone(), at: self.at });
            }
            let unread = self.state.is_unreadable(&below);
            if (job.whole || is_new || unread || !was_known) && self.interest.enters(place.root, &below.path) {
                job.open.push((below.clone(), Arc::clone(&above)));
            }
        }
        for place in gone {
            self.vanish(&place);
        }
        // What comes last is taken first.
        job.open[start..].sort_by_key(|(place, _)| self.interest.first(place.root, &place.path));
    }

    /// Learns from the names of a directory what its volume takes for the same.
    fn learn(&mut self, place: &Place, listing: &Listing) {
        let mut names = self.volumes.get(&listing.own.id.dev).copied().unwrap_or_default();
        let all = listing.directories.iter().chain(listing.entries.iter().map(|(name, _)| name));
        for name in all {
            if names.is_settled() {
                break;
            }
            names.learn(name, |name| self.tree.stat(&place.join(name)).map(|stat| stat.id));
        }
        self.volumes.insert(listing.own.id.dev, names);
    }

    fn unreadable(&mut self, place: &Place) {
        if self.state.directory(place).is_some() {
            self.vanish(place);
        }
        if self.state.put_unreadable(place) {
            self.hints.push(Hint::Lost(LostCause::Unreadable(place.clone())));
        }
    }

    /// Says that a directory is gone, and forgets what was below it.
    pub(super) fn vanish(&mut self, place: &Place) {
        self.hints.push(Hint::Vanished { place: place.clone(), at: self.at });
        self.rearmed.extend(self.state.remove_directory(place));
        self.rearmed.insert(place.clone());
    }
}
