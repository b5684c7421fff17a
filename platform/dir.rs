//! One open directory and what can be done to the names in it.
//!
//! Promise: every operation acts on a single name relative to an open handle and follows no symlink, so it cannot leave
//! the directory whatever is renamed at that moment. Calls cut short by a signal are made again. Limit: a directory can
//! itself be moved; where it hangs is [`crate::Root`]'s question, asked when the handle is opened.
//! Source: openat(2), renameat2(2), unlinkat(2); renameatx_np(2) on macOS.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{self, AtFlags, Gid, Mode, OFlags, Uid};
use rustix::io::{Errno, retry_on_intr};

use crate::relpath::is_name;
use crate::stat::{FileType, Stat};
use crate::{fault, host, unix};

/// For opening what has just been seen to be a regular file. O_NONBLOCK: neither a FIFO put there meanwhile nor a lease of
/// another process makes us wait.
pub(crate) const FOR_A_LOOK: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// What a new file of any program gets, less the umask.
const PLAIN_FILE: u32 = 0o666;
/// A file nobody else may read.
const PRIVATE_FILE: u32 = 0o600;

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

    /// Whether the system had no room for it just now: no descriptor, or no memory. It says nothing of what is there.
    pub fn is_exhaustion(&self) -> bool {
        means_exhaustion(&self.source)
    }

    /// Whether the file system or the system cannot do this at all, so that trying again is of no use.
    pub fn is_unsupported(&self) -> bool {
        self.source.kind() == io::ErrorKind::Unsupported
            || Errno::from_io_error(&self.source).is_some_and(means_unsupported)
    }
}

/// See [`FsError::is_exhaustion`].
pub(crate) fn means_exhaustion(error: &io::Error) -> bool {
    Errno::from_io_error(error).is_some_and(|errno| [Errno::MFILE, Errno::NFILE, Errno::NOMEM].contains(&errno))
}

/// Errors of a call whose flags or whose kind of operation the file system does not know. `EPERM` is not among them,
/// although link(2) means it so on FAT: it also says that a file is immutable.
pub(crate) fn means_unsupported(errno: Errno) -> bool {
    [Errno::INVAL, Errno::NOSYS, Errno::NOTSUP, Errno::OPNOTSUPP, Errno::NOTTY].contains(&errno)
}

/// Names the operation and the object of an error.
pub(crate) fn on(operation: &'static str, name: &[u8]) -> impl FnOnce(io::Error) -> FsError {
    let path = PathBuf::from(OsStr::from_bytes(name));
    move |source| FsError { operation, path, source }
}

/// Runs one change of the file system, unless a test has "killed" the process before it.
pub(crate) fn change<T>(
    operation: &'static str,
    name: &[u8],
    act: impl FnMut() -> rustix::io::Result<T>,
) -> Result<T, FsError> {
    fault::point(operation).and_then(|()| Ok(retry_on_intr(act)?)).map_err(on(operation, name))
}

fn change_name<T>(
    operation: &'static str,
    name: &[u8],
    act: impl FnMut() -> rustix::io::Result<T>,
) -> Result<T, FsError> {
    checked(name).map_err(on(operation, name))?;
    change(operation, name, act)
}

