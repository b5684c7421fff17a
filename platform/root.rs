//! A root: an open directory handle that nothing may leave.
//!
//! Promise: every path is resolved component by component from the handle; a symlink in any component, `..`, an absolute
//! path or a mount that was not there at the start is an error, never followed, whatever is renamed meanwhile.
//! Limit: a hard link inside the root to a file outside is that file; whoever made it could open the file itself.
//! Source: openat2(2) `RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS`; the portable walk is
//! [`crate::root::walk`], which the fast way is tested against.

use std::path::{Path, PathBuf};
use std::sync::RwLock;

use crate::dir::{Dir, FsError};
use crate::host;
use crate::relpath::RelPath;
use crate::stat::{FileId, FileType, Stat};

/// Why a path below a root could not be reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RootError {
    /// A component above the last is absent, a symlink, or not a directory.
    #[error("the directory of {path:?} is gone or is no directory")]
    NoParent {
        /// The path asked for.
        path: RelPath,
    },
    /// The path leads onto a file system that was mounted after the start.
    #[error("another file system is mounted over {path:?}")]
    Mounted {
        /// The path asked for.
        path: RelPath,
    },
    /// The path is the root itself, which has no parent here.
    #[error("the root itself has no name below it")]
    IsRoot,
    /// The system call failed.
    #[error(transparent)]
    Fs(#[from] FsError),
}

/// An open directory nothing may leave.
#[derive(Debug)]
pub struct Root {
    dir: Dir,
    path: PathBuf,
    id: FileId,
    /// Mounts that belong to the root: its own, and those found below it at the start.
    mounts: RwLock<Vec<u64>>,
}

impl Root {
    /// Opens the directory `path`, following symlinks in it once, now.
    pub fn open(path: &Path) -> Result<Self, FsError> {
        let dir = Dir::open_ambient(path)?;
        let stat = dir.own_stat()?;
        Ok(Self { dir, path: path.to_path_buf(), id: stat.id, mounts: RwLock::new(vec![stat.mount]) })
    }

    /// The path it was opened by, for people to read.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Device and inode of the directory.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// The handle of the root itself.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Lets paths lead onto the mount `mount`: for mounts that are below the root at the start.
    pub fn admit_mount(&self, mount: u64) {
        let mut mounts = self.mounts.write().expect("no holder of this lock panics");
        if !mounts.contains(&mount) {
            mounts.push(mount);
        }
    }

    /// Whether the mount belongs to the root.
    pub fn admits(&self, mount: u64) -> bool {
        self.mounts.read().expect("no holder of this lock panics").contains(&mount)
    }

    /// The directory at `path`, opened without following a symlink in any component.
    pub fn open_dir(&self, path: &RelPath) -> Result<Dir, RootError> {
        let dir = self.open_any_dir(path)?;
        if self.admits(dir.own_stat()?.mount) { Ok(dir) } else { Err(RootError::Mounted { path: path.clone() }) }
    }

    /// The same, whatever is mounted there: for looking at what mounts exist at the start.
    pub fn open_any_dir(&self, path: &RelPath) -> Result<Dir, RootError> {
        if path.is_root() {
            return Ok(self.dir.try_clone()?);
        }
        host::open_beneath(&self.dir, path).map_err(|error| match error.source.raw_os_error() {
            Some(errno) if host::means_no_directory(errno) => RootError::NoParent { path: path.clone() },
            _ => RootError::Fs(error),
        })
    }

    /// The directory `path` lies in, and its name there.
    pub fn parent<'p>(&self, path: &'p RelPath) -> Result<(Dir, &'p [u8]), RootError> {
        let name = path.name().ok_or(RootError::IsRoot)?;
        let parent = path.parent().ok_or(RootError::IsRoot)?;
        let dir = self.open_dir(&parent).map_err(|error| match error {
            RootError::NoParent { .. } => RootError::NoParent { path: path.clone() },
            RootError::Mounted { .. } => RootError::Mounted { path: path.clone() },
            other => other,
        })?;
        Ok((dir, name))
    }

    /// What is at `path`. `None` if nothing is, or if a directory above it is gone, is a symlink or is no directory.
    pub fn stat(&self, path: &RelPath) -> Result<Option<Stat>, RootError> {
        if path.is_root() {
            return Ok(Some(self.dir.own_stat()?));
        }
        match self.parent(path) {
            Ok((dir, name)) => Ok(dir.stat(name)?),
            Err(RootError::NoParent { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the path the root was opened by still leads to it.
    pub fn is_in_place(&self) -> bool {
        Dir::open_ambient(&self.path).and_then(|dir| dir.own_stat()).is_ok_and(|stat| stat.id == self.id)
    }
}

/// The portable way: one `openat` a component, each with `O_NOFOLLOW`. Slow, and the oracle of the fast way.
pub mod walk {
    use super::{Dir, FileType, FsError, RelPath};

    /// The directory at `path` below `dir`.
    pub fn open_dir(dir: &Dir, path: &RelPath) -> Result<Dir, FsError> {
        let mut at = dir.try_clone()?;
        for name in path.components() {
            at = at.open_dir(name)?;
        }
        debug_assert!(at.own_stat().is_ok_and(|stat| stat.file_type == FileType::Directory));
        Ok(at)
    }
}
