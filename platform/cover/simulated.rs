//! A simulated kernel over real directories: any changes, and events as inotify and fanotify give them: merged into earlier
//! ones, repeated, late, dropped with an overflow, marks used up.
//!
//! The changes and the property are those of the simulated FSEvents: nothing that changed goes unreported.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use proptest::prelude::*;

use crate::clock::Moment;
use crate::dir::Dir;
use crate::event::{Hint, Interest, Place, RootId, WatchSet};
use crate::relpath::RelPath;
use crate::root::Root;
use crate::simulation::{Few, Step, missed, step};
use crate::stat::FileType;

use super::engine::Engine;
use super::{Event, Extra, MarkError, Marks};

/// An event that owns its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Told {
    Entry { dir: u64, name: Vec<u8>, is_dir: bool, left: bool },
    Own(u64),
    Attributes(u64),
    Unmarked(u64),
    Overflow,
}

/// Marks by inode number. A mark has a number that is never given again, as inotify's watches have.
#[derive(Default)]
struct Kernel {
    marks: BTreeMap<u64, u64>,
    next: u64,
    queues: [VecDeque<Told>; 2],
    /// Whether events are dropped now.
    dropping: bool,
}

type Shared = Arc<Mutex<Kernel>>;

fn lock(kernel: &Shared) -> MutexGuard<'_, Kernel> {
    kernel.lock().expect("no panic while it is held")
}

impl Kernel {
    fn mark(&mut self, inode: u64, key: &mut Vec<u8>) {
        let next = &mut self.next;
        let mark = *self.marks.entry(inode).or_insert_with(|| {
            *next += 1;
            *next
        });
        *key = mark.to_ne_bytes().to_vec();
    }

    fn tell(&mut self, queue: usize, told: Told) {
        if self.dropping {
            if self.queues[queue].back() != Some(&Told::Overflow) {
                self.queues[queue].push_back(Told::Overflow);
            }
            return;
        }
        // An event about the same thing that was not read yet takes it in.
        if let Told::Entry { dir, name, is_dir, left } = &told {
            let same = |known: &&mut Told| matches!(known, Told::Entry { dir: d, name: n, is_dir: i, .. } if d == dir && n == name && i == is_dir);
            if let Some(Told::Entry { left: known, .. }) = self.queues[queue].iter_mut().find(same) {
                *known |= left;
                return;
            }
        }
        self.queues[queue].push_back(told);
    }

    /// A name came or went, or what has it changed.
    fn entry(&mut self, dir: u64, name: &str, is_dir: bool, left: bool) {
        if let Some(&mark) = self.marks.get(&dir) {
            self.tell(1, Told::Entry { dir: mark, name: name.as_bytes().to_vec(), is_dir, left });
        }
    }

    /// Something happened to the object itself; directories tell of themselves in the queue of names.
    fn own(&mut self, inode: u64, is_dir: bool) {
        if let Some(&mark) = self.marks.get(&inode) {
            self.tell(usize::from(is_dir), Told::Own(mark));
        }
    }

    fn gone(&mut self, inode: u64, is_dir: bool) {
        self.own(inode, is_dir);
        if let Some(mark) = self.marks.remove(&inode) {
            self.tell(usize::from(is_dir), Told::Unmarked(mark));
        }
    }
}

struct Simulated(Shared);

impl Marks for Simulated {
    fn mark_dir(&mut self, dir: &Dir, _extra: Extra, _near: Option<&[u8]>, key: &mut Vec<u8>) -> Result<(), MarkError> {
        lock(&self.0).mark(dir.own_stat().map_err(|error| error.source)?.id.ino, key);
        Ok(())
    }

    fn is(&mut self, dir: &Dir, _extra: Extra, key: &[u8]) -> bool {
        let inode = dir.own_stat().expect("an open directory").id.ino;
        lock(&self.0).marks.get(&inode).is_some_and(|mark| mark.to_ne_bytes() == key)
    }

