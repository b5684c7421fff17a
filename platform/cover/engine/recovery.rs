//! What is done when events were lost: it is said, and everything covered is listed again.
//!
//! Promise: neither happens too often, whoever may cause it, and nothing that was lost goes unsaid or unlisted.

use std::time::Duration;

use crate::clock::Moment;
use crate::event::{Hint, LostCause};

use super::{Engine, Job, Marks, RECOVERY};

/// Recoveries begin no more often than this; what is lost meanwhile is recovered by the next one.
const BETWEEN_RECOVERIES: Duration = Duration::from_secs(1);

/// A loss is said no more often than this.
const BETWEEN_LOSSES: Duration = Duration::from_millis(100);

/// Where the comparison after a loss is.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    pub(super) running: bool,
    /// Whether every covered entry is to be hinted, not only those that are new.
    pub(super) tell_all: bool,
    started: Option<Moment>,
    /// Whether events were lost since it began.
    again: bool,
    said: Option<Moment>,
    /// A loss that was not said yet.
    unsaid: Option<LostCause>,
}

impl<M: Marks> Engine<M> {
    /// Says that events were lost and relists everything, neither of them too often.
    pub(in crate::cover) fn lose(&mut self, cause: LostCause) {
        self.recovery.unsaid.get_or_insert(cause);
        self.recovery.again = true;
        self.tick(self.at);
    }

    /// Hints everything again.
    pub(in crate::cover) fn rescan(&mut self, now: Moment) {
        self.at = now;
        self.recovery.tell_all = true;
        self.limited = false;
        self.recover(now);
    }

    /// Says and begins what had to wait. Returns how long the rest has to.
    pub(in crate::cover) fn tick(&mut self, now: Moment) -> Option<Duration> {
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
}
