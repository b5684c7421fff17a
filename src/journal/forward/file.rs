//! A file that notices are appended to, and that somebody else may set aside.
//!
//! Promise: only a regular file of our own that nobody else can write is written to, and one that is made is `0600`; a
//! symlink in its place is not followed. Where another file has the name, or none, that one is opened or made: whoever
//! rotates has to tell nobody.
//! Limit: not synced. A line that could be written in part only is ended before the next one.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use platform::datagram::Outlet;
use platform::{Dir, FileId, FsError, dir, file};

use crate::state::is_ours_alone;

/// See the module.
#[derive(Debug)]
pub struct AppendedFile {
    dir: Dir,
    name: Vec<u8>,
    owner: u32,
    open: Open,
}

#[derive(Debug)]
struct Open {
    file: File,
    id: FileId,
    /// Whether it ends within a line.
    is_torn: bool,
}

impl AppendedFile {
    /// Opens or makes the file `name` in `dir`; `owner` is the user we run as.
    pub fn open(dir: Dir, name: &[u8], owner: u32) -> io::Result<Self> {
        Ok(Self { open: open(&dir, name, owner)?, dir, name: name.to_vec(), owner })
    }

    /// The same by the path a person gave; symlinks are followed in the folder's path only.
    pub fn at(path: &Path, owner: u32) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        Self::open(Dir::open_ambient(folder).map_err(system)?, name.as_bytes(), owner)
    }
}

/// The system's own words: which file it was is clear to whoever reads them.
fn system(error: FsError) -> io::Error {
    error.source
}

fn open(dir: &Dir, name: &[u8], owner: u32) -> io::Result<Open> {
    let check = |stat: &platform::Stat| is_ours_alone(stat, owner).map_err(io::Error::other);
    // Before it is opened: opening can do things.
    if let Some(stat) = dir.stat(name).map_err(system)? {
        check(&stat)?;
    }
    let file = dir.open_append(name).map_err(system)?;
    let stat = dir::stat_of(file.as_fd()).map_err(system)?;
    check(&stat)?;
    Ok(Open { file, id: stat.id, is_torn: false })
}

impl Outlet for AppendedFile {
    fn send(&mut self, record: &[u8]) -> io::Result<()> {
        let here = self.dir.stat(&self.name).map_err(system)?;
        if here.is_none_or(|stat| stat.id != self.open.id) {
            self.open = open(&self.dir, &self.name, self.owner)?;
        }
        let Open { file, is_torn, .. } = &mut self.open;
        if *is_torn {
            file::write_all(file, &self.name, b"\n").map_err(system)?;
            *is_torn = false;
        }
        let written = file::write_all(file, &self.name, record);
        *is_torn = written.is_err();
        written.map_err(system)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lab() -> (tempfile::TempDir, u32) {
        let folder = tempfile::tempdir().expect("makes a folder");
        let owner = Dir::open_ambient(folder.path()).and_then(|dir| dir.own_stat()).expect("stats").uid;
        (folder, owner)
    }

    fn text(path: &Path) -> String {
        let dir = Dir::open_ambient(path.parent().expect("has one")).expect("opens");
        let file = dir.open_read(path.file_name().expect("has one").as_bytes()).expect("opens");
        io::read_to_string(file).expect("reads")
    }

    #[test]
    fn a_file_that_was_set_aside_is_followed_by_a_new_one() {
        let (folder, owner) = lab();
        let path = folder.path().join("events.jsonl");
        let mut outlet = AppendedFile::at(&path, owner).expect("opens");
        outlet.send(b"one\n").expect("writes");
        let dir = Dir::open_ambient(folder.path()).expect("opens");
        dir.rename(b"events.jsonl", &dir, b"events.1").expect("renames");
        outlet.send(b"two\n").expect("writes");
        outlet.send(b"three\n").expect("writes");
        assert_eq!(text(&folder.path().join("events.1")), "one\n");
        assert_eq!(text(&path), "two\nthree\n");
        assert_eq!(dir.stat(b"events.jsonl").expect("stats").expect("is there").mode, 0o600);
        drop(outlet);
        AppendedFile::at(&path, owner).expect("opens").send(b"four\n").expect("writes");
        assert_eq!(text(&path), "two\nthree\nfour\n", "a later run appends");
    }

    #[test]
    fn nothing_but_a_file_of_our_own_is_written_to() {
        let (folder, owner) = lab();
        let dir = Dir::open_ambient(folder.path()).expect("opens");
        dir.create_new(b"target", 0o600).expect("makes");
        dir.symlink(b"target", b"link").expect("links");
        dir.make_dir(b"folder", 0o700).expect("makes");
        file::set_mode(dir.create_new(b"open-to-all", 0o600).expect("makes"), b"open-to-all", 0o622).expect("chmods");
        for name in ["link", "folder", "open-to-all"] {
            let refused = AppendedFile::at(&folder.path().join(name), owner);
            assert!(refused.is_err(), "{name}: {refused:?}");
        }
        // In place of the file that is open, too.
        let path = folder.path().join("events");
        let mut outlet = AppendedFile::at(&path, owner).expect("opens");
        dir.rename(b"link", &dir, b"events").expect("renames");
        assert!(outlet.send(b"one\n").is_err());
        assert_eq!(text(&folder.path().join("target")), "");
        let other = AppendedFile::at(&folder.path().join("target"), owner + 1);
        assert!(other.is_err(), "a file of another user");
    }
}
