//! Looks at files outside every root, by path: settings of the person's account and where a repository's own lie.
//!
//! Promise: only reads, capped, and of regular files only; a FIFO or device in their place is not opened.
//! Limit: symlinks are followed, as the programs do whose settings these are; nothing here is for files of a root.
//! Source: open(2), realpath(3).

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::retry_on_intr;

use crate::dir::{FsError, known_type, on, stat_of};
use crate::host;
use crate::stat::{FileId, FileType};

/// What a capped read found.
#[derive(Debug, PartialEq, Eq)]
pub enum Content {
    /// No regular file is there.
    Absent,
    /// More bytes than asked for.
    TooLarge,
    /// All of it.
    Bytes(Vec<u8>),
}

fn failed(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FsError {
    on(operation, path.as_os_str().as_bytes())
}

/// Reads the regular file at `path`, at most `max_bytes` bytes.
pub fn read(path: &Path, max_bytes: u64) -> Result<Content, FsError> {
    if kind_following(path)? != Some(FileType::Regular) {
        return Ok(Content::Absent);
    }
    // The type may change before the open: O_NONBLOCK keeps a FIFO from blocking, and the type is looked at again.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match fs::open(path, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(errno) if means_absent(errno) => return Ok(Content::Absent),
        Err(errno) => return Err(failed("open", path)(errno.into())),
    };
    if stat_of(file.as_fd())?.file_type != FileType::Regular {
        return Ok(Content::Absent);
    }
    let mut bytes = Vec::new();
    match file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes) {
        Ok(length) if length as u64 > max_bytes => Ok(Content::TooLarge),
        Ok(_) => Ok(Content::Bytes(bytes)),
        Err(source) => Err(failed("read", path)(source)),
    }
}

/// The type of what `path` leads to; `None` if that is nothing.
pub fn kind_following(path: &Path) -> Result<Option<FileType>, FsError> {
    look(path, AtFlags::empty())
}

/// The type of what `path` itself is; `None` if that is nothing.
pub fn kind(path: &Path) -> Result<Option<FileType>, FsError> {
    look(path, AtFlags::SYMLINK_NOFOLLOW)
}

/// The path without symlinks; everything on it must exist.
pub fn resolve(path: &Path) -> Result<PathBuf, FsError> {
    std::fs::canonicalize(path).map_err(failed("resolve", path))
}

/// Device and inode of what `path` itself is; `None` if that is nothing. Nothing is opened, so that a directory that may
/// only be passed through is told, too.
pub fn id(path: &Path) -> Result<Option<FileId>, FsError> {
    match retry_on_intr(|| host::stat_at(fs::CWD, path.as_os_str().as_bytes())) {
        Ok(stat) => Ok(Some(stat.id)),
        Err(errno) if means_absent(errno) => Ok(None),
        Err(errno) => Err(failed("stat", path)(errno.into())),
    }
}

fn look(path: &Path, flags: AtFlags) -> Result<Option<FileType>, FsError> {
    match fs::statat(fs::CWD, path, flags) {
        // What is of no known type is as good as a device: never opened.
        Ok(stat) => Ok(Some(known_type(fs::FileType::from_raw_mode(stat.st_mode)).unwrap_or(FileType::CharDevice))),
        Err(errno) if means_absent(errno) => Ok(None),
        Err(errno) => Err(failed("stat", path)(errno.into())),
    }
}

fn means_absent(errno: rustix::io::Errno) -> bool {
    use rustix::io::Errno;
    matches!(errno, Errno::NOENT | Errno::NOTDIR)
}
