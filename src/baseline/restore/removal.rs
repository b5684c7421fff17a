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
        // Copied while it is still in place, so that its other name, which anybody can see, lives for an instant only.
        let id = match progress.free.take() {
            Some(id) => id,
            None => self.quarantine.reserve(&self.why.rejected_at)?,
        };
        let copied = self.quarantine.keep_copy(&id, self.why, dir, name).ok().flatten();
        let out = match self.take_out(dir, name, progress) {
            Ok(out) => out,
            Err(error) => {
                // What was copied is still in place.
                self.quarantine.discard(&id);
                return Err(error);
            }
        };
        let temporary = progress.temporary.clone();
        match copied {
            _ if !out => self.quarantine.discard(&id),
            Some(copied) if self.quarantine.is_still(copied, dir, &temporary) => {
                dir.unlink(&temporary)?;
                progress.quarantined.push(id);
            }
            copied => {
                // Written to since it was copied, or not to be copied: what it is now is kept as well.
                match copied {
                    Some(_) => progress.quarantined.push(id),
                    None => progress.free = Some(id),
                }
                self.quarantine(dir, &temporary, progress)?;
            }
        }
        Ok(())
    }

    /// Gives the object its temporary name. `false` if it was gone. Another object than the one seen gets its name back.
    fn take_out(&self, dir: &Dir, name: &[u8], progress: &mut Progress) -> Result<bool, RestoreError> {
        match dir.rename_new(name, dir, &progress.temporary) {
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => return Ok(false),
            done => done?,
        }
        // Between the look and the renaming another object may have come; under its new name nobody expects it.
        let out = dir.stat(&progress.temporary)?;
        let Some(another) = out.and_then(|stat| self.is_seen(&stat).err()) else { return Ok(true) };
        match dir.rename_new(&progress.temporary, dir, name) {
            Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists => {
                let temporary = progress.temporary.clone();
                self.quarantine(dir, &temporary, progress)?;
            }
            done => done?,
        }
        Err(another)
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
