//! The decisions about held opens, as a pure machine: what is held goes in, answers come out.
//!
//! Promise: every open that goes in is answered exactly once, or its opener is gone, or the guardian answered it; nothing extends its deadline, which
//! counts from when it was read; an answer counts only for what was on screen; opens of a path that were refused often
//! enough are refused without asking; a stop refuses all. Limit: it reads no clock and answers nobody itself.

use std::collections::{BTreeMap, BTreeSet};

use platform::{Access, HeldId, Moment, Place};

use crate::watch::machine::{BURST_GAP, BURST_LENGTH};

use super::group::{Group, Question};
use super::repeats::Repeats;
use super::{Answer, Decision, Effect, Held, Input, Settings, Standing};

/// Place of a question in the queue: its number, and the number of the part it was taken apart into.
type Order = (u64, u64);

/// The state of all held opens.
#[derive(Debug)]
pub struct Machine {
    settings: Settings,
    /// Those whose program is being looked at.
    vetting: BTreeMap<HeldId, Held>,
    /// The questions, oldest first.
    groups: BTreeMap<Order, Group>,
    /// Which question an open is in.
    seats: BTreeMap<HeldId, Order>,
    /// When each is refused without an answer.
    deadlines: BTreeSet<(Moment, HeldId)>,
    next_group: u64,
    refusals: BTreeMap<(Place, Access), u32>,
    contested: BTreeSet<(Place, Access)>,
    repeats: Repeats,
    is_over: bool,
}

