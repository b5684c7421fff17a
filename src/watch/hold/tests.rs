//! The machine of held opens.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use platform::{Access, Certainty, FileId, HeldId, Moment, Opening, Place, Program, RelPath, Verdict, Writer};
use proptest::prelude::*;

use super::*;
use crate::rules::{Class, Mode, Rule};

const SECRET: Class = Class { rule: Rule::Secrets, mode: Mode::Restore };

pub(super) fn at(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

fn program(pid: u32, name: &str, exe: &str) -> Program {
    let exe = Some(exe.as_bytes().to_vec());
    let (name, started, uid) = (name.as_bytes().to_vec(), Some(u64::from(pid)), Some(1000));
    Program { started, name, exe, uid, ..Program::unknown(pid) }
}

/// A process of node, started by an agent in a shell.
pub(super) fn node(pid: u32) -> Writer {
    let ancestors = vec![program(10, "claude", "/usr/bin/claude"), program(9, "zsh", "/usr/bin/zsh")];
    Writer { program: program(pid, "node", "/usr/bin/node"), ancestors, certainty: Certainty::Certain }
}

fn sed(pid: u32) -> Writer {
    Writer { program: program(pid, "sed", "/usr/bin/sed"), ..node(pid) }
}

pub(super) fn opening(ino: u64, by: Writer) -> Opening {
    Opening { object: FileId { dev: 1, ino }, path: None, access: Access::Write, by, at: at(0) }
}

pub(super) fn held(id: u64, path: &str, ino: u64, by: Writer, millis: u64) -> Held {
    let place = Place::tree(RelPath::parse(path.as_bytes()).expect("a path"));
    let object = FileId { dev: 1, ino };
    Held { id: HeldId(id), object, place, class: SECRET, access: Access::Write, by, at: at(millis) }
}

struct Run(Machine);

impl Run {
    fn new(contest_limit: u32) -> Self {
        Self(Machine::new(Settings { decision_timeout: Duration::from_secs(20), contest_limit }))
    }

    fn open(&mut self, id: u64, path: &str, by: Writer, millis: u64) -> Vec<Effect> {
        self.0.step(Input::Opened { held: held(id, path, 7, by, millis), standing: Standing::Stranger }, at(millis))
    }

    fn answer(&mut self, answer: Answer, millis: u64) -> Vec<Effect> {
        let (question, version, ..) = self.0.asked().expect("a question");
        self.0.step(Input::Answer { answer, question, version }, at(millis))
    }

    fn relieved(&mut self, id: u64, millis: u64) -> Vec<Effect> {
        self.0.step(Input::Relieved(HeldId(id)), at(millis))
    }

    fn tick(&mut self, millis: u64) -> Vec<Effect> {
        self.0.step(Input::Tick, at(millis))
    }

    fn shown(&self) -> Vec<String> {
        let items = self.0.question().map_or(Vec::new(), |question| question.items);
        items.iter().map(|item| String::from_utf8_lossy(item.place.path.as_bytes()).into_owned()).collect()
    }
}

fn answers(effects: &[Effect]) -> Vec<(u64, Verdict)> {
    let answer = |effect: &Effect| match effect {
        Effect::Answer(held, decision) => Some((held.id.0, decision.verdict().expect("somebody waits"))),
        Effect::Refuse(id) => Some((id.0, Verdict::Refuse)),
        _ => None,
    };
    effects.iter().filter_map(answer).collect()
}

fn decisions(effects: &[Effect]) -> Vec<(Decision, u32)> {
    let decided = |effect: &Effect| match effect {
        Effect::Decided { decision, opens, .. } => Some((*decision, *opens)),
        _ => None,
    };
    effects.iter().filter_map(decided).collect()
}

use Verdict::{Allow, Refuse};

#[test]
fn opens_of_one_program_in_a_burst_are_one_question_and_those_of_another_are_not() {
    let mut run = Run::new(3);
    assert_eq!(run.open(1, ".env", node(1), 0), []);
    run.open(2, ".env", node(1), 10);
    run.open(3, "svc/.env", node(2), 40);
    run.open(4, ".env", sed(3), 41);
    run.open(5, "late/.env", node(1), 300);
    assert_eq!(run.shown(), [".env", "svc/.env"]);
    assert_eq!(run.0.asked().map(|(.., waiting)| waiting), Some(2));
    let effects = run.answer(Answer::Allow, 1_000);
    assert_eq!(answers(&effects), [(1, Allow), (2, Allow), (3, Allow)]);
    assert_eq!(decisions(&effects), [(Decision::Allowed, 2), (Decision::Allowed, 1)]);
    assert_eq!(run.shown(), [".env"], "the other program's");
    assert_eq!(answers(&run.answer(Answer::Refuse, 1_100)), [(4, Refuse)]);
}

#[test]
fn the_same_program_started_by_somebody_else_is_asked_about_by_itself() {
    let mut run = Run::new(3);
    let mut other = node(2);
    other.ancestors[0].pid = 11;
    run.open(1, ".env", node(1), 0);
    run.open(2, ".env", other, 1);
    assert_eq!(answers(&run.answer(Answer::Allow, 1_000)), [(1, Allow)]);
}

#[test]
fn reading_and_writing_are_two_questions() {
    let mut run = Run::new(3);
    run.open(1, ".env", node(1), 0);
    let read = Held { access: Access::Read, ..held(2, ".env", 7, node(1), 1) };
    assert_eq!(run.0.step(Input::Opened { held: read, standing: Standing::Stranger }, at(1)), []);
    assert_eq!(answers(&run.answer(Answer::Allow, 1_000)), [(1, Allow)]);
    assert_eq!(answers(&run.answer(Answer::Refuse, 1_000)), [(2, Refuse)]);
}

#[test]
fn nothing_extends_the_time_of_an_open() {
    let mut run = Run::new(3);
    run.open(1, ".env", node(1), 0);
    run.open(2, ".env", node(1), 45);
    assert_eq!(run.0.question().expect("asked").deadline, at(20_000));
    assert_eq!(run.tick(19_999), []);
    let effects = run.tick(20_000);
    assert_eq!((answers(&effects), decisions(&effects)), (vec![(1, Refuse)], vec![(Decision::TimedOut, 1)]));
    assert_eq!(answers(&run.tick(20_045)), [(2, Refuse)]);
    assert_eq!(run.0.wake_at(), None);
}

#[test]
fn an_open_that_was_read_long_ago_is_refused_at_once() {
    let mut run = Run::new(3);
    let late = held(1, ".env", 7, node(1), 0);
    let effects = run.0.step(Input::Opened { held: late, standing: Standing::Stranger }, at(20_000));
    assert_eq!((answers(&effects), decisions(&effects)), (vec![(1, Refuse)], vec![(Decision::TimedOut, 1)]));
}

#[test]
fn the_third_refusal_of_a_path_ends_asking_and_refuses_what_waits_of_it() {
    let mut run = Run::new(3);
    for round in 0..2 {
        run.open(round, ".env", node(1), round * 1_000);
        assert_eq!(decisions(&run.answer(Answer::Refuse, round * 1_000 + 500)), [(Decision::Refused, 1)]);
    }
    run.open(7, ".env", node(1), 5_000);
    run.open(8, ".env", sed(2), 5_001);
    run.open(9, "svc/.env", sed(2), 5_002);
    let effects = run.answer(Answer::Refuse, 6_000);
    assert_eq!(answers(&effects), [(7, Refuse), (8, Refuse)]);
    assert_eq!(decisions(&effects), [(Decision::Refused, 1), (Decision::AutoRefused, 1)]);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Contest(_, Access::Write))));
    assert_eq!(answers(&run.open(10, ".env", sed(3), 9_000)), [(10, Refuse)]);
    assert_eq!(run.shown(), ["svc/.env"]);
    let read = Held { access: Access::Read, ..held(11, ".env", 7, node(1), 9_001) };
    assert_eq!(
        run.0.step(Input::Opened { held: read, standing: Standing::Stranger }, at(9_001)),
        [],
        "reading is another matter"
    );
}

