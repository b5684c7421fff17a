//! Extended attributes, access lists and file capabilities among them.
//!
//! Promise: no symlink is followed; [`set_all`] leaves exactly the attributes asked for, of those this module looks at.
//! Limit: attributes that the system keeps for itself are not looked at ([`is_ours`] says which and why), and neither is
//! one we may not read. Source: xattr(7), acl(5), capabilities(7).

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{self, XattrFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::apple_attributes::{self, Standing};
use crate::dir::{Dir, FsError, change, on};
use crate::host;
use crate::relpath::is_name;

/// Attributes by name.
pub type Xattrs = BTreeMap<Vec<u8>, Vec<u8>>;

/// Linux limits a value and the list of names to 64 KiB each (xattr(7)); resource forks on macOS have no such limit.
const MAX_BYTES: usize = 16 << 20;

/// Something that has attributes: an open file, or an object that was pinned by its name. Buffers have free capacity.
pub(crate) trait Bearer {
    fn list(&self, buffer: &mut Vec<u8>) -> rustix::io::Result<()>;
    fn get(&self, name: &[u8], buffer: &mut Vec<u8>) -> rustix::io::Result<()>;
    fn set(&self, name: &[u8], value: &[u8]) -> rustix::io::Result<()>;
    fn remove(&self, name: &[u8]) -> rustix::io::Result<()>;
}

impl Bearer for BorrowedFd<'_> {
    fn list(&self, buffer: &mut Vec<u8>) -> rustix::io::Result<()> {
        fs::flistxattr(self, rustix::buffer::spare_capacity(buffer)).map(drop)
    }

    fn get(&self, name: &[u8], buffer: &mut Vec<u8>) -> rustix::io::Result<()> {
        fs::fgetxattr(self, name, rustix::buffer::spare_capacity(buffer)).map(drop)
    }

    fn set(&self, name: &[u8], value: &[u8]) -> rustix::io::Result<()> {
        fs::fsetxattr(self, name, value, XattrFlags::empty())
    }

    fn remove(&self, name: &[u8]) -> rustix::io::Result<()> {
        fs::fremovexattr(self, name)
    }
}

/// Whether an attribute belongs to the file's owner, so that a change of it is a change of the file.
///
/// The others are written by the system on its own and refuse to be put back: labels of SELinux and SMACK (policy
/// relabels files), IMA and EVM (the kernel computes them), `trusted.*` (only `CAP_SYS_ADMIN` sees them, so what is there
/// would depend on who looks), and what [`apple_attributes`] ignores.
pub fn is_ours(name: &[u8]) -> bool {
    const NOT: [&[u8]; 3] = [b"security.selinux", b"security.ima", b"security.evm"];
    !NOT.contains(&name)
        && !name.starts_with(b"security.SMACK64")
        && !name.starts_with(b"trusted.")
        && apple_attributes::standing(name) == Standing::Kept
}

/// The attributes of an open file.
pub fn read_file(file: &File) -> Result<Xattrs, FsError> {
    read(&host::bearer(file.as_fd()), b"file")
}

/// The attributes of an open directory.
pub fn read_dir(dir: &Dir) -> Result<Xattrs, FsError> {
    read(&own(dir)?, b"directory")
}

/// Sets these attributes of an open directory and removes all others.
pub fn set_dir(dir: &Dir, wanted: &Xattrs) -> Result<(), FsError> {
    set(&own(dir)?, b"directory", wanted)
}

/// The attributes of the object `name` itself, of whatever type; it is not opened.
pub fn read_name(dir: &Dir, name: &[u8]) -> Result<Xattrs, FsError> {
    read(&named(dir, name)?, name)
}

/// Sets these attributes of an open file and removes all others.
pub fn set_all(file: &File, wanted: &Xattrs) -> Result<(), FsError> {
    set(&host::bearer(file.as_fd()), b"file", wanted)
}

/// Sets these attributes of the object `name` itself and removes all others.
pub fn set_name(dir: &Dir, name: &[u8], wanted: &Xattrs) -> Result<(), FsError> {
    set(&named(dir, name)?, name, wanted)
}

