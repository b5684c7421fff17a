//! The opens that wait, by number.
//!
//! Promise: no number is used twice; what was put in is taken out once; there are never more than was allowed at the start,
//! as each of them costs descriptors.

use std::collections::HashMap;

use crate::opening::HeldId;

/// What waits, with what belongs to it.
#[derive(Debug)]
pub struct Table<T> {
    waiting: HashMap<u64, T>,
    last: u64,
    most: usize,
    is_crowded: bool,
}

/// What came of putting something in.
#[derive(Debug, PartialEq, Eq)]
pub enum Admission<T> {
    /// It waits under this number.
    Held(HeldId),
    /// There is no room.
    Crowded {
        /// What was to be put in.
        turned_away: T,
        /// Whether there was room for the one before.
        begins: bool,
    },
}

impl<T> Table<T> {
    /// An empty table with room for so many.
    pub fn new(most: usize) -> Self {
        Self { waiting: HashMap::new(), last: 0, most, is_crowded: false }
    }

    /// Puts it in, if there is room.
    pub fn admit(&mut self, waiting: T) -> Admission<T> {
        if self.waiting.len() >= self.most {
            let begins = !std::mem::replace(&mut self.is_crowded, true);
            return Admission::Crowded { turned_away: waiting, begins };
        }
        // Half of it must be free again: else one that comes and goes at the limit would be news each time.
        if self.waiting.len() <= self.most / 2 {
            self.is_crowded = false;
        }
        self.last += 1;
        self.waiting.insert(self.last, waiting);
        Admission::Held(HeldId(self.last))
    }

    /// What waits under this number.
    pub fn get(&self, id: HeldId) -> Option<&T> {
        self.waiting.get(&id.0)
    }

    /// Takes it out; `None` if it was taken out before.
    pub fn take(&mut self, id: HeldId) -> Option<T> {
        self.waiting.remove(&id.0)
    }

    /// Takes out all of them.
    pub fn take_all(&mut self) -> Vec<T> {
        std::mem::take(&mut self.waiting).into_values().collect()
    }

    /// The numbers of those of which this holds.
    pub fn numbers(&self, holds: impl Fn(&T) -> bool) -> Vec<HeldId> {
        self.waiting.iter().filter(|(_, waiting)| holds(waiting)).map(|(number, _)| HeldId(*number)).collect()
    }

    /// What waits, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.waiting.values()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    #[test]
    fn a_full_table_turns_away_and_says_so_once_until_half_of_it_is_free() {
        let mut table = Table::new(2);
        let [first, second] = [1, 2].map(|held| match table.admit(held) {
            Admission::Held(id) => id,
            other => panic!("{other:?}"),
        });
        assert_eq!(table.admit(3), Admission::Crowded { turned_away: 3, begins: true });
        assert_eq!(table.admit(4), Admission::Crowded { turned_away: 4, begins: false });
        assert_eq!(table.take(first), Some(1));
        assert!(matches!(table.admit(5), Admission::Held(_)));
        assert_eq!(table.take(second), Some(2));
        assert!(matches!(table.admit(6), Admission::Held(_)));
        assert_eq!(table.admit(7), Admission::Crowded { turned_away: 7, begins: true });
    }

    proptest! {
        #[test]
        fn whatever_is_put_in_comes_out_once(steps in proptest::collection::vec((any::<bool>(), 0..40u64), 0..200)) {
            let mut table = Table::new(10);
            let mut inside = std::collections::BTreeMap::new();
            let mut highest = 0;
            for (puts_in, number) in steps {
                if puts_in {
                    match table.admit(number) {
                        Admission::Held(id) => {
                            prop_assert!(id.0 > highest && inside.len() < 10);
                            highest = id.0;
                            inside.insert(id.0, number);
                        }
                        Admission::Crowded { turned_away, .. } => {
                            prop_assert_eq!((turned_away, inside.len()), (number, 10));
                        }
                    }
                } else {
                    prop_assert_eq!(table.take(HeldId(number)), inside.remove(&number));
                }
                prop_assert_eq!((table.len(), table.is_empty()), (inside.len(), inside.is_empty()));
            }
            let mut left = table.take_all();
            left.sort_unstable();
            let mut expected: Vec<_> = inside.into_values().collect();
            expected.sort_unstable();
            prop_assert_eq!(left, expected);
        }
    }
}
