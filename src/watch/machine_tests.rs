use std::time::Duration;

use platform::{Moment, Place, RelPath};
use proptest::prelude::*;

use super::machine::{Answer, By, Effect, Input, Machine, Outcome, Refused, Seen, Settings};
use crate::baseline::{Change, ChangeKind, Content, Snapshot};
use crate::digest::Digest;
use crate::journal::Asked;
use crate::rules::{Class, Mode, Rule};

const SECRET: Class = Class { rule: Rule::Secrets, mode: Mode::Restore };
const CI: Class = Class { rule: Rule::CiConfig, mode: Mode::Restore };
const LOCK: Class = Class { rule: Rule::Lockfile, mode: Mode::Report };

fn at(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

fn place(path: &str) -> Place {
    Place::tree(RelPath::parse(path.as_bytes()).expect("a path"))
}

fn change(content: &str) -> Change {
    let content = Content::Regular { digest: Digest::of(content.as_bytes()), size: content.len() as u64 };
    Change { kind: ChangeKind::Modified, after: Snapshot { content, mode: 0o600, ..Snapshot::absent() } }
}

struct Run(Machine);

impl Run {
    fn new(contest_limit: u32) -> Self {
        Self(Machine::new(Settings { decision_timeout: Duration::from_secs(20), contest_limit }))
    }

    fn looked(&mut self, path: &str, class: Class, change: Option<Change>, millis: u64) -> Vec<Effect> {
        self.looked_by(path, class, change, millis, None)
    }

    fn looked_by(
        &mut self,
        path: &str,
        class: Class,
        change: Option<Change>,
        millis: u64,
        by: Option<By>,
    ) -> Vec<Effect> {
        self.0.step(Input::Looked { place: place(path), class, change, detected: at(millis), by }, at(millis))
    }

    fn write(&mut self, path: &str, content: &str, millis: u64) -> Vec<Effect> {
        self.looked(path, SECRET, Some(change(content)), millis)
    }

    fn tick(&mut self, millis: u64) -> Vec<Effect> {
        self.0.step(Input::Tick, at(millis))
    }

    /// Answers what is on screen.
    fn answer(&mut self, answer: Answer, millis: u64) -> Vec<Effect> {
        let (question, version) = self.on_screen();
        self.0.step(Input::Answer { answer, question, version, held: Default::default() }, at(millis))
    }

    fn on_screen(&self) -> (u64, u64) {
        let question = self.0.question().expect("a question");
        (question.id, question.version)
    }

    fn restored(&mut self, path: &str) {
        assert_eq!(self.0.step(Input::Restored(place(path)), at(0)), []);
    }

    fn shown(&self) -> Vec<String> {
        let question = self.0.question();
        question.map_or(Vec::new(), |q| {
            q.members.iter().map(|m| String::from_utf8_lossy(m.place.path.as_bytes()).into_owned()).collect()
        })
    }
}

fn outcomes(effects: &[Effect]) -> Vec<(String, Outcome)> {
    let name = |place: &Place| String::from_utf8_lossy(place.path.as_bytes()).into_owned();
    effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Restore(refused) => Some((name(&refused.seen.place), refused.outcome)),
            Effect::Accept(seen) => Some((name(&seen.place), Outcome::Accepted)),
            _ => None,
        })
        .collect()
}

#[test]
fn a_rewrite_while_pending_keeps_the_first_deadline() {
    let mut run = Run::new(3);
    run.write(".env", "one", 0);
    run.write(".env", "two", 19_000);
    assert_eq!(run.0.question().expect("asked").deadline, at(20_000));
    assert_eq!(outcomes(&run.tick(19_999)), []);
    assert_eq!(outcomes(&run.tick(20_000)), [(".env".into(), Outcome::TimedOut)]);
}

#[test]
fn a_revert_and_rewrite_keeps_the_first_deadline() {
    let mut run = Run::new(3);
    run.write(".env", "one", 0);
    let gone = run.looked(".env", SECRET, None, 10_000);
    assert!(matches!(&gone[..], [Effect::Transient(_)]), "{gone:?}");
    assert!(run.0.question().is_none());
    run.write(".env", "two", 15_000);
    assert_eq!(run.0.question().expect("asked again").deadline, at(20_000));
}

#[test]
fn a_withdrawn_deadline_ends_when_it_has_passed() {
    let mut run = Run::new(3);
    run.write(".env", "one", 0);
    run.looked(".env", SECRET, None, 10_000);
    run.write(".env", "two", 20_001);
    assert_eq!(run.0.question().expect("asked").deadline, at(40_001));
}

