//! File operations where macOS has its own: BSD flags and renameatx_np.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::time::ClockId;

use crate::dir::{Dir, FsError};
use crate::relpath::RelPath;
use crate::root::walk;
use crate::stat::{FileId, FileType, Stat};

/// Goes on while the machine sleeps (clock_gettime(3)).
pub(crate) const MOMENT_CLOCK: ClockId = ClockId::Monotonic;

pub(crate) const UF_IMMUTABLE: u32 = 0x2;
pub(crate) const UF_APPEND: u32 = 0x4;
pub(crate) const SF_IMMUTABLE: u32 = 0x0002_0000;
pub(crate) const SF_APPEND: u32 = 0x0004_0000;

fn to_stat(stat: &fs::Stat) -> Stat {
    let dev = stat.st_dev as u64;
    Stat {
        file_type: FileType::from_mode(u32::from(stat.st_mode)),
        mode: u32::from(stat.st_mode) & 0o7777,
        uid: stat.st_uid,
        gid: stat.st_gid,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        nlink: u64::from(stat.st_nlink),
        id: FileId { dev, ino: stat.st_ino },
        rdev: stat.st_rdev as u64,
        mtime: (stat.st_mtime, u32::try_from(stat.st_mtime_nsec).unwrap_or(0)),
        ctime: (stat.st_ctime, u32::try_from(stat.st_ctime_nsec).unwrap_or(0)),
        mount: dev,
        immutable: stat.st_flags & (UF_IMMUTABLE | SF_IMMUTABLE) != 0,
        append_only: stat.st_flags & (UF_APPEND | SF_APPEND) != 0,
    }
}

/// What `name` in `dir` is, following nothing.
pub(crate) fn stat_at(dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<Stat> {
    fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| to_stat(&stat))
}

/// What the open object is.
pub(crate) fn stat_fd(fd: BorrowedFd<'_>) -> rustix::io::Result<Stat> {
    fs::fstat(fd).map(|stat| to_stat(&stat))
}

/// Opens the directory `name` without following it.
pub(crate) fn open_dir_at(dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    fs::openat(dir, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

/// Opens the directory `name` only to go on from it.
pub(crate) fn pass_through(dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    open_dir_at(dir, name)
}

/// Opens a regular file; anything else is refused, as far as a look before the open can tell.
pub(crate) fn open_regular(dir: BorrowedFd<'_>, name: &[u8], access: OFlags) -> io::Result<File> {
    if stat_at(dir, name)?.file_type != FileType::Regular {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // The type may change before the open: O_NONBLOCK keeps a FIFO from blocking, and the type is looked at again.
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = retry_on_intr(|| fs::openat(dir, name, flags, Mode::empty()))?;
    if stat_fd(fd.as_fd())?.file_type != FileType::Regular {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    fs::fcntl_setfl(&fd, access & OFlags::APPEND)?;
    Ok(File::from(fd))
}

/// The directory at `path` below `dir`.
pub(crate) fn open_beneath(dir: &Dir, path: &RelPath) -> Result<Dir, FsError> {
    walk::open_dir(dir, path)
}

/// The file at `path` below `dir`, whatever it is, opened for reading without waiting.
pub(crate) fn open_file_beneath(dir: &Dir, path: &RelPath) -> Result<File, FsError> {
    walk::open_file(dir, path)
}

/// Whether the error says that a component is absent, a symlink or not a directory; a name too long for the
/// file system is absent.
pub(crate) fn means_no_directory(errno: i32) -> bool {
    [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::NAMETOOLONG].iter().any(|known| known.raw_os_error() == errno)
}

/// This system has no files without a name.
pub(crate) fn create_unnamed(_dir: BorrowedFd<'_>, _mode: Mode) -> rustix::io::Result<OwnedFd> {
    Err(Errno::NOTSUP)
}

/// There is none to give a name to.
pub(crate) fn give_name(_file: BorrowedFd<'_>, _dir: BorrowedFd<'_>, _name: &[u8]) -> rustix::io::Result<()> {
    Err(Errno::NOTSUP)
}

/// Makes content and attributes durable: fsync(2) on macOS leaves them in the drive's cache, `F_FULLFSYNC` does not.
pub(crate) fn sync(fd: BorrowedFd<'_>) -> rustix::io::Result<()> {
    match fs::fcntl_fullfsync(fd) {
        Err(Errno::NOTSUP | Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL) => fs::fsync(fd),
        done => done,
    }
}

/// No call does this here; [`open_beneath`] goes component by component.
pub(crate) fn open_beneath_at_once(_dir: &Dir, _path: &CStr) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no such call"))
}