    fn mark_entry(&mut self, dir: &Dir, name: &[u8], _type: FileType, key: &mut Vec<u8>) -> Result<(), MarkError> {
        let stat = dir.stat(name).map_err(|error| error.source)?.ok_or(MarkError::Gone)?;
        lock(&self.0).mark(stat.id.ino, key);
        Ok(())
    }

    fn unmark(&mut self, key: &[u8]) {
        lock(&self.0).marks.retain(|_, mark| mark.to_ne_bytes() != key);
    }

    fn queues(&self) -> [BorrowedFd<'_>; 2] {
        unreachable!("no thread waits")
    }

    fn read(&mut self, queue: usize, see: &mut dyn FnMut(Event<'_>) -> bool) -> io::Result<usize> {
        let events = std::mem::take(&mut lock(&self.0).queues[queue]);
        for told in &events {
            match told {
                Told::Entry { dir, name, is_dir, left } => {
                    see(Event::Entry { dir: &dir.to_ne_bytes(), name, is_dir: *is_dir, left: *left })
                }
                Told::Own(mark) => see(Event::Own(&mark.to_ne_bytes())),
                Told::Attributes(mark) => see(Event::Attributes(&mark.to_ne_bytes())),
                Told::Unmarked(mark) => see(Event::Unmarked(&mark.to_ne_bytes())),
                Told::Overflow => see(Event::Overflow),
            };
        }
        Ok(events.len())
    }
}

/// The directories, and the kernel that hears of what is done to them.
struct Machine {
    dir: tempfile::TempDir,
    kernel: Shared,
}

/// What is at a path: inode, whether it is a directory, links.
type Found = (u64, bool, u64);

impl Machine {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir(dir.path().join("repo")).expect("a tree");
        Self { dir, kernel: Shared::default() }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join("repo").join(path)
    }

    fn found(&self, path: &Path) -> Option<Found> {
        let stat = fs::symlink_metadata(path).ok()?;
        Some((stat.ino(), stat.is_dir(), stat.nlink()))
    }

