//! Rows in, hints out: looks where rows say, and tells what it finds to be another thing than before.
//!
//! Promise: see [the module above](super). A directory is listed after the row that names it was taken, so that whatever the listing does
//! not show yet raises a row of its own. Each step lists one directory; rows come before steps.

mod listing;
mod sweep;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Moment;
use crate::event::{Hint, Interest, LostCause, Place, RootId};
use crate::relpath::RelPath;
use crate::stat::{FileId, FileType, Stat};
use crate::tree::Tree;

use self::sweep::Sweep;
use super::index::{Index, parent_of};
use super::looks::{Covered, Known, Looks};
use super::names::Names;
use super::pace::Pace;
use super::row::{Flags, Row};
use super::spelling::Spelling;
use super::state::State;
use super::vnodes::Held;

/// How deep directories may lie.
const MAX_DEPTH: usize = 1000;

/// Everything is compared no more often than this; what is lost meanwhile is compared by the next round.
const BETWEEN_RECOVERIES: Duration = Duration::from_secs(1);

/// A loss is said no more often than this.
const BETWEEN_LOSSES: Duration = Duration::from_millis(100);

/// A folder that stirs is listed no more often than this: most of what stirs it has rows of its own.
const BETWEEN_LISTINGS: Duration = Duration::from_millis(20);

/// What a look is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// The first walk: what is found is said to be found.
    Walk,
    /// A row, or a loss: what differs is said.
    Compare,
    /// Everything is said.
    TellAll,
}

/// Directories to list.
struct Job {
    open: Vec<(Place, Arc<[FileId]>)>,
    purpose: Purpose,
    /// Whether directories that are known already are gone into.
    whole: bool,
}

/// The lanes by urgency: rows and known places, recovery, the first walk.
const ROWS: usize = 0;
const RECOVERY: usize = 1;
const WALK: usize = 2;

/// See the module.
pub struct Engine<T> {
    tree: T,
    interest: Arc<dyn Interest>,
    spellings: Vec<Spelling>,
    known: BTreeSet<Place>,
    known_index: Index,
    state: State,
    volumes: BTreeMap<u64, Names>,
    /// The highest number each stream has told.
    last: Vec<u64>,
    lanes: [VecDeque<Job>; 3],
    turn: u8,
    walked: bool,
    tell_all: bool,
    losses: Pace,
    unsaid: Option<LostCause>,
    recoveries: Pace,
    stirred: BTreeSet<Place>,
    listings: Pace,
    sweep: Option<Sweep>,
    hints: Vec<Hint>,
    rearmed: BTreeSet<Place>,
    root_changed: BTreeSet<RootId>,
    at: Moment,
}

impl<T: Tree> Engine<T> {
    /// Begins with a walk over all roots, of which there are as many as spellings; known places come first.
    pub fn new(tree: T, interest: Arc<dyn Interest>, known: Vec<Place>, spellings: Vec<Spelling>) -> Self {
        let mut engine = Self {
            tree,
            interest,
            last: vec![0; spellings.len()],
            spellings,
            known: known.into_iter().collect(),
            known_index: Index::default(),
            state: State::default(),
            volumes: BTreeMap::new(),
            lanes: Default::default(),
            turn: 0,
            walked: false,
            tell_all: false,
            losses: Pace::new(BETWEEN_LOSSES),
            unsaid: None,
            recoveries: Pace::new(BETWEEN_RECOVERIES),
            stirred: BTreeSet::new(),
            listings: Pace::new(BETWEEN_LISTINGS),
            sweep: None,
            hints: Vec::new(),
            rearmed: BTreeSet::new(),
            root_changed: BTreeSet::new(),
            at: Moment::default(),
        };
        for place in &engine.known {
            engine.known_index.add(place);
        }
        let folders: BTreeSet<_> = engine.known.iter().filter_map(parent_of).collect();
        for place in folders {
            engine.lanes[ROWS].push_back(Job {
                open: vec![(place, Arc::from([]))],
                purpose: Purpose::Walk,
                whole: false,
            });
        }
        engine.lanes[WALK].push_back(Job { open: engine.all(), purpose: Purpose::Walk, whole: true });
        engine
    }