#[test]
fn what_is_taken_back_is_asked_about_and_counted_anew_for_reading_and_for_writing() {
    let mut run = Run::new(1);
    let open = |run: &mut Run, id, access, at_millis| {
        let held = Held { access, ..held(id, ".env", 7, node(1), at_millis) };
        run.0.step(Input::Opened { held, standing: Standing::Stranger }, at(at_millis))
    };
    for (id, access) in [(1, Access::Write), (2, Access::Read)] {
        open(&mut run, id, access, id * 1_000);
        run.answer(Answer::Refuse, id * 1_000 + 500);
        assert_eq!(answers(&open(&mut run, id + 10, access, id * 1_000 + 600)), [(id + 10, Refuse)]);
    }
    assert_eq!(run.0.contested().count(), 2);
    let effects = run.0.step(Input::AskAgain(held(0, ".env", 7, node(1), 0).place), at(5_000));
    assert_eq!(effects, []);
    assert_eq!(run.0.contested().count(), 0);
    assert_eq!(open(&mut run, 21, Access::Write, 6_000), []);
    run.answer(Answer::Refuse, 6_500);
    assert_eq!(run.0.contested().count(), 1, "they are counted from nothing");
}

#[test]
fn a_thousand_opens_in_one_question_are_one_refusal() {
    let mut run = Run::new(2);
    (0..1_000).for_each(|id| assert_eq!(run.open(id, ".env", node(u32::try_from(id).expect("small")), 0), []));
    let effects = run.answer(Answer::Refuse, 1_000);
    assert_eq!((answers(&effects).len(), decisions(&effects)), (1_000, vec![(Decision::Refused, 1_000)]));
    assert_eq!(run.open(2_000, ".env", node(1), 2_000), [], "one refusal, not a thousand");
}

