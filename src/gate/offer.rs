//! Which answers a question has.
//!
//! Promise: [`offerable`] is the one rule, for the terminal and whatever else asks: no answer above the ceiling, none
//! that would grant anything but the action's own target or its one widening, and "once" always. No answer is a yes for
//! good or for a session without a name that was minted for this question.

use super::action::Action;
use super::machine::{Choice, Offer, OfferId};
use super::pattern::Grant;
use super::recall::Recall;

/// An answer that may be offered: what it is, what it grants, for how long.
pub type Answerable = (Choice, Vec<Grant>, Recall);

/// The answers that may be offered about `uncovered`, the actions of one call that no grant covers, in the order they are
/// shown in.
///
/// An answer is for the whole call: the exact grants are one for each action, and a widening is offered only if it is the
/// same one for each, for anything else would be two widenings in one key. An answer above the ceiling is left out, not
/// lowered: two keys that do the same thing would lie.
pub fn offerable(uncovered: &[Action], ceiling: Recall) -> Vec<Answerable> {
    let mut answers = vec![(Choice::Once, Vec::new(), Recall::Never)];
    let exact: Option<Vec<_>> = uncovered.iter().map(Grant::exact).collect();
    if let Some(mut grants) = exact.filter(|grants| !grants.is_empty()) {
        grants.sort_unstable();
        grants.dedup();
        answers.push((Choice::Session, grants.clone(), Recall::Session));
        answers.push((Choice::Always, grants, Recall::Always));
        if let Some(widening) = common_widening(uncovered) {
            answers.push((Choice::WidenSession, vec![widening.clone()], Recall::Session));
            answers.push((Choice::WidenAlways, vec![widening], Recall::Always));
        }
    }
    answers.retain(|(_, _, recall)| *recall <= ceiling);
    answers
}

/// The one widening of all these actions.
fn common_widening(actions: &[Action]) -> Option<Grant> {
    let (first, others) = actions.split_first()?;
    let widening = Grant::widened(first)?;
    others.iter().all(|action| Grant::widened(action).as_ref() == Some(&widening)).then_some(widening)
}

/// Gives answers their names. `ids` has to give bytes that nobody can guess and that never come again.
pub fn mint(answers: Vec<Answerable>, ids: &mut dyn FnMut() -> [u8; 16]) -> Vec<Offer> {
    let offer = |(choice, grants, recall)| Offer { id: OfferId(ids()), choice, grants, recall };
    answers.into_iter().map(offer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::path::FilePath;

    fn file(path: &str) -> Action {
        Action::file(FilePath::parse(path).expect(path))
    }

    fn choices(paths: &[&str], ceiling: Recall) -> Vec<Choice> {
        let actions: Vec<_> = paths.iter().map(|path| file(path)).collect();
        offerable(&actions, ceiling).into_iter().map(|(choice, ..)| choice).collect()
    }

    #[test]
    fn the_ceiling_hides_answers_and_lowers_none() {
        use Choice::*;
        assert_eq!(choices(&["notes/a.md"], Recall::Always), [Once, Session, Always, WidenSession, WidenAlways]);
        assert_eq!(choices(&["notes/a.md"], Recall::Session), [Once, Session, WidenSession]);
        assert_eq!(choices(&["notes/a.md"], Recall::Never), [Once]);
        assert_eq!(choices(&["a.md"], Recall::Always), [Once, Session, Always]);
        assert_eq!(choices(&["notes/*"], Recall::Always), [Once]);
    }

    #[test]
    fn two_ends_are_granted_together_and_widened_only_to_the_same_directory() {
        use Choice::*;
        assert_eq!(choices(&["a/x", "b/x"], Recall::Always), [Once, Session, Always]);
        assert_eq!(choices(&["a/x", "a/y"], Recall::Always), [Once, Session, Always, WidenSession, WidenAlways]);
        assert_eq!(choices(&["a/x", "y"], Recall::Always), [Once, Session, Always]);
        assert_eq!(choices(&["a/x", "a/[y]"], Recall::Always), [Once]);
        let answers = offerable(&[file("b/x"), file("a/x")], Recall::Always);
        let spelt: Vec<_> = answers[2].1.iter().map(Grant::target).collect();
        assert_eq!(spelt, ["a/x", "b/x"]);
    }

    #[test]
    fn every_answer_has_its_own_name() {
        let mut next = 0;
        let mut ids = || {
            next += 1;
            [next; 16]
        };
        let offers = mint(offerable(&[file("a/x")], Recall::Always), &mut ids);
        let names: Vec<_> = offers.iter().map(|offer| offer.id.0[0]).collect();
        assert_eq!(names, [1, 2, 3, 4, 5]);
    }
}