    fn covered(&self) -> Covered<'_> {
        Covered { interest: &*self.interest, known: &self.known, index: &self.known_index }
    }

    fn all(&self) -> Vec<(Place, Arc<[FileId]>)> {
        let roots = 0..u16::try_from(self.spellings.len()).expect("a run has few roots");
        roots.rev().map(|root| (Place { root: RootId(root), path: RelPath::root() }, Arc::from([]))).collect()
    }

    /// Another path leads to a root now.
    pub fn respell(&mut self, root: RootId, spelling: Spelling) {
        if let Some(found) = self.spellings.get_mut(usize::from(root.0)) {
            *found = spelling;
        }
    }

    /// Takes a batch of rows of one root's stream, received at `at`.
    pub fn rows(&mut self, root: RootId, rows: &[Row], at: Moment) {
        self.at = self.at.max(at);
        let Some(spelling) = self.spellings.get(usize::from(root.0)) else { return };
        let at = |place: &Place| self.tree.stat(place);
        let known =
            Known { root, spelling, state: &self.state, covered: self.covered(), volumes: &self.volumes, at: &at };
        let looks = Looks::of(rows, &known);
        if looks.root_changed {
            self.root_changed.insert(root);
        }
        let backwards = self.goes_backwards(root, rows);
        for loss in &looks.lost {
            self.lose((*loss).into());
        }
        if backwards {
            self.lose(LostCause::Gap);
        }
        for place in looks.away {
            self.hints.push(Hint::Vanished { place, at: self.at });
        }
        for place in looks.touched {
            self.touch(&place);
        }
        self.queue(looks.directories);
    }

    /// Whether the numbers of a batch all lie before those of an earlier one. Within a batch they keep no order: a row that
    /// others were merged into has the number of the last.
    fn goes_backwards(&mut self, root: RootId, rows: &[Row]) -> bool {
        let last = &mut self.last[usize::from(root.0)];
        let highest = rows.iter().map(|row| row.id).max().unwrap_or(0);
        if rows.iter().any(|row| row.flags.any(Flags::IDS_WRAPPED)) {
            *last = highest;
            return false;
        }
        let backwards = highest != 0 && highest < *last;
        if highest != 0 {
            *last = highest;
        }
        backwards
    }

    /// Hints a covered path and takes in what is there.
    fn touch(&mut self, place: &Place) {
        self.hints.push(Hint::Touched { place: place.clone(), at: self.at });
        match self.tree.stat(place) {
            Some(stat) if stat.file_type == FileType::Directory => {
                if self.state.remove_entry(place) {
                    self.rearmed.insert(place.clone());
                }
                if self.state.directory(place) != Some(stat.id) && self.interest.enters(place.root, &place.path) {
                    self.queue(BTreeMap::from([(place.clone(), true)]));
                }
            }
            Some(stat) => {
                if self.state.directory(place).is_some() || self.state.is_unreadable(place) {
                    self.vanish(place);
                }
                self.put(place, stat);
            }
            None => {
                if self.state.remove_entry(place) {
                    self.rearmed.insert(place.clone());
                }
            }
        }
    }

    /// Takes in a covered entry.
    fn put(&mut self, place: &Place, stat: Stat) {
        if self.state.put_entry(place, stat) {
            self.rearmed.insert(place.clone());
            self.rearmed.extend(parent_of(place));
        }
    }

    /// Queues looks at directories. One that lies below another that is looked at as a whole needs none of its own.
    fn queue(&mut self, directories: BTreeMap<Place, bool>) {
        let whole: BTreeSet<_> =
            directories.iter().filter(|(_, whole)| **whole).map(|(place, _)| place.clone()).collect();
        for (place, deep) in directories {
            let within = |path: RelPath| whole.contains(&Place { root: place.root, path });
            let root = (!place.path.is_root()).then(RelPath::root);
            if place.path.ancestors().chain(root).any(within) {
                continue;
            }
            self.lanes[ROWS].push_back(Job {
                open: vec![(place, Arc::from([]))],
                purpose: Purpose::Compare,
                whole: deep,
            });
        }
    }

    /// Something other than a row says that an object, or an entry of a directory, changed.
    pub fn stirred(&mut self, place: &Place, at: Moment) {
        self.at = self.at.max(at);
        if self.state.entry(place).is_some() || self.known.contains(place) {
            self.touch(place);
        }
        if self.state.directory(place).is_some() {
            self.stirred.insert(place.clone());
            self.listings.want();
            self.tick(self.at);
        }
    }

    /// Says that something was lost, and compares everything, neither too often.
    pub fn lose(&mut self, cause: LostCause) {
        self.unsaid.get_or_insert(cause);
        self.losses.want();
        self.recoveries.want();
        self.tick(self.at);
    }

    /// Hints everything again.
    pub fn rescan(&mut self, now: Moment) {
        self.at = self.at.max(now);
        self.tell_all = true;
        self.lanes[RECOVERY].push_back(Job { open: self.all(), purpose: Purpose::TellAll, whole: true });
    }

    /// Says and begins what had to wait. Returns how long the rest has to.
    pub fn tick(&mut self, now: Moment) -> Option<Duration> {
        self.at = self.at.max(now);
        if self.losses.take(now)
            && let Some(cause) = self.unsaid.take()
        {
            self.hints.push(Hint::Lost(cause));
        }
        if self.listings.take(now) {
            let stirred = std::mem::take(&mut self.stirred);
            self.queue(stirred.into_iter().map(|place| (place, false)).collect());
        }
        if self.walked {
            self.begin_sweep(now);
        }
        if self.lanes[RECOVERY].is_empty() && self.recoveries.take(now) {
            self.lanes[RECOVERY].push_back(Job { open: self.all(), purpose: Purpose::Compare, whole: true });
        }
        // What waits for a comparison that is under way is begun by a later call, and no time needs to be waited for.
        let recovery = self.recoveries.left(now).filter(|_| self.lanes[RECOVERY].is_empty());
        let sweep = self.sweep.as_ref().filter(|_| self.walked).and_then(|sweep| sweep.left(now));
        [self.losses.left(now), self.listings.left(now), recovery, sweep].into_iter().flatten().min()
    }

    /// Whether something is left to look at.
    pub fn is_busy(&self) -> bool {
        self.lanes.iter().any(|lane| !lane.is_empty()) || self.sweep.as_ref().is_some_and(Sweep::is_busy)
    }

    /// Lists one directory.
    pub fn step(&mut self, now: Moment) {
        self.at = self.at.max(now);
        self.turn = self.turn.wrapping_add(1);
        let mut busy = (0..self.lanes.len()).filter(|&lane| !self.lanes[lane].is_empty());
        // Every eighth step goes to the last in line, so that a storm of rows does not starve the walk.
        let lane = if self.turn.is_multiple_of(8) { busy.next_back() } else { busy.next() };
        if let Some(lane) = lane
            && let Some(mut job) = self.lanes[lane].pop_front()
        {
            if let Some((place, above)) = job.open.pop() {
                self.look(&place, &above, &mut job);
            }
            if !job.open.is_empty() {
                self.lanes[lane].push_front(job);
            }
        } else {
            self.sweep_some(now);
        }
        let told = self.tell_all && self.lanes[RECOVERY].is_empty();
        if (!self.walked && self.lanes[WALK].is_empty()) || (told && self.walked) {
            self.tell_all &= !told;
            self.walked = true;
            self.hints.push(Hint::Walked { directories: self.state.directories() });
        }
    }

    /// The hints so far.
    pub fn take_hints(&mut self) -> Vec<Hint> {
        std::mem::take(&mut self.hints)
    }

    /// Places that are another object than when this was last asked: what holds them open lets go, and opens what is there.
    pub fn take_rearmed(&mut self) -> BTreeSet<Place> {
        std::mem::take(&mut self.rearmed)
    }

    /// What is at the place is to be opened again, be it the same as before.
    pub fn rearm(&mut self, place: Place) {
        self.rearmed.insert(place);
    }

    /// The highest number the root's stream has told; zero if none.
    pub fn last(&self, root: RootId) -> u64 {
        self.last.get(usize::from(root.0)).copied().unwrap_or(0)
    }

    /// Roots whose path may lead elsewhere now.
    pub fn take_root_changed(&mut self) -> BTreeSet<RootId> {
        std::mem::take(&mut self.root_changed)
    }

    /// What is to be held open at the place, if anything is: covered entries, and the folders they lie in.
    pub fn held(&self, place: &Place) -> Option<Held> {
        let entry = self.state.entry(place).map(|stat| Held { id: stat.id, folder: false });
        entry.or_else(|| {
            let id = self.state.directory(place).filter(|_| self.state.has_entries(place))?;
            Some(Held { id, folder: true })
        })
    }
}
