//! Reminders on a disk that fails, in a process that dies, beside other processes, under a clock that is set.

use std::collections::BTreeSet;
use std::path::PathBuf;

use platform::fault::Plan;
use proptest::prelude::*;

use super::*;

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + seconds)
}

fn moment(seconds: u64) -> Moment {
    Moment::from_nanos(seconds * 1_000_000_000)
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    fn open(&self) -> Reminders {
        Reminders::of(Dir::open_ambient(self.0.path()).expect("it exists"))
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("reminders.json")
    }
}

fn messages(reminders: &[Reminder]) -> Vec<&str> {
    reminders.iter().map(Reminder::message).collect()
}

fn told(reminders: &mut Reminders, seconds: u64) -> Vec<String> {
    let (due, fault) = reminders.due(at(seconds), moment(seconds), MOST);
    assert_eq!(fault, None);
    messages(&due).into_iter().map(str::to_owned).collect()
}

#[test]
fn they_survive_are_told_once_and_in_order() {
    let folder = Folder::new();
    let mut first = folder.open();
    let late = first.add(at(20), Some("title"), "late").expect("added");
    let cancelled = first.add(at(5), None, "cancelled").expect("added");
    first.add(at(10), None, "soon").expect("added");
    assert_eq!(messages(&first.list().expect("lists")), ["cancelled", "soon", "late"]);
    assert_eq!(first.next(at(0), moment(0)), Some(at(5)));
    assert_eq!(first.cancel(cancelled.id()), Ok(true));
    assert_eq!(first.cancel(cancelled.id()), Ok(false));
    drop(first);
    let mut second = folder.open();
    assert_eq!(told(&mut second, 9), Vec::<String>::new());
    assert_eq!(second.next(at(9), moment(9)), Some(at(10)));
    assert_eq!(told(&mut second, 25), ["soon", "late"]);
    assert_eq!(second.next(at(25), moment(25)), None);
    assert_eq!(told(&mut folder.open(), 30), Vec::<String>::new());
    assert_eq!(late.title(), Some("title"));
}

#[test]
fn a_hundred_wait_and_no_more() {
    let folder = Folder::new();
    let mut reminders = folder.open();
    let all: Vec<Reminder> = (0..100).map(|n| reminders.add(at(n), None, "x").expect("added")).collect();
    assert_eq!(all.iter().map(Reminder::id).collect::<BTreeSet<_>>().len(), 100);
    assert!(reminders.add(at(0), None, "x").is_err_and(|why| why.contains("100")));
    assert_eq!(reminders.cancel(all[50].id()), Ok(true));
    reminders.add(at(0), None, "room again").expect("added");
    assert!(reminders.add(at(0), None, "").is_err());
}

#[test]
fn a_clock_that_is_set_decides_what_is_due() {
    let folder = Folder::new();
    let mut reminders = folder.open();
    reminders.add(at(100), None, "x").expect("added");
    assert_eq!(reminders.due(at(50), moment(1), MOST).0, []);
    assert_eq!(reminders.due(at(10), moment(2), MOST).0, [], "it was set back");
    assert_eq!(messages(&reminders.due(at(100), moment(3), MOST).0), ["x"], "and forward");
}

#[test]
fn what_another_process_adds_is_noticed() {
    let folder = Folder::new();
    let (mut gate, mut other) = (folder.open(), folder.open());
    assert_eq!(told(&mut gate, 0), Vec::<String>::new());
    other.add(at(1), None, "theirs").expect("added");
    assert_eq!(told(&mut gate, 2), ["theirs"], "it had looked, and looks again");
    gate.add(at(9), None, "ours").expect("added");
    other.add(at(8), None, "theirs").expect("added");
    assert_eq!(messages(&other.list().expect("lists")), ["theirs", "ours"]);
    assert_eq!(told(&mut gate, 9), ["theirs", "ours"]);
}

#[test]
fn of_many_processes_none_undoes_what_another_did_and_each_reminder_is_told_by_one() {
    let folder = Folder::new();
    let told: Vec<String> = std::thread::scope(|scope| {
        let work = |process: u64| {
            let mut reminders = folder.open();
            let mut told = Vec::new();
            for round in 0..8 {
                reminders.add(at(round), None, &format!("{process} {round}")).expect("added");
                told.extend(messages(&reminders.due(at(round), moment(round), MOST).0).into_iter().map(str::to_owned));
            }
            told
        };
        let all: Vec<_> = (0..4).map(|process| scope.spawn(move || work(process))).collect();
        all.into_iter().flat_map(|thread| thread.join().expect("does not panic")).collect()
    });
    let rest = messages(&folder.open().due(at(100), moment(100), MOST).0).len();
    assert_eq!(told.len() + rest, 4 * 8);
    assert_eq!(told.iter().collect::<BTreeSet<_>>().len(), told.len());
}

