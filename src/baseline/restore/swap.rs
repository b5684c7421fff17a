//! The accepted content swapped in for what is there.
//!
//! Promise: what comes out is removed only if it is the object that was copied, with the bytes that were copied; anything
//! else is kept as well. Source: renameat2(2) `RENAME_EXCHANGE`.

use std::io;

use platform::{Dir, FileType, Stat};

use super::super::snapshot::Content;
use super::error::RestoreError;
use super::lay::Laid;
use super::{Progress, REPLACED, Restore, take_flags_off};
use crate::store::Fingerprint;

impl Restore<'_> {
    /// Puts the accepted content in place of what is there, in one step. Returns why it is not exact, if it is not.
    pub(super) fn put(
        &self,
        dir: &Dir,
        name: &[u8],
        progress: &mut Progress,
    ) -> Result<Option<RestoreError>, RestoreError> {
        let present = dir.stat(name)?;
        let mut copied = None;
        if let Some(stat) = &present {
            self.admitted(stat)?;
            take_flags_off(dir, name, stat);
            if stat.file_type == FileType::Directory && self.accepted.content == Content::Directory {
                // What it holds was accepted with it, or is another place's matter.
                return Ok(Laid::directory(&dir.open_dir(name)?, self.accepted)?.inexact);
            }
            copied = self.accepted_content(dir, name, stat);
        }
        let keeps_nothing = copied.is_some();
        if present.is_some() && !keeps_nothing && progress.free.is_none() {
            progress.free = Some(self.quarantine.reserve(&self.why.rejected_at)?);
        }
        let id = progress.free.clone().filter(|_| present.is_some() && !keeps_nothing);
        if let Some(id) = &id {
            // What cannot be copied is moved once it is out of the way.
            copied = self.quarantine.keep_copy(id, self.why, dir, name).ok().flatten();
        }
        let used = id.filter(|_| copied.is_some());
        let swapped = self.lay(dir, &progress.temporary).and_then(|laid| {
            let out = self.swap(dir, name, present.is_some(), progress);
            if out.is_err() {
                self.take_up(dir, progress);
            }
            Ok((laid, out?))
        });
        let (laid, out) = match swapped {
            Ok(swapped) => swapped,
            Err(error) => {
                // What was copied is still in place: one copy for every failed attempt would fill the disk.
                if let Some(id) = &used {
                    self.quarantine.discard(id);
                }
                return match present {
                    Some(stat) if keeps_nothing && error.is_forbidden() => self.amend(dir, name, &stat, error),
                    _ => Err(error),
                };
            }
        };
        if used.is_some() {
            progress.quarantined.extend(progress.free.take());
        }
        let flags = laid.set_flags(self.accepted);
        if let Some(out) = out {
            self.clear_out(dir, &out, copied, progress)?;
        }
        Ok(laid.inexact.or(flags))
    }

    /// Gives the laid content the name; returns under which name what had it is now.
    fn swap(
        &self,
        dir: &Dir,
        name: &[u8],
        present: bool,
        progress: &Progress,
    ) -> Result<Option<Vec<u8>>, RestoreError> {
        let temporary = &progress.temporary;
        // Each round lost means that somebody made or removed the name in between.
        let mut present = present;
        for _ in 0..64 {
            let swapped = if present {
                match dir.exchange(temporary, name) {
                    Err(error) if error.is_unsupported() => return self.swap_in_two(dir, name, temporary),
                    done => done.map(|()| Some(temporary.clone())),
                }
            } else {
                dir.rename_new(temporary, dir, name).map(|()| None)
            };
            match swapped {
                Ok(out) => return Ok(out),
                Err(error) if present && error.source.kind() == io::ErrorKind::NotFound => present = false,
                Err(error) if !present && error.source.kind() == io::ErrorKind::AlreadyExists => present = true,
                Err(error) => return Err(error.into()),
            }
        }
        Err(RestoreError::Contended { attempts: 1 })
    }

    /// The same where the file system cannot exchange names.
    fn swap_in_two(&self, dir: &Dir, name: &[u8], temporary: &[u8]) -> Result<Option<Vec<u8>>, RestoreError> {
        let aside = [temporary, REPLACED].concat();
        let moved = match dir.rename_new(name, dir, &aside) {
            Ok(()) => true,
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error.into()),
        };
        match dir.rename_new(temporary, dir, name) {
            Ok(()) => Ok(moved.then_some(aside)),
            Err(error) => {
                if moved {
                    // Nothing half done: what was there comes back, unless something else has come.
                    dir.rename_new(&aside, dir, name)?;
                }
                Err(error.into())
            }
        }
    }

    /// Removes what came out, once it is certain that all of it is kept.
    fn clear_out(
        &self,
        dir: &Dir,
        out: &[u8],
        copied: Option<Fingerprint>,
        progress: &mut Progress,
    ) -> Result<(), RestoreError> {
        match copied {
            Some(copied) if self.quarantine.is_still(copied, dir, out) => Ok(dir.unlink(out)?),
            _ => self.quarantine(dir, out, progress),
        }
    }

    /// What is there, if its content is the accepted one and only attributes differ: then nothing of it need be kept.
    fn accepted_content(&self, dir: &Dir, name: &[u8], stat: &Stat) -> Option<Fingerprint> {
        let digest = self.accepted.digest()?;
        let same_type = match self.accepted.content {
            Content::Regular { size, .. } => stat.file_type == FileType::Regular && stat.size == size,
            Content::Symlink { .. } => stat.file_type == FileType::Symlink,
            _ => false,
        };
        let there = Fingerprint { id: stat.id, digest };
        (same_type && self.quarantine.is_still(there, dir, name)).then_some(there)
    }

    /// Sets the attributes of the accepted object itself, in a directory where nothing new can be made. Not for a file with
    /// other links: whoever has those would get the attributes, too.
    fn amend(
        &self,
        dir: &Dir,
        name: &[u8],
        present: &Stat,
        refusal: RestoreError,
    ) -> Result<Option<RestoreError>, RestoreError> {
        if self.accepted.id() != Some(present.id)
            || present.nlink != 1
            || !matches!(self.accepted.content, Content::Regular { .. })
        {
            return Err(refusal);
        }
        let laid = Laid::attributes(dir.open_read(name)?, self.accepted)?;
        let flags = laid.set_flags(self.accepted);
        Ok(laid.inexact.or(flags))
    }

    /// Removes what was laid and did not get its name.
    fn take_up(&self, dir: &Dir, progress: &Progress) {
        // A test's crash or a lost race leaves it; the journal knows the name.
        let _ = dir.unlink(&progress.temporary).or_else(|_| dir.remove_dir(&progress.temporary));
    }
}
