//! `file_move`, carried out.
//!
//! Promise: what moves, and what it takes the place of, are the very objects that were asked about; if others came in
//! between, they are put back. Nothing is ever overwritten by surprise: without `overwrite` the kernel refuses, and with it
//! the two names are exchanged, looked at, and only then the old file goes. A reader sees the old file or the new one.
//! Limit: a process killed between the exchange and the removal leaves both files, each under the other's name. A move to
//! another file system is an error, not a copy.
//! Source: renameat2(2) `RENAME_NOREPLACE`, `RENAME_EXCHANGE`.

use std::io;

use platform::{Dir, Root};

use super::error::FilesError;
use super::parents::{Parents, sync};
use super::resolve::Resolved;
use super::write::is_still;

/// Moves what is at `from` to `to`.
pub(super) fn relocate(root: &Root, from: &Resolved, to: &Resolved) -> Result<(), FilesError> {
    let (source, name) = root.parent(&from.path)?;
    let new_name = to.path.name().ok_or_else(|| FilesError::IsDirectory { path: to.path.clone() })?;
    let mut target = Parents::of(root, &to.path)?;
    let ends = Ends { from, to, source: &source, name, target: &target.dir, new_name };
    let moved = if to.stat.is_none() { ends.arrive() } else { ends.replace() };
    match moved {
        Ok(()) => {
            sync(&target.dir)?;
            target.sync()?;
            sync(&source)
        }
        Err(error) => {
            target.undo();
            Err(error)
        }
    }
}

/// Both ends, open.
struct Ends<'a> {
    from: &'a Resolved,
    to: &'a Resolved,
    source: &'a Dir,
    name: &'a [u8],
    target: &'a Dir,
    new_name: &'a [u8],
}

impl Ends<'_> {
    fn left_changed(&self) -> FilesError {
        FilesError::Changed { path: self.from.path.clone() }
    }

    fn arrival_changed(&self) -> FilesError {
        FilesError::Changed { path: self.to.path.clone() }
    }

    /// To a name that nothing has.
    fn arrive(&self) -> Result<(), FilesError> {
        match self.source.rename_new(self.name, self.target, self.new_name) {
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => return Err(self.left_changed()),
            Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists => return Err(self.arrival_changed()),
            done => done?,
        }
        if is_still(self.target.stat(self.new_name)?.as_ref(), self.from.present()?) {
            return Ok(());
        }
        self.target.rename_new(self.new_name, self.source, self.name)?;
        Err(self.left_changed())
    }

    /// To the name of a file that goes.
    fn replace(&self) -> Result<(), FilesError> {
        let (moving, replaced) = (self.from.present()?, self.to.present()?);
        match self.source.exchange_with(self.name, self.target, self.new_name) {
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => return Err(self.arrival_changed()),
            Err(error) if error.is_unsupported() => {
                if !is_still(self.source.stat(self.name)?.as_ref(), moving) {
                    return Err(self.left_changed());
                }
                if !is_still(self.target.stat(self.new_name)?.as_ref(), replaced) {
                    return Err(self.arrival_changed());
                }
                return Ok(self.source.rename(self.name, self.target, self.new_name)?);
            }
            done => done?,
        }
        let arrived = is_still(self.target.stat(self.new_name)?.as_ref(), moving);
        let out = is_still(self.source.stat(self.name)?.as_ref(), replaced);
        if arrived && out {
            return Ok(self.source.unlink(self.name)?);
        }
        self.source.exchange_with(self.name, self.target, self.new_name)?;
        Err(if arrived { self.arrival_changed() } else { self.left_changed() })
    }
}
