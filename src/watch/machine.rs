//! The decisions of a watch, as a pure machine: what was seen goes in, what is to be done comes out.
//!
//! Promise: no rewrite, no revert-and-rewrite and no other question extends a deadline; an accept counts only for what
//! was on screen; a path refused often enough is restored without asking; a stop refuses all that is pending.
//! Limit: it reads no clock and touches no file. The caller looks, compares, restores and draws, and says what came of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use platform::{Moment, Place};

use crate::baseline::Change;
use crate::journal::Asked;
use crate::rules::{Class, Mode};

use super::question::{Group, Order, Question};

mod effect;
mod input;
mod queue;
mod refusals;

pub use effect::{Effect, Outcome, Refused, Seen};
pub use input::{Answer, By, Input};
pub use queue::{BURST_GAP, BURST_LENGTH};
pub use refusals::{RETRIES, RETRY_SLOWLY};

pub(super) use queue::Pending;

use refusals::History;

/// A report-mode change is named when the path has been quiet for this long.
pub const REPORT_QUIET: Duration = Duration::from_millis(250);
/// A report-mode change is named after this time even if writing goes on.
pub const REPORT_LATEST: Duration = Duration::from_secs(2);

/// How long and how often.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Time from detection to restoring without an answer.
    pub decision_timeout: Duration,
    /// Refusals after which a path is contested; 0 = never.
    pub contest_limit: u32,
}

/// A report-mode change that is not named yet.
#[derive(Debug, Clone)]
struct Reported {
    seen: Seen,
    /// When its change became what it is.
    last: Moment,
}

/// The state of all decisions.
#[derive(Debug)]
pub struct Machine {
    settings: Settings,
    pending: BTreeMap<Place, Pending>,
    /// When each pending change is restored without an answer.
    deadlines: BTreeSet<(Moment, Place)>,
    /// The questions, oldest first.
    groups: BTreeMap<Order, Group>,
    next_group: u64,
    /// Accepted changes whose accept is being carried out, as they were pending.
    accepting: BTreeMap<Place, Pending>,
    refused: BTreeMap<Place, Refused>,
    reported: BTreeMap<Place, Reported>,
    histories: BTreeMap<Place, History>,
    /// How often it was time to try failed restores again.
    retries: u32,
}