#[test]
fn without_a_limit_nothing_is_ever_contested() {
    let mut run = Run::new(0);
    for round in 0..20 {
        run.open(round, ".env", node(1), round * 1_000);
        assert_eq!(decisions(&run.answer(Answer::Refuse, round * 1_000 + 500)), [(Decision::Refused, 1)]);
    }
}

#[test]
fn an_opener_that_is_gone_takes_its_part_of_the_question_with_it() {
    let mut run = Run::new(3);
    run.open(1, ".env", node(1), 0);
    run.open(2, "svc/.env", node(1), 1);
    let (_, before, ..) = run.0.asked().expect("asked");
    let effects = run.0.step(Input::Gone(HeldId(1)), at(500));
    assert_eq!((answers(&effects), decisions(&effects)), (vec![], vec![(Decision::Gone, 1)]));
    assert!(run.0.asked().expect("asked").1 > before, "what is shown differs");
    assert_eq!(run.shown(), ["svc/.env"]);
    run.0.step(Input::Gone(HeldId(2)), at(600)).clear();
    assert!(run.0.question().is_none() && run.0.wake_at().is_none());
    assert_eq!(run.0.step(Input::Gone(HeldId(2)), at(601)), [], "twice is nothing");
}

#[test]
fn an_answer_counts_only_for_what_was_on_screen() {
    let mut run = Run::new(3);
    run.open(1, ".env", node(1), 0);
    let (question, version, ..) = run.0.asked().expect("asked");
    run.open(2, "svc/.env", node(1), 40);
    let effects = run.0.step(Input::Answer { answer: Answer::Allow, question, version }, at(41));
    assert_eq!(answers(&effects), [(1, Allow)]);
    assert_eq!(run.shown(), ["svc/.env"]);
    let effects = run.0.step(Input::Answer { answer: Answer::Allow, question: question + 9, version: 99 }, at(42));
    assert_eq!(effects, []);
}

#[test]
fn a_list_can_be_decided_one_by_one_under_the_same_deadline() {
    let mut run = Run::new(3);
    run.open(1, ".env", node(1), 0);
    run.open(2, "svc/.env", node(1), 1);
    run.open(3, ".env", node(1), 2);
    assert_eq!(run.answer(Answer::Each, 500), []);
    assert_eq!((run.shown(), run.0.question().expect("asked").deadline), (vec![".env".to_owned()], at(20_000)));
    assert_eq!(run.answer(Answer::Each, 600), [], "one file cannot be taken apart");
    assert_eq!(answers(&run.answer(Answer::Allow, 1_000)), [(1, Allow), (3, Allow)]);
    assert_eq!(answers(&run.answer(Answer::Refuse, 1_500)), [(2, Refuse)]);
}

#[test]
fn a_trusted_program_passes_without_a_question_even_where_others_are_refused() {
    let mut run = Run::new(1);
    run.open(1, ".env", node(1), 0);
    run.answer(Answer::Refuse, 500);
    let vetted = held(2, ".env", 7, sed(2), 1_000);
    assert_eq!(run.0.step(Input::Opened { held: vetted, standing: Standing::Vetting }, at(1_000)), []);
    assert!(run.0.question().is_none());
    let effects = run.0.step(Input::Vetted { id: HeldId(2), trusted: true }, at(1_010));
    assert_eq!((answers(&effects), decisions(&effects)), (vec![(2, Allow)], vec![(Decision::Trusted, 1)]));
    let not = held(3, ".env", 7, sed(3), 1_020);
    assert_eq!(run.0.step(Input::Opened { held: not, standing: Standing::Vetting }, at(1_020)), []);
    let effects = run.0.step(Input::Vetted { id: HeldId(3), trusted: false }, at(1_030));
    assert_eq!(answers(&effects), [(3, Refuse)], "contested");
}

