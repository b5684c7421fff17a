//! A root: an open directory handle that nothing may leave.
//!
//! Promise: every path is resolved component by component from the handle; a symlink in any component, `..`, an absolute
//! path or a mount that was not there at the start is an error, never followed, whatever is renamed meanwhile.
//! Limit: a hard link inside the root to a file outside is that file; whoever made it could open the file itself.
//! Source: openat2(2) `RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS`; the portable walk is
//! [`crate::root::walk`], which the fast way is tested against.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::RwLock;

use crate::dir::{Dir, FsError, stat_of};
use crate::host;
use crate::relpath::RelPath;
use crate::stat::{FileId, Stat};

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
        Self::from_dir(Dir::open_ambient(path)?, path)
    }

    /// Takes a directory that another process opened; `path` is what people are told.
    pub fn from_dir(dir: Dir, path: &Path) -> Result<Self, FsError> {
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
    ///
    /// A file system mounted over the path itself, be it over a single file, is [`RootError::Mounted`].
    pub fn stat(&self, path: &RelPath) -> Result<Option<Stat>, RootError> {
        let Some((dir, stat)) = self.stat_any(path)? else { return Ok(None) };
        // What is there tells by itself where the path led; only absence has to be asked where it is.
        let mount = match stat {
            Some(stat) => stat.mount,
            None => dir.own_stat()?.mount,
        };
        if self.admits(mount) { Ok(stat) } else { Err(RootError::Mounted { path: path.clone() }) }
    }

    /// Opens the regular file at `path` for reading, as [`Dir::open_read`] does.
    pub fn open_read(&self, path: &RelPath) -> Result<File, RootError> {
        let (dir, name) = self.parent(path)?;
        let file = dir.open_read(name)?;
        if self.admits(stat_of(file.as_fd())?.mount) {
            Ok(file)
        } else {
            Err(RootError::Mounted { path: path.clone() })
        }
    }

    /// Opens the regular file at `path` for reading if it is still `seen`, by every field; `None` if anything about it is
    /// other. Two system calls where [`Root::open_read`] makes eight: for looking at many files again and again.
    ///
    /// Limit: what took the file's place since it was seen is opened before that is known, without waiting for anything.
    /// Reads may give `WouldBlock` on a file system that heeds `O_NONBLOCK`.
    pub fn open_unchanged(&self, path: &RelPath, seen: &Stat) -> Result<Option<File>, RootError> {
        let opened = host::open_file_beneath(&self.dir, path).map_err(|error| match error.source.raw_os_error() {
            Some(errno) if host::means_no_directory(errno) => RootError::NoParent { path: path.clone() },
            _ => RootError::Fs(error),
        });
        let file = match opened {
            Ok(file) => file,
            Err(RootError::NoParent { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok((stat_of(file.as_fd())? == *seen).then_some(file))
    }

    /// Lets paths lead onto the mount that `path` leads onto now: for single files that were mounted over at the start,
    /// as containers do it with secrets. Nothing there is nothing to admit.
    pub fn admit_present(&self, path: &RelPath) -> Result<(), RootError> {
        if let Some((_, Some(stat))) = self.stat_any(path)? {
            self.admit_mount(stat.mount);
        }
        Ok(())
    }

    /// The directory `path` lies in and what is there, on whatever mount.
    fn stat_any(&self, path: &RelPath) -> Result<Option<(Dir, Option<Stat>)>, RootError> {
        let (Some(parent), Some(name)) = (path.parent(), path.name()) else {
            return Ok(Some((self.dir.try_clone()?, Some(self.dir.own_stat()?))));
        };
        match self.open_any_dir(&parent) {
            Ok(dir) => {
                let stat = dir.stat(name)?;
                Ok(Some((dir, stat)))
            }
            Err(RootError::NoParent { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the path the root was opened by still leads to it. An error says that this cannot be told now, not that it
    /// does not: who lowers our limit on descriptors (prlimit(2)) has moved nothing.
    pub fn is_in_place(&self) -> Result<bool, FsError> {
        match Dir::open_ambient(&self.path).and_then(|dir| dir.own_stat()) {
            Ok(stat) => Ok(stat.id == self.id),
            Err(error) if error.errno().is_some_and(host::means_no_directory) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// The portable way: one `openat` a component, each with `O_NOFOLLOW`. Slow, and the oracle of the fast way.
pub mod walk {
    use std::fs::File;
    use std::os::fd::AsFd;

    use rustix::fs::{self, Mode};
    use rustix::io::{Errno, retry_on_intr};

    use super::{Dir, FsError, RelPath, host};
    use crate::dir::{FOR_A_LOOK, on};

    /// The directory at `path` below `dir`.
    pub fn open_dir(dir: &Dir, path: &RelPath) -> Result<Dir, FsError> {
        let Some(last) = path.name() else { return dir.try_clone() };
        let above = path.components().count() - 1;
        let mut at: Option<Dir> = None;
        for name in path.components().take(above) {
            let from = at.as_ref().unwrap_or(dir).as_fd();
            let next = retry_on_intr(|| host::pass_through(from, name));
            at = Some(Dir::from(next.map_err(|errno| on("open", path.as_bytes())(errno.into()))?));
        }
        at.as_ref().unwrap_or(dir).open_dir(last)
    }

    /// The file at `path` below `dir`, whatever it is, opened for reading without waiting.
    pub fn open_file(dir: &Dir, path: &RelPath) -> Result<File, FsError> {
        let failed = |errno: rustix::io::Errno| on("open", path.as_bytes())(errno.into());
        let (Some(parent), Some(name)) = (path.parent(), path.name()) else { return Err(failed(Errno::ISDIR)) };
        let parent = if parent.is_root() { dir.try_clone()? } else { open_dir(dir, &parent)? };
        retry_on_intr(|| fs::openat(&parent, name, FOR_A_LOOK, Mode::empty())).map(File::from).map_err(failed)
    }
}
