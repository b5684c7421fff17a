//! Who has the screen, when several ask at one terminal.
//!
//! A watch and a gate in one terminal each have a queue of their own, and each knows which of its questions comes next. The
//! terminal belongs to neither: whoever runs both holds the [`super::Panel`], asks here whose turn it is, and lets only that
//! one draw and take keys. Lines are anybody's at any time.
//!
//! Promise: a question that is on the screen stays there until its asker no longer wants it: no other one comes under the
//! finger. Then the one comes that is decided by itself first, so that no asker can keep another from being heard: a new
//! question's deadline is always later than that of one that has waited for its whole time. A person sees how many wait,
//! whoever asks.
//! Limit: a question whose time passes while another is on the screen is decided without having been seen, as in each
//! queue alone.

use platform::Moment;

/// The question an asker has next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// The asker's number for it; stays the same as long as it is the same question.
    pub id: u64,
    /// When it is decided by itself.
    pub deadline: Moment,
    /// How many others this asker has behind it.
    pub waiting: usize,
}

/// What is to be on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn<A> {
    /// Who asks.
    pub asker: A,
    /// Which of its questions.
    pub id: u64,
    /// How many wait behind it, whoever asks.
    pub waiting: usize,
}

/// Gives turns to askers.
#[derive(Debug, Clone, Copy)]
pub struct Turns<A> {
    /// Whose question is on the screen.
    shown: Option<(A, u64)>,
}

impl<A> Default for Turns<A> {
    /// Nothing is on the screen.
    fn default() -> Self {
        Self { shown: None }
    }
}

impl<A: Copy + Eq> Turns<A> {
    /// Says what is to be on the screen, given what each asker wants; of equal deadlines the first asker's comes first.
    pub fn next(&mut self, askers: &[(A, Option<Wanted>)]) -> Option<Turn<A>> {
        let wanted = || askers.iter().filter_map(|&(asker, wanted)| Some((asker, wanted?)));
        let all: usize = wanted().map(|(_, wanted)| wanted.waiting + 1).sum();
        let on_screen =
            self.shown.filter(|&(asker, id)| wanted().any(|(other, wanted)| (other, wanted.id) == (asker, id)));
        self.shown = on_screen.or_else(|| {
            let (asker, wanted) = wanted().min_by_key(|(_, wanted)| wanted.deadline)?;
            Some((asker, wanted.id))
        });
        self.shown.map(|(asker, id)| Turn { asker, id, waiting: all - 1 })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Asker {
        Watch,
        Gate,
    }
    use Asker::*;

    fn wanted(id: u64, seconds: u64, waiting: usize) -> Option<Wanted> {
        Some(Wanted { id, deadline: Moment::default() + Duration::from_secs(seconds), waiting })
    }

    fn turn(turns: &mut Turns<Asker>, watch: Option<Wanted>, gate: Option<Wanted>) -> Option<(Asker, u64, usize)> {
        turns.next(&[(Watch, watch), (Gate, gate)]).map(|turn| (turn.asker, turn.id, turn.waiting))
    }

    #[test]
    fn a_question_on_the_screen_stays_until_it_is_settled() {
        let mut turns = Turns::default();
        assert_eq!(turn(&mut turns, None, None), None);
        assert_eq!(turn(&mut turns, None, wanted(7, 120, 0)), Some((Gate, 7, 0)));
        assert_eq!(turn(&mut turns, wanted(1, 20, 2), wanted(7, 120, 0)), Some((Gate, 7, 3)));
        assert_eq!(turn(&mut turns, wanted(1, 20, 2), wanted(8, 10, 0)), Some((Gate, 8, 3)));
        assert_eq!(turn(&mut turns, wanted(1, 20, 2), None), Some((Watch, 1, 2)));
    }

    #[test]
    fn the_next_one_is_that_whose_time_is_up_first() {
        let mut turns = Turns::default();
        assert_eq!(turn(&mut turns, wanted(1, 20, 0), wanted(7, 120, 0)), Some((Watch, 1, 1)));
        assert_eq!(turn(&mut turns, wanted(2, 125, 0), wanted(7, 120, 0)), Some((Gate, 7, 1)));
        assert_eq!(turn(&mut Turns::default(), wanted(2, 20, 0), wanted(7, 20, 0)), Some((Watch, 2, 1)));
    }

    #[test]
    fn one_asker_without_end_cannot_keep_the_other_from_being_heard() {
        let mut turns = Turns::default();
        let waits = wanted(7, 120, 0);
        let heard = (0u64..)
            .map(|second| turn(&mut turns, wanted(second, second + 20, 50), waits))
            .position(|turn| matches!(turn, Some((Gate, ..))));
        assert!(heard.is_some_and(|second| second < 120), "{heard:?}");
    }

    proptest! {
        #[test]
        fn nothing_is_forgotten_and_nothing_changes_under_the_finger(
            steps in proptest::collection::vec(
                (proptest::option::of((0u64..3, 0u64..9, 0usize..4)), proptest::option::of((0u64..3, 0u64..9, 0usize..4))), 1..40)
        ) {
            let mut turns = Turns::default();
            let mut before: Option<(Asker, u64)> = None;
            for (watch, gate) in steps {
                let of = |asked: Option<(u64, u64, usize)>| asked.and_then(|(id, seconds, waiting)| wanted(id, seconds, waiting));
                let asked = [(Watch, of(watch)), (Gate, of(gate))];
                let now = turns.next(&asked);
                let wants = |(asker, id): (Asker, u64)| {
                    asked.iter().any(|(other, wanted)| *other == asker && wanted.is_some_and(|wanted| wanted.id == id))
                };
                prop_assert_eq!(now.is_none(), asked.iter().all(|(_, wanted)| wanted.is_none()));
                if let Some(kept) = before.filter(|kept| wants(*kept)) {
                    prop_assert_eq!(now.map(|turn| (turn.asker, turn.id)), Some(kept));
                }
                let all: usize = asked.iter().filter_map(|(_, wanted)| wanted.map(|wanted| wanted.waiting + 1)).sum();
                if let Some(turn) = now {
                    prop_assert!(wants((turn.asker, turn.id)));
                    prop_assert_eq!(turn.waiting + 1, all);
                }
                before = now.map(|turn| (turn.asker, turn.id));
            }
        }
    }
}