#[test]
fn a_program_that_is_looked_at_for_too_long_is_refused_in_time() {
    let mut run = Run::new(3);
    let vetted = held(1, ".env", 7, node(1), 0);
    assert_eq!(run.0.step(Input::Opened { held: vetted, standing: Standing::Vetting }, at(0)), []);
    assert_eq!(run.0.wake_at(), Some(at(20_000)));
    assert_eq!(answers(&run.tick(20_000)), [(1, Refuse)]);
    assert_eq!(run.0.step(Input::Vetted { id: HeldId(1), trusted: true }, at(20_001)), []);
}

#[test]
fn what_a_program_can_repeat_is_written_down_once_and_then_counted() {
    let mut run = Run::new(1);
    run.open(0, ".env", node(1), 0);
    run.answer(Answer::Refuse, 500);
    let mut entries = Vec::new();
    for id in 1..=10_000 {
        let effects = run.open(id, ".env", node(1), 1_000 + id / 11);
        assert_eq!(answers(&effects), [(id, Refuse)]);
        entries.extend(decisions(&effects));
    }
    let wake = run.0.wake_at().expect("something is to be said");
    entries.extend(decisions(&run.0.step(Input::Tick, wake)));
    assert_eq!(entries, [(Decision::AutoRefused, 1), (Decision::AutoRefused, 9_999)]);
    assert_eq!(run.0.wake_at(), None);
}

#[test]
fn those_without_room_are_refused_and_counted() {
    let mut run = Run::new(3);
    let one = Some(held(5, ".env", 7, node(1), 0));
    let effects = run.0.step(Input::NoRoom { ids: vec![HeldId(5), HeldId(6)], one }, at(0));
    assert_eq!((answers(&effects), decisions(&effects)), (vec![(5, Refuse), (6, Refuse)], vec![(Decision::NoRoom, 2)]));
}

#[test]
fn a_stop_refuses_all_and_whatever_comes_after_it() {
    let mut run = Run::new(3);
    run.open(1, ".env", node(1), 0);
    run.open(2, ".env", sed(2), 1);
    let vetted = held(3, ".env", 7, node(3), 2);
    assert_eq!(run.0.step(Input::Opened { held: vetted, standing: Standing::Vetting }, at(2)), []);
    let effects = run.0.step(Input::Stop, at(10));
    let mut refused = answers(&effects);
    refused.sort_unstable_by_key(|(id, _)| *id);
    assert_eq!(refused, [(1, Refuse), (2, Refuse), (3, Refuse)]);
    assert!(decisions(&effects).iter().all(|(decision, _)| *decision == Decision::RefusedAtExit));
    assert_eq!(answers(&run.open(4, ".env", node(1), 11)), [(4, Refuse)]);
    assert_eq!((run.0.waiting(), run.0.wake_at()), (0, None));
}

#[derive(Debug, Clone)]
enum Act {
    Open { path: usize, who: u32, sed: bool, read: bool, standing: Standing, late: u64 },
    Vetted(usize, bool),
    Gone(usize),
    Answer(Answer, u64),
    NoRoom(usize),
    Wait(u64),
    Stop,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let standing =
        proptest::sample::select(vec![Standing::Stranger, Standing::Stranger, Standing::Vetting, Standing::Covered]);
    let act = prop_oneof![
        8 => (0..3usize, 0..4u32, any::<bool>(), any::<bool>(), standing, 0..30_000u64)
            .prop_map(|(path, who, sed, read, standing, late)| Act::Open { path, who, sed, read, standing, late: if late < 25_000 { 0 } else { late } }),
        2 => (0..60usize, any::<bool>()).prop_map(|(id, trusted)| Act::Vetted(id, trusted)),
        2 => (0..60usize).prop_map(Act::Gone),
        3 => (proptest::sample::select(vec![Answer::Allow, Answer::Refuse, Answer::Each]), 0..3u64).prop_map(|(answer, old)| Act::Answer(answer, old)),
        1 => (1..4usize).prop_map(Act::NoRoom),
        4 => prop_oneof![0..60u64, 0..25_000u64].prop_map(Act::Wait),
        1 => Just(Act::Stop),
    ];
    proptest::collection::vec(act, 1..60)
}

