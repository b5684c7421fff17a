//! Whose turn it is: a queue for each owner, served one item at a time, round and round.
//!
//! Promise: an owner with a thousand items waits for its next one as long as an owner with two; within an owner, first
//! come first served. Pure.

use std::collections::{BTreeMap, VecDeque};

/// Items of several owners.
#[derive(Debug)]
pub(super) struct Turns<T> {
    queues: BTreeMap<u64, VecDeque<T>>,
    /// The owners that have items, the next one first.
    order: VecDeque<u64>,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self { queues: BTreeMap::new(), order: VecDeque::new() }
    }
}

impl<T> Turns<T> {
    /// Adds an item behind those of its owner.
    pub(super) fn push(&mut self, owner: u64, item: T) {
        let queue = self.queues.entry(owner).or_default();
        if queue.is_empty() {
            self.order.push_back(owner);
        }
        queue.push_back(item);
    }

    /// The next item of the next owner that `may` have one now.
    pub(super) fn next(&mut self, may: impl Fn(u64) -> bool) -> Option<T> {
        let at = self.order.iter().position(|owner| may(*owner))?;
        let owner = self.order.remove(at).expect("it was just found there");
        let queue = self.queues.get_mut(&owner).expect("owners in the order have a queue");
        let item = queue.pop_front().expect("queues in the order are not empty");
        if queue.is_empty() {
            self.queues.remove(&owner);
        } else {
            self.order.push_back(owner);
        }
        Some(item)
    }

    /// Takes away what does not pass.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        for queue in self.queues.values_mut() {
            queue.retain(&mut keep);
        }
        self.queues.retain(|_, queue| !queue.is_empty());
        self.order.retain(|owner| self.queues.contains_key(owner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn owners_take_turns_whatever_each_has_waiting() {
        let mut turns = Turns::default();
        for item in 0..4 {
            turns.push(1, (1, item));
        }
        turns.push(2, (2, 0));
        turns.push(3, (3, 0));
        turns.push(2, (2, 1));
        let all: Vec<_> = std::iter::from_fn(|| turns.next(|_| true)).collect();
        assert_eq!(all, [(1, 0), (2, 0), (3, 0), (1, 1), (2, 1), (1, 2), (1, 3)]);
    }

    #[test]
    fn an_owner_that_may_not_have_its_turn_keeps_its_items_and_holds_up_nobody() {
        let mut turns = Turns::default();
        turns.push(1, "a");
        turns.push(2, "b");
        assert_eq!(turns.next(|owner| owner != 1), Some("b"));
        assert_eq!(turns.next(|owner| owner != 1), None);
        assert_eq!(turns.next(|_| true), Some("a"));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_each_owners_order_stays(pushed in proptest::collection::vec((0_u64..4, any::<bool>()), 0..60)) {
            let mut turns = Turns::default();
            let mut wanted: Vec<Vec<usize>> = vec![Vec::new(); 4];
            let mut got: Vec<Vec<usize>> = vec![Vec::new(); 4];
            let mut take = |turns: &mut Turns<(u64, usize)>| {
                if let Some((owner, item)) = turns.next(|_| true) {
                    got[owner as usize].push(item);
                }
            };
            for (number, (owner, also_take)) in pushed.iter().enumerate() {
                turns.push(*owner, (*owner, number));
                if number % 7 != 3 {
                    wanted[*owner as usize].push(number);
                } else {
                    turns.retain(|(_, item)| *item != number);
                }
                if *also_take {
                    take(&mut turns);
                }
            }
            for _ in 0..pushed.len() {
                take(&mut turns);
            }
            prop_assert_eq!(got, wanted);
            prop_assert!(turns.order.is_empty() && turns.queues.is_empty());
        }
    }
}
