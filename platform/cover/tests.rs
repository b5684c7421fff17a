//! The engine with marks and events that a test makes up: what a kernel does seldom, and never when asked to.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::clock::Moment;
use crate::dir::Dir;
use crate::event::{Hint, Interest, LostCause, Names, Place, RootId, WatchSet};
use crate::relpath::RelPath;
use crate::root::Root;
use crate::stat::FileType;

use super::engine::Engine;
use super::{Event, Extra, MarkError, Marks, Reading, Seat};

/// An event that owns its bytes.
#[derive(Debug, Clone)]
enum Told {
    Entry { dir: Vec<u8>, name: Vec<u8>, is_dir: bool, left: bool },
    By(u32, Box<Told>),
    Own(Vec<u8>),
    Unmarked(Vec<u8>),
    Overflow,
}

/// Identities are inode numbers; events are what the test says.
#[derive(Default)]
struct Scripted {
    events: VecDeque<Told>,
    unknown: usize,
    left: Option<usize>,
    marked: Vec<Vec<u8>>,
    /// A directory that may not be marked.
    closed: Option<Vec<u8>>,
}

fn key_of(ino: u64) -> Vec<u8> {
    ino.to_ne_bytes().to_vec()
}

impl Scripted {
    fn mark(&mut self, ino: u64, key: &mut Vec<u8>) -> Result<(), MarkError> {
        match &mut self.left {
            Some(0) => return Err(MarkError::Limit),
            Some(left) => *left -= 1,
            None => {}
        }
        *key = key_of(ino);
        self.marked.push(key.clone());
        Ok(())
    }
}

impl Marks for Scripted {
    fn mark_dir(&mut self, dir: &Dir, _extra: Extra, _seat: Seat<'_>, key: &mut Vec<u8>) -> Result<(), MarkError> {
        let ino = dir.own_stat().expect("a stat").id.ino;
        if self.closed == Some(key_of(ino)) {
            return Err(MarkError::Failed(io::ErrorKind::PermissionDenied.into()));
        }
        self.mark(ino, key)
    }

    fn identify(&mut self, dir: &Dir, name: &[u8], key: &mut Vec<u8>) -> bool {
        *key = key_of(dir.stat(name).expect("a stat").expect("it is there").id.ino);
        true
    }

    fn is(&mut self, dir: &Dir, _extra: Extra, key: &[u8]) -> bool {
        key_of(dir.own_stat().expect("a stat").id.ino) == key
    }

    fn mark_entry(&mut self, dir: &Dir, name: &[u8], _type: FileType, key: &mut Vec<u8>) -> Result<(), MarkError> {
        let stat = dir.stat(name).expect("a stat").ok_or(MarkError::Gone)?;
        self.mark(stat.id.ino, key)
    }

    fn unmark(&mut self, key: &[u8]) {
        self.marked.retain(|marked| marked != key);
    }

    fn queues(&self) -> [BorrowedFd<'_>; 2] {
        unreachable!("no thread waits")
    }

    fn read(&mut self, _queue: usize, see: &mut dyn FnMut(Event<'_>) -> bool) -> io::Result<Reading> {
        let events = std::mem::take(&mut self.events);
        for event in &events {
            let (event, pid) = match event {
                Told::By(pid, event) => (&**event, *pid),
                event => (event, 0),
            };
            let known = match event {
                Told::Entry { dir, name, is_dir, left } => {
                    see(Event::Entry { dir, name, is_dir: *is_dir, left: *left, moved: *left, pid })
                }
                Told::Own(key) => see(Event::Own { key, pid }),
                Told::By(..) => unreachable!("by one process only"),
                Told::Unmarked(key) => see(Event::Unmarked(key)),
                Told::Overflow => see(Event::Overflow),
            };
            self.unknown += usize::from(!known);
        }
        Ok(Reading { events: events.len(), drained: true })
    }
}

struct Env;

impl Interest for Env {
    fn covers(&self, _root: RootId, _dir: &RelPath, name: &[u8]) -> bool {
        name == b".env"
    }

    fn enters(&self, _root: RootId, _dir: &RelPath) -> bool {
        true
    }

