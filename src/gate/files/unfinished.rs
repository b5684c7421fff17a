//! Names that changes in progress have, and what a killed process left of them.
//!
//! Promise: such a name lives for the time of a few system calls, and only while a lock on its directory is held; whoever
//! gets that lock alone may therefore remove every one of them. It is removed as soon as something is written into the
//! directory again. No tool makes a file of such a name.
//! Limit: where a directory cannot be locked (NFS, one that may not be listed) nothing is cleared. Whoever holds the lock
//! without being us delays the clearing, and nothing else.
//! Source: flock(2).

use std::collections::HashSet;
use std::fs::File;
use std::os::fd::AsFd as _;

use platform::{Dir, FileId, random};

use super::error::FilesError;

/// How the names begin.
const PREFIX: &[u8] = b".keep-write-";

/// Directories that are remembered as cleared.
const MOST_CLEARED: usize = 4096;

/// Whether this is a name of a change in progress.
pub fn is_unfinished(name: &[u8]) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|digits| {
        digits.len() == 12 && digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// A name nobody can guess.
pub(super) fn fresh() -> Result<Vec<u8>, FilesError> {
    Ok([PREFIX, random::hex12().map_err(FilesError::Random)?.as_bytes()].concat())
}

/// Says, as long as it lives, that a change is going on in the directory.
pub(super) struct InProgress {
    _locked: Option<File>,
}

impl InProgress {
    /// Without a lock, a name in use may be cleared away, and the change fails.
    pub(super) fn begin(dir: &Dir) -> Self {
        Self { _locked: handle(dir).filter(|file| file.try_lock_shared().is_ok()) }
    }
}

/// A handle with a lock of its own: locks belong to the opening, and copies of a handle share it.
fn handle(dir: &Dir) -> Option<File> {
    let own = dir.reopen().ok()?;
    own.as_fd().try_clone_to_owned().ok().map(File::from)
}

/// Which directories have been cleared. What is left behind is left by a process that ended, so once is enough.
#[derive(Debug, Default)]
pub(super) struct Cleared(HashSet<FileId>);

impl Cleared {
    /// Removes what changes that never ended left in the directory.
    pub(super) fn clear(&mut self, dir: &Dir) {
        let Ok(stat) = dir.own_stat() else { return };
        if self.0.contains(&stat.id) {
            return;
        }
        let Some(_alone) = handle(dir).filter(|file| file.try_lock().is_ok()) else { return };
        let mut left = Vec::new();
        let listed = dir.each_entry(|name, _| {
            if is_unfinished(name) {
                left.push(name.to_vec());
            }
        });
        // A directory of that name is nothing we make, and stays.
        let gone = left.iter().all(|name| dir.unlink(name).is_ok());
        if listed.is_ok() && gone {
            if self.0.len() >= MOST_CLEARED {
                self.0.clear();
            }
            self.0.insert(stat.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_form_are_unfinished() {
        assert!(is_unfinished(&fresh().expect("a name")));
        for name in [".keep-write-", ".keep-write-0123456789aB", ".keep-write-0123456789ab.", ".keep-0123456789ab", "x"]
        {
            assert!(!is_unfinished(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn what_was_left_is_cleared_once_nobody_works_in_the_directory() {
        let temp = tempfile::tempdir().expect("a folder");
        let dir = Dir::open_ambient(temp.path()).expect("opens");
        let left = fresh().expect("a name");
        dir.create_new(&left, 0o600).expect("creates");
        dir.create_new(b"other", 0o600).expect("creates");
        let mut cleared = Cleared::default();
        let working = InProgress::begin(&dir);
        cleared.clear(&dir);
        assert!(dir.stat(&left).expect("stats").is_some(), "somebody may be using it");
        drop(working);
        cleared.clear(&dir);
        assert_eq!(dir.list().expect("lists").len(), 1);
        assert!(dir.stat(b"other").expect("stats").is_some());
    }
}