#[test]
fn undoing_a_change_just_before_each_deadline_ends_in_a_contested_path() {
    let mut run = Run::new(3);
    let mut now = 0;
    let mut contested_at = None;
    for round in 0..6 {
        let effects = run.write(".env", &round.to_string(), now);
        if effects.iter().any(|effect| matches!(effect, Effect::Contest(_))) {
            contested_at = Some(round);
            assert_eq!(outcomes(&effects), [(".env".into(), Outcome::AutoRestored)]);
            break;
        }
        run.looked(".env", SECRET, None, now + 19_999);
        now += 20_001;
    }
    assert_eq!(contested_at, Some(3));
}

fn passed(run: &mut Run, detected: u64, millis: u64) -> Vec<Effect> {
    let seen = Seen { place: place(".env"), class: SECRET, change: change(""), detected: at(detected) };
    run.0.step(Input::Passed(seen), at(millis))
}

#[test]
fn a_change_gone_before_it_was_asked_about_is_told_and_gives_the_next_one_no_more_time() {
    let mut run = Run::new(3);
    let gone = passed(&mut run, 0, 10);
    assert!(matches!(&gone[..], [Effect::Transient(seen)] if seen.detected == at(0)), "{gone:?}");
    assert!(run.0.question().is_none());
    passed(&mut run, 5_000, 5_010);
    run.write(".env", "two", 7_000);
    assert_eq!(run.0.question().expect("asked").deadline, at(20_000));
    assert_eq!(outcomes(&run.answer(Answer::Accept, 8_000)), [(".env".into(), Outcome::Accepted)]);
    assert_eq!(run.0.step(Input::Accepted(place(".env")), at(8_001)), []);
    run.write(".env", "three", 9_000);
    assert_eq!(run.0.question().expect("asked").deadline, at(29_000));
}

#[test]
fn a_change_that_nobody_was_asked_about_dodges_nothing() {
    let mut run = Run::new(1);
    passed(&mut run, 0, 10);
    assert_eq!(run.write(".env", "two", 25_000), []);
    assert_eq!(run.0.question().expect("asked").deadline, at(45_000));
}

#[test]
fn a_change_undone_long_ago_counts_for_nothing() {
    let mut run = Run::new(1);
    run.write(".env", "one", 0);
    run.looked(".env", SECRET, None, 10_000);
    assert_eq!(run.write(".env", "two", 40_000), []);
    assert_eq!(run.shown(), [".env"]);
}

#[test]
fn a_waiting_question_has_its_own_deadline() {
    let mut run = Run::new(3);
    run.write(".env", "one", 0);
    run.looked("ci.yml", CI, Some(change("two")), 2_000);
    assert_eq!(run.shown(), [".env"]);
    assert_eq!(run.0.question().expect("asked").waiting, 1);
    assert_eq!(outcomes(&run.tick(20_000)), [(".env".into(), Outcome::TimedOut)]);
    assert_eq!(run.shown(), ["ci.yml"]);
    assert_eq!(outcomes(&run.tick(22_000)), [("ci.yml".into(), Outcome::TimedOut)]);
}

#[test]
fn accept_counts_only_for_what_was_on_screen() {
    let mut run = Run::new(3);
    run.write(".env", "one", 0);
    let (question, version) = run.on_screen();
    run.write(".env", "two", 500);
    let effects =
        run.0.step(Input::Answer { answer: Answer::Accept, question, version, held: Default::default() }, at(501));
    assert_eq!(outcomes(&effects), []);
    assert_eq!(run.0.question().expect("still open").deadline, at(20_000));
    assert_eq!(outcomes(&run.answer(Answer::Accept, 900)), [(".env".into(), Outcome::Accepted)]);
    assert!(run.0.question().is_none());
}

#[test]
fn an_accept_that_fails_leaves_the_change_its_place_and_its_first_deadline() {
    let mut run = Run::new(3);
    run.write(".env", "one", 0);
    run.looked("ci.yml", CI, Some(change("two")), 2_000);
    assert_eq!(outcomes(&run.answer(Answer::Accept, 15_000)), [(".env".into(), Outcome::Accepted)]);
    assert_eq!(run.0.step(Input::NotAccepted(place(".env")), at(15_100)), []);
    // What the caller sees when it looks again is the same change, and no new one.
    assert_eq!(run.write(".env", "one", 15_200), []);
    assert_eq!(run.shown(), [".env"]);
    assert_eq!(run.0.question().expect("asked again").deadline, at(20_000));
    assert_eq!(outcomes(&run.tick(20_000)), [(".env".into(), Outcome::TimedOut)]);
}