    /// The directory a path lies in, and its name there.
    fn parent<'p>(&self, path: &'p str) -> Option<(u64, &'p str)> {
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        Some((self.found(&self.at(dir))?.0, name))
    }

    fn left(&self, path: &str, (inode, is_dir, links): Found) {
        let mut kernel = lock(&self.kernel);
        if let Some((dir, name)) = self.parent(path) {
            kernel.entry(dir, name, is_dir, true);
        }
        if is_dir || links == 1 { kernel.gone(inode, is_dir) } else { kernel.own(inode, false) }
    }

    fn came(&self, path: &str) {
        if let (Some((dir, name)), Some((inode, is_dir, _))) = (self.parent(path), self.found(&self.at(path))) {
            let mut kernel = lock(&self.kernel);
            kernel.entry(dir, name, is_dir, false);
            kernel.own(inode, is_dir);
        }
    }

    fn remove_all(&self, path: &str) {
        let Some(found) = self.found(&self.at(path)) else { return };
        if found.1 {
            let names: Vec<_> = fs::read_dir(self.at(path))
                .expect("our own")
                .map(|entry| entry.expect("our own").file_name())
                .collect();
            for name in names {
                self.remove_all(&format!("{path}/{}", name.to_string_lossy()));
            }
            fs::remove_dir(self.at(path)).expect("it is empty");
        } else {
            fs::remove_file(self.at(path)).expect("our own");
        }
        self.left(path, found);
    }

    fn rename(&self, from: &str, to: &str) {
        let (moved, over) = (self.found(&self.at(from)), self.found(&self.at(to)));
        let Some(moved) = moved.filter(|moved| over.is_none_or(|over| over.0 != moved.0)) else { return };
        if fs::rename(self.at(from), self.at(to)).is_err() {
            return;
        }
        if let Some((dir, name)) = self.parent(from) {
            lock(&self.kernel).entry(dir, name, moved.1, true);
        }
        self.came(to);
        if let Some((inode, is_dir, links)) = over {
            let mut kernel = lock(&self.kernel);
            if is_dir || links == 1 { kernel.gone(inode, is_dir) } else { kernel.own(inode, false) }
        }
    }

    /// Does it, if it can be done now.
    fn act(&self, step: &Step, turn: usize) {
        match step {
            Step::Write(path) => {
                let known = self.found(&self.at(path));
                if known.is_none_or(|found| !found.1) && fs::write(self.at(path), format!("{turn}")).is_ok() {
                    self.came(path);
                }
            }
            Step::Remove(path) => {
                if let Some(found) = self.found(&self.at(path)).filter(|found| !found.1) {
                    fs::remove_file(self.at(path)).expect("our own");
                    self.left(path, found);
                }
            }
            Step::RemoveAll(path) => self.remove_all(path),
            Step::MakeDirs(path) => {
                let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
                for path in ends.map(|end| &path[..end]) {
                    if fs::create_dir(self.at(path)).is_ok() {
                        self.came(path);
                    }
                }
            }
            Step::Rename(from, to) => self.rename(from, to),
            Step::Exchange(one, other) => {
                for (from, to) in [(one.as_str(), "../swap"), (other, one), ("../swap", other)] {
                    self.rename(from, to);
                }
            }
            Step::Link(from, to) => {
                if fs::hard_link(self.at(from), self.at(to)).is_ok() {
                    self.came(to);
                }
            }
            Step::Symlink(path) => {
                if symlink("nowhere", self.at(path)).is_ok() {
                    self.came(path);
                }
            }
            Step::Bits(path) | Step::Shut(path) | Step::Open(path) => self.bits(path, turn),
        }
    }

    fn bits(&self, path: &str, turn: usize) {
        let Some((inode, is_dir, _)) = self.found(&self.at(path)) else { return };
        let bits = if is_dir { 0o700 } else { 0o600 } | u32::try_from(turn % 8).expect("it is small");
        let is_link = fs::symlink_metadata(self.at(path)).is_ok_and(|found| found.is_symlink());
        if is_link || fs::set_permissions(self.at(path), fs::Permissions::from_mode(bits)).is_err() {
            return;
        }
        let mut kernel = lock(&self.kernel);
        if !is_dir {
            kernel.own(inode, false);
        } else if let Some(&mark) = kernel.marks.get(&inode) {
            kernel.tell(1, Told::Attributes(mark));
        }
    }

    fn contents(&self) -> BTreeMap<Place, (u64, u32, u64, Vec<u8>)> {
        let mut all = BTreeMap::new();
        let mut open = vec![Place::tree(RelPath::root())];
        while let Some(dir) = open.pop() {
            let path = self.dir.path().join("repo").join(dir.path.as_path());
            for entry in fs::read_dir(path).expect("a directory").map(|entry| entry.expect("an entry")) {
                let below = dir.join(&std::os::unix::ffi::OsStringExt::into_vec(entry.file_name()));
                let found = fs::symlink_metadata(entry.path()).expect("a stat");
                if found.is_dir() {
                    open.push(below);
                } else if Few.covers(RootId(0), &dir.path, below.path.name().expect("it has one")) {
                    let content = if found.is_file() { fs::read(entry.path()).expect("a read") } else { Vec::new() };
                    all.insert(below, (found.ino(), found.mode(), found.nlink(), content));
                }
            }
        }
        all
    }
}

/// A step, whether its events are dropped, whether they come twice, how often the engine reads and steps before the next.
type Turn = (Step, bool, bool, usize);

fn turns(drops: bool) -> impl Strategy<Value = Vec<Turn>> {
    let dropped = prop_oneof![9 => Just(false), 1 => Just(drops)];
    proptest::collection::vec((step(), dropped, any::<bool>(), 0..4usize), 0..40)
}

struct Bench {
    machine: Machine,
    engine: Engine<Simulated>,
    now: Moment,
    hints: Vec<Hint>,
}

