//! A simulated kernel: any changes, and rows as FSEvents might give them: merged, out of order, twice, dropped and said so.
//!
//! One property: whatever is another thing afterwards was told, or a loss was; and what is told later holds, too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use crate::clock::Moment;
use crate::event::{Hint, Place, RootId};
use crate::relpath::RelPath;

use super::super::{Engine, Flags, Row, Spelling};
use super::memory::{Contents, Disk};
use super::steps::Change;
use crate::simulation::{Few, Step, missed, step};

/// Everything that has to wait for something has had its turn by then.
const SETTLED: Duration = Duration::from_secs(3);

/// What the system does with the rows of one step.
#[derive(Debug, Clone, Copy)]
enum Fate {
    /// They come.
    Told,
    /// They come again with the next.
    Twice,
    /// They wait and are merged with those of later steps, by path.
    Merged,
    /// They are dropped, and a row says so later.
    Dropped,
}

fn fate(drops: bool) -> impl Strategy<Value = Fate> {
    let dropped = if drops { Fate::Dropped } else { Fate::Twice };
    prop_oneof![4 => Just(Fate::Told), 1 => Just(Fate::Twice), 4 => Just(Fate::Merged), 1 => Just(dropped)]
}

/// One thing that happens: a step, what becomes of its rows, how they are spelled, how many directories the engine gets to
/// list before the next.
type Turn = (Step, Fate, u8, usize);

fn turns(drops: bool) -> impl Strategy<Value = Vec<Turn>> {
    proptest::collection::vec((step(), fate(drops), any::<u8>(), 0..4usize), 0..40)
}

fn swap_case(path: &str) -> String {
    path.chars()
        .map(|letter| if letter.is_lowercase() { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() })
        .collect()
}

/// The path of a row: in one of the spellings of the root, and on a volume that folds in one of the name's.
fn spelled(path: &str, spelling: u8, folds: bool) -> Vec<u8> {
    let root = ["/private/tmp/repo", "/tmp/repo", "/System/Volumes/Data/private/tmp/repo"][usize::from(spelling % 3)];
    let path = match spelling / 3 % 4 {
        1 if folds => swap_case(path),
        2 if folds => path.replace('é', "e\u{301}"),
        3 if folds => path.replace("e\u{301}", "é"),
        _ => path.to_owned(),
    };
    format!("{root}/{path}").into_bytes()
}

struct Kernel {
    disk: Disk,
    engine: Engine<Disk>,
    now: Moment,
    id: u64,
    waiting: BTreeMap<Vec<u8>, Row>,
    again: Vec<Row>,
    dropped: bool,
    hints: Vec<Hint>,
}

impl Kernel {
    fn new(disk: Disk, links: bool) -> Self {
        let spelling = Spelling::new(["/tmp/repo".as_bytes()]);
        let mut engine = Engine::new(disk.clone(), Arc::new(Few), Vec::new(), vec![spelling]);
        if links {
            engine.sweep_every(Duration::from_secs(2));
        }
        let (waiting, again, hints) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self { disk, engine, now: Moment::from_nanos(1), id: 1, waiting, again, dropped: false, hints }
    }

    /// The names a change is told under: those of the same inode, too, as since macOS 12.
    fn rows(&mut self, change: &Change, spelling: u8) -> Vec<Row> {
        let mut paths = BTreeSet::from([change.path.clone()]);
        if change.flags.any(Flags::MODIFIED.with(Flags::INODE_META_MOD)) && spelling.is_multiple_of(2) {
            paths.extend(self.disk.names_of(change.inode));
        }
        if change.path.starts_with("../") {
            paths.extend(self.disk.names_of(change.inode));
        }
        let folds = self.disk.folds();
        let mut rows = Vec::new();
        for path in paths.iter().filter(|path| !path.starts_with("../")) {
            self.id += 3;
            let file = Some(change.inode);
            rows.push(Row { path: Some(spelled(path, spelling, folds)), flags: change.flags, id: self.id, file });
        }
        rows
    }

    fn turn(&mut self, turn: &Turn) {
        let (step, fate, spelling, listed) = turn;
        let changes = self.disk.act(step);
        if let Step::Link(from, to) = step {
            self.linked(from, to);
        }
        let rows: Vec<_> = changes.iter().flat_map(|change| self.rows(change, *spelling)).collect();
        match fate {
            Fate::Told => self.deliver(rows),
            Fate::Twice => {
                self.again.extend(rows.iter().cloned());
                self.deliver(rows);
            }
            Fate::Merged => {
                for row in rows {
                    let path = row.path.clone().expect("every row has one here");
                    let merged = self.waiting.entry(path).or_insert_with(|| row.clone());
                    *merged = Row { flags: merged.flags.with(row.flags), ..row };
                }
            }
            Fate::Dropped => self.dropped |= !rows.is_empty(),
        }
        for _ in 0..*listed {
            self.engine.step(self.now);
        }
        self.hear();
    }

