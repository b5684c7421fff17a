//! What traces come to; and that nobody is ever certain who did not do it, by a model of a kernel.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use proptest::prelude::*;

use super::ledger::{Ledger, Trace, Who};
use super::lives::{Image, LifeId, Lives, Wanted};
use super::unknown;
use crate::clock::Moment;
use crate::event::Place;
use crate::relpath::RelPath;
use crate::stat::FileId;
use crate::writer::{Certainty, Mark, Writer};

fn place() -> Place {
    Place::tree(RelPath::parse(b".env").expect("a path"))
}

const FILE: FileId = FileId { dev: 1, ino: 1 };

fn who(pid: u32) -> Who {
    Who { pid, started: Some(1), life: Some((LifeId { pid, serial: u64::from(pid) }, 0)) }
}

fn writer(pid: u32, name: u64, started: u64) -> Writer {
    let mut writer = unknown(pid);
    writer.program.name = name.to_ne_bytes().to_vec();
    writer.program.started = Some(started);
    writer.certainty = Certainty::Certain;
    writer
}

fn image(program: u64) -> Image {
    let name = program.to_ne_bytes().to_vec();
    Image { exe: Some(name.clone()), name, ..Image::default() }
}

const PROVEN: Trace = Trace::Did { process: true, program: true };
const HALF: Trace = Trace::Did { process: true, program: false };
const GUESSED: Trace = Trace::Did { process: false, program: false };

fn told(ledger: &Ledger) -> Option<(u32, Certainty)> {
    ledger.writer(&place(), Some(FILE)).map(|writer| (writer.program.pid, writer.certainty))
}

#[test]
fn one_opener_is_certain_and_two_are_not() {
    let mut ledger = Ledger::default();
    assert_eq!(told(&ledger), None);
    ledger.file(FILE, who(7), Trace::Opened, writer(7, 0, 1));
    assert_eq!(told(&ledger), Some((7, Certainty::Certain)));
    ledger.name(&place(), who(7), HALF, writer(7, 0, 1));
    assert_eq!(told(&ledger), Some((7, Certainty::Certain)), "its own event adds nobody");
    ledger.file(FILE, who(8), Trace::Opened, writer(8, 0, 1));
    assert_eq!(told(&ledger), Some((8, Certainty::Likely)));
}

#[test]
fn without_the_feed_two_programs_of_one_process_are_not_taken_for_one() {
    let who = Who { life: None, ..who(7) };
    let mut ledger = Ledger::default();
    ledger.file(FILE, who, Trace::Opened, writer(7, 1, 1));
    ledger.file(FILE, who, Trace::Opened, writer(7, 1, 1));
    assert_eq!(told(&ledger), Some((7, Certainty::Certain)), "the same twice");
    ledger.file(FILE, who, Trace::Opened, writer(7, 2, 1));
    assert_eq!(told(&ledger), Some((7, Certainty::Likely)));
}

#[test]
fn an_event_without_an_opening_is_certain_only_with_its_program() {
    for (trace, certainty) in [(PROVEN, Certainty::Certain), (HALF, Certainty::Likely), (GUESSED, Certainty::Likely)] {
        let mut ledger = Ledger::default();
        ledger.name(&place(), who(7), trace, writer(7, 0, 1));
        assert_eq!(told(&ledger), Some((7, certainty)), "{trace:?}");
    }
}

#[test]
fn who_held_the_file_at_the_start_is_never_overlooked() {
    let mut ledger = Ledger::default();
    ledger.file(FILE, who(9), Trace::Held, writer(9, 0, 1));
    assert_eq!(told(&ledger), Some((9, Certainty::Likely)));
    ledger.file(FILE, who(7), Trace::Opened, writer(7, 0, 1));
    assert_eq!(told(&ledger), Some((7, Certainty::Likely)));
    let mut ledger = Ledger::default();
    ledger.stranger(FILE);
    ledger.file(FILE, who(7), Trace::Opened, writer(7, 0, 1));
    assert_eq!(told(&ledger), Some((7, Certainty::Likely)), "somebody who is not known may have it open");
    let mark = Mark { number: ledger.number(), is_closed: true };
    ledger.settle(&place(), Some(FILE), mark);
    assert!(ledger.is_empty(), "nobody has it open any more");
}

