//! Which objects are immutable by us, and how they become so and cease to be.
//!
//! Promise: at every moment whatever carries a flag of ours is in the journal as such; an object is told by device, inode
//! and owner, reached through a root without following a link, and nothing else is touched. Limit: so many objects are
//! kept open; one beyond, whose folder was moved out of the roots, is not found again.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

use platform::dir::stat_of;
use platform::{FileId, FileType, FlagError, Flags, Place, Root, RootError, Stat};

use super::{Locked, Pen};
use crate::cli::exit::causes;
use crate::journal::{Event, Object};
use crate::roots::Roots;
use crate::watch::survey::whereabouts;

/// Objects named in one durable batch, and open at once for it.
const AT_ONCE: usize = 256;
/// Objects that are kept open, so that they are found wherever they are moved to.
const KEPT_OPEN: usize = 128;

/// Why a file or folder is not locked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hindrance {
    /// It was immutable before; whoever made it so takes it off.
    Foreign,
    /// Another watch has locked it.
    Another,
    /// It belongs to another user than the one the watch works for.
    NotOurs,
    /// Its file system has no such flag.
    Unsupported,
    /// Something else is there, or nothing.
    Gone,
    /// It did not work this time.
    Failed(String),
}

impl Hindrance {
    /// In words that go on after a number of files.
    pub fn words(&self) -> &str {
        match self {
            Self::Foreign => "immutable before, and left as it was",
            Self::Another => "locked by another keep watch",
            Self::NotOurs => "of another user",
            Self::Unsupported => "on a file system that has no immutable flag",
            Self::Gone => "not there any more",
            Self::Failed(reason) => reason,
        }
    }
}

/// What came of locking.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What is locked now and was not before.
    pub locked: Vec<Place>,
    /// What is not, and why.
    pub refused: Vec<(Place, Hindrance)>,
}

/// One object that carries our flag.
#[derive(Debug)]
pub(super) struct Held {
    /// Where it lies, or lay when it was locked; `None` where no root of this run has it.
    pub(super) place: Option<Place>,
    /// The name in the journal.
    pub(super) stored: String,
    pub(super) object: Object,
    file: Option<OwnedFd>,
}

impl Held {
    /// One that the journal knows.
    pub(super) fn of_journal(roots: &Roots, object: Object, stored: &str) -> Self {
        Self { place: roots.find(stored), stored: stored.to_owned(), object, file: None }
    }
}

/// What could not be released.
#[derive(Debug)]
pub(super) struct Unreleased {
    pub(super) held: Held,
    pub(super) reason: String,
}

/// What came of releasing.
#[derive(Debug, Default)]
pub(super) struct Released {
    /// Where they lie.
    pub(super) off: Vec<Held>,
    /// Those that are nowhere below the roots.
    pub(super) missing: Vec<Held>,
    pub(super) left: Vec<Unreleased>,
}

/// What is locked in a running watch.
pub struct Locks {
    flags: Arc<dyn Flags>,
    objects: BTreeMap<FileId, Held>,
    /// The object that is meant at a place, and whether it is a folder.
    at: BTreeMap<Place, (FileId, bool)>,
    kept_open: usize,
}

impl Locks {
    /// Nothing is locked yet; `flags` does it.
    pub fn new(flags: Arc<dyn Flags>) -> Self {
        Self { flags, objects: BTreeMap::new(), at: BTreeMap::new(), kept_open: 0 }
    }

    /// Whether the object carries our flag, as far as we know.
    pub fn carries(&self, id: FileId) -> bool {
        self.objects.contains_key(&id)
    }

    /// Whether the place is locked.
    pub fn is_locked(&self, place: &Place) -> bool {
        self.at.contains_key(place)
    }

    /// What is locked, and whether it is a folder.
    pub fn places(&self) -> impl Iterator<Item = (&Place, bool)> {
        self.at.iter().map(|(place, (_, is_folder))| (place, *is_folder))
    }

    /// How much is locked.
    pub fn count(&self) -> Locked {
        let folders = self.at.values().filter(|(_, is_folder)| *is_folder).count();
        Locked { files: self.at.len() - folders, folders }
    }

    /// Locks what lies at these places: regular files and folders. What is locked already is passed over.
    pub fn lock(&mut self, roots: &Roots, places: &[Place], pen: &mut dyn Pen) -> Outcome {
        let mut outcome = Outcome::default();
        for places in places.chunks(AT_ONCE) {
            self.lock_some(roots, places, pen, &mut outcome);
        }
        outcome
    }

