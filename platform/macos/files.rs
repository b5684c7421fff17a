//! File operations where macOS has its own: BSD flags, `O_NOFOLLOW_ANY`, `F_FULLFSYNC`, files without data.
//!
//! Source: open(2), stat(2), fcntl(2), setiopolicy_np(3).

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::time::ClockId;

use super::sys;
use crate::bsd_flags;
use crate::dir::{Dir, FOR_A_LOOK, FsError, means_unsupported, on};
use crate::relpath::RelPath;
use crate::root::walk;
use crate::stat::{FileId, FileType, Stat};

/// Goes on while the machine sleeps (clock_gettime(3)).
pub(crate) const MOMENT_CLOCK: ClockId = ClockId::Monotonic;

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
        immutable: bsd_flags::read(stat.st_flags).immutable,
        append_only: bsd_flags::read(stat.st_flags).append_only,
    }
}

/// What `name` in `dir` is, following nothing.
pub(crate) fn stat_at(dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<Stat> {
    fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| to_stat(&stat))
}

/// What the open object is.
pub(crate) fn stat_fd(fd: BorrowedFd<'_>) -> rustix::io::Result<Stat> {
    // Every root is looked at so before anything in it is.
    leave_data_where_it_is();
    fs::fstat(fd).map(|stat| to_stat(&stat))
}

/// A directory, for reading.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A directory, to go on from it only.
const SEARCH: OFlags = OFlags::from_bits_retain(libc::O_SEARCH as u32).union(OFlags::CLOEXEC);

/// Opens by these flags; a directory that may not be listed is opened to go on from it.
fn open_dir_by(flags: OFlags, dir: BorrowedFd<'_>, path: &[u8]) -> rustix::io::Result<OwnedFd> {
    leave_data_where_it_is();
    match fs::openat(dir, path, DIRECTORY | flags, Mode::empty()) {
        Err(Errno::ACCESS) => fs::openat(dir, path, SEARCH | flags, Mode::empty()),
        done => done,
    }
}

/// Opens the directory `name` without following it.
pub(crate) fn open_dir_at(dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    open_dir_by(OFlags::NOFOLLOW, dir, name)
}

/// Whether the kernel refuses an open that meets a symlink anywhere in its path, for a flag that it ignored before
/// macOS 11. `/tmp` is a symlink on every one.
pub(crate) fn refuses_any_symlink() -> bool {
    static REFUSES: OnceLock<bool> = OnceLock::new();
    *REFUSES.get_or_init(|| {
        fs::open(c"/tmp", DIRECTORY | OFlags::NOFOLLOW_ANY, Mode::empty()).is_err_and(|errno| errno == Errno::LOOP)
    })
}

/// Keeps this process from fetching the data of files and directories that lie in a cloud: looking at them would change
/// them, take long, and tell a server. Reading one fails with EDEADLK instead.
fn leave_data_where_it_is() {
    static DONE: OnceLock<()> = OnceLock::new();
    // A kernel that does not know of it (before 10.15) has no such files.
    DONE.get_or_init(|| drop(sys::materialise::never()));
}

/// Opens the directory `name` only to go on from it.
pub(crate) fn pass_through(dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    open_dir_at(dir, name)
}