impl Machine {
    /// Nothing has happened yet.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            pending: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            groups: BTreeMap::new(),
            next_group: 1,
            accepting: BTreeMap::new(),
            refused: BTreeMap::new(),
            reported: BTreeMap::new(),
            histories: BTreeMap::new(),
            retries: 0,
        }
    }

    /// Takes one input at the moment `now`. Deadlines that have passed by then are dealt with first, whatever the input is.
    #[must_use = "every effect has to be carried out"]
    pub fn step(&mut self, input: Input, now: Moment) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.expire(now, &mut effects);
        match input {
            Input::Looked { place, class, change, detected, by } => {
                self.looked(place, class, change, (detected.min(now), now), by, &mut effects);
            }
            Input::Named(place) => self.named(&place),
            Input::Approved(seen, asked) => self.approved(seen, asked, now, &mut effects),
            Input::Passed(seen) => self.passed(seen, now, &mut effects),
            Input::Answer { answer, question, version, held } => {
                self.answered(answer, question, version, &held, &mut effects);
            }
            Input::Accepted(place) => self.accepted(&place),
            Input::NotAccepted(place) => {
                self.ask_again(place);
                // The try may have outlasted the deadline.
                self.expire(now, &mut effects);
            }
            Input::Restored(place) => {
                self.refused.remove(&place);
            }
            Input::NotRestored(place) => {
                if let Some(refused) = self.refused.get_mut(&place) {
                    refused.failures += 1;
                }
            }
            Input::AskAgain(place) => {
                if let Some(history) = self.histories.get_mut(&place) {
                    (history.contested, history.refusals) = (false, 0);
                }
            }
            Input::Retry => self.retry(&mut effects),
            Input::Tick => {}
            Input::Stop => self.stop(&mut effects),
        }
        effects
    }

    /// The question to show: the oldest.
    pub fn question(&self) -> Option<Question<'_>> {
        let (_, group) = self.groups.first_key_value()?;
        Some(Question::new(group, &self.pending, self.groups.len() - 1))
    }

    /// Its id, its version, and how many others wait; without the work of listing its members.
    pub fn asked(&self) -> Option<(u64, u64, usize)> {
        let (_, group) = self.groups.first_key_value()?;
        Some((group.id, group.version, self.groups.len() - 1))
    }

    /// When the first of all pending changes is restored without an answer.
    pub fn next_deadline(&self) -> Option<Moment> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// When [`Input::Tick`] is needed, if nothing else happens.
    pub fn wake_at(&self) -> Option<Moment> {
        self.next_deadline().into_iter().chain(self.reported.values().map(Reported::due)).min()
    }

    /// The paths restored without asking.
    pub fn contested(&self) -> impl Iterator<Item = &Place> {
        self.histories.iter().filter(|(_, history)| history.contested).map(|(place, _)| place)
    }

    /// The refused changes that could not be put back so far.
    pub fn unrestored(&self) -> impl Iterator<Item = &Refused> {
        self.refused.values().filter(|refused| refused.failures > 0)
    }

    /// The change of a path that is not settled, as last seen.
    pub fn last_seen(&self, place: &Place) -> Option<&Change> {
        let pending = self.pending.get(place).map(|pending| &pending.seen);
        let refused = || self.refused.get(place).map(|refused| &refused.seen);
        let reported = || self.reported.get(place).map(|reported| &reported.seen);
        pending.or_else(refused).or_else(reported).map(|seen| &seen.change)
    }

    /// Whether the path waits for an answer or for its restore.
    pub fn is_open(&self, place: &Place) -> bool {
        self.pending.contains_key(place) || self.refused.contains_key(place) || self.reported.contains_key(place)
    }

    /// The paths at and below the directory that are not settled.
    pub fn open_below<'m>(&'m self, dir: &'m Place) -> impl Iterator<Item = &'m Place> {
        let all = self.pending.keys().chain(self.refused.keys()).chain(self.reported.keys());
        all.filter(|place| place.root == dir.root && place.path.is_below(&dir.path))
    }

    /// Every path that is not settled.
    pub fn open(&self) -> BTreeSet<Place> {
        self.pending.keys().chain(self.refused.keys()).chain(self.reported.keys()).cloned().collect()
    }

    fn expire(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        while let Some((deadline, place)) = self.deadlines.first() {
            if *deadline > now {
                break;
            }
            let place = place.clone();
            self.refuse(&place, Outcome::TimedOut, effects);
        }
        let due: Vec<Place> =
            self.reported.iter().filter(|(_, r)| r.due() <= now).map(|(place, _)| place.clone()).collect();
        for place in due {
            self.name_reported(&place, effects);
        }
    }

    fn looked(
        &mut self,
        place: Place,
        class: Class,
        change: Option<Change>,
        (detected, now): (Moment, Moment),
        by: Option<By>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(change) = change else { return self.vanished(&place, effects) };
        if let Some(refused) = self.refused.get_mut(&place) {
            refused.seen.change = change;
            return;
        }
        if let Some(accepting) = self.accepting.get_mut(&place) {
            accepting.seen.change = change;
            return;
        }
        if class.mode == Mode::Report {
            let reported = self.reported.entry(place.clone()).or_insert_with(|| Reported {
                seen: Seen { place, class, change: change.clone(), detected },
                last: detected,
            });
            if reported.seen.change != change {
                reported.last = now;
                reported.seen.change = change;
            }
            return;
        }
        self.count_a_dodge(&place, now, effects);
        if self.histories.get(&place).is_some_and(|history| history.contested) {
            self.send_back(Seen { place, class, change, detected }, Outcome::AutoRestored, effects);
            return;
        }
        if let Some(pending) = self.pending.get_mut(&place) {
            let shown = &pending.seen.change;
            if shown.kind != change.kind || !shown.after.same(&change.after) {
                let group = self.groups.get_mut(&pending.order).expect("what is pending is in a question");
                group.version += 1;
                pending.changed = group.version;
            }
            // The stamps move along even where nothing that is shown differs.
            pending.seen.change = change;
            return;
        }
        let history = self.histories.get(&place).copied().unwrap_or_default();
        let sticky = [history.deadline, history.unasked].into_iter().flatten().filter(|deadline| *deadline > now);
        let deadline = sticky.min().unwrap_or(detected + self.settings.decision_timeout);
        let order = self.order_for(class, detected, by);
        let group = self.groups.get_mut(&order).expect("just found or made");
        group.last = group.last.max(detected);
        let (seat, version) = group.admit(place.clone());
        self.deadlines.insert((deadline, place.clone()));
        let seen = Seen { place: place.clone(), class, change, detected };
        self.pending.insert(place, Pending { seen, deadline, order, seat, joined: version, changed: version });
        // The look may have come so late that the time is over already.
        self.expire(now, effects);
    }

    /// What is shown of the path differs: who it was.
    fn named(&mut self, place: &Place) {
        if let Some(pending) = self.pending.get(place) {
            self.groups.get_mut(&pending.order).expect("what is pending is in a question").version += 1;
        }
    }

    /// The person has been asked already: what waits of the path is settled by that.
    fn approved(&mut self, seen: Seen, asked: Asked, now: Moment, effects: &mut Vec<Effect>) {
        let Seen { place, class, change, detected } = &seen;
        if self.refused.contains_key(place) || self.accepting.contains_key(place) {
            // What is under way with the path comes to its end first.
            return self.looked(place.clone(), *class, Some(change.clone()), (*detected, now), None, effects);
        }
        let pending = self.take_pending(place).unwrap_or_else(|| {
            let order = (self.next_group, 0);
            self.next_group += 1;
            let deadline = *detected + self.settings.decision_timeout;
            Pending { seen: seen.clone(), deadline, order, seat: 0, joined: 0, changed: 0 }
        });
        self.accepting.insert(place.clone(), Pending { seen: seen.clone(), ..pending });
        effects.push(Effect::AcceptApproved(seen, asked));
    }

    fn vanished(&mut self, place: &Place, effects: &mut Vec<Effect>) {
        if let Some(Pending { seen, deadline, .. }) = self.take_pending(place) {
            self.histories.entry(place.clone()).or_default().deadline = Some(deadline);
            effects.push(Effect::Transient(seen));
        }
        if let Some(Reported { seen, .. }) = self.reported.remove(place) {
            effects.push(Effect::Transient(seen));
        }
        if self.refused.get(place).is_some_and(|refused| refused.failures > 0) {
            effects.push(Effect::Settled(self.refused.remove(place).expect("just looked up")));
        }
    }

    /// Nobody was asked, so that nobody was dodged; but what comes next has no more time than this had.
    fn passed(&mut self, seen: Seen, now: Moment, effects: &mut Vec<Effect>) {
        if seen.class.mode == Mode::Restore {
            let history = self.histories.entry(seen.place.clone()).or_default();
            history.unasked = history.unasked.filter(|deadline| *deadline > now);
            history.unasked.get_or_insert(seen.detected + self.settings.decision_timeout);
        }
        effects.push(Effect::Transient(seen));
    }

    fn answered(
        &mut self,
        answer: Answer,
        question: u64,
        version: u64,
        held: &BTreeSet<Place>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(order) = self.groups.iter().find(|(_, group)| group.id == question).map(|(order, _)| *order) else {
            return;
        };
        let group = &self.groups[&order];
        let shown: Vec<Place> =
            group.members.values().filter(|place| self.pending[*place].joined <= version).cloned().collect();
        match answer {
            Answer::Reject => {
                for place in shown {
                    self.refuse(&place, Outcome::Rejected, effects);
                }
            }
            Answer::Accept => {
                for place in shown {
                    if self.pending[&place].changed <= version && !held.contains(&place) {
                        let pending = self.take_pending(&place).expect("it is a member");
                        effects.push(Effect::Accept(pending.seen.clone()));
                        self.accepting.insert(place, pending);
                    }
                }
            }
            Answer::Each if group.members.len() > 1 => self.take_apart(order),
            Answer::Each => {}
        }
    }

    fn accepted(&mut self, place: &Place) {
        self.accepting.remove(place);
        if let Some(history) = self.histories.get_mut(place) {
            history.end_deadlines();
        }
    }

    fn name_reported(&mut self, place: &Place, effects: &mut Vec<Effect>) {
        if let Some(Reported { seen, .. }) = self.reported.remove(place) {
            effects.push(Effect::Keep(seen));
        }
    }

    fn stop(&mut self, effects: &mut Vec<Effect>) {
        for place in self.pending.keys().cloned().collect::<Vec<_>>() {
            self.refuse(&place, Outcome::RestoredAtExit, effects);
        }
        for place in self.reported.keys().cloned().collect::<Vec<_>>() {
            self.name_reported(&place, effects);
        }
        effects.extend(self.unrestored().cloned().map(Effect::Restore));
    }
}

impl Reported {
    fn due(&self) -> Moment {
        (self.last + REPORT_QUIET).min(self.seen.detected + REPORT_LATEST)
    }
}
