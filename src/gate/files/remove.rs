//! `file_remove`, carried out: one file, one symlink or one empty directory.
//!
//! Promise: what goes is the very object that was asked about: it is taken out under a name of its own, looked at, and
//! removed, or put back if it is another. A symlink goes itself, and what it leads to stays. A directory is never emptied.
//! Limit: a process killed between taking out and removing leaves it to the next write in the directory
//! ([`super::unfinished`]); of two empty directories exchanged at that moment, the other one may go.

use std::io;

use platform::{FileType, RelPath, Root, Stat};

use super::error::FilesError;
use super::parents::sync;
use super::unfinished::{InProgress, fresh};
use super::write::{is_still, keep_aside};

/// Removes what is at `path`; `seen` is what was asked about.
pub(super) fn remove(root: &Root, path: &RelPath, seen: &Stat) -> Result<(), FilesError> {
    let (dir, name) = root.parent(path)?;
    let changed = || FilesError::Changed { path: path.clone() };
    if seen.file_type == FileType::Directory {
        if !is_still(dir.stat(name)?.as_ref(), seen) {
            return Err(changed());
        }
        return match dir.remove_dir(name) {
            Err(error) if error.source.kind() == io::ErrorKind::DirectoryNotEmpty => {
                Err(FilesError::NotEmpty { path: path.clone() })
            }
            done => done.map_err(FilesError::from).and_then(|()| sync(&dir)),
        };
    }
    let _progress = InProgress::begin(&dir);
    let beside = fresh()?;
    match dir.rename_new(name, &dir, &beside) {
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => return Err(changed()),
        done => done?,
    }
    let is_it = is_still(dir.stat(&beside)?.as_ref(), seen);
    let removed = if is_it { dir.unlink(&beside).map_err(FilesError::from) } else { Err(changed()) };
    if let Err(error) = removed {
        // Whatever has come to the name meanwhile stays there.
        if dir.rename_new(&beside, &dir, name).is_err() {
            keep_aside(&dir, &beside)?;
        }
        return Err(error);
    }
    sync(&dir)
}
