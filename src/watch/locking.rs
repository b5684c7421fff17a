//! The lock at work in a running watch: set at the start, lifted for a minute, for a restore, and at the end.
//!
//! Promise: our own flag is no change of a file; one that somebody takes off is found by the sweep and set again; what a
//! restore needs unlocked is locked again afterwards, also when it failed. Limit: between taking a flag off and the end of a
//! restore the path is as open as without a lock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use platform::{Flags, Moment, Place};

use crate::baseline::{Content, Row, Snapshot};
use crate::cli::exit::{Refusal, RefusalCode};
use crate::journal::{Event, Object};
use crate::rules::Mode;

use super::acting::write;
use super::branch::Branch;
use super::lines::{self, counted};
use super::lock::minutes::Minutes;
use super::lock::objects::{Hindrance, Locks, Outcome};
use super::lock::waiting::Waiting;
use super::lock::{Locked, Pen};
use super::session::Session;
use super::survey::whole_folders;
use super::tally::Tally;

/// What could not be locked is tried again after this time: each try is two entries in the journal.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// The lock of a running watch.
pub(super) struct Locking {
    pub(super) locks: Locks,
    pub(super) minutes: Minutes,
    /// Places whose flag somebody took off.
    taken_off: BTreeSet<Place>,
    /// Places that could not be locked, and when that is tried again.
    later: BTreeMap<Place, Moment>,
    /// Places that another watch has locked.
    waiting: Waiting,
    /// Where git is.
    branch: Branch,
}

/// Writes entries among those of the watch.
pub(super) struct WatchPen<'s> {
    pub(super) tally: &'s mut Tally,
    pub(super) journal: &'s mut dyn crate::journal::Journal,
    pub(super) at: String,
}

impl Pen for WatchPen<'_> {
    fn now(&mut self, events: &[Event]) -> Result<(), String> {
        write(self.tally, self.journal, &self.at, events)
    }

    fn soon(&mut self, event: Event) {
        self.tally.note(event);
    }
}

/// The parts of a session that locking works with, borrowed one by one.
macro_rules! pen {
    ($session:ident) => {
        $crate::watch::locking::WatchPen {
            at: $crate::journal::rfc3339($session.parts.clock.wall()),
            tally: &mut $session.tally,
            journal: &mut *$session.parts.journal,
        }
    };
}

pub(super) use pen;

impl Locking {
    fn new(flags: Arc<dyn Flags>) -> Self {
        Self {
            locks: Locks::new(flags),
            minutes: Minutes::default(),
            taken_off: BTreeSet::new(),
            later: BTreeMap::new(),
            waiting: Waiting::default(),
            branch: Branch::default(),
        }
    }
}

impl Session {
    // At the start and at the end.

    /// Locks what can be locked of the baseline. A refusal if nothing can, although something is protected.
    pub(super) fn lock_everything(&mut self) -> Result<Option<Locked>, Refusal> {
        let Some(flags) = self.parts.flags.take() else { return Ok(None) };
        let mut lock = Locking::new(flags);
        // Where git is now: the first look finds no change.
        lock.branch.has_changed(self.parts.roots.tree());
        self.lock = Some(lock);
        let files = self.baseline.rows().filter(|(_, row)| is_lockable(row)).map(|(place, _)| place.clone());
        let mut places: Vec<Place> = files.collect();
        let wanted = places.len();
        places.extend(whole_folders(&self.parts.roots, &self.parts.rules));
        let refused = self.lock_these(&places);
        let locked = self.lock.as_ref().map(|lock| lock.locks.count()).unwrap_or_default();
        let sentences = reasons(&refused);
        let anothers = refused.iter().filter(|(_, hindrance)| *hindrance == Hindrance::Another).count();
        if anothers > 0 {
            self.say(&lines::locked_by_another(anothers));
        }
        if locked == Locked::default() && wanted > 0 && anothers == 0 && !self.options.best_effort {
            return Err(Refusal::new(
                RefusalCode::BackendUnavailable,
                format!("--lock: no protected file can be locked: {}", sentences.join("; ")),
                "leave --lock out, or go on without it by --best-effort",
            ));
        }
        let sentences = sentences.into_iter().map(|sentence| format!("Not locked: {sentence}."));
        self.options.limits.extend(sentences);
        self.options.limits.push(
            "A folder above a locked file can be renamed; where the file system lets them (all but ext4), descriptors and mappings opened before go on writing.".to_owned(),
        );
        Ok(Some(locked))
    }

    /// Takes off every flag of ours, wherever the objects lie by now; says which it could not.
    pub(super) fn unlock_everything(&mut self) {
        let Some(mut lock) = self.lock.take() else { return };
        let left = lock.locks.unlock_all(&self.parts.roots, &mut pen!(self));
        let mut by_reason: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (stored, reason) in left {
            by_reason.entry(reason).or_default().push(shown(&stored));
        }
        for (reason, mut paths) in by_reason {
            paths.sort();
            self.options.limits.push(format!("Left locked: {}: {reason}.", paths.join(", ")));
            self.say(&lines::left_locked(&paths, &reason));
        }
    }