    fn first(&self, _root: RootId, _dir: &RelPath) -> bool {
        false
    }
}

/// Who was named, for what, and what is proven by it.
#[derive(Default)]
struct Heard(Mutex<Vec<(Place, u32, Moment)>>);

impl Heard {
    fn take(&self) -> Vec<(Place, u32, Moment)> {
        std::mem::take(&mut self.0.lock().expect("no panic in here"))
    }
}

impl Names for Heard {
    fn named(&self, place: &Place, pid: u32, empty_since: Moment) {
        self.0.lock().expect("no panic in here").push((place.clone(), pid, empty_since));
    }
}

struct Bench {
    heard: Arc<Heard>,
    dir: tempfile::TempDir,
    engine: Engine<Scripted>,
    now: Moment,
}

fn place(path: &str) -> Place {
    Place::tree(RelPath::parse(path.as_bytes()).expect("a relative path"))
}

fn touches(hints: &[Hint], path: &str) -> bool {
    hints.iter().any(|hint| matches!(hint, Hint::Touched { place: found, .. } if *found == place(path)))
}

fn losses(hints: &[Hint]) -> usize {
    hints.iter().filter(|hint| matches!(hint, Hint::Lost(_))).count()
}

impl Bench {
    fn new(files: &[&str], marks: Scripted) -> (Self, Vec<Hint>) {
        let dir = tempfile::tempdir().expect("a directory");
        let set = WatchSet {
            roots: vec![Arc::new(Root::open(dir.path()).expect("a root"))],
            interest: Arc::new(Env),
            known: Vec::new(),
            interval: Duration::ZERO,
        };
        for file in files {
            write(dir.path(), file);
        }
        let heard = Arc::new(Heard::default());
        let engine = Engine::new(set, marks, Some(heard.clone())).expect("the root is marked");
        let mut bench = Self { heard, dir, engine, now: Moment::from_nanos(1) };
        let walk = bench.settle();
        (bench, walk)
    }

    fn write(&self, path: &str) {
        write(self.dir.path(), path);
    }

    fn key(&self, path: &str) -> Vec<u8> {
        key_of(std::os::unix::fs::MetadataExt::ino(&fs::metadata(self.dir.path().join(path)).expect("a stat")))
    }

    /// Lets the time pass.
    fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    /// Gives events to the engine and lets it do all it has to do.
    fn tell(&mut self, events: impl IntoIterator<Item = Told>) -> Vec<Hint> {
        let now = self.now;
        self.engine.marks_mut().events.extend(events);
        self.engine.read(1, || now).expect("a reading");
        self.settle()
    }

