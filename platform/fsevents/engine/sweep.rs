//! Looking at each directory now and then: some names appear without a row and without anything being held open there.
//!
//! Promise: a hard link or a symlink that FSEvents has no row for is found within a round, by the time at which its
//! directory changed. Rounds take a small share of a processor however many directories there are: what follows a round is
//! thirty times as long.
//! Source: notify-rs/notify#374, facebook/watchman#172 and #858.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::clock::Moment;
use crate::event::Place;
use crate::tree::Tree;

use super::Engine;

/// Directories looked at in one step.
const AT_ONCE: usize = 32;

/// How much longer than a round the time after it is.
const REST: u32 = 30;

/// See the module.
#[derive(Debug)]
pub(super) struct Sweep {
    least: Duration,
    next: Moment,
    started: Moment,
    left: Vec<Place>,
}

impl Sweep {
    pub(super) fn is_busy(&self) -> bool {
        !self.left.is_empty()
    }

    /// How long until the next round begins; `None` while one is under way.
    pub(super) fn left(&self, now: Moment) -> Option<Duration> {
        (!self.is_busy()).then(|| self.next.since(now))
    }
}

impl<T: Tree> Engine<T> {
    /// Sweeps from now on, with this much time between two rounds at least.
    pub fn sweep_every(&mut self, least: Duration) {
        self.sweep = Some(Sweep { least, next: self.at + least, started: self.at, left: Vec::new() });
    }

    pub(super) fn begin_sweep(&mut self, now: Moment) {
        if let Some(sweep) = self.sweep.as_mut().filter(|sweep| !sweep.is_busy() && sweep.next <= now) {
            sweep.started = now;
            sweep.next = now + sweep.least;
            sweep.left = self.state.all_directories();
        }
    }

    /// Looks at some directories of the round.
    pub(super) fn sweep_some(&mut self, now: Moment) {
        let Some(sweep) = self.sweep.as_mut().filter(|sweep| sweep.is_busy()) else { return };
        let some = sweep.left.split_off(sweep.left.len().saturating_sub(AT_ONCE));
        if sweep.left.is_empty() {
            sweep.next = now + sweep.least.max(now.since(sweep.started) * REST);
        }
        let mut changed = BTreeMap::new();
        for place in some {
            let Some((id, at)) = self.state.directory_as_listed(&place) else { continue };
            match self.tree.stat(&place) {
                Some(stat) if stat.id == id && stat.ctime == at => {}
                found => {
                    changed.insert(place, found.is_none_or(|stat| stat.id != id));
                }
            }
        }
        self.queue(changed);
    }
}
