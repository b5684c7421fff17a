//! Flags and extended attributes where macOS has its own way to them.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;

use super::files::{SF_APPEND, SF_IMMUTABLE, UF_APPEND, UF_IMMUTABLE, stat_at};
use super::sys;
use crate::attributes::Flags;
use crate::stat::FileType;
use crate::xattr::Bearer;

/// The attribute is not there.
pub(crate) const NO_ATTRIBUTE: Errno = Errno::NOATTR;

/// `O_SYMLINK` (open(2)): a symlink is opened itself.
const SYMLINK: OFlags = OFlags::from_bits_retain(0x0020_0000);

/// Sets immutable and append-only as told. What root set ("system" flags) is taken off too, where we may.
pub(crate) fn set_flags(fd: BorrowedFd<'_>, flags: Flags) -> rustix::io::Result<()> {
    let now = fs::fstat(fd)?.st_flags;
    let mut wanted = now;
    for (on, user, system) in [(flags.immutable, UF_IMMUTABLE, SF_IMMUTABLE), (flags.append_only, UF_APPEND, SF_APPEND)]
    {
        if !on {
            wanted &= !(user | system);
        } else if wanted & (user | system) == 0 {
            wanted |= user;
        }
    }
    if wanted == now { Ok(()) } else { sys::flags::fchflags(fd, wanted) }
}

/// Not offered: whoever owns a file takes its `UF_IMMUTABLE` off again without any privilege, so that it would hold
/// nobody, and `SF_IMMUTABLE` could not be taken off in time at a raised security level (chflags(2)).
pub(crate) fn set_immutable(_: BorrowedFd<'_>, _: bool) -> rustix::io::Result<bool> {
    Err(Errno::NOTSUP)
}

/// See [`set_immutable`].
pub(crate) fn may_set_immutable() -> bool {
    false
}

/// The object that has a name, for its extended attributes; a symlink is meant itself.
///
/// Limit: the type is looked at before the open, and only files, directories and symlinks are opened; other types have
/// no attributes here.
pub(crate) struct Named(Option<OwnedFd>);

impl Named {
    pub(crate) fn open(dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<Self> {
        if !matches!(stat_at(dir, name)?.file_type, FileType::Regular | FileType::Directory | FileType::Symlink) {
            return Ok(Self(None));
        }
        let flags = OFlags::RDONLY | SYMLINK | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        fs::openat(dir, name, flags, Mode::empty()).map(|fd| Self(Some(fd)))
    }

    pub(crate) fn of(dir: BorrowedFd<'_>) -> rustix::io::Result<Self> {
        rustix::io::fcntl_dupfd_cloexec(dir, 0).map(|fd| Self(Some(fd)))
    }

    fn fd(&self) -> rustix::io::Result<BorrowedFd<'_>> {
        self.0.as_ref().map(AsFd::as_fd).ok_or(Errno::NOTSUP)
    }
}

impl Bearer for Named {
    fn list(&self, buffer: &mut Vec<u8>) -> rustix::io::Result<()> {
        self.fd()?.list(buffer)
    }

    fn get(&self, name: &[u8], buffer: &mut Vec<u8>) -> rustix::io::Result<()> {
        self.fd()?.get(name, buffer)
    }

    fn set(&self, name: &[u8], value: &[u8]) -> rustix::io::Result<()> {
        self.fd()?.set(name, value)
    }

    fn remove(&self, name: &[u8]) -> rustix::io::Result<()> {
        self.fd()?.remove(name)
    }
}

/// Blocks are shared by name only here (clonefile(2)).
pub(crate) fn share_blocks(_from: BorrowedFd<'_>, _to: BorrowedFd<'_>) -> rustix::io::Result<()> {
    Err(Errno::NOTSUP)
}

/// There is no copy within the kernel between two open files.
pub(crate) fn copy_range(
    _: BorrowedFd<'_>,
    _: BorrowedFd<'_>,
    _offset: u64,
    _length: usize,
) -> rustix::io::Result<usize> {
    Err(Errno::NOTSUP)
}

/// An attribute any user may set on a file of its own.
pub(crate) const USER_ATTRIBUTE: &[u8] = b"keep.trial";

/// Access lists have calls of their own here (acl(3)).
pub(crate) const ACCESS_LIST: Option<(&[u8], &[u8])> = None;