    /// The system has no row for a new hard link. kqueue tells of what is held open; of another folder nothing does, and the
    /// sweep has to find it.
    fn linked(&mut self, from: &str, to: &str) {
        let parent = to.rsplit_once('/').map_or("", |(dir, _)| dir);
        for path in [parent, from] {
            let place = RelPath::parse(path.as_bytes()).map(Place::tree).ok();
            if let Some(place) = place.filter(|place| self.engine.held(place).is_some()) {
                self.engine.stirred(&place, self.now);
            }
        }
    }

    fn deliver(&mut self, mut rows: Vec<Row>) {
        rows.splice(0..0, std::mem::take(&mut self.again));
        // No order is kept within a batch.
        rows.reverse();
        self.engine.rows(RootId(0), &rows, self.now);
    }

    /// Everything that waits comes, and the engine does all it has to.
    fn settle(&mut self) {
        let mut rows: Vec<_> = std::mem::take(&mut self.waiting).into_values().collect();
        if std::mem::take(&mut self.dropped) {
            self.id += 1;
            let flags = Flags::MUST_SCAN_SUB_DIRS.with(Flags::USER_DROPPED);
            rows.push(Row { path: Some(b"/private/tmp/repo".to_vec()), flags, id: self.id, file: None });
        }
        self.deliver(rows);
        let end = self.now + SETTLED;
        while self.now < end {
            let left = self.engine.tick(self.now).unwrap_or(SETTLED);
            while self.engine.is_busy() {
                self.engine.step(self.now);
            }
            self.now = self.now + left.max(Duration::from_millis(1));
        }
        self.hear();
    }

    fn hear(&mut self) {
        self.hints.extend(self.engine.take_hints());
    }
}

/// On a volume that folds, the same place under all its names.
fn folded(place: &Place, folds: bool) -> Vec<u8> {
    if !folds {
        return place.path.as_bytes().to_vec();
    }
    String::from_utf8_lossy(place.path.as_bytes()).to_lowercase().replace('é', "e\u{301}").into_bytes()
}

/// What kind of machine it is.
#[derive(Debug, Clone, Copy)]
struct World {
    /// Names are the same in any case and form.
    folds: bool,
    /// Rows are dropped.
    drops: bool,
    /// Hard links are made, which have no rows, and every directory is swept for them.
    links: bool,
}

fn nothing_is_missed(world: World, before: &[Turn], during: &[Turn], after: &[Turn]) -> Result<(), TestCaseError> {
    let World { folds, links, .. } = world;
    let disk = Disk::new(folds);
    let possible = |(step, ..): &&Turn| links || !matches!(step, Step::Link(..));
    for (step, ..) in before.iter().filter(possible) {
        disk.act(step);
    }
    let mut kernel = Kernel::new(disk, links);
    // What comes and goes while the walk has not got there yet was never there. What is there at its end is known.
    let mut before = Contents::new();
    for turns in [during, after] {
        for turn in turns.iter().filter(possible) {
            kernel.turn(turn);
        }
        kernel.settle();
        let now = kernel.disk.contents();
        let hints = std::mem::take(&mut kernel.hints);
        let missed = missed(&before, &now, &hints, |place| folded(place, folds));
        prop_assert!(missed.is_empty(), "missed {missed:?}; said {hints:?}");
        before = now;
    }
    // What is there is known as it is: a write to each brings a hint.
    for place in before.keys() {
        let path = String::from_utf8_lossy(place.path.as_bytes()).into_owned();
        kernel.turn(&(Step::Write(path), Fate::Told, 4, 0));
    }
    kernel.settle();
    let missed = missed(&before, &kernel.disk.contents(), &kernel.hints, |place| folded(place, folds));
    prop_assert!(missed.is_empty(), "at last missed {missed:?}; said {:?}", kernel.hints);
    Ok(())
}

fn run(world: World) {
    let turns = || turns(world.drops);
    let usual = ProptestConfig::default();
    // Each case has three lists of turns.
    let config = ProptestConfig { failure_persistence: None, cases: usual.cases / 3, ..usual };
    proptest::test_runner::TestRunner::new(config)
        .run(&(turns(), turns(), turns()), |(before, during, after)| nothing_is_missed(world, &before, &during, &after))
        .unwrap_or_else(|error| panic!("{error}"));
}

const PLAIN: World = World { folds: false, drops: false, links: false };

#[test]
fn on_a_volume_that_tells_names_apart_nothing_that_changed_goes_unreported() {
    run(PLAIN);
}

#[test]
fn on_a_volume_that_folds_names_nothing_that_changed_goes_unreported() {
    run(World { folds: true, ..PLAIN });
}

#[test]
fn links_without_rows_are_found_by_what_is_held_open_and_by_the_sweep() {
    run(World { links: true, ..PLAIN });
    run(World { links: true, folds: true, ..PLAIN });
}

#[test]
fn rows_that_are_dropped_behind_a_loss_leave_nothing_unknown() {
    run(World { drops: true, ..PLAIN });
    run(World { drops: true, folds: true, ..PLAIN });
}
