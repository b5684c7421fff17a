//! Flags and extended attributes where Linux has its own way to them.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{self, IFlags, XattrFlags};
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities};

use super::files::{path_of, pin};
use crate::attributes::Flags;
use crate::dir::means_unsupported;
use crate::xattr::Bearer;

/// Sets immutable and append-only as told.
pub(crate) fn set_flags(fd: BorrowedFd<'_>, flags: Flags) -> rustix::io::Result<()> {
    let now = match fs::ioctl_getflags(fd) {
        Ok(now) => now,
        // No flags at all there: then none is set.
        Err(errno) if means_unsupported(errno) && flags == Flags::default() => return Ok(()),
        Err(errno) => return Err(errno),
    };
    let mut wanted = now;
    wanted.set(IFlags::IMMUTABLE, flags.immutable);
    wanted.set(IFlags::APPEND, flags.append_only);
    if wanted == now { Ok(()) } else { fs::ioctl_setflags(fd, wanted) }
}

/// Sets the immutable flag or takes it off, and leaves all others alone. `false` if it was so already.
pub(crate) fn set_immutable(fd: BorrowedFd<'_>, immutable: bool) -> rustix::io::Result<bool> {
    let now = fs::ioctl_getflags(fd)?;
    let mut wanted = now;
    wanted.set(IFlags::IMMUTABLE, immutable);
    if wanted == now {
        return Ok(false);
    }
    fs::ioctl_setflags(fd, wanted).map(|()| true)
}

/// Why nothing can be made immutable.
pub(crate) const NO_IMMUTABLE: &str = "making files immutable takes privilege (CAP_LINUX_IMMUTABLE)";

/// Whether this thread has `CAP_LINUX_IMMUTABLE`.
pub(crate) fn may_set_immutable() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::LINUX_IMMUTABLE))
}

/// The attributes of an open file.
pub(crate) fn bearer(fd: BorrowedFd<'_>) -> BorrowedFd<'_> {
    fd
}

/// The object that has a name, for its extended attributes; a symlink is meant itself.
///
/// Source: xattr(7). The calls on a descriptor refuse `O_PATH` ones, those on a path take its `/proc/self/fd` entry.
pub(crate) struct Named(OwnedFd);

impl Named {
    pub(crate) fn open(dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<Self> {
        pin(dir, name).map(Self)
    }

    pub(crate) fn of(dir: BorrowedFd<'_>) -> rustix::io::Result<Self> {
        rustix::io::fcntl_dupfd_cloexec(dir, 0).map(Self)
    }
}

/// Without /proc there is no way, which must not look like an object that is gone.
fn needs_proc<T>(done: rustix::io::Result<T>) -> rustix::io::Result<T> {
    done.map_err(|errno| if errno == Errno::NOENT { Errno::NOSYS } else { errno })
}

impl Bearer for Named {
    fn list(&self, buffer: &mut Vec<u8>) -> rustix::io::Result<()> {
        needs_proc(fs::listxattr(path_of(&self.0), rustix::buffer::spare_capacity(buffer)).map(drop))
    }

    fn get(&self, name: &[u8], buffer: &mut Vec<u8>) -> rustix::io::Result<()> {
        needs_proc(fs::getxattr(path_of(&self.0), name, rustix::buffer::spare_capacity(buffer)).map(drop))
    }

    fn set(&self, name: &[u8], value: &[u8]) -> rustix::io::Result<()> {
        needs_proc(fs::setxattr(path_of(&self.0), name, value, XattrFlags::empty()))
    }

    fn remove(&self, name: &[u8]) -> rustix::io::Result<()> {
        needs_proc(fs::removexattr(path_of(&self.0), name))
    }
}

/// Makes `to`, an empty file, share the blocks of `from`.
pub(crate) fn share_blocks(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> rustix::io::Result<()> {
    fs::ioctl_ficlone(to, from)
}

/// Blocks are shared with a file that is there already, see [`share_blocks`].
pub(crate) fn clone_new(_from: BorrowedFd<'_>, _dir: BorrowedFd<'_>, _name: &[u8]) -> rustix::io::Result<()> {
    Err(Errno::NOTSUP)
}

/// Copies up to `length` bytes at `offset` within the kernel; 0 at the end, or where it cannot tell.
pub(crate) fn copy_range(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    offset: u64,
    length: usize,
) -> rustix::io::Result<usize> {
    let (mut at, mut to_at) = (offset, offset);
    fs::copy_file_range(from, Some(&mut at), to, Some(&mut to_at), length)
}

/// The attribute is not there.
pub(crate) const NO_ATTRIBUTE: Errno = Errno::NODATA;

/// An attribute any user may set on a file of its own.
pub(crate) const USER_ATTRIBUTE: &[u8] = b"user.keep.trial";

/// The attribute that holds an access list, and a list: version 2, then for each entry 16 bits of tag, 16 of permissions,
/// 32 of id. The owner may read and write, user 65534 and the group may read.
/// Source: linux/posix_acl_xattr.h.
pub(crate) const ACCESS_LIST: Option<(&[u8], &[u8])> = Some((
    b"system.posix_acl_access",
    b"\x02\0\0\0\
      \x01\0\x06\0\xff\xff\xff\xff\
      \x02\0\x04\0\xfe\xff\0\0\
      \x04\0\x04\0\xff\xff\xff\xff\
      \x10\0\x04\0\xff\xff\xff\xff\
      \x20\0\0\0\xff\xff\xff\xff",
));