#[test]
fn an_accept_that_fails_after_the_deadline_is_a_timeout() {
    let mut run = Run::new(3);
    run.write(".env", "one", 0);
    run.answer(Answer::Accept, 19_900);
    let effects = run.0.step(Input::NotAccepted(place(".env")), at(20_100));
    assert_eq!(outcomes(&effects), [(".env".into(), Outcome::TimedOut)]);
}

#[test]
fn an_accept_that_succeeds_ends_the_deadline_of_the_path() {
    let mut run = Run::new(3);
    run.write(".env", "one", 0);
    run.looked(".env", SECRET, None, 1_000);
    run.write(".env", "two", 2_000);
    run.answer(Answer::Accept, 5_000);
    assert_eq!(run.0.step(Input::Accepted(place(".env")), at(5_100)), []);
    assert_eq!((run.0.is_open(&place(".env")), run.0.wake_at()), (false, None));
    run.write(".env", "three", 6_000);
    assert_eq!(run.0.question().expect("asked").deadline, at(26_000));
}

#[test]
fn accept_is_bound_to_the_bits() {
    let mut run = Run::new(3);
    run.write(".env", "one", 0);
    let (question, version) = run.on_screen();
    let mut other = change("one");
    other.after.mode = 0o777;
    run.looked(".env", SECRET, Some(other), 500);
    let effects =
        run.0.step(Input::Answer { answer: Answer::Accept, question, version, held: Default::default() }, at(501));
    assert_eq!(outcomes(&effects), []);
}

#[test]
fn an_answer_to_an_older_question_does_nothing() {
    let mut run = Run::new(0);
    run.write(".env", "one", 0);
    let (question, version) = run.on_screen();
    run.tick(20_000);
    run.restored(".env");
    run.write(".env", "one", 21_000);
    let effects =
        run.0.step(Input::Answer { answer: Answer::Accept, question, version, held: Default::default() }, at(21_400));
    assert_eq!(outcomes(&effects), []);
}

#[test]
fn changes_of_one_burst_are_one_question() {
    let mut run = Run::new(3);
    run.write("a/.env", "1", 0);
    run.write("b/.env", "2", 50);
    run.looked("ci.yml", CI, Some(change("3")), 60);
    run.write("c/.env", "4", 100);
    run.write("d/.env", "5", 151);
    assert_eq!(run.shown(), ["a/.env", "b/.env", "c/.env"]);
    assert_eq!(run.0.question().expect("asked").waiting, 2);
    let effects = run.answer(Answer::Reject, 600);
    assert_eq!(outcomes(&effects).len(), 3);
    assert_eq!(run.shown(), ["ci.yml"]);
}

#[test]
fn changes_of_one_process_are_one_question_whatever_their_rules() {
    let mut run = Run::new(3);
    let (one, other) = (Some((7, Some(1))), Some((7, Some(2))));
    run.looked_by(".env", SECRET, Some(change("one")), 0, one);
    run.looked_by("ci.yml", CI, Some(change("two")), 10, one);
    assert_eq!(run.shown(), [".env", "ci.yml"]);
    run.looked_by("other.yml", CI, Some(change("two")), 20, other);
    assert_eq!(run.shown(), [".env", "ci.yml"], "another process had the number by then");
    run.looked_by("late.yml", CI, Some(change("two")), 300, one);
    assert_eq!(run.shown(), [".env", "ci.yml"], "it is another burst");
}

#[test]
fn a_writer_that_becomes_known_is_shown_and_extends_nothing() {
    let mut run = Run::new(3);
    run.write(".env", "one", 0);
    let (question, version) = run.on_screen();
    assert_eq!(run.0.step(Input::Named(place(".env")), at(5_000)), []);
    assert_eq!(run.on_screen(), (question, version + 1));
    assert_eq!(run.0.question().expect("asked").deadline, at(20_000));
    assert_eq!(run.0.step(Input::Named(place("other")), at(5_000)), []);
}

#[test]
fn a_burst_ends_after_half_a_second() {
    let mut run = Run::new(3);
    for number in 0..30 {
        run.write(&format!("{number}/.env"), "x", number * 25);
    }
    assert_eq!(run.shown().len(), 21);
}