proptest! {
    #[test]
    fn every_open_is_answered_once_or_gone_and_none_waits_past_its_time(acts in acts(), limit in 0..4u32) {
        let mut run = Run::new(limit);
        let (mut now, mut next, mut stopped) = (100_000u64, 0u64, false);
        let mut waiting: BTreeMap<u64, u64> = BTreeMap::new();
        let mut answered: BTreeSet<u64> = BTreeSet::new();
        let (mut entries, mut ends) = (0u64, 0u64);
        for act in acts {
            let mut gone = None;
            let input = match act {
                Act::Open { path, who, sed: is_sed, read, standing, late } => {
                    let by = if is_sed { sed(who) } else { node(who) };
                    let mut held = held(next, [".env", "a/.env", "b/.env"][path], path as u64, by, now - late);
                    held.access = if read { Access::Read } else { Access::Write };
                    waiting.insert(next, now - late + 20_000);
                    next += 1;
                    Input::Opened { held, standing }
                }
                Act::Vetted(id, trusted) => Input::Vetted { id: HeldId(id as u64), trusted },
                Act::Gone(id) => {
                    gone = waiting.remove(&(id as u64)).map(|_| id as u64);
                    ends += u64::from(gone.is_some());
                    Input::Gone(HeldId(id as u64))
                }
                Act::Answer(answer, old) => match run.0.asked() {
                    Some((question, version, ..)) => Input::Answer { answer, question, version: version.saturating_sub(old) },
                    None => Input::Tick,
                },
                Act::NoRoom(many) => {
                    let ids: Vec<HeldId> = (next..next + many as u64).map(HeldId).collect();
                    ids.iter().for_each(|id| { waiting.insert(id.0, u64::MAX); });
                    let one = Some(held(next, ".env", 0, node(1), now));
                    next += many as u64;
                    Input::NoRoom { ids, one }
                }
                Act::Wait(millis) => { now += millis; Input::Tick }
                Act::Stop => { stopped = true; Input::Stop }
            };
            let effects = run.0.step(input, at(now));
            for (id, _) in answers(&effects) {
                prop_assert!(waiting.remove(&id).is_some() || Some(id) == gone, "{id} was answered and did not wait");
                prop_assert!(answered.insert(id), "{id} was answered twice");
                ends += u64::from(Some(id) != gone);
            }
            entries += decisions(&effects).iter().map(|(_, opens)| u64::from(*opens)).sum::<u64>();
            prop_assert!(waiting.values().all(|deadline| *deadline > now), "one waits past its time at {now}: {waiting:?}");
            prop_assert_eq!(run.0.waiting(), waiting.len());
            prop_assert!(!stopped || waiting.is_empty());
            prop_assert!(waiting.is_empty() || run.0.wake_at().is_some());
            if let Some(question) = run.0.question() {
                prop_assert!(!question.items.is_empty() && question.deadline > at(now));
            }
        }
        entries += decisions(&run.0.step(Input::Stop, at(now))).iter().map(|(_, opens)| u64::from(*opens)).sum::<u64>();
        prop_assert_eq!(entries, ends + waiting.len() as u64, "every end is in exactly one entry");
    }
}

#[test]
fn an_open_that_the_guardian_refused_leaves_its_question_and_is_told_as_that() {
    let mut run = Run::new(3);
    run.open(1, ".env", node(1), 0);
    run.open(2, ".env", node(1), 10);
    let effects = run.relieved(1, 2_000);
    assert_eq!((answers(&effects), decisions(&effects)), (vec![], vec![(Decision::WhileStopped, 1)]));
    assert_eq!(run.shown(), [".env"], "another open of it waits");
    run.relieved(2, 2_001);
    assert!(run.0.question().is_none());
    assert_eq!(decisions(&run.tick(3_001)), [(Decision::WhileStopped, 1)], "a repeat is counted for a second");
    assert_eq!(run.relieved(2, 4_000), [], "it is known by then");
    // It is nobody's refusal: three of them make no path contested.
    for round in 0..3 {
        let id = 10 + round;
        run.open(id, ".env", node(1), 10_000 + round);
        run.relieved(id, 10_100 + round);
    }
    run.open(20, ".env", node(1), 20_000);
    assert_eq!(run.shown(), [".env"]);
}