    fn settle(&mut self) -> Vec<Hint> {
        self.engine.tick(self.now);
        while self.engine.is_busy() {
            self.engine.step(self.now);
        }
        self.engine.take_hints()
    }
}

fn write(dir: &Path, path: &str) {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
    fs::write(path, "x").expect("a file");
}

#[test]
fn what_was_made_without_an_event_is_found_after_an_overflow() {
    let (mut bench, walk) = Bench::new(&["a/.env"], Scripted::default());
    assert!(walk.contains(&Hint::Found(place("a/.env"))), "{walk:?}");
    bench.write("new/deep/.env");
    assert_eq!(bench.settle(), []);
    let hints = bench.tell([Told::Overflow]);
    assert_eq!(hints.first(), Some(&Hint::Lost(LostCause::Overflow)));
    assert!(touches(&hints, "new/deep/.env"), "{hints:?}");
    assert!(!touches(&hints, "a/.env"), "it is the same as before: {hints:?}");
}

#[test]
fn what_was_replaced_or_removed_without_an_event_is_found_after_an_overflow() {
    let (mut bench, _) = Bench::new(&["a/.env", "b/.env", "c/.env"], Scripted::default());
    let path = |name: &str| bench.dir.path().join(name);
    write(bench.dir.path(), "other");
    fs::rename(path("other"), path("a/.env")).expect("a rename");
    fs::remove_dir_all(path("b")).expect("a removal");
    fs::rename(path("c"), path("d")).expect("a rename");
    let hints = bench.tell([Told::Overflow]);
    assert!(touches(&hints, "a/.env") && touches(&hints, "d/.env"), "{hints:?}");
    for gone in ["b", "c"] {
        let vanished = |hint: &Hint| matches!(hint, Hint::Vanished { place: found, .. } if *found == place(gone));
        assert!(hints.iter().any(vanished), "{gone}: {hints:?}");
    }
}

#[test]
fn losses_in_a_row_are_said_and_recovered_at_intervals() {
    let (mut bench, _) = Bench::new(&[".env"], Scripted::default());
    let mut said = 0;
    for _ in 0..100 {
        said += losses(&bench.tell([Told::Overflow]));
        bench.wait(Duration::from_millis(1));
    }
    assert_eq!(said, 1, "within a tenth of a second");
    bench.write("late/.env");
    bench.wait(Duration::from_secs(1));
    let hints = bench.settle();
    assert_eq!(losses(&hints), 1, "nothing that was lost goes unsaid: {hints:?}");
    assert!(touches(&hints, "late/.env"), "{hints:?}");
    assert_eq!(bench.engine.tick(bench.now), None, "nothing is left to wait for");
}

#[test]
fn a_file_whose_mark_is_gone_is_marked_again() {
    let (mut bench, _) = Bench::new(&["a/.env"], Scripted::default());
    let key = bench.key("a/.env");
    bench.engine.marks_mut().marked.retain(|marked| *marked != key);
    let hints = bench.tell([Told::Unmarked(key.clone())]);
    assert!(touches(&hints, "a/.env"), "{hints:?}");
    assert!(bench.engine.marks().marked.contains(&key));
}

#[test]
fn at_the_limit_the_walk_goes_on_and_says_so_once() {
    let marks = Scripted { left: Some(2), ..Scripted::default() };
    let (_, walk) = Bench::new(&["a/.env", "b/.env", "c/d/.env"], marks);
    assert_eq!(losses(&walk), 1, "{walk:?}");
    for path in ["a/.env", "b/.env", "c/d/.env"] {
        assert!(walk.contains(&Hint::Found(place(path))), "{path}: {walk:?}");
    }
}

#[test]
fn an_event_of_an_unknown_object_touches_nothing_and_is_said_to_be_unknown() {
    let (mut bench, _) = Bench::new(&[".env"], Scripted::default());
    let event = Told::Entry { dir: b"nobody's".to_vec(), name: b".env".to_vec(), is_dir: false, left: false };
    assert_eq!(bench.tell([event]), []);
    assert_eq!(bench.engine.marks().unknown, 1);
}

#[test]
fn an_event_with_a_name_that_leads_elsewhere_is_a_gap() {
    let (mut bench, _) = Bench::new(&[".env"], Scripted::default());
    let event = Told::Entry { dir: bench.key("."), name: b"../.env".to_vec(), is_dir: false, left: false };
    assert_eq!(bench.tell([event]).first(), Some(&Hint::Lost(LostCause::Gap)));
}

#[test]
fn one_name_many_events_one_hint() {
    let (mut bench, _) = Bench::new(&[".env"], Scripted::default());
    let event = Told::Entry { dir: bench.key("."), name: b".env".to_vec(), is_dir: false, left: true };
    let hints = bench.tell(std::iter::repeat_n(event, 50));
    assert_eq!(hints, [Hint::Touched { place: place(".env"), at: bench.now }]);
}

#[test]
fn a_directory_that_was_away_and_is_back_counts_as_vanished_once() {
    let (mut bench, _) = Bench::new(&["a/.env"], Scripted::default());
    let event = |left| Told::Entry { dir: bench.key("."), name: b"a".to_vec(), is_dir: true, left };
    let (away, back) = (event(true), event(false));
    let hints = bench.tell([away, back.clone()]);
    assert_eq!(hints, [Hint::Vanished { place: place("a"), at: bench.now }]);
    assert_eq!(bench.tell([back]), [], "it is there, and the same");
}

#[test]
fn marks_below_a_directory_that_is_gone_are_taken_off() {
    let (mut bench, _) = Bench::new(&["a/b/.env"], Scripted::default());
    let before = bench.engine.marks().marked.len();
    let event = Told::Entry { dir: bench.key("."), name: b"a".to_vec(), is_dir: true, left: true };
    fs::remove_dir_all(bench.dir.path().join("a")).expect("a removal");
    bench.tell([event]);
    assert_eq!(before - bench.engine.marks().marked.len(), 3);
}

fn entry(bench: &Bench, dir: &str, name: &str, is_dir: bool, left: bool) -> Box<Told> {
    Box::new(Told::Entry { dir: bench.key(dir), name: name.as_bytes().to_vec(), is_dir, left })
}

#[test]
fn who_changed_a_covered_path_is_named_and_who_changed_another_is_not() {
    let (mut bench, _) = Bench::new(&["a/.env", "a/other"], Scripted::default());
    let (covered, other) = (entry(&bench, "a", ".env", false, false), entry(&bench, "a", "other", false, false));
    let own = Box::new(Told::Own(bench.key("a/.env")));
    let named = |bench: &Bench| bench.heard.take().into_iter().map(|(place, pid, _)| (place, pid)).collect::<Vec<_>>();
    bench.tell([Told::By(7, other), Told::By(7, covered.clone()), Told::By(7, covered), Told::By(8, own.clone())]);
    assert_eq!(named(&bench), [(place("a/.env"), 7), (place("a/.env"), 8)], "each of several in a row once");
    bench.tell([*own]);
    assert_eq!(named(&bench), [], "the event does not say who");
}

#[test]
fn who_moves_a_covered_directory_away_is_named_for_it() {
    let (mut bench, _) = Bench::new(&["a/.env"], Scripted::default());
    let away = entry(&bench, ".", "a", true, true);
    fs::rename(bench.dir.path().join("a"), bench.dir.path().join("b")).expect("a rename");
    bench.tell([Told::By(7, away.clone())]);
    let heard = bench.heard.take();
    assert!(matches!(&heard[..], [(at, 7, _)] if *at == place("a")), "{heard:?}");
    bench.tell([Told::By(7, away)]);
    assert_eq!(bench.heard.take(), [], "it is not known any more");
}

#[test]
fn who_made_a_directory_is_named_for_what_is_found_in_it_and_proven_by_nothing() {
    let (mut bench, _) = Bench::new(&[".env"], Scripted::default());
    bench.write("new/deep/.env");
    bench.write("new/other");
    let made = entry(&bench, ".", "new", true, false);
    bench.tell([Told::By(7, made)]);
    assert_eq!(bench.heard.take(), [(place("new/deep/.env"), 7, Moment::default())]);
}

#[test]
fn an_event_is_younger_than_the_last_moment_its_queue_was_seen_empty() {
    let (mut bench, _) = Bench::new(&[".env"], Scripted::default());
    let event = entry(&bench, ".", ".env", false, false);
    let since = |bench: &Bench| bench.heard.take().into_iter().map(|(_, _, since)| since).collect::<Vec<_>>();
    bench.tell([Told::By(7, event.clone())]);
    assert_eq!(since(&bench), [Moment::default()], "it was never seen empty");
    let drained = bench.now;
    bench.wait(Duration::from_secs(1));
    bench.tell([Told::By(7, event.clone())]);
    assert_eq!(since(&bench), [drained], "before the reading that emptied it");
    bench.engine.seen_empty(0, bench.now);
    bench.engine.seen_empty(1, drained + Duration::from_millis(1));
    bench.tell([Told::By(7, event)]);
    assert_eq!(since(&bench), [drained + Duration::from_secs(1)], "the other queue proves nothing, nor does the past");
}

#[test]
fn of_a_directory_that_may_not_be_marked_no_event_brings_up_a_name() {
    let (mut bench, _) = Bench::new(&[".env"], Scripted::default());
    bench.write("a/.env");
    bench.write("a/new/.env");
    bench.engine.marks_mut().closed = Some(bench.key("a"));
    let made = entry(&bench, ".", "a", true, false);
    let hints = bench.tell([*made.clone()]);
    assert!(hints.contains(&Hint::Lost(LostCause::Unreadable(place("a")))), "{hints:?}");
    let (file, folder) = (entry(&bench, "a", ".env", false, false), entry(&bench, "a", "new", true, false));
    let hints = bench.tell([Told::By(7, file), Told::By(7, folder)]);
    assert_eq!((hints, bench.heard.take()), (vec![], vec![]));
    assert_eq!(bench.engine.marks().unknown, 0, "it is known by its events all the same");
    bench.engine.marks_mut().closed = None;
    let hints = bench.tell([*made]);
    assert!(touches(&hints, "a/.env") && touches(&hints, "a/new/.env"), "it may be listed now: {hints:?}");
}