#[test]
fn a_member_that_joined_unseen_is_not_decided() {
    let mut run = Run::new(3);
    run.write("a/.env", "1", 0);
    let (question, version) = run.on_screen();
    run.write("b/.env", "2", 10);
    for answer in [Answer::Accept, Answer::Reject] {
        let effects = run.0.step(Input::Answer { answer, question, version, held: Default::default() }, at(400));
        assert!(outcomes(&effects).iter().all(|(path, _)| path == "a/.env"), "{effects:?}");
    }
    assert_eq!(run.shown(), ["b/.env"]);
}

#[test]
fn each_takes_a_list_apart_under_the_same_deadlines() {
    let mut run = Run::new(3);
    run.write("a/.env", "1", 0);
    run.write("b/.env", "2", 10);
    run.looked("ci.yml", CI, Some(change("3")), 20);
    assert_eq!(run.answer(Answer::Each, 500), []);
    assert_eq!(run.shown(), ["a/.env"]);
    assert_eq!(run.0.question().expect("asked").deadline, at(20_000));
    assert_eq!(outcomes(&run.answer(Answer::Accept, 1_000)), [("a/.env".into(), Outcome::Accepted)]);
    assert_eq!(run.shown(), ["b/.env"]);
    run.write("c/.env", "4", 1_001);
    assert_eq!(run.shown(), ["b/.env"]);
    assert_eq!(outcomes(&run.answer(Answer::Reject, 2_000)), [("b/.env".into(), Outcome::Rejected)]);
    assert_eq!(run.shown(), ["ci.yml"]);
}

#[test]
fn the_third_refusal_makes_a_path_contested() {
    let mut run = Run::new(3);
    for round in 0..3 {
        let start = round * 1_000;
        run.write(".env", "x", start);
        let effects = run.answer(Answer::Reject, start + 500);
        assert_eq!(effects.iter().any(|effect| matches!(effect, Effect::Contest(_))), round == 2);
        run.restored(".env");
    }
    assert_eq!(run.0.contested().count(), 1);
    assert_eq!(outcomes(&run.write(".env", "y", 5_000)), [(".env".into(), Outcome::AutoRestored)]);
    assert!(run.0.question().is_none());
}

#[test]
fn a_contested_path_that_is_taken_back_is_asked_about_and_counted_anew() {
    let mut run = Run::new(2);
    let refused = |run: &mut Run, start| {
        run.write(".env", "x", start);
        let effects = run.answer(Answer::Reject, start + 500);
        run.restored(".env");
        effects.iter().any(|effect| matches!(effect, Effect::Contest(_)))
    };
    assert_eq!([0, 1_000].map(|start| refused(&mut run, start)), [false, true]);
    assert_eq!(run.0.step(Input::AskAgain(place("svc/.env")), at(2_000)), [], "another path");
    assert_eq!(run.0.contested().count(), 1);
    assert_eq!(run.0.step(Input::AskAgain(place(".env")), at(2_000)), []);
    assert_eq!(run.0.contested().count(), 0);
    assert_eq!([3_000, 4_000].map(|start| refused(&mut run, start)), [false, true]);
}

#[test]
fn a_limit_of_zero_never_contests() {
    let mut run = Run::new(0);
    for round in 0..10 {
        run.write(".env", "x", round * 1_000);
        assert_eq!(outcomes(&run.answer(Answer::Reject, round * 1_000 + 500)).len(), 1);
        run.restored(".env");
    }
    assert_eq!(run.0.contested().count(), 0);
}

#[test]
fn a_failed_restore_is_tried_again_without_a_question() {
    let mut run = Run::new(3);
    run.write(".env", "x", 0);
    run.answer(Answer::Reject, 500);
    assert_eq!(run.0.step(Input::NotRestored(place(".env")), at(501)), []);
    assert_eq!(run.write(".env", "y", 600), []);
    assert!(run.0.question().is_none());
    let again = run.0.step(Input::Retry, at(1_500));
    assert!(
        matches!(&again[..], [Effect::Restore(Refused { failures: 1, outcome: Outcome::Rejected, .. })]),
        "{again:?}"
    );
    assert_eq!(run.0.step(Input::NotRestored(place(".env")), at(1_501)), []);
    let settled = run.looked(".env", SECRET, None, 2_000);
    assert!(matches!(&settled[..], [Effect::Settled(Refused { failures: 2, .. })]), "{settled:?}");
    assert_eq!(run.0.step(Input::Retry, at(2_500)), []);
}