    // Around a decision.

    /// Unlocks a path and the folders above it, so that the path can be put back. Returns what it was.
    pub(super) fn loosen(&mut self, place: &Place) -> Vec<Place> {
        let Some(lock) = &mut self.lock else { return Vec::new() };
        let above = place.path.ancestors().map(|path| Place { root: place.root, path });
        let locked: Vec<Place> = above.chain([place.clone()]).filter(|place| lock.locks.is_locked(place)).collect();
        let (unlocked, failed) = lock.locks.unlock(&self.parts.roots, locked, &mut pen!(self));
        for (place, reason) in failed {
            let shown = self.parts.roots.shown(&place);
            let now = self.now();
            self.parts.console.line_if_new(&shown, &lines::not_unlocked(&shown, &reason), now);
        }
        unlocked
    }

    /// Locks again what was unlocked for something that failed.
    pub(super) fn lock_again(&mut self, loosened: &[Place]) {
        let spare = |place: &&Place| self.lock.as_ref().is_some_and(|lock| !lock.minutes.spare(place));
        let places: Vec<Place> = loosened.iter().filter(spare).cloned().collect();
        self.lock_or_later(&places);
    }

    /// Locks a path that is settled, and the folders above it that are covered whole.
    pub(super) fn lock_around(&mut self, place: &Place) {
        if self.lock.is_none() || self.end.is_some() {
            return;
        }
        let mut places: Vec<Place> = place
            .path
            .ancestors()
            .map(|path| Place { root: place.root, path })
            .filter(|folder| self.parts.rules.covers_whole(folder))
            .collect();
        // One that was accepted as immutable is whose it was then.
        let is_lockable = |row: &Row| is_lockable(row) && !row.snapshot.immutable;
        let is_file = self.baseline.get(place).is_some_and(is_lockable) && !self.machine.is_open(place);
        places.extend(is_file.then(|| place.clone()));
        places.retain(|place| self.lock.as_ref().is_some_and(|lock| !lock.minutes.spare(place)));
        self.lock_or_later(&places);
    }

    fn lock_or_later(&mut self, places: &[Place]) {
        for (place, hindrance) in self.lock_these(places) {
            if let Hindrance::Failed(reason) = hindrance {
                let shown = self.parts.roots.shown(&place);
                let now = self.now();
                self.parts.console.line_if_new(&shown, &lines::not_locked(&shown, &reason), now);
                self.lock.as_mut().map(|lock| lock.later.insert(place, now + TRY_AGAIN));
            }
        }
    }

    /// Locks these, and has the files among them looked at: from now on they stay as they are found.
    fn lock_these(&mut self, places: &[Place]) -> Vec<(Place, Hindrance)> {
        let Some(lock) = &mut self.lock else { return Vec::new() };
        let Outcome { locked, refused } = lock.locks.lock(&self.parts.roots, places, &mut pen!(self));
        let now = self.parts.clock.now();
        for place in locked {
            if self.baseline.get(&place).is_some() {
                self.to_look.entry(place).or_insert(now);
            }
        }
        refused.into_iter().map(|(place, hindrance)| self.by_whom(place, hindrance, now)).collect()
    }

    /// Tells a lock of another watch from what else was immutable before; it is ours to lock once that one has released it.
    fn by_whom(&mut self, place: Place, hindrance: Hindrance, now: Moment) -> (Place, Hindrance) {
        if hindrance != Hindrance::Foreign {
            return (place, hindrance);
        }
        let stat = self.parts.roots.get(place.root).stat(&place.path).ok().flatten();
        if !stat.is_some_and(|stat| self.parts.others.have_flagged(Object::of(&stat))) {
            return (place, hindrance);
        }
        if let Some(lock) = &mut self.lock {
            lock.waiting.add(place.clone(), now);
        }
        (place, Hindrance::Another)
    }

    // What is seen of it.

    /// The snapshot without a flag that is ours, an earlier run's, or another watch's. One of ours that is missing is noted.
    pub(super) fn without_our_flag(&mut self, place: &Place, mut now: Snapshot) -> Snapshot {
        let Some(id) = now.id() else { return now };
        if self.parts.left_locked.contains(&id) {
            now.immutable = false;
        } else if let Some(lock) = &mut self.lock
            && lock.locks.carries(id)
        {
            if !now.immutable {
                lock.taken_off.insert(place.clone());
            }
            now.immutable = false;
        } else if now.immutable && self.is_anothers(place, &now) {
            now.immutable = false;
        }
        now
    }

