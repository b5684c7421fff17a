//! Extended attributes of open files.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsFd;

use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr};
use rustix::io::Errno;

use crate::dir::{Dir, FsError, change, on};

/// Attributes by name.
pub type Xattrs = BTreeMap<Vec<u8>, Vec<u8>>;

/// Every attribute of an open file.
pub fn read_file(file: &File) -> Result<Xattrs, FsError> {
    read(file)
}

/// Every attribute of an open directory.
pub fn read_dir(dir: &Dir) -> Result<Xattrs, FsError> {
    read(dir)
}

/// Gives the open directory exactly these attributes.
pub fn set_dir(dir: &Dir, wanted: &Xattrs) -> Result<(), FsError> {
    set(dir, wanted)
}

/// Gives the open file exactly these attributes.
pub fn set_all(file: &File, wanted: &Xattrs) -> Result<(), FsError> {
    set(file, wanted)
}

fn read(fd: impl AsFd) -> Result<Xattrs, FsError> {
    let mut names = [0; 4096];
    let length = match flistxattr(&fd, &mut names) {
        Ok(length) => length,
        Err(Errno::NOTSUP) => 0,
        Err(errno) => return Err(on("read attributes of", b"file")(errno.into())),
    };
    let mut all = BTreeMap::new();
    for name in names[..length].split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0; 64 * 1024];
        match fgetxattr(&fd, name, &mut value) {
            Ok(length) => {
                value.truncate(length);
                all.insert(name.to_vec(), value);
            }
            Err(Errno::NODATA | Errno::PERM | Errno::NOTSUP) => {}
            Err(errno) => return Err(on("read attributes of", b"file")(errno.into())),
        }
    }
    Ok(all)
}

fn set(fd: impl AsFd, wanted: &Xattrs) -> Result<(), FsError> {
    let present = read(&fd)?;
    for name in present.keys().filter(|name| !wanted.contains_key(*name)) {
        change("remove attribute of", b"file", || fremovexattr(&fd, name.as_slice()))?;
    }
    for (name, value) in wanted.iter().filter(|(name, value)| present.get(*name) != Some(*value)) {
        change("set attribute of", b"file", || fsetxattr(&fd, name.as_slice(), value, XattrFlags::empty()))?;
    }
    Ok(())
}