#[test]
fn a_deadline_that_passes_during_another_restore_is_not_lost() {
    let mut run = Run::new(3);
    run.write("a/.env", "1", 0);
    run.looked("ci.yml", CI, Some(change("2")), 100);
    assert_eq!(outcomes(&run.tick(20_000)), [("a/.env".into(), Outcome::TimedOut)]);
    let effects = run.0.step(Input::Restored(place("a/.env")), at(20_200));
    assert_eq!(outcomes(&effects), [("ci.yml".into(), Outcome::TimedOut)]);
}

#[test]
fn report_mode_is_named_once_the_path_is_quiet() {
    let mut run = Run::new(3);
    for number in 0..5 {
        run.looked("yarn.lock", LOCK, Some(change(&number.to_string())), number * 100);
    }
    assert!(run.0.question().is_none());
    assert_eq!(run.tick(649), []);
    assert!(matches!(&run.tick(650)[..], [Effect::Keep(_)]));
    assert_eq!(run.0.wake_at(), None);
}

#[test]
fn report_mode_is_named_even_if_writing_never_ends() {
    let mut run = Run::new(3);
    let mut named = 0;
    for number in 0..40 {
        named += run.looked("yarn.lock", LOCK, Some(change(&number.to_string())), number * 100).len();
    }
    assert!(named >= 1, "{named}");
}

#[test]
fn a_stop_refuses_all_that_is_pending_and_names_what_is_reported() {
    let mut run = Run::new(3);
    run.write(".env", "1", 0);
    run.looked("ci.yml", CI, Some(change("2")), 10);
    run.looked("yarn.lock", LOCK, Some(change("3")), 20);
    let effects = run.0.step(Input::Stop, at(30));
    assert_eq!(outcomes(&effects).len(), 2);
    assert!(outcomes(&effects).iter().all(|(_, outcome)| *outcome == Outcome::RestoredAtExit));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Keep(_))));
}

#[derive(Debug, Clone)]
enum Act {
    Write(u8, u8),
    Revert(u8),
    Key(u8),
    /// What is accepted from here on cannot be written down, or can again.
    Full(bool),
    Wait(u16),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        (0..3u8, any::<u8>()).prop_map(|(path, content)| Act::Write(path, content)),
        (0..3u8).prop_map(Act::Revert),
        (0..3u8).prop_map(Act::Key),
        any::<bool>().prop_map(Act::Full),
        (1..8_000u16).prop_map(Act::Wait),
    ];
    proptest::collection::vec(act, 1..60)
}

impl Run {
    fn approved(&mut self, path: &str, content: &str, millis: u64) -> Vec<Effect> {
        let seen = Seen { place: place(path), class: SECRET, change: change(content), detected: at(millis) };
        self.0.step(Input::Approved(seen, Asked::Gate), at(millis))
    }
}

#[test]
fn what_was_allowed_at_another_question_is_accepted_and_ends_its_own() {
    let mut run = Run::new(3);
    let effects = run.approved(".env", "asked elsewhere", 0);
    assert!(
        matches!(&effects[..], [Effect::AcceptApproved(seen, Asked::Gate)] if seen.change == change("asked elsewhere"))
    );
    assert_eq!(run.0.step(Input::Accepted(place(".env")), at(1)), []);
    // One that waits already is settled by it, whatever was shown.
    run.write(".env", "shown", 10);
    assert!(matches!(&run.approved(".env", "allowed", 20)[..], [Effect::AcceptApproved(..)]));
    assert!(run.0.question().is_none());
    assert_eq!(run.tick(60_000), [], "its deadline is gone with it");
}

#[test]
fn what_was_allowed_and_cannot_be_accepted_is_asked_about_with_the_time_it_had() {
    let mut run = Run::new(3);
    run.approved(".env", "allowed", 5);
    assert!(run.0.question().is_none());
    assert_eq!(run.0.step(Input::NotAccepted(place(".env")), at(10)), []);
    let question = run.0.question().expect("it is asked about");
    assert_eq!(question.deadline, at(20_005));
    assert!(matches!(&run.answer(Answer::Reject, 30)[..], [Effect::Restore(_)]));
}

#[test]
fn a_path_on_its_way_back_is_not_accepted_in_between() {
    let mut run = Run::new(3);
    run.write(".env", "refused", 0);
    run.answer(Answer::Reject, 400);
    assert_eq!(run.approved(".env", "allowed", 500), []);
    run.restored(".env");
    assert!(matches!(&run.approved(".env", "allowed", 600)[..], [Effect::AcceptApproved(..)]));
}

