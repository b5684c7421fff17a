//! Which of our opens somebody else has answered, by their numbers.
//!
//! The guardian tells of each number it answered; and whoever of us answers one of those finds that nothing waits under it
//! any more. Each of the two happens once for every such open, in any order, and a number may be used again in between.
//! Promise: however they come, a number counts as answered elsewhere as long as that was told of it more often than found.

use std::collections::HashMap;

/// See the module.
#[derive(Debug, Default)]
pub struct Elsewhere {
    /// How much more often it was told of a number than found, or less; never zero.
    balance: HashMap<i32, i32>,
}

impl Elsewhere {
    /// It is told that what waited under the number was answered.
    pub fn told(&mut self, number: i32) {
        self.add(number, 1);
    }

    /// An answer found nothing under the number.
    pub fn found(&mut self, number: i32) {
        self.add(number, -1);
    }

    /// Whether what we have under the number was answered.
    pub fn is_answered(&self, number: i32) -> bool {
        self.balance.get(&number).is_some_and(|balance| *balance > 0)
    }

    /// It was told of the number, and was not so: forgets that, or the next one would pay for it.
    pub fn forget(&mut self, number: i32) {
        self.balance.remove(&number);
    }

    fn add(&mut self, number: i32, more: i32) {
        let balance = self.balance.entry(number).or_default();
        *balance += more;
        if *balance == 0 {
            self.balance.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn told_and_found_are_even_in_any_order() {
        let mut elsewhere = Elsewhere::default();
        elsewhere.told(5);
        assert!(elsewhere.is_answered(5) && !elsewhere.is_answered(6));
        elsewhere.found(5);
        assert!(!elsewhere.is_answered(5));
        elsewhere.found(5);
        elsewhere.told(5);
        assert!(!elsewhere.is_answered(5), "it was found before it was told: the next under this number is another");
        elsewhere.told(5);
        assert!(elsewhere.is_answered(5));
        elsewhere.forget(5);
        assert!(!elsewhere.is_answered(5));
        assert!(elsewhere.balance.is_empty());
    }
}
