//! Where bytes for the terminal go: a file description of our own, so that `O_NONBLOCK` concerns nobody else.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsRawFd;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::termios::{isatty, tcgetattr, tcgetsid, ttyname};

use crate::host;

/// A writable end.
#[derive(Debug)]
pub(super) enum Output {
    /// Opened by us: non-blocking.
    Own(OwnedFd),
    /// Shared with the shell, because the terminal could not be opened anew (another user's after `su`): blocking.
    Shared(OwnedFd),
}

/// Ready means room for at least one byte (n_tty_poll), so one is what a blocking terminal takes for sure; a line end that
/// becomes two can still wait, on a pseudo-terminal whose buffer is full but for one byte.
const SURE_BYTES: usize = 1;

impl Output {
    /// Opens the terminal once more for writing.
    pub(super) fn reopen(input: &OwnedFd) -> io::Result<Self> {
        // The first works where no name leads to the terminal (another mount namespace) and exists only on Linux.
        let by_descriptor = PathBuf::from(format!("/proc/self/fd/{}", input.as_raw_fd()));
        let by_name = ttyname(input, Vec::new()).ok();
        let by_name = by_name.as_ref().map(|name| Path::new(OsStr::from_bytes(name.as_bytes())));
        for path in [Some(&*by_descriptor), by_name].into_iter().flatten() {
            if let Some(own) = open_tty(path).filter(|own| same_device(own.as_fd(), input.as_fd())) {
                return Ok(Self::Own(own));
            }
        }
        // `/dev/tty` is our controlling terminal; only that answers this call (tcgetsid(3)).
        if tcgetsid(input).is_ok()
            && let Some(own) = open_tty(Path::new("/dev/tty"))
        {
            return Ok(Self::Own(own));
        }
        let stderr = io::stderr();
        let shared = if isatty(&stderr) && same_device(stderr.as_fd(), input.as_fd()) {
            stderr.as_fd().try_clone_to_owned()?
        } else {
            input.try_clone()?
        };
        Ok(Self::Shared(shared))
    }

    /// Writes what the terminal takes at once; `WouldBlock` if that is nothing.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let taken = match self {
            Self::Own(fd) => rustix::io::write(fd, bytes),
            Self::Shared(fd) => {
                if !host::writable(fd)? {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                rustix::io::write(fd, &bytes[..bytes.len().min(SURE_BYTES)])
            }
        };
        match taken {
            Ok(0) => Err(io::ErrorKind::WouldBlock.into()),
            // Not only a terminal that is gone gives EIO, but also one on which only the foreground may write
            // (`stty tostop`), when nobody is left who could be stopped for it.
            Err(rustix::io::Errno::IO) if tcgetattr(self).is_ok() => Err(io::ErrorKind::WouldBlock.into()),
            other => other.map_err(io::Error::from),
        }
    }
}

impl AsFd for Output {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Own(fd) | Self::Shared(fd) => fd.as_fd(),
        }
    }
}

fn open_tty(path: &Path) -> Option<OwnedFd> {
    // NOCTTY: a terminal that is not ours must not become our controlling terminal by being opened.
    let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    open(path, flags, Mode::empty()).ok().filter(|fd| isatty(fd))
}

fn same_device(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    match (fstat(one), fstat(other)) {
        (Ok(one), Ok(other)) => {
            let character = |mode| FileType::from_raw_mode(mode) == FileType::CharacterDevice;
            character(one.st_mode) && character(other.st_mode) && one.st_rdev == other.st_rdev
        }
        _ => false,
    }
}