proptest! {
    /// However an adversary writes and reverts: a path that stays changed is decided within one decision timeout of the
    /// first sight of its current, undecided run of changes; and nothing is accepted that was not on screen.
    #[test]
    fn nothing_extends_a_deadline(acts in acts()) {
        let mut run = Run::new(0);
        let mut now = 0u64;
        let mut first: [Option<u64>; 3] = [None; 3];
        let mut on_disk: [Option<u8>; 3] = [None; 3];
        let mut is_full = false;
        let mut effects;
        for act in acts {
            match act {
                Act::Write(path, content) => {
                    effects = run.write(&format!("{path}/.env"), &content.to_string(), now);
                    on_disk[usize::from(path)] = Some(content);
                    first[usize::from(path)].get_or_insert(now);
                }
                Act::Revert(path) => {
                    effects = run.looked(&format!("{path}/.env"), SECRET, None, now);
                    on_disk[usize::from(path)] = None;
                }
                Act::Key(key) => {
                    let shown = run.0.question().map(|q| q.members.iter().map(|m| m.change.after.digest()).collect::<Vec<_>>());
                    let answer = [Answer::Accept, Answer::Reject, Answer::Each][usize::from(key)];
                    effects = if shown.is_some() { run.answer(answer, now) } else { Vec::new() };
                    for effect in &effects {
                        if let Effect::Accept(Seen { change, .. }) = effect {
                            prop_assert!(shown.as_ref().expect("a question").contains(&change.after.digest()));
                        }
                    }
                }
                Act::Full(full) => {
                    is_full = full;
                    effects = Vec::new();
                }
                Act::Wait(millis) => {
                    now += u64::from(millis);
                    effects = run.tick(now);
                }
            }
            for effect in effects {
                if let Effect::Accept(Seen { place, .. }) = &effect {
                    let input = if is_full { Input::NotAccepted } else { Input::Accepted };
                    prop_assert_eq!(run.0.step(input(place.clone()), at(now)), []);
                    if is_full {
                        continue;
                    }
                }
                if let Effect::Restore(Refused { seen, .. }) | Effect::Accept(seen) = &effect {
                    let place = &seen.place;
                    let index = usize::from(place.path.as_bytes()[0] - b'0');
                    let since = first[index].take().expect("decided what was seen");
                    prop_assert!(now.saturating_sub(since) <= 20_000 + 8_000, "decided {} ms after", now - since);
                    on_disk[index] = None;
                    run.restored(&format!("{index}/.env"));
                }
            }
            for (index, seen) in first.iter_mut().enumerate() {
                if on_disk[index].is_none() && seen.is_some_and(|seen| now >= seen + 20_000) {
                    *seen = None;
                }
                let open = run.0.is_open(&place(&format!("{index}/.env")));
                prop_assert_eq!(open, on_disk[index].is_some());
                if let (true, Some(seen)) = (open, *seen) {
                    prop_assert!(now < seen + 20_000, "still open {} ms after first sight", now - seen);
                }
            }
        }
    }
}

#[test]
fn a_storm_of_failing_restores_is_tried_in_turns_and_ever_more_slowly() {
    let mut run = Run::new(0);
    let paths: Vec<String> = (0..200).map(|number| format!("d{number:03}/.env")).collect();
    for path in &paths {
        run.write(path, "evil", 0);
    }
    run.tick(20_000);
    for path in &paths {
        assert_eq!(run.0.step(Input::NotRestored(place(path)), at(20_000)), []);
    }
    let mut tries: std::collections::BTreeMap<Place, u32> = Default::default();
    let mut rounds = Vec::new();
    for round in 0..200 {
        let effects = run.0.step(Input::Retry, at(21_000 + round));
        rounds.push(effects.len());
        for effect in effects {
            let Effect::Restore(Refused { seen: Seen { place, .. }, .. }) = effect else { panic!("{effect:?}") };
            *tries.entry(place.clone()).or_default() += 1;
            assert_eq!(run.0.step(Input::NotRestored(place), at(21_000 + round)), []);
        }
    }
    assert_eq!(rounds.iter().max(), Some(&64));
    // None was left out, and none got more than its turn.
    let (least, most) = (tries.values().min().expect("some"), tries.values().max().expect("some"));
    assert!(tries.len() == 200 && most - least <= 1, "{} paths, {least} to {most} times", tries.len());
    assert!(rounds[100..].iter().filter(|&&tried| tried > 0).count() <= 13);
    // The end tries all of them.
    assert_eq!(run.0.step(Input::Stop, at(30_000)).len(), 200);
}