    /// Whether another watch has made immutable what was found at the place.
    fn is_anothers(&mut self, place: &Place, found: &Snapshot) -> bool {
        let Some(stat) = found.stat else { return false };
        if self.parts.others.have_flagged(Object::of(&stat)) {
            return true;
        }
        // It may have been released, and its journal may say so, since it was looked at.
        let now = self.parts.roots.get(place.root).stat(&place.path).ok().flatten();
        now.is_some_and(|now| now.id == stat.id && !now.immutable)
    }

    /// One round of the sweep: folders whose flag is gone, and what could not be locked before.
    pub(super) fn sweep_lock(&mut self, now: Moment) {
        let Some(lock) = &mut self.lock else { return };
        let folders = lock.locks.places().filter(|(_, is_folder)| *is_folder).map(|(place, _)| place);
        let roots = &self.parts.roots;
        let is_off =
            |place: &&Place| matches!(roots.get(place.root).stat(&place.path), Ok(Some(stat)) if !stat.immutable);
        let off: Vec<Place> = folders.filter(is_off).cloned().collect();
        let has_gone = lock.branch.has_changed(roots.tree()) && lock.locks.count() != Locked::default();
        lock.taken_off.extend(off);
        let is_locked =
            |place: &Place| matches!(roots.get(place.root).stat(&place.path), Ok(Some(stat)) if stat.immutable);
        let released = lock.waiting.take_due(now, is_locked);
        let due = lock.later.extract_if(.., |_, due| *due <= now).map(|(place, _)| place);
        let due: Vec<Place> = due.chain(released).collect();
        if has_gone {
            self.say(lines::another_branch());
        }
        for place in due {
            if self.baseline.get(&place).is_some() {
                self.lock_around(&place);
            } else if self.parts.rules.covers_whole(&place) {
                self.lock_again(std::slice::from_ref(&place));
            }
        }
    }

    /// What is due: minutes that are over, flags to be set again.
    pub(super) fn tend_lock(&mut self) {
        let now = self.now();
        let Some(lock) = &mut self.lock else { return };
        let machine = &self.machine;
        let due = lock.minutes.take_due(now, |place| machine.open_below(place).next().is_some());
        let taken_off = std::mem::take(&mut lock.taken_off);
        for place in due {
            self.minute_is_over(&place);
        }
        for place in taken_off {
            self.set_again(&place, now);
        }
    }

    fn minute_is_over(&mut self, place: &Place) {
        if self.baseline.get(place).is_none() && self.parts.rules.covers_whole(place) {
            self.lock_again(std::slice::from_ref(place));
        }
        self.lock_around(place);
        // What was changed and accepted in the folder meanwhile has been locked by then; and so is what stayed.
        let is_locked = self.lock.as_ref().is_some_and(|lock| lock.locks.is_locked(place));
        let shown = self.parts.roots.shown(place);
        self.say(&if is_locked { lines::locked_again(&shown) } else { lines::gone_unlocked(&shown) });
    }

    fn set_again(&mut self, place: &Place, now: Moment) {
        let Some(lock) = &mut self.lock else { return };
        let done = lock.locks.set_again(&self.parts.roots, place);
        let shown = self.parts.roots.shown(place);
        match done {
            Ok(false) => {}
            Ok(true) => {
                self.parts.console.line_if_new(&shown, &lines::taken_off(&shown), now);
                self.log("lock_taken_off", place, &[]);
                if self.baseline.get(place).is_some() {
                    self.to_look.insert(place.clone(), now);
                }
            }
            Err(hindrance) => {
                let line = lines::not_locked(&shown, hindrance.words());
                self.parts.console.line_if_new(&shown, &line, now);
            }
        }
    }

    /// When the lock needs attention, if nothing else happens.
    pub(super) fn lock_wake_at(&self, now: Moment) -> Option<Moment> {
        self.lock.as_ref()?.minutes.wake_at(now)
    }
}

/// Whether the row is of a file that is to be locked: one whose changes are undone.
fn is_lockable(row: &Row) -> bool {
    row.class.mode == Mode::Restore && matches!(row.snapshot.content, Content::Regular { .. })
}

/// What is not locked, counted by reason.
fn reasons(refused: &[(Place, Hindrance)]) -> Vec<String> {
    let mut counts: BTreeMap<&Hindrance, usize> = BTreeMap::new();
    for (_, hindrance) in refused {
        *counts.entry(hindrance).or_default() += 1;
    }
    counts.into_iter().map(|(hindrance, count)| format!("{} {}", counted(count, "path"), hindrance.words())).collect()
}

/// A stored name as people see it.
fn shown(stored: &str) -> String {
    crate::text::decode(stored)
        .map_or_else(|| crate::text::escaped(stored.as_bytes()), |bytes| crate::text::escaped(&bytes))
}