    fn lock_some(&mut self, roots: &Roots, places: &[Place], pen: &mut dyn Pen, outcome: &mut Outcome) {
        let mut ready = Vec::new();
        for place in places {
            match open(roots.get(place.root), place) {
                Ok((_, stat)) if stat.immutable && self.carries(stat.id) => self.note_place(place, &stat),
                Ok((_, stat)) if stat.immutable => outcome.refused.push((place.clone(), Hindrance::Foreign)),
                Ok((file, stat)) => ready.push((place, file, stat)),
                Err(hindrance) => outcome.refused.push((place.clone(), hindrance)),
            }
        }
        let entries: Vec<Event> = ready
            .iter()
            .map(|(place, _, stat)| Event::Flagged { path: roots.stored(place), id: Object::of(stat) })
            .collect();
        if entries.is_empty() {
            return;
        }
        if let Err(reason) = pen.now(&entries) {
            let refused = |(place, ..): (&Place, OwnedFd, Stat)| (place.clone(), Hindrance::Failed(reason.clone()));
            return outcome.refused.extend(ready.into_iter().map(refused));
        }
        for (place, file, stat) in ready {
            let (stored, object) = (roots.stored(place), Object::of(&stat));
            match set(&*self.flags, file.as_fd()) {
                Ok(()) => {
                    self.note_place(place, &stat);
                    let keeps = self.kept_open < KEPT_OPEN;
                    self.kept_open += usize::from(keeps);
                    let held = Held { place: Some(place.clone()), stored, object, file: keeps.then_some(file) };
                    self.objects.insert(stat.id, held);
                    outcome.locked.push(place.clone());
                }
                Err(hindrance) => {
                    pen.soon(Event::Unflagged { path: stored, id: object, missing: false });
                    outcome.refused.push((place.clone(), hindrance));
                }
            }
        }
    }

    fn note_place(&mut self, place: &Place, stat: &Stat) {
        self.at.insert(place.clone(), (stat.id, stat.file_type == FileType::Directory));
    }

    /// Unlocks these places. An object that was moved away since is left for the end. Returns what was unlocked, and what
    /// could not be, with the reason.
    pub fn unlock(
        &mut self,
        roots: &Roots,
        places: impl IntoIterator<Item = Place>,
        pen: &mut dyn Pen,
    ) -> (Vec<Place>, Vec<(Place, String)>) {
        let (mut unlocked, mut failed) = (Vec::new(), Vec::new());
        for place in places {
            let Some(&(id, _)) = self.at.get(&place) else { continue };
            let Some(held) = self.objects.get(&id) else { continue };
            match take_off(Some(&*self.flags), roots, held, held.place.as_ref()) {
                Ok(true) => {
                    self.forget(id, pen, false);
                    unlocked.push(place);
                }
                // Another object lies there by now.
                Ok(false) => {
                    self.at.remove(&place);
                }
                Err(reason) => failed.push((place, reason)),
            }
        }
        (unlocked, failed)
    }

    fn forget(&mut self, id: FileId, pen: &mut dyn Pen, missing: bool) {
        let Some(held) = self.objects.remove(&id) else { return };
        self.at.retain(|_, (other, _)| *other != id);
        self.kept_open -= usize::from(held.file.is_some());
        pen.soon(Event::Unflagged { path: held.stored, id: held.object, missing });
    }

    /// Sets the flag of a place again, if the object that is meant lies there without it. Whether that was so.
    pub fn set_again(&mut self, roots: &Roots, place: &Place) -> Result<bool, Hindrance> {
        let Some(&(id, _)) = self.at.get(place) else { return Ok(false) };
        let (file, stat) = open(roots.get(place.root), place)?;
        if stat.id != id || stat.immutable {
            return Ok(false);
        }
        // It is in the journal as immutable ever since.
        set(&*self.flags, file.as_fd()).map(|()| true)
    }

    /// Unlocks everything, wherever it lies by now. Returns what is left, by its name in the journal, and why.
    pub fn unlock_all(&mut self, roots: &Roots, pen: &mut dyn Pen) -> Vec<(String, String)> {
        self.at.clear();
        self.kept_open = 0;
        let objects = std::mem::take(&mut self.objects).into_values().collect();
        let Released { missing, left, .. } = release(Some(&*self.flags), roots, objects, pen);
        let gone = |held: Held| (held.stored, gone_words(&held.object));
        let failed = left.into_iter().map(|Unreleased { held, reason }| (held.stored, reason));
        missing.into_iter().map(gone).chain(failed).collect()
    }
}

/// What is said of an object that is nowhere below the roots.
pub(super) fn gone_words(object: &Object) -> String {
    format!("it was deleted, or moved out of the tree (inode {})", object.ino)
}

