//! One place put back to its accepted state, and the proof of it.
//!
//! Promise: at every moment the place holds what was rejected or what is accepted, whole, and never part of either; what
//! was rejected is in the quarantine, still in place, or beside it under the name in the journal; no symlink is followed
//! and no directory above is loosened. When [`Restore::run`] returns `Ok`, the accepted
//! state had been read back and then had the place's name, if only for an instant.
//! Limit: another process may change the place right after, which the watch sees as a new change; in between, on file
//! systems that cannot swap two names (NFS, FAT), nothing has the name for an instant. A directory whose bits forbid us to
//! write in it stays as it is, and the error says so.
//! Source: renameat2(2) `RENAME_EXCHANGE`, fsync(2); chown(2) on set-id bits; docs/restore.md for the order of steps.

mod error;
mod lay;
mod leftover;
mod parents;
mod removal;
mod swap;

use std::io;

use platform::{Dir, FileId, FileType, Place, RelPath, Root, RootError, Stat, attributes, random};

pub use error::RestoreError;
pub use leftover::clear_leftover;

use super::look::{LookError, look};
use super::set::Baseline;
use super::snapshot::{Content, Snapshot};
use crate::store::{Held, Objects, Quarantine, QuarantineId, Rejection};

/// How often it is tried when another process comes in between.
const ATTEMPTS: u32 = 5;

/// How names beside a place start while it is put back.
const TEMPORARY: &str = ".keep-";

/// What the rejected thing is called, after the temporary name, where names cannot be swapped.
const REPLACED: &[u8] = b".old";

/// Whether this is a name a restore gives to something unfinished. It alone proves nothing: only the name in the journal
/// is ours.
pub fn is_temporary(name: &[u8]) -> bool {
    let hex = |digits: &[u8]| digits.len() == 12 && digits.iter().all(|d| matches!(d, b'0'..=b'9' | b'a'..=b'f'));
    let name = name.strip_suffix(REPLACED).unwrap_or(name);
    name.strip_prefix(TEMPORARY.as_bytes()).is_some_and(hex)
}

/// What is about to happen, for the journal: durable before anything changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// The name beside the place, or beside a directory above it, that is in use while this goes on.
    pub temporary: String,
    /// Where the first thing rejected goes, if something is there.
    pub quarantine: Option<QuarantineId>,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Everything that went to quarantine, in order.
    pub quarantined: Vec<QuarantineId>,
    /// Names in the place's directory, or one above it, under which something had to be left.
    pub aside: Vec<Vec<u8>>,
    /// How often it took.
    pub attempts: u32,
    /// Directories that had vanished or been replaced and were made again, topmost first.
    pub remade: Vec<RelPath>,
    /// Directories that had not been there before and were empty, deepest first.
    pub removed: Vec<RelPath>,
    /// The state read back. `None` if somebody had changed the place again by then: that is a new change, and not refused
    /// yet.
    pub snapshot: Option<Snapshot>,
}

/// One place to put back.
pub struct Restore<'a> {
    /// The root the place lies in.
    pub root: &'a Root,
    /// The place.
    pub place: &'a Place,
    /// Its accepted state.
    pub accepted: &'a Snapshot,
    /// The object that was rejected. Where nothing was accepted, only this very object is removed; `None` removes
    /// whatever is there.
    pub seen: Option<FileId>,
    /// Knows how the directories above have to be.
    pub baseline: &'a Baseline,
    /// Has the accepted content.
    pub objects: &'a Objects,
    /// Takes what was rejected.
    pub quarantine: &'a Quarantine,
    /// Why it was.
    pub why: &'a Rejection,
    /// Whether a directory was not there before, so that it goes when it is empty.
    pub is_new_directory: &'a dyn Fn(&RelPath) -> bool,
}

/// What one run has used up and brought about so far.
struct Progress {
    temporary: Vec<u8>,
    /// Reserved and not yet used.
    free: Option<QuarantineId>,
    quarantined: Vec<QuarantineId>,
    aside: Vec<Vec<u8>>,
    remade: Vec<RelPath>,
}