#[test]
fn a_file_that_cannot_be_used_is_said_once_left_alone_and_good_again_when_mended() {
    let folder = Folder::new();
    let mut reminders = folder.open();
    reminders.add(at(1), None, "x").expect("added");
    let good = std::fs::read_to_string(folder.file()).expect("readable");
    std::fs::write(folder.file(), &good[..good.len() - 4]).expect("written");
    let (due, fault) = reminders.due(at(5), moment(5), MOST);
    assert!(due.is_empty() && fault.as_ref().is_some_and(|fault| fault.contains("until it is mended")), "{fault:?}");
    assert_eq!(reminders.due(at(40), moment(40), MOST), (Vec::new(), None), "said once");
    for refused in [reminders.add(at(9), None, "y").err(), reminders.list().err(), reminders.cancel("x").err()] {
        assert!(refused.is_some_and(|why| why.contains("until it is mended")));
    }
    assert_eq!(std::fs::read_to_string(folder.file()).expect("readable"), good[..good.len() - 4]);
    std::fs::write(folder.file(), &good).expect("written");
    assert_eq!(told(&mut reminders, 80), ["x"]);
}

#[test]
fn what_is_no_file_is_neither_read_nor_replaced() {
    let folder = Folder::new();
    std::os::unix::fs::symlink("/etc/hostname", folder.file()).expect("linked");
    let mut reminders = folder.open();
    assert!(reminders.add(at(1), None, "x").is_err());
    assert!(reminders.due(at(1), moment(1), MOST).1.is_some());
    assert!(folder.file().is_symlink());
}

#[test]
fn on_a_full_disk_nothing_is_told_and_nothing_lost_and_it_is_tried_again() {
    let folder = Folder::new();
    let mut reminders = folder.open();
    reminders.add(at(1), None, "x").expect("added");
    let plan = Plan::fail_after(2, 28);
    let (due, fault) = reminders.due(at(2), moment(2), MOST);
    assert!(due.is_empty() && fault.is_some_and(|fault| fault.contains("cannot be written")));
    assert_eq!(reminders.next(at(2), moment(2)), Some(at(2) + AGAIN), "the loop does not spin");
    assert_eq!(reminders.due(at(3), moment(3), MOST), (Vec::new(), None));
    drop(plan);
    assert_eq!(told(&mut reminders, 32), ["x"]);
}

/// What an agent and time do.
#[derive(Debug, Clone)]
enum Step {
    Add(u64),
    Cancel(usize),
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..30u64).prop_map(Step::Add),
        (0..4usize).prop_map(Step::Cancel),
        (0..12u64).prop_map(Step::Pass)
    ];
    proptest::collection::vec(step, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// The process dies at any change of any file, and another goes on.
    #[test]
    fn after_a_crash_at_any_point_nothing_is_told_twice_and_nothing_that_was_promised_is_lost(
        steps in steps(), crash in 0..60u64,
    ) {
        let folder = Folder::new();
        let (mut reminders, mut seconds) = (folder.open(), 0);
        let (mut promised, mut told, mut doubtful) = (Vec::new(), Vec::new(), BTreeSet::new());
        let mut plan = Some(Plan::crash_after(crash));
        for (number, step) in steps.into_iter().enumerate() {
            let message = format!("number {number}");
            match step {
                Step::Add(wait) => match reminders.add(at(seconds + wait), None, &message) {
                    Ok(added) => promised.push((message, added.id().to_owned())),
                    Err(_) => { doubtful.insert(message); }
                },
                Step::Cancel(which) => if let Some((message, id)) = promised.get(which) {
                    // Cancelled, or in doubt: it may or may not be told, but never twice.
                    let _either = reminders.cancel(id);
                    doubtful.insert(message.clone());
                },
                Step::Pass(time) => {
                    seconds += time;
                    told.extend(messages(&reminders.due(at(seconds), moment(seconds), MOST).0).into_iter().map(str::to_owned));
                }
            }
            if platform::fault::crashed() {
                plan = None;
                reminders = folder.open();
            }
        }
        drop(plan);
        seconds += 100;
        let (due, fault) = folder.open().due(at(seconds), moment(seconds), MOST);
        prop_assert_eq!(fault, None, "what a crash left can be used");
        told.extend(messages(&due).into_iter().map(str::to_owned));
        let once: BTreeSet<&String> = told.iter().collect();
        prop_assert_eq!(once.len(), told.len(), "told twice: {:?}", told);
        for (message, _) in &promised {
            prop_assert!(told.contains(message) || doubtful.contains(message), "{} is lost of {:?}", message, told);
        }
    }
}
