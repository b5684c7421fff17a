//! Many openers at once, and what they cost.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use platform::openings::{ByNumber, Openings, group};
use platform::{Answered, Dir, Doorkeeper, HeldId, Opening, Ruling, Verdict};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::openers::{SOON, until};
use crate::{Case, own_program, put};

pub const CASES: &[Case] = &[
    (
        "a_thousand_held_at_once_are_answered_each_for_itself_in_any_order",
        a_thousand_held_at_once_are_answered_each_for_itself_in_any_order,
    ),
    (
        "more_than_there_is_room_for_are_refused_and_that_is_said_once",
        more_than_there_is_room_for_are_refused_and_that_is_said_once,
    ),
    ("a_thousand_held_that_are_killed_are_all_let_go_of", a_thousand_held_that_are_killed_are_all_let_go_of),
    ("no_open_leaves_a_descriptor_behind", no_open_leaves_a_descriptor_behind),
];

struct Door {
    held: Mutex<Sender<(HeldId, Opening)>>,
    crowded: Mutex<usize>,
    rule: Ruling,
}

impl Doorkeeper for Door {
    fn rule(&self, _opening: &Opening) -> Ruling {
        self.rule
    }

    fn held(&self, id: HeldId, opening: Opening) {
        let _ = self.held.lock().expect("nobody panics").send((id, opening));
    }

    fn gone(&self, _id: HeldId) {}

    fn crowded(&self) {
        *self.crowded.lock().expect("nobody panics") += 1;
    }
}

fn start(dir: &Path, files: usize, rule: Ruling) -> (Openings, Arc<Door>, Receiver<(HeldId, Opening)>) {
    let (held, hear) = channel();
    let door = Arc::new(Door { held: Mutex::new(held), crowded: Mutex::new(0), rule });
    let keeper = Arc::clone(&door) as Arc<dyn Doorkeeper>;
    let openings = Openings::start(group().expect("root may"), keeper, Arc::new(ByNumber)).expect("starts");
    let (tree, marker) = (Dir::open_ambient(dir).expect("opens"), openings.marker());
    for number in 0..files {
        let name = number.to_string();
        put(&dir.join(&name), "");
        marker.mark(&tree, name.as_bytes()).expect("marks");
    }
    (openings, door, hear)
}

fn threads(count: usize, dir: &Path) -> std::process::Child {
    let mut command = Command::new(own_program());
    command.args(["--threads", &count.to_string()]).arg(dir).stdout(Stdio::piped()).spawn().expect("starts")
}

fn number_of(opening: &Opening) -> usize {
    let path = String::from_utf8(opening.path.clone().expect("it has a name")).expect("of digits");
    path.rsplit('/').next().and_then(|name| name.parse().ok()).expect("a number")
}

/// Which could open, by number.
fn outcome(openers: std::process::Child) -> BTreeMap<usize, bool> {
    let output = openers.wait_with_output().expect("ends");
    let lines = String::from_utf8(output.stdout).expect("text");
    let parse = |line: &str| {
        let (number, done) = line.split_once(' ').expect("two words");
        (number.parse().expect("a number"), done == "true")
    };
    lines.lines().map(parse).collect()
}

fn a_thousand_held_at_once_are_answered_each_for_itself_in_any_order(dir: &Path) {
    const COUNT: usize = 1000;
    let (openings, door, hear) = start(dir, COUNT, Ruling::Hold);
    let openers = threads(COUNT, dir);
    let mut held: Vec<_> = (0..COUNT).map(|_| hear.recv_timeout(SOON).expect("it is held")).collect();
    assert_eq!(openings.waiting(), COUNT);
    // An order that has nothing to do with that of their coming.
    held.sort_by_key(|(_, opening)| (number_of(opening) * 619) % COUNT);
    let allow = |number: usize| number.is_multiple_of(3);
    std::thread::scope(|scope| {
        for part in held.chunks(COUNT / 4) {
            let openings = &openings;
            scope.spawn(move || {
                for (id, opening) in part {
                    let verdict = if allow(number_of(opening)) { Verdict::Allow } else { Verdict::Refuse };
                    assert_eq!(openings.answer(*id, verdict), Answered::Done);
                }
            });
        }
    });
    let outcome = outcome(openers);
    assert_eq!(outcome.len(), COUNT);
    for (number, done) in outcome {
        assert_eq!(done, allow(number), "{number}");
    }
    assert_eq!((openings.waiting(), *door.crowded.lock().expect("nobody panics")), (0, 0));
}

fn more_than_there_is_room_for_are_refused_and_that_is_said_once(dir: &Path) {
    let limit = Some(400);
    setrlimit(Resource::Nofile, Rlimit { current: limit, maximum: limit }).expect("lowers");
    let (openings, door, hear) = start(dir, 200, Ruling::Hold);
    let room = 400 / 4 * 3 / 4;
    let openers = threads(200, dir);
    let held: Vec<_> = (0..room).map(|_| hear.recv_timeout(SOON).expect("it is held").0).collect();
    until("the others are refused", || *door.crowded.lock().expect("nobody panics") > 0);
    assert_eq!(openings.waiting(), room);
    assert!(fs::read(dir.join("0")).is_ok(), "we go on as before");
    // Those who come later find room again.
    for id in held {
        openings.answer(id, Verdict::Allow);
    }
    let mut allowed = room;
    while let Ok((id, _)) = hear.recv_timeout(std::time::Duration::from_millis(200)) {
        openings.answer(id, Verdict::Allow);
        allowed += 1;
    }
    let outcome = outcome(openers);
    assert_eq!(outcome.values().filter(|&&done| done).count(), allowed);
    assert!(outcome.len() == 200 && allowed < 200, "{allowed}");
}

fn a_thousand_held_that_are_killed_are_all_let_go_of(dir: &Path) {
    const COUNT: usize = 1000;
    let (openings, _door, hear) = start(dir, COUNT, Ruling::Hold);
    let mut openers = threads(COUNT, dir);
    for _ in 0..COUNT {
        hear.recv_timeout(SOON).expect("it is held");
    }
    openers.kill().expect("kills");
    openers.wait().expect("ends");
    until("they are let go of", || openings.waiting() == 0);
}

fn no_open_leaves_a_descriptor_behind(dir: &Path) {
    let open = || fs::read_dir("/proc/self/fd").expect("lists").count();
    let (openings, _door, hear) = start(dir, 100, Ruling::Hold);
    let before = open();
    for verdict in [Verdict::Allow, Verdict::Refuse] {
        let openers = threads(100, dir);
        for _ in 0..100 {
            openings.answer(hear.recv_timeout(SOON).expect("it is held").0, verdict);
        }
        outcome(openers);
    }
    until("nobody waits", || openings.waiting() == 0);
    until("all are closed", || open() == before);
    drop(openings);
    assert_eq!(fs::read(dir.join("0")).expect("reads"), b"");
}
