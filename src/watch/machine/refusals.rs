//! Refusals: what is sent back, how often, and when a path is contested.

use platform::{Moment, Place};

use super::{Effect, Machine, Outcome, Pending, Refused, Seen};

/// Failed restores tried again at one [`Input::Retry`](super::Input::Retry): each costs a durable journal entry.
pub const RETRIES: usize = 64;
/// A restore that has failed this often is tried only at every so manieth [`Input::Retry`](super::Input::Retry) from then on.
pub const RETRY_SLOWLY: u32 = 8;

/// What is remembered of a path for the whole session.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct History {
    pub(super) refusals: u32,
    pub(super) contested: bool,
    /// Deadline of a question that was withdrawn.
    pub(super) deadline: Option<Moment>,
    /// Deadline of a change that was gone before it was asked about.
    pub(super) unasked: Option<Moment>,
}

impl History {
    /// The deadlines of earlier, withdrawn questions end with a decision.
    pub(super) fn end_deadlines(&mut self) {
        (self.deadline, self.unasked) = (None, None);
    }
}

impl Machine {
    pub(super) fn refuse(&mut self, place: &Place, outcome: Outcome, effects: &mut Vec<Effect>) {
        let Some(Pending { seen, .. }) = self.take_pending(place) else { return };
        self.send_back(seen, outcome, effects);
        if matches!(outcome, Outcome::Rejected | Outcome::TimedOut) {
            self.count_refusal(place, effects);
        }
    }

    pub(super) fn send_back(&mut self, seen: Seen, outcome: Outcome, effects: &mut Vec<Effect>) {
        let refused = Refused { seen, outcome, failures: 0 };
        effects.push(Effect::Restore(refused.clone()));
        self.refused.insert(refused.seen.place.clone(), refused);
    }

    /// One refusal more for the path; enough of them make it contested.
    pub(super) fn count_refusal(&mut self, place: &Place, effects: &mut Vec<Effect>) {
        let limit = self.settings.contest_limit;
        let history = self.histories.entry(place.clone()).or_default();
        history.refusals += 1;
        history.end_deadlines();
        if limit > 0 && history.refusals >= limit && !history.contested {
            history.contested = true;
            effects.push(Effect::Contest(place.clone()));
        }
    }

    /// A change that was undone just before its time was over, and comes back soon after, has dodged a refusal: that
    /// counts like one. Otherwise a program could keep its change alive for one decision timeout after the other.
    pub(super) fn count_a_dodge(&mut self, place: &Place, now: Moment, effects: &mut Vec<Effect>) {
        let Some(history) = self.histories.get_mut(place) else { return };
        let Some(passed) = history.deadline.take_if(|deadline| *deadline <= now) else { return };
        if now < passed + self.settings.decision_timeout {
            self.count_refusal(place, effects);
        }
    }

    /// Those that were tried least often come first, so that all get their turn.
    pub(super) fn retry(&mut self, effects: &mut Vec<Effect>) {
        self.retries = self.retries.wrapping_add(1);
        let slow = self.retries.is_multiple_of(RETRY_SLOWLY);
        let due = |refused: &Refused| refused.failures > 0 && (slow || refused.failures < RETRY_SLOWLY);
        let mut failed: Vec<_> = self.refused.values().filter(|refused| due(refused)).collect();
        failed.sort_by_key(|refused| refused.failures);
        effects.extend(failed.into_iter().take(RETRIES).cloned().map(Effect::Restore));
    }
}
