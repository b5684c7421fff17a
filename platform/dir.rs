//! One open directory and what can be done to the names in it.
//!
//! Promise: every operation acts on a single name relative to an open handle and follows no symlink, so it cannot leave
//! the directory whatever is renamed at that moment. Limit: a directory can itself be moved; where it hangs is
//! [`crate::Root`]'s question, asked when the handle is opened.
//! Source: openat(2), renameat2(2), unlinkat(2); renameatx_np(2) on macOS.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{self, AtFlags, Mode, OFlags};

use crate::relpath::is_name;
use crate::stat::{FileType, Stat};
use crate::{fault, host};

/// A file operation that failed, with its object.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {}", .path.as_os_str().as_bytes().escape_ascii())]
pub struct FsError {
    /// What was tried: `open`, `rename`, …
    pub operation: &'static str,
    /// On what: a name in a directory, or a path below a root.
    pub path: PathBuf,
    /// The system's answer.
    #[source]
    pub source: io::Error,
}

impl FsError {
    /// The error number, if the system gave one.
    pub fn errno(&self) -> Option<i32> {
        self.source.raw_os_error()
    }
}

/// Names the operation and the object of an error.
pub(crate) fn on(operation: &'static str, name: &[u8]) -> impl FnOnce(io::Error) -> FsError {
    let path = PathBuf::from(OsStr::from_bytes(name));
    move |source| FsError { operation, path, source }
}

/// Runs one change of the file system, unless a test has "killed" the process before it.
fn change<T>(operation: &'static str, name: &[u8], act: impl FnOnce() -> rustix::io::Result<T>) -> Result<T, FsError> {
    checked(name).and_then(|()| fault::point(operation)).and_then(|()| Ok(act()?)).map_err(on(operation, name))
}

fn look<T>(operation: &'static str, name: &[u8], act: impl FnOnce() -> rustix::io::Result<T>) -> Result<T, FsError> {
    checked(name).and_then(|()| Ok(act()?)).map_err(on(operation, name))
}

fn checked(name: &[u8]) -> io::Result<()> {
    if is_name(name) { Ok(()) } else { Err(io::Error::from(io::ErrorKind::InvalidInput)) }
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name, as the file system gave it.
    pub name: Vec<u8>,
    /// Its type, where the listing told it.
    pub file_type: Option<FileType>,
}

/// An open directory.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<OwnedFd> for Dir {
    /// Takes an open directory; operations fail if the descriptor is something else.
    fn from(fd: OwnedFd) -> Self {
        Self { fd }
    }
}