fn look<T>(operation: &'static str, name: &[u8], act: impl FnMut() -> rustix::io::Result<T>) -> Result<T, FsError> {
    checked(name).and_then(|()| Ok(retry_on_intr(act)?)).map_err(on(operation, name))
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

impl From<Dir> for OwnedFd {
    fn from(dir: Dir) -> Self {
        dir.fd
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
        retry_on_intr(|| fs::open(path, flags, Mode::empty()))
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
    ///
    /// A directory that may be passed through but not listed is opened all the same; then [`Dir::list`] and
    /// [`Dir::sync`] fail on it, and everything done by name works.
    pub fn open_dir(&self, name: &[u8]) -> Result<Self, FsError> {
        look("open", name, || host::open_dir_at(self.fd.as_fd(), name)).map(Self::from)
    }

    /// What `name` is; `None` if nothing has that name, or if the file system allows no name of that length.
    pub fn stat(&self, name: &[u8]) -> Result<Option<Stat>, FsError> {
        match look("stat", name, || host::stat_at(self.fd.as_fd(), name)) {
            Ok(stat) => Ok(Some(stat)),
            Err(error) if matches!(Errno::from_io_error(&error.source), Some(Errno::NOENT | Errno::NAMETOOLONG)) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// What this directory itself is.
    pub fn own_stat(&self) -> Result<Stat, FsError> {
        stat_of(self.fd.as_fd())
    }

    /// Opens the regular file `name` for reading. Anything else is `InvalidInput` and is not opened: neither a FIFO's
    /// writer nor a device notices.
    ///
    /// Never waits: a file on which another process holds a write lease (fcntl(2), `F_SETLEASE`) is `WouldBlock`.
    pub fn open_read(&self, name: &[u8]) -> Result<File, FsError> {
        self.open_regular(name, OFlags::RDONLY)
    }

    /// Opens the file `name` for reading and writing as [`Dir::open_read`] does, and creates it with `0600` if there is
    /// none.
    pub fn open_update(&self, name: &[u8]) -> Result<File, FsError> {
        self.open_or_create(name, OFlags::RDWR)
    }

    /// Opens the file `name` for reading and appending as [`Dir::open_read`] does, and creates it with `0600` if there is
    /// none.
    pub fn open_append(&self, name: &[u8]) -> Result<File, FsError> {
        self.open_or_create(name, OFlags::RDWR | OFlags::APPEND)
    }

    /// Opens a file of our own for reading and writing, as [`Dir::open_read`] does.
    pub(crate) fn open_own(&self, name: &[u8]) -> Result<File, FsError> {
        self.open_regular(name, OFlags::RDWR)
    }

    fn open_regular(&self, name: &[u8], access: OFlags) -> Result<File, FsError> {
        checked(name).and_then(|()| host::open_regular(self.fd.as_fd(), name, access)).map_err(on("open", name))
    }

    fn open_or_create(&self, name: &[u8], access: OFlags) -> Result<File, FsError> {
        // Each round lost means that somebody removed or made the name in between: a few are chance, many an attack.
        let mut rounds = 0;
        loop {
            match self.open_regular(name, access) {
                Err(error) if error.source.kind() == io::ErrorKind::NotFound => {}
                done => return done,
            }
            match self.create_exclusive(name, 0o600, access) {
                Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists && rounds < 16 => rounds += 1,
                done => return done,
            }
        }
    }

    /// Creates the file `name`, which must not exist, for reading and writing, with exactly these permission bits.
    ///
    /// Changing the owner, and writing unless root does it, take set-id bits away again: set them last.
    pub fn create_new(&self, name: &[u8], mode: u32) -> Result<File, FsError> {
        self.create_exclusive(name, mode, OFlags::RDWR)
    }

    fn create_exclusive(&self, name: &[u8], mode: u32, access: OFlags) -> Result<File, FsError> {
        let flags = access | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode as _);
        let fd = change_name("create", name, || fs::openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR))?;
        // Whatever umask and default ACL made of it.
        change("chmod", name, || fs::fchmod(&fd, mode))?;
        Ok(File::from(fd))
    }

    /// Creates the file `name`, which must not exist, for reading and writing, with the bits a new file of any program gets
    /// here: what the umask, or a default ACL of the directory, leaves of `0666`.
    pub fn create_plain(&self, name: &[u8]) -> Result<File, FsError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(PLAIN_FILE as _);
        change_name("create", name, || fs::openat(&self.fd, name, flags, mode)).map(File::from)
    }

    /// Creates a file in this directory that has no name, and vanishes with its last handle unless [`Dir::give_name`] gives
    /// it one. Its bits are those of [`Dir::create_plain`], or `0600` if it is `private`. `None` if the file system or the
    /// system has no such files.
    pub fn create_unnamed(&self, private: bool) -> Result<Option<File>, FsError> {
        let mode = Mode::from_raw_mode((if private { PRIVATE_FILE } else { PLAIN_FILE }) as _);
        match change("create", b"a file without a name", || host::create_unnamed(self.fd.as_fd(), mode)) {
            Ok(fd) => Ok(Some(File::from(fd))),
            // EISDIR: a kernel or a file system that takes the flag for a plain opening of the directory (open(2)).
            Err(error) if error.is_unsupported() || error.errno() == Some(Errno::ISDIR.raw_os_error()) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives a file that was created without a name in this directory its first one; fails with `AlreadyExists` if something
    /// has that name.
    pub fn give_name(&self, file: &File, name: &[u8]) -> Result<(), FsError> {
        change_name("create", name, || host::give_name(file.as_fd(), self.fd.as_fd(), name))
    }

    /// Makes the directory `name` with the bits a new directory of any program gets here: what the umask, or a default ACL,
    /// leaves of `0777`. The limit of [`Dir::make_dir`] holds here, too.
    pub fn make_plain_dir(&self, name: &[u8]) -> Result<Self, FsError> {
        change_name("make directory", name, || fs::mkdirat(&self.fd, name, Mode::from_raw_mode(0o777)))?;
        self.open_dir(name)
    }

    /// Opens for reading what a listing has just called a regular file, and tells what it is: two system calls where
    /// [`Dir::open_read`] makes five, for looking into many files.
    ///
    /// Limit: what took the file's place since is opened before that is known, without waiting for anything, and is
    /// `InvalidInput`. Reads may give `WouldBlock` on a file system that heeds `O_NONBLOCK`.
    pub fn open_listed(&self, name: &[u8]) -> Result<(File, Stat), FsError> {
        let open = || match fs::openat(&self.fd, name, FOR_A_LOOK, Mode::empty()) {
            // A symlink; ENXIO: a socket, or a device without a driver.
            Err(Errno::LOOP | Errno::NXIO) => Err(Errno::INVAL),
            done => done,
        };
        let file = look("open", name, open).map(File::from)?;
        let stat = stat_of(file.as_fd())?;
        if stat.file_type == FileType::Regular {
            Ok((file, stat))
        } else {
            Err(on("open", name)(io::ErrorKind::InvalidInput.into()))
        }
    }

    /// Makes a symlink `name` with this text.
    pub fn symlink(&self, text: &[u8], name: &[u8]) -> Result<(), FsError> {
        change_name("link", name, || fs::symlinkat(text, &self.fd, name))
    }

    /// The text of the symlink `name`.
    pub fn read_link(&self, name: &[u8]) -> Result<Vec<u8>, FsError> {
        look("read link", name, || fs::readlinkat(&self.fd, name, Vec::new())).map(|text| text.into_bytes())
    }

    /// Makes the directory `name` with exactly these permission bits.
    ///
    /// Limit: no call makes and opens a directory at once. Whoever may rename in this directory can slip in another one
    /// in between, which is then what is returned: a directory of that name in this one, and never through a symlink.
    pub fn make_dir(&self, name: &[u8], mode: u32) -> Result<Self, FsError> {
        change_name("make directory", name, || fs::mkdirat(&self.fd, name, Mode::RWXU))?;
        let made = self.open_dir(name)?;
        change("chmod", name, || fs::fchmod(&made.fd, Mode::from_raw_mode(mode as _)))?;
        Ok(made)
    }

    /// Gives `name` itself, a symlink too, another owner and group.
    pub fn chown(&self, name: &[u8], uid: u32, gid: u32) -> Result<(), FsError> {
        let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        change_name("chown", name, || fs::chownat(&self.fd, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW))
    }

    /// Removes `name`, which is not a directory.
    pub fn unlink(&self, name: &[u8]) -> Result<(), FsError> {
        change_name("unlink", name, || fs::unlinkat(&self.fd, name, AtFlags::empty()))
    }

    /// Removes the empty directory `name`.
    pub fn remove_dir(&self, name: &[u8]) -> Result<(), FsError> {
        change_name("remove directory", name, || fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR))
    }

    /// Moves `name` to `to` in `target`, replacing what is there.
    pub fn rename(&self, name: &[u8], target: &Dir, to: &[u8]) -> Result<(), FsError> {
        checked(to).map_err(on("rename", to))?;
        change_name("rename", name, || fs::renameat(&self.fd, name, &target.fd, to))
    }

    /// Moves `name` to `to` in `target`; fails with `AlreadyExists` if something has that name.
    ///
    /// Where the file system cannot do this in one call it is done in two, and a crash between them leaves both names:
    /// of a file, two links to it; of a directory, the old one and an empty new one.
    pub fn rename_new(&self, name: &[u8], target: &Dir, to: &[u8]) -> Result<(), FsError> {
        checked(to).map_err(on("rename", to))?;
        match change_name("rename", name, || unix::rename_new(self.fd.as_fd(), name, target.fd.as_fd(), to)) {
            Err(error) if error.is_unsupported() => self.rename_new_in_two(name, target, to),
            done => done,
        }
    }

    fn rename_new_in_two(&self, name: &[u8], target: &Dir, to: &[u8]) -> Result<(), FsError> {
        let stat = self.stat(name)?.ok_or_else(|| on("rename", name)(Errno::NOENT.into()))?;
        if stat.file_type == FileType::Directory {
            // rename(2) replaces an empty directory, and mkdir(2) fails if the name is taken.
            change("make directory", to, || fs::mkdirat(&target.fd, to, Mode::RWXU))?;
            let moved = change("rename", name, || fs::renameat(&self.fd, name, &target.fd, to));
            if moved.is_err() {
                let _ = target.remove_dir(to);
            }
            return moved;
        }
        change("rename", name, || fs::linkat(&self.fd, name, &target.fd, to, AtFlags::empty()))?;
        // Only the object that now has the new name may lose the old one. If it is another, both stay: nothing is lost.
        let linked = target.stat(to)?.map(|stat| stat.id);
        if linked != self.stat(name)?.map(|stat| stat.id) {
            return Err(on("rename", name)(io::Error::other("another process put something else there")));
        }
        self.unlink(name)
    }

    /// Swaps the two names atomically; both must exist.
    ///
    /// Some file systems cannot (NFS, FAT, older FUSE ones): [`FsError::is_unsupported`] tells, and nothing has happened.
    pub fn exchange(&self, name: &[u8], other: &[u8]) -> Result<(), FsError> {
        self.exchange_with(name, self, other)
    }

    /// The same for a name in another directory of the same file system.
    pub fn exchange_with(&self, name: &[u8], target: &Dir, other: &[u8]) -> Result<(), FsError> {
        checked(other).map_err(on("exchange", other))?;
        change_name("exchange", name, || unix::exchange(self.fd.as_fd(), name, target.fd.as_fd(), other))
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
        change("sync", b"directory", || host::sync(self.fd.as_fd()))
    }
}

/// What the open object `fd` is.
pub fn stat_of(fd: BorrowedFd<'_>) -> Result<Stat, FsError> {
    host::stat_fd(fd).map_err(|errno| on("stat", b".")(errno.into()))
}

/// The type a system interface told; `None` if it did not know.
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

#[cfg(test)]
mod tests;