/// A handle that only passes through a directory refuses the calls on a descriptor, like that of a pinned name.
fn own(dir: &Dir) -> Result<host::Named, FsError> {
    host::Named::of(dir.as_fd()).map_err(|errno| on("duplicate", b"directory")(errno.into()))
}

fn named(dir: &Dir, name: &[u8]) -> Result<host::Named, FsError> {
    if !is_name(name) {
        return Err(on("open", name)(io::Error::from(io::ErrorKind::InvalidInput)));
    }
    host::Named::open(dir.as_fd(), name).map_err(|errno| on("open", name)(errno.into()))
}

fn read(bearer: &impl Bearer, name: &[u8]) -> Result<Xattrs, FsError> {
    let names = match whole(|buffer| bearer.list(buffer)) {
        Ok(names) => names,
        Err(errno) if means_none(errno) => return Ok(Xattrs::new()),
        Err(errno) => return Err(on("list attributes of", name)(errno.into())),
    };
    let mut found = Xattrs::new();
    for attribute in names.split(|&byte| byte == 0).filter(|attribute| !attribute.is_empty() && is_ours(attribute)) {
        match whole(|buffer| bearer.get(attribute, buffer)) {
            Ok(value) => drop(found.insert(attribute.to_vec(), value)),
            // Gone since it was listed, or not for us to see.
            Err(errno) if errno == host::NO_ATTRIBUTE || means_none(errno) => {}
            Err(errno) => return Err(on("read attributes of", name)(errno.into())),
        }
    }
    Ok(found)
}

fn set(bearer: &impl Bearer, name: &[u8], wanted: &Xattrs) -> Result<(), FsError> {
    let present = read(bearer, name)?;
    for attribute in present.keys().filter(|&attribute| !wanted.contains_key(attribute)) {
        match change("remove attribute of", name, || bearer.remove(attribute)) {
            Err(error) if error.errno() == Some(host::NO_ATTRIBUTE.raw_os_error()) => {}
            done => done?,
        }
    }
    // One that is right already is left alone: setting it may need a privilege that having it does not.
    for (attribute, value) in wanted.iter().filter(|&(attribute, value)| present.get(attribute) != Some(value)) {
        change("set attribute of", name, || bearer.set(attribute, value))?;
    }
    Ok(())
}

/// No attributes here, or none that we may see.
fn means_none(errno: Errno) -> bool {
    [Errno::NOTSUP, Errno::OPNOTSUPP, Errno::PERM, Errno::ACCESS].contains(&errno)
}