#[test]
fn settling_forgets_nobody_who_may_write_yet() {
    let mut ledger = Ledger::default();
    ledger.file(FILE, who(7), Trace::Opened, writer(7, 0, 1));
    ledger.name(&place(), who(7), HALF, writer(7, 0, 1));
    let open = Mark { number: ledger.number(), is_closed: false };
    ledger.settle(&place(), Some(FILE), open);
    assert_eq!(told(&ledger), Some((7, Certainty::Certain)), "it has it open");
    ledger.file(FILE, who(8), Trace::Opened, writer(8, 0, 1));
    assert_eq!(told(&ledger), Some((8, Certainty::Likely)));
    let closed = Mark { number: ledger.number(), is_closed: true };
    ledger.file(FILE, who(9), Trace::Opened, writer(9, 0, 1));
    ledger.settle(&place(), Some(FILE), closed);
    assert_eq!(told(&ledger), Some((9, Certainty::Certain)), "it came after the look had begun");
}

#[test]
fn who_put_a_file_in_its_place_may_still_write_to_it() {
    let mut ledger = Ledger::default();
    ledger.name(&place(), who(7), PROVEN, writer(7, 0, 1));
    assert!(ledger.knows(&place(), Some(FILE)));
    ledger.settle(&place(), Some(FILE), Mark { number: ledger.number(), is_closed: false });
    ledger.file(FILE, who(8), Trace::Opened, writer(8, 0, 1));
    assert_eq!(told(&ledger), Some((8, Certainty::Likely)));
}

#[test]
fn lost_events_leave_nothing_certain_until_the_path_is_settled() {
    let mut ledger = Ledger::default();
    ledger.lose();
    ledger.file(FILE, who(7), Trace::Opened, writer(7, 0, 1));
    assert_eq!(told(&ledger), Some((7, Certainty::Likely)));
    ledger.settle(&place(), Some(FILE), Mark { number: ledger.number(), is_closed: true });
    ledger.file(FILE, who(7), Trace::Opened, writer(7, 0, 1));
    assert_eq!(told(&ledger), Some((7, Certainty::Certain)));
}

#[test]
fn more_than_is_kept_leaves_nobody_certain_until_the_path_is_settled() {
    let mut ledger = Ledger::default();
    (100..120).for_each(|pid| ledger.file(FILE, who(pid), Trace::Opened, writer(pid, 0, 1)));
    assert_eq!(told(&ledger), Some((119, Certainty::Likely)));
    let mut ledger = Ledger::default();
    for ino in 0..20_000 {
        ledger.file(FileId { dev: 2, ino }, who(7), Trace::Opened, writer(7, 0, 1));
    }
    ledger.file(FILE, who(7), Trace::Opened, writer(7, 0, 1));
    assert_eq!(told(&ledger), Some((7, Certainty::Likely)), "somebody else may be among the forgotten");
    assert!(ledger.knows(&place(), None));
    ledger.settle(&place(), Some(FILE), Mark { number: ledger.number(), is_closed: false });
    assert_eq!(told(&ledger), Some((7, Certainty::Likely)), "a forgotten one may have it open");
    ledger.settle(&place(), Some(FILE), Mark { number: ledger.number(), is_closed: true });
    ledger.file(FILE, who(7), Trace::Opened, writer(7, 0, 1));
    assert_eq!(told(&ledger), Some((7, Certainty::Certain)));
}

#[test]
fn who_moved_a_directory_changed_all_that_was_below_it() {
    let path = |text: &[u8]| Place::tree(RelPath::parse(text).expect("a path"));
    let told = |ledger: &Ledger, place: &Place| {
        ledger.writer(place, None).map(|writer| (writer.program.pid, writer.certainty))
    };
    let (dir, one, two) = (path(b"a"), path(b"a/b/.env"), path(b"a/.env"));
    let mut ledger = Ledger::default();
    ledger.name(&dir, who(7), PROVEN, writer(7, 0, 1));
    assert_eq!(told(&ledger, &one), Some((7, Certainty::Certain)));
    assert_eq!(told(&ledger, &path(b"ab/.env")), None);
    ledger.settle(&one, None, Mark { number: ledger.number(), is_closed: true });
    assert_eq!(told(&ledger, &one), None, "it was put back");
    ledger.name(&two, who(8), PROVEN, writer(8, 0, 1));
    assert_eq!(told(&ledger, &two), Some((8, Certainty::Likely)), "the other was not");
}

