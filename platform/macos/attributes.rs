//! Flags, extended attributes and access lists where macOS has its own way to them.
//!
//! An access list is shown as the attribute [`ACCESS_LIST_NAME`], in its portable form, so that it is compared, kept and
//! set again like one. Source: chflags(2), xattr(2), acl(3).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;

use super::files::stat_at;
use super::sys;
use crate::apple_access_list;
use crate::apple_attributes::ACCESS_LIST as ACCESS_LIST_NAME;
use crate::attributes::Flags;
use crate::bsd_flags;
use crate::stat::FileType;
use crate::xattr::Bearer;

/// The attribute is not there.
pub(crate) const NO_ATTRIBUTE: Errno = Errno::NOATTR;

/// `O_SYMLINK` (open(2)): a symlink is opened itself.
const SYMLINK: OFlags = OFlags::from_bits_retain(0x0020_0000);

/// `CLONE_NOFOLLOW` and `CLONE_NOOWNERCOPY` (clonefile(2)): the copy is ours, also if we are root.
const OURS: fs::CloneFlags = fs::CloneFlags::NOFOLLOW.union(fs::CloneFlags::NOOWNERCOPY);

/// Sets immutable and append-only as told.
pub(crate) fn set_flags(fd: BorrowedFd<'_>, flags: Flags) -> rustix::io::Result<()> {
    let now = fs::fstat(fd)?.st_flags;
    let wanted = bsd_flags::change(now, flags);
    if wanted == now { Ok(()) } else { sys::flags::fchflags(fd, wanted) }
}

/// An open object with its access list among its attributes.
pub(crate) struct Open<'f>(BorrowedFd<'f>);

/// The attributes of an open file.
pub(crate) fn bearer(fd: BorrowedFd<'_>) -> Open<'_> {
    Open(fd)
}

/// A volume without access lists has none.
fn access_list(fd: BorrowedFd<'_>) -> rustix::io::Result<Option<Vec<u8>>> {
    match sys::access_list::get(fd) {
        Err(Errno::NOTSUP | Errno::OPNOTSUPP) => Ok(None),
        done => done,
    }
}

/// Puts bytes into the free capacity of a buffer, as a system call would.
fn fill(buffer: &mut Vec<u8>, bytes: &[u8]) -> rustix::io::Result<()> {
    if buffer.capacity() - buffer.len() < bytes.len() {
        return Err(Errno::RANGE);
    }
    buffer.extend_from_slice(bytes);
    Ok(())
}

impl Bearer for Open<'_> {
    fn list(&self, buffer: &mut Vec<u8>) -> rustix::io::Result<()> {
        match self.0.list(buffer) {
            // Without attributes there may be an access list all the same.
            Ok(()) | Err(Errno::NOTSUP | Errno::OPNOTSUPP) => {}
            Err(errno) => return Err(errno),
        }
        match access_list(self.0)? {
            Some(_) => fill(buffer, &[ACCESS_LIST_NAME.as_bytes(), b"\0"].concat()),
            None => Ok(()),
        }
    }

    fn get(&self, name: &[u8], buffer: &mut Vec<u8>) -> rustix::io::Result<()> {
        if name != ACCESS_LIST_NAME.as_bytes() {
            return self.0.get(name, buffer);
        }
        fill(buffer, &access_list(self.0)?.ok_or(NO_ATTRIBUTE)?)
    }

    fn set(&self, name: &[u8], value: &[u8]) -> rustix::io::Result<()> {
        if name == ACCESS_LIST_NAME.as_bytes() { sys::access_list::set(self.0, value) } else { self.0.set(name, value) }
    }

    fn remove(&self, name: &[u8]) -> rustix::io::Result<()> {
        if name == ACCESS_LIST_NAME.as_bytes() { sys::access_list::remove(self.0) } else { self.0.remove(name) }
    }
}

/// Not offered: whoever owns a file takes its `UF_IMMUTABLE` off again without any privilege, so that it would hold
/// nobody, and `SF_IMMUTABLE` could not be taken off in time at a raised security level (chflags(2)).
pub(crate) fn set_immutable(_: BorrowedFd<'_>, _: bool) -> rustix::io::Result<bool> {
    Err(Errno::NOTSUP)
}

/// Why nothing can be made immutable.
pub(crate) const NO_IMMUTABLE: &str = "on this system whoever owns a file takes its immutable flag off again";

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

    fn open_one(&self) -> rustix::io::Result<Open<'_>> {
        self.0.as_ref().map(|fd| Open(fd.as_fd())).ok_or(Errno::NOTSUP)
    }
}

impl Bearer for Named {
    fn list(&self, buffer: &mut Vec<u8>) -> rustix::io::Result<()> {
        self.open_one()?.list(buffer)
    }

    fn get(&self, name: &[u8], buffer: &mut Vec<u8>) -> rustix::io::Result<()> {
        self.open_one()?.get(name, buffer)
    }

    fn set(&self, name: &[u8], value: &[u8]) -> rustix::io::Result<()> {
        self.open_one()?.set(name, value)
    }

    fn remove(&self, name: &[u8]) -> rustix::io::Result<()> {
        self.open_one()?.remove(name)
    }
}

/// Blocks are shared with a new file only, see [`clone_new`].
pub(crate) fn share_blocks(_from: BorrowedFd<'_>, _to: BorrowedFd<'_>) -> rustix::io::Result<()> {
    Err(Errno::NOTSUP)
}

/// Makes the file `name`, which shares all blocks of `from` and has its bits and attributes (APFS).
pub(crate) fn clone_new(from: BorrowedFd<'_>, dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<()> {
    fs::fclonefileat(from, dir, name, OURS)
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

/// The attribute that holds an access list, and a list.
pub(crate) const ACCESS_LIST: Option<(&[u8], &[u8])> = Some((ACCESS_LIST_NAME.as_bytes(), &apple_access_list::SAMPLE));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dir::Dir;
    use crate::xattr::{self, Xattrs};

    #[test]
    fn an_access_list_is_set_read_kept_beside_attributes_and_taken_away() {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let dir = Dir::open_ambient(temp.path()).expect("it exists");
        let file = dir.create_new(b"f", 0o600).expect("creates");
        let (name, list) = ACCESS_LIST.expect("this system has them");
        let wanted = Xattrs::from([(name.to_vec(), list.to_vec()), (USER_ATTRIBUTE.to_vec(), b"1".to_vec())]);
        xattr::set_all(&file, &wanted).expect("sets");
        assert_eq!(xattr::read_file(&file).expect("reads"), wanted);
        assert_eq!(xattr::read_name(&dir, b"f").expect("reads"), wanted);
        xattr::set_all(&file, &Xattrs::new()).expect("takes away");
        assert_eq!(sys::access_list::get(file.as_fd()), Ok(None), "an empty list is another thing than none");
    }

    #[test]
    fn bytes_that_are_no_list_reach_no_library() {
        let file = tempfile::tempfile().expect("a file");
        let cut = &apple_access_list::SAMPLE[..50];
        assert_eq!(sys::access_list::set(file.as_fd(), cut), Err(Errno::INVAL));
    }
}