/// Calls `fill` with more and more room until all fits: between asking for a size and reading, it may have grown.
fn whole(mut fill: impl FnMut(&mut Vec<u8>) -> rustix::io::Result<()>) -> rustix::io::Result<Vec<u8>> {
    let mut room = 1024;
    loop {
        let mut buffer = Vec::with_capacity(room);
        match retry_on_intr(|| fill(&mut buffer)) {
            Err(Errno::RANGE) if room < MAX_BYTES => room *= 8,
            done => return done.map(|()| buffer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn fixture() -> (TempDir, Dir) {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let dir = Dir::open_ambient(temp.path()).expect("it exists");
        (temp, dir)
    }

    fn attributes(pairs: &[(&str, &[u8])]) -> Xattrs {
        pairs.iter().map(|&(name, value)| (name.as_bytes().to_vec(), value.to_vec())).collect()
    }

    #[test]
    fn exactly_the_wanted_attributes_are_left() {
        let (_temp, dir) = fixture();
        let file = dir.create_new(b"f", 0o600).expect("creates");
        let before = attributes(&[("user.a", b"1"), ("user.b", b"2")]);
        set_all(&file, &before).expect("sets");
        assert_eq!(read_file(&file).expect("reads"), before);
        let after = attributes(&[("user.b", b"changed\0\xff"), ("user.c", b"")]);
        set_name(&dir, b"f", &after).expect("sets");
        assert_eq!(read_file(&file).expect("reads"), after);
        assert_eq!(read_name(&dir, b"f").expect("reads"), after);
    }

    #[test]
    fn a_long_value_is_read_whole() {
        let (_temp, dir) = fixture();
        let file = dir.create_new(b"f", 0o600).expect("creates");
        let wanted = attributes(&[("user.long", &[7; 3000])]);
        set_all(&file, &wanted).expect("sets");
        assert_eq!(read_name(&dir, b"f").expect("reads"), wanted);
    }

    #[test]
    fn a_symlink_is_not_followed_to_the_attributes_of_its_target() {
        let (_temp, dir) = fixture();
        let file = dir.create_new(b"target", 0o600).expect("creates");
        let wanted = attributes(&[("user.a", b"1")]);
        set_all(&file, &wanted).expect("sets");
        dir.symlink(b"target", b"link").expect("links");
        assert_eq!(read_name(&dir, b"link").expect("reads"), Xattrs::new());
        // Linux has no user attributes for symlinks, macOS has.
        let _ = set_name(&dir, b"link", &attributes(&[("user.b", b"2")]));
        assert_eq!(read_file(&file).expect("reads"), wanted);
    }

    #[test]
    fn a_directory_and_a_fifo_are_read_by_name() {
        let (temp, dir) = fixture();
        let wanted = attributes(&[("user.a", b"1")]);
        let below = dir.make_dir(b"d", 0o700).expect("makes");
        set_dir(&below, &wanted).expect("sets");
        assert_eq!(read_name(&dir, b"d").expect("reads"), wanted);
        assert_eq!(read_dir(&below).expect("reads"), wanted);
        let made = std::process::Command::new("mkfifo").arg(temp.path().join("p")).status();
        assert!(made.is_ok_and(|status| status.success()));
        assert_eq!(read_name(&dir, b"p").expect("reads"), Xattrs::new());
    }

    /// Version 2, then tag, bits and id: the owner, one more user, the group, the mask, others (acl(5)).
    fn acl(user: u32) -> Vec<u8> {
        let none = u32::MAX;
        let entries = [(1_u16, 6_u16, none), (2, 4, user), (4, 4, none), (16, 4, none), (32, 0, none)];
        let mut bytes = 2_u32.to_le_bytes().to_vec();
        for (tag, bits, id) in entries {
            bytes.extend([&tag.to_le_bytes()[..], &bits.to_le_bytes(), &id.to_le_bytes()].concat());
        }
        bytes
    }

    #[test]
    fn an_acl_and_a_file_capability_come_back_in_the_order_said_in_attributes() {
        let (_temp, dir) = fixture();
        let file = dir.create_new(b"f", 0o640).expect("creates");
        let mut wanted = attributes(&[("system.posix_acl_access", &acl(1234))]);
        match set_all(&file, &wanted) {
            // A file system without them.
            Err(error) if error.is_unsupported() => return,
            done => done.expect("sets"),
        }
        if crate::privilege::is_root() {
            // Revision 2, permitted: CAP_NET_RAW (capabilities(7), "File capability extended attribute versioning").
            let capability = [0, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            wanted.insert(b"security.capability".to_vec(), capability.to_vec());
        }
        let stat = crate::dir::stat_of(file.as_fd()).expect("stats");
        crate::attributes::chown(&file, stat.uid, stat.gid).expect("chowns");
        set_all(&file, &wanted).expect("sets");
        crate::attributes::chmod(&file, 0o640).expect("chmods");
        assert_eq!(read_file(&file).expect("reads"), wanted);
        assert_eq!(read_name(&dir, b"f").expect("reads"), wanted);
        set_all(&file, &Xattrs::new()).expect("removes");
        assert_eq!(read_file(&file).expect("reads"), Xattrs::new());
    }

    #[test]
    fn what_the_system_keeps_for_itself_is_not_looked_at() {
        assert!(is_ours(b"security.capability"));
        assert!(is_ours(b"system.posix_acl_access"));
        assert!(is_ours(b"user.x"));
        assert!(!is_ours(b"security.selinux"));
        assert!(!is_ours(b"security.SMACK64EXEC"));
        assert!(!is_ours(b"trusted.overlay.opaque"));
        assert!(!is_ours(b"com.apple.provenance"));
    }
}
