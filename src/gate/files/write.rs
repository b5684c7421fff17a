//! `file_write`, carried out: the whole new content appears at once, or nothing does.
//!
//! Promise: whoever reads the path sees the old content or the new one, whole. The new content is on the disk before it
//! gets the name, and is seen to take the place of the very file that was asked about: if another one came in between, it
//! is put back. What is replaced keeps owner, permission bits, extended attributes and ACL, as far as we may set them; a
//! new file gets what the umask leaves of `0666`. Set-id bits and file capabilities go, as they do with any write(2): they
//! were given to the old content. Other hard links keep the old content.
//! Limit: between the exchange and the removal of the old file, two system calls, it has a name of its own; a process
//! killed just then leaves it there ([`super::unfinished`]). Where names cannot be exchanged (NFS, FAT), a file that comes
//! in between the last look and the renaming is lost.
//! Source: open(2) `O_TMPFILE`, linkat(2), renameat2(2) `RENAME_EXCHANGE`, fsync(2).

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;

use platform::dir::stat_of;
use platform::{Dir, FileType, FsError, RelPath, Stat, attributes, file, xattr};

use super::error::FilesError;
use super::unfinished::{InProgress, fresh};

/// Sticky and permission bits, without set-id.
const KEPT_BITS: u32 = 0o1777;

/// How often somebody may come in between while something is put back.
const ROUNDS: u32 = 64;

/// Whether this is the object that was seen, with the content it had: renaming changes neither.
pub(super) fn is_still(now: Option<&Stat>, seen: &Stat) -> bool {
    now.is_some_and(|now| {
        let same = now.id == seen.id && now.file_type == seen.file_type;
        // What is in a directory is no content of it.
        same && (now.file_type == FileType::Directory || (now.size, now.mtime) == (seen.size, seen.mtime))
    })
}

/// The new content, written beside its place.
struct Laid<'d> {
    dir: &'d Dir,
    file: File,
    /// Its name, if it has one already.
    beside: Option<Vec<u8>>,
}

impl Drop for Laid<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.beside {
            // What cannot be removed now is removed with the next write.
            let _ = self.dir.unlink(name);
        }
    }
}

/// Writes `content` at `name`; `seen` is what is there.
pub(super) fn write(
    dir: &Dir,
    name: &[u8],
    path: &RelPath,
    seen: Option<&Stat>,
    content: &[u8],
) -> Result<(), FilesError> {
    let _progress = InProgress::begin(dir);
    if let Some(unnamed) = dir.create_unnamed(seen.is_some())? {
        let laid = Laid { dir, file: unnamed, beside: None };
        match laid.finish(name, path, seen, content) {
            // No /proc to give it a name by; or the directory is gone, which then shows again.
            Err(FilesError::Fs(error)) if error.source.kind() == io::ErrorKind::NotFound => {}
            done => return done,
        }
    }
    let beside = fresh()?;
    let created = if seen.is_some() { dir.create_new(&beside, 0o600) } else { dir.create_plain(&beside) };
    Laid { dir, file: created?, beside: Some(beside) }.finish(name, path, seen, content)
}

impl Laid<'_> {
    fn finish(mut self, name: &[u8], path: &RelPath, seen: Option<&Stat>, content: &[u8]) -> Result<(), FilesError> {
        file::write_all(&self.file, name, content)?;
        if let Some(seen) = seen {
            self.take_after(name, seen)?;
        }
        file::sync_all(&self.file, name)?;
        match seen {
            None => self.appear(name, path),
            Some(seen) => self.replace(name, path, seen),
        }
    }

    /// Gives the file owner, attributes and bits of the one it replaces, in the order in which each survives the next.
    fn take_after(&self, name: &[u8], seen: &Stat) -> Result<(), FilesError> {
        let own = stat_of(self.file.as_fd())?;
        if (own.uid, own.gid) != (seen.uid, seen.gid) {
            // Not ours to give away: then it is a file of ours, with the same bits.
            match attributes::chown(&self.file, seen.uid, seen.gid) {
                Err(error) if !is_refusal(&error) => return Err(error.into()),
                _ => {}
            }
        }
        // Of the open file: a confined worker has no call that takes a path for attributes.
        let mut wanted = xattr::read_file(&self.dir.open_read(name)?)?;
        wanted.remove(&b"security.capability"[..]);
        match xattr::set_all(&self.file, &wanted) {
            Err(error) if !is_refusal(&error) => return Err(error.into()),
            _ => {}
        }
        Ok(attributes::chmod(&self.file, seen.mode & KEPT_BITS)?)
    }

    /// Takes a name that nothing has.
    fn appear(&mut self, name: &[u8], path: &RelPath) -> Result<(), FilesError> {
        let named = match &self.beside {
            None => self.dir.give_name(&self.file, name),
            Some(beside) => self.dir.rename_new(beside, self.dir, name),
        };
        match named {
            Ok(()) => {
                self.beside = None;
                Ok(())
            }
            Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists => {
                Err(FilesError::Changed { path: path.clone() })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the place of `seen`.
    fn replace(&mut self, name: &[u8], path: &RelPath, seen: &Stat) -> Result<(), FilesError> {
        let changed = || FilesError::Changed { path: path.clone() };
        let beside = match self.beside.take() {
            Some(beside) => beside,
            None => {
                let beside = fresh()?;
                self.dir.give_name(&self.file, &beside)?;
                beside
            }
        };
        self.beside = Some(beside.clone());
        match self.dir.exchange(&beside, name) {
            Ok(()) => {}
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => return Err(changed()),
            Err(error) if error.is_unsupported() => {
                if !is_still(self.dir.stat(name)?.as_ref(), seen) {
                    return Err(changed());
                }
                self.dir.rename(&beside, self.dir, name)?;
                self.beside = None;
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        // What has the name beside is no longer ours to drop.
        self.beside = None;
        if is_still(self.dir.stat(&beside)?.as_ref(), seen) {
            return Ok(self.dir.unlink(&beside)?);
        }
        put_back(self.dir, &beside, name)?;
        Err(changed())
    }
}

/// Gives `name` back to what was taken out under the name `beside`; what has the name is ours, and goes.
fn put_back(dir: &Dir, beside: &[u8], name: &[u8]) -> Result<(), FilesError> {
    for _ in 0..ROUNDS {
        match dir.exchange(beside, name) {
            Ok(()) => return Ok(dir.unlink(beside)?),
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        match dir.rename_new(beside, dir, name) {
            Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists => {}
            done => return Ok(done?),
        }
    }
    keep_aside(dir, beside)
}

/// Gives a name that nobody clears away to what could not have its own back.
pub(super) fn keep_aside(dir: &Dir, beside: &[u8]) -> Result<(), FilesError> {
    let aside = aside(beside);
    Ok(dir.rename_new(beside, dir, &aside)?)
}

fn aside(beside: &[u8]) -> Vec<u8> {
    [beside, b".kept"].concat()
}

fn is_refusal(error: &FsError) -> bool {
    error.source.kind() == io::ErrorKind::PermissionDenied || error.is_unsupported()
}