impl Machine {
    /// Nothing is held.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            vetting: BTreeMap::new(),
            groups: BTreeMap::new(),
            seats: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            next_group: 1,
            refusals: BTreeMap::new(),
            contested: BTreeSet::new(),
            repeats: Repeats::default(),
            is_over: false,
        }
    }

    /// Takes one input at the moment `now`. Deadlines that have passed by then are dealt with first, whatever the input is.
    #[must_use = "every effect has to be carried out"]
    pub fn step(&mut self, input: Input, now: Moment) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.expire(now, &mut effects);
        match input {
            Input::Opened { held, standing } => self.opened(held, standing, now, &mut effects),
            Input::Vetted { id, trusted } => {
                if let Some(held) = self.take_vetting(id) {
                    if trusted {
                        self.close(held, Decision::Trusted, now, &mut effects);
                    } else {
                        self.ask(held, now, &mut effects);
                    }
                }
            }
            Input::Gone(id) => self.gone(id, Decision::Gone, now, &mut effects),
            Input::Relieved(id) => self.gone(id, Decision::WhileStopped, now, &mut effects),
            Input::NoRoom { ids, one } => {
                let opens = u32::try_from(ids.len()).unwrap_or(u32::MAX);
                effects.extend(ids.into_iter().map(Effect::Refuse));
                if let Some(held) = one {
                    self.note(held, Decision::NoRoom, opens, now, &mut effects);
                }
            }
            Input::Answer { answer, question, version } => self.answered(answer, question, version, now, &mut effects),
            Input::AskAgain(place) => {
                self.contested.retain(|(contested, _)| *contested != place);
                self.refusals.retain(|(refused, _), _| *refused != place);
            }
            Input::Tick => {}
            Input::Stop => self.stop(now, &mut effects),
        }
        for (held, decision, opens) in self.repeats.due(now) {
            effects.push(Effect::Decided { held, decision, opens });
        }
        effects
    }

    /// The question to show: the oldest.
    pub fn question(&self) -> Option<Question<'_>> {
        let (_, group) = self.groups.first_key_value()?;
        Some(Question::new(group, self.deadline_of(group), self.groups.len() - 1))
    }

    /// Its id, its version, its deadline, and how many others wait; without the work of listing it.
    pub fn asked(&self) -> Option<(u64, u64, Moment, usize)> {
        let (_, group) = self.groups.first_key_value()?;
        Some((group.id, group.version, self.deadline_of(group), self.groups.len() - 1))
    }

    /// When [`Input::Tick`] is needed, if nothing else happens.
    pub fn wake_at(&self) -> Option<Moment> {
        let deadline = self.deadlines.first().map(|(deadline, _)| *deadline);
        deadline.into_iter().chain(self.repeats.wake_at()).min()
    }

    /// The paths whose opens are refused without asking; one that is so for reading and for writing comes twice.
    pub fn contested(&self) -> impl Iterator<Item = &Place> {
        self.contested.iter().map(|(place, _)| place)
    }

    /// How many opens wait.
    pub fn waiting(&self) -> usize {
        self.deadlines.len()
    }

    fn deadline(&self, held: &Held) -> Moment {
        held.at + self.settings.decision_timeout
    }

    fn deadline_of(&self, group: &Group) -> Moment {
        group.members().map(|held| self.deadline(held)).min().expect("a group has a member")
    }

    fn expire(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        let mut due: BTreeMap<Order, Vec<HeldId>> = BTreeMap::new();
        while let Some((deadline, id)) = self.deadlines.first().copied().filter(|(deadline, _)| *deadline <= now) {
            self.deadlines.remove(&(deadline, id));
            if let Some(held) = self.vetting.remove(&id) {
                self.close(held, Decision::TimedOut, now, effects);
            } else if let Some(order) = self.seats.get(&id) {
                due.entry(*order).or_default().push(id);
            }
        }
        for (order, ids) in due {
            self.settle(order, &ids, Decision::TimedOut, now, effects);
        }
    }

    fn opened(&mut self, mut held: Held, standing: Standing, now: Moment, effects: &mut Vec<Effect>) {
        held.at = held.at.min(now);
        if self.is_over {
            return self.close(held, Decision::RefusedAtExit, now, effects);
        }
        if self.deadline(&held) <= now {
            return self.close(held, Decision::TimedOut, now, effects);
        }
        match standing {
            Standing::Covered => {
                let is_news = self.repeats.is_news(&held, Decision::Allowed, 1, now);
                effects.push(Effect::Answer(held.clone(), Decision::Allowed));
                effects.extend(is_news.then_some(Effect::Decided { held, decision: Decision::Allowed, opens: 1 }));
            }
            Standing::Vetting => {
                self.deadlines.insert((self.deadline(&held), held.id));
                self.vetting.insert(held.id, held);
            }
            Standing::Stranger => self.ask(held, now, effects),
        }
    }

    fn take_vetting(&mut self, id: HeldId) -> Option<Held> {
        let held = self.vetting.remove(&id)?;
        self.deadlines.remove(&(self.deadline(&held), id));
        Some(held)
    }

    /// It is a question from now on, unless its path is contested.
    fn ask(&mut self, held: Held, now: Moment, effects: &mut Vec<Effect>) {
        if self.contested.contains(&(held.place.clone(), held.access)) {
            return self.close(held, Decision::AutoRefused, now, effects);
        }
        let at = held.at;
        let recent = self.groups.iter().rev().take_while(|(_, group)| at.since(group.first) <= BURST_LENGTH);
        let mut fitting =
            recent.filter(|(_, group)| group.open && at.since(group.last) <= BURST_GAP && group.is_of(&held));
        let order = fitting.next().map(|(order, _)| *order).unwrap_or_else(|| self.new_group(None, &held));
        self.seat(order, held);
    }

    fn new_group(&mut self, order: Option<Order>, held: &Held) -> Order {
        let id = self.next_group;
        self.next_group += 1;
        let order = order.unwrap_or((id, 0));
        self.groups.insert(order, Group::new(id, held.access, held.at));
        order
    }

    fn seat(&mut self, order: Order, held: Held) {
        self.deadlines.insert((self.deadline(&held), held.id));
        self.seats.insert(held.id, order);
        self.groups.get_mut(&order).expect("just found or made").admit(held);
    }

    /// There is nothing to answer any more.
    fn gone(&mut self, id: HeldId, decision: Decision, now: Moment, effects: &mut Vec<Effect>) {
        if let Some(held) = self.take_vetting(id) {
            self.close(held, decision, now, effects);
        } else if let Some(order) = self.seats.get(&id).copied() {
            self.settle(order, &[id], decision, now, effects);
        }
    }

    fn answered(&mut self, answer: Answer, question: u64, version: u64, now: Moment, effects: &mut Vec<Effect>) {
        let Some((order, group)) = self.groups.iter().find(|(_, group)| group.id == question) else { return };
        let (order, shown) = (*order, group.shown_at(version));
        match answer {
            Answer::Allow => self.settle(order, &shown, Decision::Allowed, now, effects),
            Answer::Refuse => self.settle(order, &shown, Decision::Refused, now, effects),
            Answer::Each => self.take_apart(order),
        }
    }

    /// Makes a question of every path, in its place in the queue.
    fn take_apart(&mut self, order: Order) {
        let Some(group) = self.groups.get(&order) else { return };
        let places: BTreeSet<&Place> = group.members().map(|held| &held.place).collect();
        if places.len() < 2 {
            return;
        }
        let group = self.groups.remove(&order).expect("just looked up");
        let mut parts: BTreeMap<Place, Order> = BTreeMap::new();
        for held in group.members().cloned() {
            let number = parts.len() as u64 + 1;
            let part = match parts.get(&held.place) {
                Some(part) => *part,
                None => {
                    let part = self.new_group(Some((order.0, number)), &held);
                    let single = self.groups.get_mut(&part).expect("just made");
                    single.open = false;
                    single.counted.extend(group.counted.get(&held.place).cloned());
                    parts.insert(held.place.clone(), part);
                    part
                }
            };
            self.seat(part, held);
        }
    }

    /// Ends these opens of a question.
    fn settle(&mut self, order: Order, ids: &[HeldId], decision: Decision, now: Moment, effects: &mut Vec<Effect>) {
        let Some(group) = self.groups.get_mut(&order) else { return };
        let released = group.release(ids);
        let mut newly_refused = Vec::new();
        let mut by_place: BTreeMap<Place, (Held, u32)> = BTreeMap::new();
        for held in released {
            let counts = matches!(decision, Decision::Refused | Decision::TimedOut);
            if counts && group.counted.insert(held.place.clone()) {
                newly_refused.push((held.place.clone(), held.access));
            }
            self.seats.remove(&held.id);
            self.deadlines.remove(&(held.at + self.settings.decision_timeout, held.id));
            effects.extend(decision.verdict().map(|_| Effect::Answer(held.clone(), decision)));
            by_place.entry(held.place.clone()).or_insert_with(|| (held, 0)).1 += 1;
        }
        if group.is_empty() {
            self.groups.remove(&order);
        }
        for (held, opens) in by_place.into_values() {
            self.note(held, decision, opens, now, effects);
        }
        for refused in newly_refused {
            self.count_refusal(refused, now, effects);
        }
    }

    /// One refusal more; enough of them make it contested, and refuse what still waits of it.
    fn count_refusal(&mut self, what: (Place, Access), now: Moment, effects: &mut Vec<Effect>) {
        let limit = self.settings.contest_limit;
        let refusals = self.refusals.entry(what.clone()).or_default();
        *refusals += 1;
        if limit == 0 || *refusals < limit || !self.contested.insert(what.clone()) {
            return;
        }
        effects.push(Effect::Contest(what.0.clone(), what.1));
        let is_it = |held: &&Held| held.place == what.0 && held.access == what.1;
        let waiting = self
            .groups
            .iter()
            .map(|(order, group)| (*order, group.members().filter(is_it).map(|held| held.id).collect::<Vec<_>>()));
        for (order, ids) in waiting.filter(|(_, ids)| !ids.is_empty()).collect::<Vec<_>>() {
            self.settle(order, &ids, Decision::AutoRefused, now, effects);
        }
    }

    /// Ends an open that is in no question.
    fn close(&mut self, held: Held, decision: Decision, now: Moment, effects: &mut Vec<Effect>) {
        effects.extend(decision.verdict().map(|_| Effect::Answer(held.clone(), decision)));
        self.note(held, decision, 1, now, effects);
    }

    fn note(&mut self, held: Held, decision: Decision, opens: u32, now: Moment, effects: &mut Vec<Effect>) {
        if !decision.repeats() || self.repeats.is_news(&held, decision, opens, now) {
            effects.push(Effect::Decided { held, decision, opens });
        }
    }

    fn stop(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        self.is_over = true;
        for id in self.vetting.keys().copied().collect::<Vec<_>>() {
            if let Some(held) = self.take_vetting(id) {
                self.close(held, Decision::RefusedAtExit, now, effects);
            }
        }
        for (order, ids) in
            self.groups.iter().map(|(order, group)| (*order, group.shown_at(u64::MAX))).collect::<Vec<_>>()
        {
            self.settle(order, &ids, Decision::RefusedAtExit, now, effects);
        }
        for (held, decision, opens) in self.repeats.rest() {
            effects.push(Effect::Decided { held, decision, opens });
        }
    }
}