impl Bench {
    fn turn(&mut self, (step, dropped, twice, steps): &Turn, turn: usize) {
        lock(&self.machine.kernel).dropping = *dropped;
        self.machine.act(step, turn);
        let mut kernel = lock(&self.machine.kernel);
        kernel.dropping = false;
        if *twice {
            let again: Vec<_> = kernel.queues[1].iter().cloned().collect();
            kernel.queues[1].extend(again);
        }
        drop(kernel);
        if *steps > 1 {
            self.read();
        }
        for _ in 0..*steps {
            self.engine.step(self.now);
        }
        self.hints.extend(self.engine.take_hints());
    }

    fn read(&mut self) {
        for queue in [0, 1] {
            let now = self.now;
            self.engine.read(queue, || now).expect("a reading");
        }
    }

    fn settle(&mut self) {
        let waits = |bench: &Self| lock(&bench.machine.kernel).queues.iter().any(|queue| !queue.is_empty());
        loop {
            self.read();
            let left = self.engine.tick(self.now);
            while self.engine.is_busy() {
                self.engine.step(self.now);
            }
            match left {
                Some(left) => self.now = self.now + left,
                None if !waits(self) && !self.engine.is_busy() => break,
                None => {}
            }
        }
        self.hints.extend(self.engine.take_hints());
    }
}

fn nothing_is_missed(before: &[Turn], during: &[Turn], after: &[Turn]) -> Result<(), TestCaseError> {
    let machine = Machine::new();
    for (turn, (step, ..)) in before.iter().enumerate() {
        machine.act(step, turn);
    }
    let set = WatchSet {
        roots: vec![Arc::new(Root::open(&machine.at("")).expect("the tree"))],
        interest: Arc::new(Few),
        known: Vec::new(),
        interval: Duration::ZERO,
    };
    let engine = Engine::new(set, Simulated(Arc::clone(&machine.kernel))).expect("the root is marked");
    let mut bench = Bench { machine, engine, now: Moment::from_nanos(1), hints: Vec::new() };
    // What comes and goes while the walk has not got there yet was never there. What is there at its end is known.
    let mut before = BTreeMap::new();
    for (round, turns) in [during, after].into_iter().enumerate() {
        for (turn, step) in turns.iter().enumerate() {
            bench.turn(step, (round + 1) * 100 + turn);
        }
        bench.settle();
        let now = bench.machine.contents();
        let hints = std::mem::take(&mut bench.hints);
        let missed = missed(&before, &now, &hints, |place| place.path.as_bytes().to_vec());
        prop_assert!(missed.is_empty(), "missed {missed:?}; said {hints:?}");
        before = now;
    }
    // What is there is marked as it is: a write to each brings a hint.
    let files: BTreeSet<_> = before.keys().cloned().collect();
    for (turn, place) in files.iter().enumerate() {
        let path = String::from_utf8_lossy(place.path.as_bytes()).into_owned();
        bench.turn(&(Step::Write(path), false, false, 0), 1000 + turn);
    }
    bench.settle();
    let missed = missed(&before, &bench.machine.contents(), &bench.hints, |place| place.path.as_bytes().to_vec());
    prop_assert!(missed.is_empty(), "at last missed {missed:?}; said {:?}", bench.hints);
    Ok(())
}

fn run(drops: bool) {
    let usual = ProptestConfig::default();
    // Each case has three lists of turns.
    let config = ProptestConfig { failure_persistence: None, cases: usual.cases / 3, ..usual };
    proptest::test_runner::TestRunner::new(config)
        .run(&(turns(drops), turns(drops), turns(drops)), |(before, during, after)| {
            nothing_is_missed(&before, &during, &after)
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn whatever_events_are_merged_late_or_repeated_nothing_that_changed_goes_unreported() {
    run(false);
}

#[test]
fn events_that_are_dropped_with_an_overflow_leave_nothing_unknown() {
    run(true);
}
