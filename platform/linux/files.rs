//! File operations where Linux has its own: statx, openat2, renameat2.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{self, AtFlags, Mode, OFlags, ResolveFlags, StatxAttributes, StatxFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::time::ClockId;

use crate::dir::{Dir, FOR_A_LOOK, FsError, on};
use crate::relpath::RelPath;
use crate::root::walk;
use crate::stat::{FileId, FileType, Stat};

/// Goes on while the machine sleeps.
pub(crate) const MOMENT_CLOCK: ClockId = ClockId::Boottime;

/// `STATX_MNT_ID` (Linux 5.8) and `STATX_MNT_ID_UNIQUE` (6.8, not yet named by rustix). The kernel gives the unique one if
/// it knows it. The plain one is given to the next mount as soon as a mount is gone, so that another file system could
/// pass for one that was admitted. Before 5.8 the device number stands in for both.
const MNT_ID: StatxFlags = StatxFlags::from_bits_retain(0x1000 | 0x4000);

fn to_stat(statx: &fs::Statx) -> Stat {
    let dev = fs::makedev(statx.stx_dev_major, statx.stx_dev_minor);
    Stat {
        file_type: FileType::from_mode(u32::from(statx.stx_mode)),
        mode: u32::from(statx.stx_mode) & 0o7777,
        uid: statx.stx_uid,
        gid: statx.stx_gid,
        size: statx.stx_size,
        nlink: u64::from(statx.stx_nlink),
        id: FileId { dev, ino: statx.stx_ino },
        rdev: fs::makedev(statx.stx_rdev_major, statx.stx_rdev_minor),
        mtime: (statx.stx_mtime.tv_sec, statx.stx_mtime.tv_nsec),
        ctime: (statx.stx_ctime.tv_sec, statx.stx_ctime.tv_nsec),
        mount: if statx.stx_mask & MNT_ID.bits() == 0 { dev } else { statx.stx_mnt_id },
        immutable: statx.stx_attributes.contains(StatxAttributes::IMMUTABLE),
        append_only: statx.stx_attributes.contains(StatxAttributes::APPEND),
    }
}

/// What `name` in `dir` is, following nothing.
pub(crate) fn stat_at(dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<Stat> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    fs::statx(dir, name, flags, StatxFlags::BASIC_STATS | MNT_ID).map(|statx| to_stat(&statx))
}

/// What the open object is.
pub(crate) fn stat_fd(fd: BorrowedFd<'_>) -> rustix::io::Result<Stat> {
    fs::statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS | MNT_ID).map(|statx| to_stat(&statx))
}

/// Opens the directory `name` without following it; by `O_PATH` if it may not be listed.
pub(crate) fn open_dir_at(dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match fs::openat(dir, name, flags | OFlags::RDONLY, Mode::empty()) {
        Err(Errno::ACCESS) => fs::openat(dir, name, flags | OFlags::PATH, Mode::empty()),
        done => done,
    }
}