/// Opens a regular file; anything else is refused, as far as a look before the open can tell.
pub(crate) fn open_regular(dir: BorrowedFd<'_>, name: &[u8], access: OFlags) -> io::Result<File> {
    leave_data_where_it_is();
    let stat = fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if to_stat(&stat).file_type != FileType::Regular {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    if bsd_flags::is_dataless(stat.st_flags) {
        return Err(io::Error::other("its content lies in a cloud and not on this machine"));
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

/// The directory at `path` below `dir`. A [`RelPath`] has no `..`, so that without symlinks it cannot lead out.
pub(crate) fn open_beneath(dir: &Dir, path: &RelPath) -> Result<Dir, FsError> {
    if path.is_root() || !refuses_any_symlink() {
        return walk::open_dir(dir, path);
    }
    match retry_on_intr(|| open_dir_by(OFlags::NOFOLLOW_ANY, dir.as_fd(), path.as_bytes())) {
        Ok(fd) => Ok(Dir::from(fd)),
        // A path longer than PATH_MAX; of a name that is too long the walk says the same.
        Err(Errno::NAMETOOLONG) => walk::open_dir(dir, path),
        Err(errno) => Err(on("open", path.as_bytes())(errno.into())),
    }
}

/// The file at `path` below `dir`, whatever it is, opened for reading without waiting.
pub(crate) fn open_file_beneath(dir: &Dir, path: &RelPath) -> Result<File, FsError> {
    if path.is_root() || !refuses_any_symlink() {
        return walk::open_file(dir, path);
    }
    leave_data_where_it_is();
    // The two flags exclude each other (EINVAL), and the one for the whole path holds for its end, too.
    let flags = FOR_A_LOOK.difference(OFlags::NOFOLLOW) | OFlags::NOFOLLOW_ANY;
    match retry_on_intr(|| fs::openat(dir, path.as_bytes(), flags, Mode::empty())) {
        Ok(fd) => Ok(File::from(fd)),
        Err(Errno::NAMETOOLONG) => walk::open_file(dir, path),
        Err(errno) => Err(on("open", path.as_bytes())(errno.into())),
    }
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

/// Makes content and attributes durable: fsync(2) on macOS leaves them in the drive's cache, `F_FULLFSYNC` does not. Where
/// a volume has no such thing (SMB, NFS, some of FUSE), fsync(2) is what there is.
pub(crate) fn sync(fd: BorrowedFd<'_>) -> rustix::io::Result<()> {
    match sync_through(fd) {
        Err(errno) if means_unsupported(errno) => fs::fsync(fd),
        done => done,
    }
}

/// There is no lesser way that would leave out the metadata only.
pub(crate) fn sync_data(fd: BorrowedFd<'_>) -> rustix::io::Result<()> {
    sync(fd)
}

/// Makes it durable on the medium itself, or says that the volume cannot.
pub(crate) fn sync_through(fd: BorrowedFd<'_>) -> rustix::io::Result<()> {
    fs::fcntl_fullfsync(fd)
}

/// Opens a directory in one call that refuses every symlink in the path.
pub(crate) fn open_beneath_at_once(dir: &Dir, path: &CStr) -> io::Result<()> {
    if !refuses_any_symlink() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "this kernel does not know O_NOFOLLOW_ANY"));
    }
    fs::openat(dir, path, DIRECTORY | OFlags::NOFOLLOW_ANY, Mode::empty())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symlink_anywhere_in_a_path_is_refused_by_one_call_and_by_the_walk() {
        assert!(refuses_any_symlink(), "this is macOS 11 or later");
        let temp = tempfile::tempdir().expect("a temporary directory");
        let dir = Dir::open_ambient(temp.path()).expect("it exists");
        let path = |text: &str| RelPath::parse(text.as_bytes()).expect("a normal path");
        dir.make_dir(b"a", 0o700).expect("makes").make_dir(b"b", 0o700).expect("makes");
        dir.symlink(b"a", b"link").expect("links");
        dir.open_dir(b"a").expect("opens").symlink(b"b", b"link").expect("links");
        let found = open_beneath(&dir, &path("a/b")).expect("opens").own_stat().expect("looks");
        assert_eq!(found.id, walk::open_dir(&dir, &path("a/b")).expect("opens").own_stat().expect("looks").id);
        for refused in ["link", "link/b", "a/link"] {
            let error = open_beneath(&dir, &path(refused)).expect_err(refused);
            assert!(error.errno().is_some_and(means_no_directory), "{refused}: {error:?}");
        }
    }

    #[test]
    fn a_volume_that_syncs_through_its_cache_or_not_is_synced() {
        let file = tempfile::tempfile().expect("a file");
        sync(file.as_fd()).expect("by one way or the other");
        sync_data(file.as_fd()).expect("by one way or the other");
    }
}
