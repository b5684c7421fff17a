//! The sweep at work: what raises no event is found here, and what could not be put back is tried again.

use std::collections::BTreeSet;

use platform::{Moment, Place, RootId};

use crate::baseline::Content;

use super::machine::Input;
use super::rereading::Accepted;
use super::session::{Phase, Session};

impl Session {
    /// Every path that is known: accepted, or not settled.
    pub(super) fn known_places(&self) -> Vec<Place> {
        let mut places = self.machine.open();
        places.extend(self.baseline.rows().map(|(place, _)| place.clone()));
        places.into_iter().collect()
    }

    /// One round of the verifying sweep.
    pub(super) fn sweep_round(&mut self, now: Moment) {
        self.sweep_at = now + self.options.interval;
        if matches!(self.phase, Phase::Walking { .. }) {
            return;
        }
        self.to_look.append(&mut self.deferred);
        for id in 0..self.parts.roots.all().len() {
            self.root_vanished(RootId(u16::try_from(id).expect("a run has few roots")));
        }
        if !self.parts.lock.is_in_place() {
            let now = self.now();
            let line = "keep watch: warning: somebody removed the lock file; a second watch could start in this root";
            self.parts.console.line_if_new("lock", line, now);
        }
        let round = self.sweep.round(self.baseline.table(), |row| match row.snapshot.content {
            Content::Regular { size, .. } => Some(size),
            _ => None,
        });
        // A path that is not settled is compared with its last look; the baseline is not what is there.
        let (open, read): (Vec<_>, Vec<_>) = round.reads.into_iter().partition(|place| self.machine.is_open(place));
        let read: BTreeSet<Place> = read.into_iter().filter(|place| !self.to_look.contains_key(place)).collect();
        let mut stats: BTreeSet<Place> = round.stats.into_iter().chain(open).collect();
        stats.extend(self.machine.open());
        self.compare_stamps(stats.iter(), now);
        self.sweep_lock(now);
        let baseline = &self.baseline;
        self.rereading.keep_only(|place| baseline.get(place).is_some());
        for place in read {
            if !self.reads_the_same(&place) {
                self.to_look.insert(place, now);
            }
        }
        self.look_around();
        if self.machine.unrestored().next().is_some() {
            self.step(Input::Retry);
        }
        self.draw();
    }

    /// Whether the file has the accepted stamps and, read again, the accepted content.
    fn reads_the_same(&mut self, place: &Place) -> bool {
        let Some(row) = self.baseline.get(place) else { return true };
        let (Content::Regular { digest, size }, Some(stat)) = (&row.snapshot.content, &row.snapshot.stat) else {
            return true;
        };
        let accepted = Accepted { stat, digest: *digest, size: *size };
        self.rereading.is_the_same(self.parts.roots.get(place.root), place, accepted)
    }
}