/// Opens the directory `name` only to go on from it, which needs no permission to list it.
pub(crate) fn pass_through(dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    fs::openat(dir, name, OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

/// Opens a regular file; anything else is refused before it is opened.
///
/// The name is pinned with `O_PATH`, which neither blocks on a FIFO nor reaches a driver, its type is read, and the
/// pinned inode itself is then opened through `/proc/self/fd`: no renaming in between can slip another object in.
pub(crate) fn open_regular(dir: BorrowedFd<'_>, name: &[u8], access: OFlags) -> io::Result<File> {
    let pinned = pin(dir, name)?;
    let stat = stat_fd(pinned.as_fd())?;
    if stat.file_type != FileType::Regular {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // O_NONBLOCK: a lease of another process must not make us wait for its holder (fcntl(2), "Leases").
    let flags = access | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = match retry_on_intr(|| fs::open(path_of(&pinned), flags, Mode::empty())) {
        // Without /proc: open by name, then see that it is the object that was pinned.
        Err(Errno::NOENT) => {
            let fd = retry_on_intr(|| fs::openat(dir, name, flags | OFlags::NOFOLLOW, Mode::empty()))?;
            if stat_fd(fd.as_fd())?.id != stat.id {
                return Err(io::Error::from(io::ErrorKind::NotFound));
            }
            fd
        }
        opened => opened?,
    };
    // The flag has done its work; on some file systems it would make reads fail with EAGAIN.
    fs::fcntl_setfl(&fd, access & OFlags::APPEND)?;
    Ok(File::from(fd))
}

/// A handle of `name` itself, whatever it is, that opens nothing.
pub(crate) fn pin(dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    retry_on_intr(|| fs::openat(dir, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()))
}

/// A path that leads to the pinned object itself: the kernel jumps to it and follows nothing further (proc(5)).
pub(crate) fn path_of(pinned: &impl AsRawFd) -> String {
    format!("/proc/self/fd/{}", pinned.as_raw_fd())
}

/// Nothing may leave the directory a path is resolved in.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// Whether openat2 could not do it although the component-wise walk may: an old kernel, a seccomp filter that does not know
/// the call (some answer ENOSYS, some EPERM), a path longer than PATH_MAX, or a rename at the wrong moment.
fn is_for_the_walk(errno: Errno) -> bool {
    [Errno::NOSYS, Errno::PERM, Errno::NAMETOOLONG, Errno::AGAIN].contains(&errno)
}

/// The directory at `path` below `dir`, in one system call where the kernel has openat2 (5.6).
pub(crate) fn open_beneath(dir: &Dir, path: &RelPath) -> Result<Dir, FsError> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = |how: OFlags| retry_on_intr(|| fs::openat2(dir, path.as_path(), flags | how, Mode::empty(), BENEATH));
    let opened = match open(OFlags::RDONLY) {
        // Perhaps it may be passed through, only not listed.
        Err(Errno::ACCESS) => open(OFlags::PATH),
        done => done,
    };
    match opened {
        Ok(fd) => Ok(Dir::from(fd)),
        Err(errno) if is_for_the_walk(errno) => walk::open_dir(dir, path),
        Err(errno) => Err(on("open", path.as_bytes())(errno.into())),
    }
}

/// The file at `path` below `dir`, whatever it is, opened for reading without waiting; one call as above.
pub(crate) fn open_file_beneath(dir: &Dir, path: &RelPath) -> Result<File, FsError> {
    match retry_on_intr(|| fs::openat2(dir, path.as_path(), FOR_A_LOOK, Mode::empty(), BENEATH)) {
        Ok(fd) => Ok(File::from(fd)),
        // EAGAIN is also said of a file another process has a lease on; the walk then says it again.
        Err(errno) if is_for_the_walk(errno) => walk::open_file(dir, path),
        Err(errno) => Err(on("open", path.as_bytes())(errno.into())),
    }
}

/// The same in one system call or not at all: openat2.
pub(crate) fn open_beneath_at_once(dir: &Dir, path: &CStr) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fs::openat2(dir, path, flags, Mode::empty(), BENEATH)?;
    Ok(())
}

/// Whether the error says that a component is absent, a symlink or not a directory; a name too long for the
/// file system is absent.
pub(crate) fn means_no_directory(errno: i32) -> bool {
    [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::NAMETOOLONG].iter().any(|known| known.raw_os_error() == errno)
}

/// A file without a name. `O_EXCL` would forbid to give it one.
pub(crate) fn create_unnamed(dir: BorrowedFd<'_>, mode: Mode) -> rustix::io::Result<OwnedFd> {
    fs::openat(dir, c".", OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode)
}

/// Gives an open file without a name its first one, through /proc: linking the handle itself needs a privilege on kernels
/// before 6.10 (linkat(2), `AT_EMPTY_PATH`). Without /proc this is `ENOENT`.
pub(crate) fn give_name(file: BorrowedFd<'_>, dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<()> {
    fs::linkat(fs::CWD, path_of(&file), dir, name, AtFlags::SYMLINK_FOLLOW)
}

/// Makes content and attributes durable.
pub(crate) fn sync(fd: BorrowedFd<'_>) -> rustix::io::Result<()> {
    fs::fsync(fd)
}

/// Makes the content durable, with what of the metadata reading it back needs.
pub(crate) fn sync_data(fd: BorrowedFd<'_>) -> rustix::io::Result<()> {
    fs::fdatasync(fd)
}

/// Makes it durable on the medium itself: fsync(2) empties the drive's cache, too.
pub(crate) fn sync_through(fd: BorrowedFd<'_>) -> rustix::io::Result<()> {
    fs::fsync(fd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::time::{clock_gettime, clock_settime};

    /// Not even by root: unlike wall time, it has no operation for that (clock_settime(2), EINVAL). What would be set is
    /// what it shows already.
    #[test]
    fn the_clock_of_deadlines_cannot_be_set() {
        let set = clock_settime(MOMENT_CLOCK, clock_gettime(MOMENT_CLOCK));
        assert_eq!(set, Err(Errno::INVAL));
    }
}
