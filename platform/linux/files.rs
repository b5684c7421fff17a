//! File operations where Linux has its own: statx, openat2, renameat2.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{self, AtFlags, Mode, OFlags, RenameFlags, ResolveFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use rustix::time::ClockId;

use crate::dir::{Dir, FsError, on};
use crate::relpath::RelPath;
use crate::root::walk;
use crate::stat::{FileId, FileType, Stat};

/// Goes on while the machine sleeps.
pub(crate) const MOMENT_CLOCK: ClockId = ClockId::Boottime;

/// Since Linux 5.8; older kernels leave the field zero, so that every mount looks alike and only `st_dev` differs.
const MNT_ID: StatxFlags = StatxFlags::MNT_ID;

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

/// Opens a regular file for reading; anything else is refused before it is opened.
///
/// The name is pinned with `O_PATH`, which neither blocks on a FIFO nor reaches a driver, its type is read, and the
/// pinned inode itself is then opened through `/proc/self/fd`: no renaming in between can slip another object in.
pub(crate) fn open_regular(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<File> {
    let pinned = fs::openat(dir, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    if stat_fd(std::os::fd::AsFd::as_fd(&pinned))?.file_type != FileType::Regular {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let own = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&pinned));
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match fs::open(own, flags, Mode::empty()) {
        Ok(fd) => Ok(File::from(fd)),
        // Without /proc: open by name, then see that it is the object that was pinned.
        Err(Errno::NOENT) => {
            let fd = fs::openat(dir, name, flags | OFlags::NOFOLLOW, Mode::empty())?;
            let same = stat_fd(std::os::fd::AsFd::as_fd(&fd))?.id == stat_fd(std::os::fd::AsFd::as_fd(&pinned))?.id;
            if same { Ok(File::from(fd)) } else { Err(io::Error::from(io::ErrorKind::NotFound)) }
        }
        Err(errno) => Err(errno.into()),
    }
}

/// The directory at `path` below `dir`, in one system call where the kernel has openat2 (5.6).
pub(crate) fn open_beneath(dir: &Dir, path: &RelPath) -> Result<Dir, FsError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match fs::openat2(dir, path.as_path(), flags, Mode::empty(), resolve) {
        Ok(fd) => Ok(Dir::from(fd)),
        // An old kernel, a seccomp filter that does not know the call, or a path longer than PATH_MAX.
        Err(Errno::NOSYS | Errno::PERM | Errno::NAMETOOLONG | Errno::AGAIN) => walk::open_dir(dir, path),
        Err(errno) => Err(on("open", path.as_bytes())(errno.into())),
    }
}

/// Whether the error says that a component is absent, a symlink or not a directory.
pub(crate) fn means_no_directory(errno: i32) -> bool {
    [Errno::NOENT, Errno::NOTDIR, Errno::LOOP].iter().any(|known| known.raw_os_error() == errno)
}

/// Renames unless the new name exists.
pub(crate) fn rename_new(
    dir: BorrowedFd<'_>,
    name: &[u8],
    to_dir: BorrowedFd<'_>,
    to: &[u8],
) -> rustix::io::Result<()> {
    fs::renameat_with(dir, name, to_dir, to, RenameFlags::NOREPLACE)
}

/// Swaps two names.
pub(crate) fn exchange(dir: BorrowedFd<'_>, name: &[u8], other: &[u8]) -> rustix::io::Result<()> {
    fs::renameat_with(dir, name, dir, other, RenameFlags::EXCHANGE)
}
