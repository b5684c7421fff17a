//! The queue of questions: which one a change belongs to, and its place there.

use std::time::Duration;

use platform::{Moment, Place};

use crate::rules::Class;

use super::super::question::{Group, Order};
use super::{By, Machine, Seen};

/// Changes of one burst come within this time of the one before.
pub const BURST_GAP: Duration = Duration::from_millis(50);
/// A burst is at most this long.
pub const BURST_LENGTH: Duration = Duration::from_millis(500);
/// A change that waits for an answer.
#[derive(Debug, Clone)]
pub(in crate::watch) struct Pending {
    pub(in crate::watch) seen: Seen,
    pub(in crate::watch) deadline: Moment,
    /// Its question, and its seat there.
    pub(in crate::watch) order: Order,
    pub(in crate::watch) seat: u64,
    /// Version of its question at which it joined.
    pub(in crate::watch) joined: u64,
    /// Version of its question at which its change became what it is.
    pub(in crate::watch) changed: u64,
}

impl Machine {
    /// The question the change belongs to: that of its burst, or one of its own at the end of the queue.
    pub(super) fn order_for(&mut self, class: Class, detected: Moment, by: Option<By>) -> Order {
        let recent = self.groups.iter().rev().take_while(|(_, group)| detected.since(group.first) <= BURST_LENGTH);
        let burst = recent
            .filter(|(_, group)| group.open && detected.since(group.last) <= BURST_GAP)
            .filter(|(_, group)| group.rule == class.rule || by.is_some() && group.by == by)
            .map(|(order, _)| *order)
            .next();
        burst.unwrap_or_else(|| {
            let order = (self.next_group, 0);
            self.groups.insert(order, Group { by, ..Group::new(self.next_group, class.rule, detected) });
            self.next_group += 1;
            order
        })
    }

    /// Takes the path out of its question; a question without members is gone.
    pub(super) fn take_pending(&mut self, place: &Place) -> Option<Pending> {
        let pending = self.pending.remove(place)?;
        self.deadlines.remove(&(pending.deadline, place.clone()));
        let group = self.groups.get_mut(&pending.order).expect("what is pending is in a question");
        group.members.remove(&pending.seat);
        group.version += 1;
        if group.members.is_empty() {
            self.groups.remove(&pending.order);
        }
        Some(pending)
    }

    /// Puts an accepted change back where it was in the queue, with the deadline it had.
    pub(super) fn ask_again(&mut self, place: Place) {
        let Some(mut pending) = self.accepting.remove(&place) else { return };
        let Seen { class, detected, .. } = pending.seen;
        let group = self.groups.entry(pending.order).or_insert_with(|| {
            self.next_group += 1;
            Group::new(self.next_group - 1, class.rule, detected)
        });
        (pending.seat, pending.joined) = group.admit(place.clone());
        pending.changed = pending.joined;
        self.deadlines.insert((pending.deadline, place.clone()));
        self.pending.insert(place, pending);
    }

    /// Makes a question of every member, in its place in the queue.
    pub(super) fn take_apart(&mut self, order: Order) {
        let Some(group) = self.groups.remove(&order) else { return };
        for (number, place) in (1..).zip(group.members.into_values()) {
            let pending = self.pending.get_mut(&place).expect("it is a member");
            let mut single = Group::new(self.next_group, group.rule, pending.seen.detected);
            self.next_group += 1;
            single.open = false;
            (pending.seat, pending.joined) = single.admit(place);
            pending.changed = pending.joined;
            pending.order = (order.0, number);
            self.groups.insert(pending.order, single);
        }
    }
}