impl Restore<'_> {
    /// Puts the place back. `intent` is called once, before anything changes; if it fails, nothing has changed.
    ///
    /// # Errors
    /// - [`RestoreError::AnotherObject`]: nothing was accepted there, and what is there is not what was rejected.
    /// - [`RestoreError::NotExact`]: the content is back; an attribute could not be, and says why.
    /// - [`RestoreError::Contended`]: somebody changes the place faster than it can be put back; try again later.
    /// - any other: the place is as it was, or is already right; try again later.
    pub fn run(&self, intent: impl FnOnce(&Intent) -> io::Result<()>) -> Result<Restored, RestoreError> {
        let temporary = format!("{TEMPORARY}{}", random::hex12().map_err(RestoreError::Name)?);
        let there = match self.root.stat(&self.place.path) {
            Ok(stat) => stat.is_some(),
            Err(error) => return Err(error.into()),
        };
        let free = if there { Some(self.quarantine.reserve(&self.why.rejected_at)?) } else { None };
        let told = Intent { temporary: temporary.clone(), quarantine: free.clone() };
        let mut progress = Progress {
            temporary: temporary.into_bytes(),
            free,
            quarantined: Vec::new(),
            aside: Vec::new(),
            remade: Vec::new(),
        };
        let done = intent(&told).map_err(RestoreError::Intent).and_then(|()| self.attempts(&mut progress));
        if let Some(unused) = progress.free.take() {
            self.quarantine.release(&unused);
        }
        let (attempts, snapshot) = done?;
        let removed = if self.accepted.is_absent() { self.remove_new_directories() } else { Vec::new() };
        Ok(Restored {
            quarantined: progress.quarantined,
            aside: progress.aside,
            attempts,
            remade: progress.remade,
            removed,
            snapshot,
        })
    }

    fn attempts(&self, progress: &mut Progress) -> Result<(u32, Option<Snapshot>), RestoreError> {
        let mut attempt = 1;
        let inexact = loop {
            match self.attempt(progress) {
                Err(RestoreError::Contended { .. }) if attempt < ATTEMPTS => attempt += 1,
                Err(RestoreError::Contended { .. }) => return Err(RestoreError::Contended { attempts: attempt }),
                done => break done?,
            }
        };
        let now = match look(self.root, &self.place.path, self.baseline.caps().file_bytes) {
            Ok(look) => look.snapshot,
            // Somebody put something large there since.
            Err(LookError::TooLarge { .. }) => return Ok((attempt, None)),
            Err(error) => return Err(RestoreError::ReadBack(error)),
        };
        if self.accepted.same(&now) {
            return Ok((attempt, Some(now)));
        }
        match inexact {
            Some(error) if self.accepted.content == now.content => Err(error),
            // What was laid there had been read back before it got the name: this came after it.
            _ => Ok((attempt, None)),
        }
    }

    /// One try. Returns why the place is not exactly as accepted, if it is not.
    fn attempt(&self, progress: &mut Progress) -> Result<Option<RestoreError>, RestoreError> {
        let Some(dir) = self.parent(progress)? else { return Ok(None) };
        let name = self.place.path.name().ok_or(RootError::IsRoot)?;
        let placed = match self.accepted.content {
            Content::Absent => self.remove(&dir, name, progress).map(|()| None),
            _ => self.put(&dir, name, progress),
        };
        let inexact = placed.map_err(|error| error.with_flags(&dir, name))?;
        dir.sync()?;
        Ok(inexact)
    }

    /// Moves `name` to quarantine, under the id from the journal if it is still free.
    fn quarantine(&self, dir: &Dir, name: &[u8], progress: &mut Progress) -> Result<(), RestoreError> {
        let id = match progress.free.take() {
            Some(id) => id,
            None => self.quarantine.reserve(&self.why.rejected_at)?,
        };
        match self.quarantine.take(&id, self.why, dir, name)? {
            None => self.quarantine.release(&id),
            Some(held) => {
                if let Held::Aside { name } = held {
                    progress.aside.push(name);
                }
                progress.quarantined.push(id);
            }
        }
        Ok(())
    }

    fn admitted(&self, stat: &Stat) -> Result<(), RestoreError> {
        if self.root.admits(stat.mount) { Ok(()) } else { Err(RestoreError::Mounted { path: self.place.path.clone() }) }
    }
}

/// Takes flags off that the accepted state may not have, where we may: they would refuse every step. That it did not work
/// shows at the next one.
fn take_flags_off(dir: &Dir, name: &[u8], stat: &Stat) {
    if !stat.immutable && !stat.append_only {
        return;
    }
    let none = attributes::Flags::default();
    let _ = match stat.file_type {
        FileType::Regular => dir.open_read(name).and_then(|file| attributes::set_flags(&file, none)),
        FileType::Directory => dir.open_dir(name).and_then(|below| attributes::set_flags(&below, none)),
        _ => Ok(()),
    };
}

#[cfg(test)]
mod tests;
