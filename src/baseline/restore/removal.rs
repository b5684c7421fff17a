//! An intruder taken away from a place where nothing was accepted.
//!
//! Promise: only the very object that was rejected goes, and directories only if they are new and empty.
//! Limit: an object is told by device and inode, which a new one may get as soon as the old one is deleted.

use std::io;

use platform::{Dir, RelPath, Stat};

use super::error::RestoreError;
use super::{Progress, Restore, take_flags_off};

impl Restore<'_> {
    /// Takes away what is at a place where nothing was accepted.
    pub(super) fn remove(&self, dir: &Dir, name: &[u8], progress: &mut Progress) -> Result<(), RestoreError> {
        let Some(stat) = dir.stat(name)? else { return Ok(()) };
        self.admitted(&stat)?;
        self.is_seen(&stat)?;
        take_flags_off(dir, name, &stat);
        match dir.rename_new(name, dir, &progress.temporary) {
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => return Ok(()),
            done => done?,
        }
        // Between the look and the renaming another object may have come; under its new name nobody expects it.
        let out = dir.stat(&progress.temporary)?;
        if let Some(another) = out.and_then(|stat| self.is_seen(&stat).err()) {
            match dir.rename_new(&progress.temporary, dir, name) {
                Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists => {
                    let temporary = progress.temporary.clone();
                    self.quarantine(dir, &temporary, progress)?;
                }
                done => done?,
            }
            return Err(another);
        }
        let temporary = progress.temporary.clone();
        self.quarantine(dir, &temporary, progress)
    }

    fn is_seen(&self, stat: &Stat) -> Result<(), RestoreError> {
        match self.seen {
            Some(seen) if seen != stat.id => Err(RestoreError::AnotherObject { path: self.place.path.clone() }),
            _ => Ok(()),
        }
    }

    /// Removes the directories above the place that were not there before and are empty now.
    pub(super) fn remove_new_directories(&self) -> Vec<RelPath> {
        let mut removed = Vec::new();
        let mut at = self.place.path.parent();
        while let Some(path) = at.filter(|path| !path.is_root() && (self.is_new_directory)(path)) {
            let gone = self.root.parent(&path).is_ok_and(|(dir, name)| dir.remove_dir(name).is_ok());
            if !gone {
                break;
            }
            at = path.parent();
            removed.push(path);
        }
        removed
    }
}