/// Makes an open object immutable.
fn set(flags: &dyn Flags, object: BorrowedFd<'_>) -> Result<(), Hindrance> {
    flags.set(object).map_err(|error| match error {
        FlagError::Unsupported => Hindrance::Unsupported,
        FlagError::Already => Hindrance::Foreign,
        FlagError::NotOurs => Hindrance::NotOurs,
        error @ (FlagError::Gone | FlagError::Failed(_)) => Hindrance::Failed(causes(&error)),
    })?;
    if stat_of(object).is_ok_and(|stat| stat.immutable) {
        return Ok(());
    }
    // A file system that takes the flag and does not keep it.
    let _there_is_nothing_to_take_off = flags.clear(object);
    Err(Hindrance::Unsupported)
}

/// Opens the regular file or the folder at a place.
fn open(root: &Root, place: &Place) -> Result<(OwnedFd, Stat), Hindrance> {
    let failed = |error: RootError| match error {
        RootError::NoParent { .. } | RootError::Mounted { .. } => Hindrance::Gone,
        error => Hindrance::Failed(causes(&error)),
    };
    let stat = root.stat(&place.path).map_err(failed)?.ok_or(Hindrance::Gone)?;
    let opened = match stat.file_type {
        FileType::Regular => root.open_read(&place.path).map(OwnedFd::from),
        FileType::Directory => root.open_dir(&place.path).map(OwnedFd::from),
        _ => return Err(Hindrance::Gone),
    };
    let file = opened.map_err(failed)?;
    // Another object may have taken the name.
    let stat = stat_of(file.as_fd()).map_err(|error| Hindrance::Failed(causes(&error)))?;
    Ok((file, stat))
}

/// Takes the flag off an object of ours: the one that is kept open, or else what lies at `place` if it is that. `false` if
/// it is another one. Without `flags` it is only looked at.
fn take_off(flags: Option<&dyn Flags>, roots: &Roots, held: &Held, place: Option<&Place>) -> Result<bool, String> {
    let opened;
    let object = match (&held.file, place) {
        (Some(file), _) => file.as_fd(),
        (None, None) => return Ok(false),
        (None, Some(place)) => match open(roots.get(place.root), place) {
            Ok((file, stat)) if Object::of(&stat) == held.object => {
                opened = file;
                opened.as_fd()
            }
            Ok(_) | Err(Hindrance::Gone) => return Ok(false),
            Err(hindrance) => return Err(hindrance.words().to_owned()),
        },
    };
    let is_off = |object| stat_of(object).is_ok_and(|stat| !stat.immutable);
    let done = match flags {
        None => Err("it takes privilege to unlock it".to_owned()),
        Some(flags) => flags.clear(object).map_err(|error| causes(&error)),
    };
    // Somebody may have done it before us.
    if is_off(object) { Ok(true) } else { done.and_then(|()| Err("it is still immutable".to_owned())) }
}

impl Released {
    /// Notes what came of one; gives it back if it is another object that lies there.
    fn settle(&mut self, held: Held, done: Result<bool, String>, pen: &mut dyn Pen) -> Option<Held> {
        match done {
            Ok(true) => {
                pen.soon(Event::Unflagged { path: held.stored.clone(), id: held.object, missing: false });
                self.off.push(held);
                None
            }
            Ok(false) => Some(held),
            Err(reason) => {
                self.left.push(Unreleased { held, reason });
                None
            }
        }
    }
}

/// Takes the flags off all of these: where they lay, or wherever below the roots they lie by now.
pub(super) fn release(flags: Option<&dyn Flags>, roots: &Roots, objects: Vec<Held>, pen: &mut dyn Pen) -> Released {
    let mut released = Released::default();
    let mut elsewhere = Vec::new();
    for held in objects {
        let done = take_off(flags, roots, &held, held.place.as_ref());
        elsewhere.extend(released.settle(held, done, pen));
    }
    if elsewhere.is_empty() {
        return released;
    }
    let wanted: BTreeSet<FileId> = elsewhere.iter().map(|held| held.object.id()).collect();
    let found = whereabouts(roots, &wanted);
    for held in elsewhere {
        let done = take_off(flags, roots, &held, found.get(&held.object.id()));
        let Some(held) = released.settle(held, done, pen) else { continue };
        if held.place.is_none() {
            let reason = "it lies in no folder of this run".to_owned();
            released.left.push(Unreleased { held, reason });
        } else {
            pen.soon(Event::Unflagged { path: held.stored.clone(), id: held.object, missing: true });
            released.missing.push(held);
        }
    }
    released
}
