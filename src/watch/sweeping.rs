//! The sweep at work: what raises no event is found here, and what could not be put back is tried again.

use platform::{Moment, Place, RootId};

use crate::baseline::Content;
use crate::digest::Digest;

use super::machine::Input;
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
        let mut stats = round.stats;
        stats.extend(self.machine.open());
        stats.sort();
        stats.dedup();
        self.compare_stamps(&stats, now);
        for place in round.reads {
            if !self.to_look.contains_key(&place) && !self.reads_the_same(&place) {
                self.to_look.insert(place, now);
            }
        }
        self.look_around();
        if self.machine.unrestored().next().is_some() {
            self.step(Input::Retry);
        }
        self.draw();
    }

    /// Whether the file still has the accepted content. Its stamps have just been found unchanged.
    fn reads_the_same(&self, place: &Place) -> bool {
        let Some(row) = self.baseline.get(place) else { return true };
        let Content::Regular { digest, size } = row.snapshot.content else { return true };
        if self.machine.is_open(place) {
            // Its last look is compared by its stamps; the baseline is not what is there.
            return true;
        }
        let Ok(mut file) = self.parts.roots.get(place.root).open_read(&place.path) else { return false };
        Digest::of_reader(&mut file, size).is_ok_and(|(found, length)| found == digest && length == size)
    }
}