/// What can happen. Numbers are few, so that they are used again all the time.
#[derive(Debug, Clone)]
enum Op {
    Fork { parent: u32, child: u32 },
    Exec(u32),
    Exit(u32),
    Open(u32),
    Write { pid: u32, tells: bool },
    Close(u32),
    Chmod(u32),
    ReadProgram,
    ReadEvents,
    LoseMessages,
    LoseEvents,
    LookForAll,
    Mark,
    Settle,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let pid = || 1u32..5;
    let op = prop_oneof![
        3 => (pid(), pid()).prop_map(|(parent, child)| Op::Fork { parent, child }),
        3 => pid().prop_map(Op::Exec),
        3 => pid().prop_map(Op::Exit),
        3 => pid().prop_map(Op::Open),
        4 => (pid(), any::<bool>()).prop_map(|(pid, tells)| Op::Write { pid, tells }),
        2 => pid().prop_map(Op::Close),
        3 => pid().prop_map(Op::Chmod),
        3 => Just(Op::ReadProgram),
        3 => Just(Op::ReadEvents),
        1 => Just(Op::LoseMessages),
        1 => Just(Op::LoseEvents),
        1 => Just(Op::LookForAll),
        2 => Just(Op::Mark),
        2 => Just(Op::Settle),
    ];
    proptest::collection::vec(op, 1..60)
}

/// A process as it truly is: when it started, and the program it runs, both never used again.
#[derive(Debug, Clone)]
struct True {
    started: u64,
    program: u64,
    /// Who opened the descriptor it holds, if it holds one.
    holds: Option<(u64, u64)>,
    /// The process above it now, and when all those started that ever were.
    parent: u32,
    above: BTreeSet<u64>,
}

/// A program that was read of a process, and is to be noted.
#[derive(Debug)]
struct Reading {
    wanted: Wanted,
    /// How many processes had been told of before.
    known: u64,
    process: True,
}

/// A change: by which process and program, and whether through an opening.
#[derive(Debug, Clone, Copy)]
struct Change {
    started: u64,
    program: u64,
    by_name: bool,
}

#[derive(Debug)]
enum Message {
    Fork(u32, u32),
    Exec(u32),
    Exit(u32),
}

#[derive(Default)]
struct Kernel {
    now: u64,
    serial: u64,
    processes: BTreeMap<u32, True>,
    messages: VecDeque<Message>,
    events: Vec<u32>,
    changes: Vec<Change>,
    /// Which program of which process has opened the file.
    opened: BTreeSet<(u64, u64)>,
    lives: Lives,
    ledger: Ledger,
    wanted: VecDeque<Wanted>,
    reading: Option<Reading>,
    empty_since: Moment,
    mark: Option<(Mark, usize)>,
    gap: bool,
}

impl Kernel {
    fn new() -> Self {
        let mut kernel = Kernel { gap: true, ..Kernel::default() };
        let first = True { started: 0, program: 0, holds: None, parent: 0, above: BTreeSet::new() };
        kernel.processes.insert(1, first.clone());
        // One that holds the file from before, whom nobody has found.
        kernel.serial = 1;
        let above = BTreeSet::from([0]);
        kernel.processes.insert(2, True { started: 1, program: 1, holds: Some((1, 1)), parent: 1, above });
        kernel.ledger.stranger(FILE);
        kernel
    }

    /// Everybody is known, and nobody has the file open.
    fn begin(&mut self) {
        let all = [
            Op::LookForAll,
            Op::ReadProgram,
            Op::ReadProgram,
            Op::ReadProgram,
            Op::Close(2),
            Op::Mark,
            Op::Settle,
            Op::ReadEvents,
        ];
        all.iter().for_each(|op| self.step(op));
    }

    fn moment(&mut self) -> Moment {
        self.now += 1;
        Moment::default() + Duration::from_nanos(self.now)
    }