impl Dir {
    /// Opens the directory `path` itself, following symlinks in it: for paths the person named.
    pub fn open_ambient(path: &std::path::Path) -> Result<Self, FsError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        fs::open(path, flags, Mode::empty())
            .map(Self::from)
            .map_err(|errno| on("open", path.as_os_str().as_bytes())(errno.into()))
    }

    /// Another handle of the same directory.
    pub fn try_clone(&self) -> Result<Self, FsError> {
        self.fd.try_clone().map(Self::from).map_err(on("duplicate", b"."))
    }

    /// Another handle of the same directory, with a listing position of its own.
    pub fn reopen(&self) -> Result<Self, FsError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        fs::openat(&self.fd, c".", flags, Mode::empty()).map(Self::from).map_err(|errno| on("open", b".")(errno.into()))
    }

    /// The directory `name` in this one; a symlink is an error, not followed.
    pub fn open_dir(&self, name: &[u8]) -> Result<Self, FsError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        look("open", name, || fs::openat(&self.fd, name, flags, Mode::empty())).map(Self::from)
    }

    /// What `name` is; `None` if nothing has that name.
    pub fn stat(&self, name: &[u8]) -> Result<Option<Stat>, FsError> {
        match look("stat", name, || host::stat_at(self.fd.as_fd(), name)) {
            Ok(stat) => Ok(Some(stat)),
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What this directory itself is.
    pub fn own_stat(&self) -> Result<Stat, FsError> {
        stat_of(self.fd.as_fd())
    }

    /// Opens the regular file `name` for reading. Anything else is `InvalidInput` and is not opened: neither a FIFO's
    /// writer nor a device notices.
    pub fn open_read(&self, name: &[u8]) -> Result<File, FsError> {
        checked(name).and_then(|()| host::open_regular(self.fd.as_fd(), name)).map_err(on("open", name))
    }

    /// Creates the file `name`, which must not exist, for reading and writing, with exactly these permission bits.
    pub fn create_new(&self, name: &[u8], mode: u32) -> Result<File, FsError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode as _);
        let fd = change("create", name, || fs::openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR))?;
        change("chmod", name, || fs::fchmod(&fd, mode))?;
        Ok(File::from(fd))
    }

    /// Opens the file `name` for reading and appending, and creates it with `0600` if there is none.
    pub fn open_append(&self, name: &[u8]) -> Result<File, FsError> {
        let flags =
            OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        change("open", name, || fs::openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR)).map(File::from)
    }

    /// Makes a symlink `name` with this text.
    pub fn symlink(&self, text: &[u8], name: &[u8]) -> Result<(), FsError> {
        change("link", name, || fs::symlinkat(text, &self.fd, name))
    }

    /// The text of the symlink `name`.
    pub fn read_link(&self, name: &[u8]) -> Result<Vec<u8>, FsError> {
        look("read link", name, || fs::readlinkat(&self.fd, name, Vec::new())).map(|text| text.into_bytes())
    }

    /// Makes the directory `name` with exactly these permission bits.
    pub fn make_dir(&self, name: &[u8], mode: u32) -> Result<Self, FsError> {
        change("make directory", name, || fs::mkdirat(&self.fd, name, Mode::RWXU))?;
        let made = self.open_dir(name)?;
        change("chmod", name, || fs::fchmod(&made.fd, Mode::from_raw_mode(mode as _)))?;
        Ok(made)
    }

    /// Removes `name`, which is not a directory.
    pub fn unlink(&self, name: &[u8]) -> Result<(), FsError> {
        change("unlink", name, || fs::unlinkat(&self.fd, name, AtFlags::empty()))
    }

    /// Removes the empty directory `name`.
    pub fn remove_dir(&self, name: &[u8]) -> Result<(), FsError> {
        change("remove directory", name, || fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR))
    }

    /// Moves `name` to `to` in `target`, replacing what is there.
    pub fn rename(&self, name: &[u8], target: &Dir, to: &[u8]) -> Result<(), FsError> {
        checked(to).map_err(on("rename", to))?;
        change("rename", name, || fs::renameat(&self.fd, name, &target.fd, to))
    }

    /// Moves `name` to `to` in `target`; fails with `AlreadyExists` if something has that name.
    pub fn rename_new(&self, name: &[u8], target: &Dir, to: &[u8]) -> Result<(), FsError> {
        checked(to).map_err(on("rename", to))?;
        change("rename", name, || host::rename_new(self.fd.as_fd(), name, target.fd.as_fd(), to))
    }

    /// Swaps the two names atomically; both must exist.
    pub fn exchange(&self, name: &[u8], other: &[u8]) -> Result<(), FsError> {
        checked(other).map_err(on("exchange", other))?;
        change("exchange", name, || host::exchange(self.fd.as_fd(), name, other))
    }

    /// The entries, in no order, without `.` and `..`.
    pub fn list(&self) -> Result<Vec<Entry>, FsError> {
        let mut entries = Vec::new();
        self.each_entry(|name, file_type| entries.push(Entry { name: name.to_vec(), file_type }))?;
        Ok(entries)
    }

    /// Calls `see` for every entry, without `.` and `..`.
    pub fn each_entry(&self, mut see: impl FnMut(&[u8], Option<FileType>)) -> Result<(), FsError> {
        let listing = fs::Dir::read_from(&self.fd).map_err(|errno| on("list", b".")(errno.into()))?;
        for entry in listing {
            let entry = entry.map_err(|errno| on("list", b".")(errno.into()))?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                see(name, known_type(entry.file_type()));
            }
        }
        Ok(())
    }

    /// Makes the names in this directory durable.
    pub fn sync(&self) -> Result<(), FsError> {
        change("sync", b"directory", || fs::fsync(&self.fd))
    }

    /// Removes `name` and, if it is a directory, all below it, following no symlink.
    /// Stops at the first thing that cannot be removed.
    pub fn remove_all(&self, name: &[u8]) -> Result<(), FsError> {
        match self.stat(name)? {
            None => Ok(()),
            Some(stat) if stat.file_type == FileType::Directory => {
                // Deep trees must not overflow our stack: one handle a level, on the heap.
                let mut open = vec![(name.to_vec(), self.open_dir(name)?)];
                while let Some((_, dir)) = open.last() {
                    let next = dir.list()?.into_iter().next();
                    match next {
                        None => {
                            let (name, _) = open.pop().expect("the loop holds one");
                            let parent = open.last().map_or(self, |(_, dir)| dir);
                            parent.remove_dir(&name)?;
                        }
                        Some(entry) => match dir.unlink(&entry.name) {
                            Ok(()) => {}
                            Err(_) if dir.stat(&entry.name)?.is_some_and(|s| s.file_type == FileType::Directory) => {
                                let below = dir.open_dir(&entry.name)?;
                                open.push((entry.name, below));
                            }
                            Err(error) => return Err(error),
                        },
                    }
                }
                Ok(())
            }
            Some(_) => self.unlink(name),
        }
    }
}

/// What the open object `fd` is.
pub fn stat_of(fd: BorrowedFd<'_>) -> Result<Stat, FsError> {
    host::stat_fd(fd).map_err(|errno| on("stat", b".")(errno.into()))
}

pub(crate) fn known_type(file_type: fs::FileType) -> Option<FileType> {
    Some(match file_type {
        fs::FileType::RegularFile => FileType::Regular,
        fs::FileType::Directory => FileType::Directory,
        fs::FileType::Symlink => FileType::Symlink,
        fs::FileType::Fifo => FileType::Fifo,
        fs::FileType::Socket => FileType::Socket,
        fs::FileType::CharacterDevice => FileType::CharDevice,
        fs::FileType::BlockDevice => FileType::BlockDevice,
        fs::FileType::Unknown => return None,
    })
}