    fn next(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    fn drain(&mut self) {
        while let Some(message) = self.messages.pop_front() {
            let at = self.moment();
            match message {
                Message::Fork(parent, child) => self.lives.fork(parent, child, at),
                Message::Exec(pid) => {
                    let wanted = self.lives.exec(pid);
                    self.wanted.push_back(wanted);
                }
                Message::Exit(pid) => self.lives.exit(pid, at),
            }
        }
    }

    fn named(&mut self, pid: u32, since: Moment) {
        self.drain();
        let traced = self.lives.trace(pid, since).map(|(who, trace, life)| {
            let name = life.image().map(|(image, _)| image.name.clone()).unwrap_or_default();
            (who, trace, name, life.started)
        });
        let (who, trace, name, started) = traced.unwrap_or_else(|| {
            let now = self.processes.get(&pid);
            let name = now.map(|process| process.program.to_ne_bytes().to_vec()).unwrap_or_default();
            (
                Who { pid, started: now.map(|process| process.started), life: None },
                GUESSED,
                name,
                now.map(|p| p.started),
            )
        });
        let mut writer = writer(pid, 0, 0);
        (writer.program.name, writer.program.started) = (name, started);
        self.ledger.name(&place(), who, trace, writer);
    }

    fn note_what_was_read(&mut self) {
        self.drain();
        let Some(Reading { wanted, known, process }) = self.reading.take() else { return };
        let at = self.moment();
        self.lives.read(wanted, process.started, image(process.program), at);
        self.lives.found_below(wanted.life, process.parent, known);
    }

    /// A process that is stopped is looked at, unless what it runs is known: as [`super::Witness`] does it.
    fn is_told_what_runs(&mut self, pid: u32, started: u64, program: u64) {
        if let Some(known) = self.lives.runs(pid, started) {
            assert_eq!(*known, image(program), "what it ran before, or another one");
        } else if let Some(life) = self.lives.last(pid).map(|life| Wanted { life: life.id, execs: life.execs }) {
            let at = self.moment();
            self.lives.read(life, started, image(program), at);
        }
    }

    /// Every process that is known stands below one that was above it.
    fn is_in_its_place(&mut self) {
        self.drain();
        for (pid, process) in &self.processes {
            let life = self.lives.last(*pid).filter(|life| life.started == Some(process.started));
            let above = life.and_then(|life| self.lives.get(life.parent?)?.started);
            assert!(
                above.is_none_or(|above| process.above.contains(&above)),
                "{pid} is not below {above:?}: {process:?}"
            );
        }
    }

    fn step(&mut self, op: &Op) {
        match *op {
            Op::Fork { parent, child }
                if self.processes.contains_key(&parent) && !self.processes.contains_key(&child) =>
            {
                let started = self.next();
                let maker = self.processes[&parent].clone();
                let made = True { started, parent, above: BTreeSet::from([maker.started]), ..maker };
                self.processes.insert(child, made);
                self.messages.push_back(Message::Fork(parent, child));
            }
            Op::Exec(pid) if self.processes.contains_key(&pid) => {
                let program = self.next();
                self.processes.get_mut(&pid).expect("is there").program = program;
                self.messages.push_back(Message::Exec(pid));
            }
            Op::Exit(pid) if pid != 1 && self.processes.remove(&pid).is_some() => {
                for orphan in self.processes.values_mut().filter(|process| process.parent == pid) {
                    orphan.parent = 1;
                    orphan.above.insert(0);
                }
                self.messages.push_back(Message::Exit(pid));
            }
            Op::Open(pid) if self.processes.contains_key(&pid) => {
                // It is stopped meanwhile: what is read is what it is.
                self.drain();
                let process = self.processes.get_mut(&pid).expect("is there");
                process.holds = Some((process.started, process.program));
                let (started, program) = (process.started, process.program);
                self.opened.insert((started, program));
                self.is_told_what_runs(pid, started, program);
                let life = self.lives.last(pid).filter(|life| life.started.is_none_or(|known| known == started));
                let who = Who { pid, started: Some(started), life: life.map(|life| (life.id, life.execs)) };
                self.ledger.file(FILE, who, Trace::Opened, writer(pid, program, started));
            }
            Op::Write { pid, tells } => {
                let Some((started, program)) = self.processes.get(&pid).and_then(|process| process.holds) else {
                    return;
                };
                self.changes.push(Change { started, program, by_name: false });
                if tells {
                    self.events.push(pid);
                }
            }
            Op::Close(pid) => {
                if let Some(process) = self.processes.get_mut(&pid) {
                    process.holds = None;
                }
            }
            Op::Chmod(pid) => {
                let Some(process) = self.processes.get(&pid) else { return };
                self.changes.push(Change { started: process.started, program: process.program, by_name: true });
                self.events.push(pid);
            }
            Op::ReadProgram => {
                // Whatever happens between reading and noting.
                self.note_what_was_read();
                let known = self.lives.serial();
                let Some(wanted) = self.wanted.pop_front() else { return };
                let Some(process) = self.processes.get(&wanted.life.pid).cloned() else { return };
                self.reading = Some(Reading { wanted, known, process });
            }
            Op::ReadEvents => {
                for pid in std::mem::take(&mut self.events) {
                    self.named(pid, self.empty_since);
                }
                self.empty_since = self.moment();
            }
            Op::LoseMessages if !self.messages.is_empty() => {
                self.messages.clear();
                self.lives.gap();
                self.wanted.clear();
                self.gap = true;
            }
            Op::LoseEvents if !self.events.is_empty() => {
                self.events.clear();
                self.ledger.lose();
            }
            Op::LookForAll if self.gap => {
                let pids: Vec<u32> = self.processes.keys().copied().collect();
                self.drain();
                let at = self.moment();
                self.wanted.extend(self.lives.present(&pids, at));
                self.gap = false;
            }
            Op::Mark => {
                let is_closed = !self.processes.values().any(|process| process.holds.is_some());
                let number = self.ledger.number();
                let is_closed = !self.ledger.knows(&place(), Some(FILE)) || is_closed;
                self.mark = Some((Mark { number, is_closed }, self.changes.len()));
            }
            Op::Settle => {
                let Some((mark, seen)) = self.mark.take() else { return };
                self.ledger.settle(&place(), Some(FILE), mark);
                self.changes.drain(..seen);
            }
            _ => {}
        }
    }

    /// Whoever is called certain did all of it.
    fn check(&mut self) -> Result<bool, TestCaseError> {
        // Who is asked has read the events of what changed.
        self.step(&Op::ReadEvents);
        let Some(told) = self.ledger.writer(&place(), Some(FILE)) else { return Ok(false) };
        if told.certainty != Certainty::Certain {
            return Ok(false);
        }
        let program = u64::from_ne_bytes(told.program.name.as_slice().try_into().expect("eight bytes"));
        for change in &self.changes {
            prop_assert_eq!(Some(change.started), told.program.started, "another process: {:?}", change);
            // Who has opened the file by itself answers for what it did to its bits before, too.
            let has_opened = self.opened.contains(&(change.started, program));
            prop_assert!(
                change.program == program || change.by_name && has_opened,
                "another program: {:?}, not {}",
                change,
                program
            );
        }
        Ok(!self.changes.is_empty())
    }
}

/// What chance has found before.
#[test]
fn nobody_is_certain_who_did_not_do_it_where_that_was_so_before() {
    use Op::{Exec, Exit, Fork, LookForAll, LoseMessages, Mark, Open, ReadEvents, ReadProgram, Settle, Write};
    let found: [&[Op]; 2] = [
        &[Exit(2), Mark, Open(1), Exec(1), LoseMessages, Settle, Write { pid: 1, tells: false }, Open(1), ReadProgram],
        &[
            LookForAll,
            ReadProgram,
            Fork { parent: 2, child: 4 },
            Exit(2),
            Fork { parent: 4, child: 2 },
            ReadProgram,
            ReadProgram,
            Open(4),
            ReadEvents,
        ],
    ];
    for ops in found {
        holds(Kernel::new(), ops).expect("nobody is certain who did not do it");
    }
}

/// Whether the model holds after every reading of events, and at the end.
fn holds(mut kernel: Kernel, ops: &[Op]) -> Result<(), TestCaseError> {
    for op in ops {
        kernel.step(op);
        if matches!(op, Op::ReadEvents) {
            kernel.check()?;
            kernel.is_in_its_place();
        }
    }
    kernel.check().map(drop)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn nobody_is_certain_who_did_not_do_it(is_known in any::<bool>(), ops in ops()) {
        let mut kernel = Kernel::new();
        if is_known {
            kernel.begin();
        }
        holds(kernel, &ops)?;
    }
}

#[test]
fn the_model_calls_somebody_certain_now_and_then() {
    let mut kernel = Kernel::new();
    kernel.begin();
    [Op::Open(1), Op::Write { pid: 1, tells: true }].iter().for_each(|op| kernel.step(op));
    assert!(kernel.check().expect("it did it"), "the opener is certain");
    [Op::Close(1), Op::Mark, Op::Settle, Op::Chmod(2)].iter().for_each(|op| kernel.step(op));
    assert!(kernel.check().expect("it did it"), "so is who changed the bits");
}
