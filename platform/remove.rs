//! Removes a directory and all below it.
//!
//! Promise: follows no symlink, enters no other file system, and needs a bounded number of open files and no recursion,
//! however deep the tree is. Limit: it deletes; what must be kept has to be moved away before. A process that goes on
//! making entries faster than they are removed makes it give up with `ENOTEMPTY`.

use rustix::io::Errno;

use crate::dir::{Dir, Entry, FsError, on};
use crate::stat::FileType;

/// Handles open at a time. A directory further down is first moved up, so that depth costs no descriptors.
const MAX_OPEN: usize = 32;

/// How often a directory may turn out to have new entries before we give up.
const MAX_REFILLS: u32 = 1000;

struct Level {
    name: Vec<u8>,
    dir: Dir,
    left: Vec<Entry>,
}

impl Level {
    fn open(parent: &Dir, name: Vec<u8>, mount: u64) -> Result<Self, FsError> {
        let dir = parent.open_dir(&name)?;
        if dir.own_stat()?.mount != mount {
            return Err(on("remove", &name)(Errno::XDEV.into()));
        }
        let left = dir.list()?;
        Ok(Self { name, dir, left })
    }
}

impl Dir {
    /// Removes `name` and, if it is a directory, all below it. Stops at the first thing that cannot be removed; a file
    /// system mounted somewhere below is such a thing. Nothing of that name is fine.
    pub fn remove_all(&self, name: &[u8]) -> Result<(), FsError> {
        match self.stat(name)? {
            None => return Ok(()),
            Some(stat) if stat.file_type == FileType::Directory => {}
            Some(_) => return self.unlink(name),
        }
        let mount = self.own_stat()?.mount;
        let mut open = vec![Level::open(self, name.to_vec(), mount)?];
        let mut refills = 0;
        let mut raised: u64 = 0;
        while let Some(level) = open.last_mut() {
            let Some(entry) = level.left.pop() else {
                let level = open.pop().expect("the loop looked at it");
                let parent = open.last().map_or(self, |level| &level.dir);
                match parent.remove_dir(&level.name) {
                    Ok(()) => {}
                    Err(error) if error.errno() == Some(Errno::NOTEMPTY.raw_os_error()) && refills < MAX_REFILLS => {
                        refills += 1;
                        open.push(Level { left: level.dir.list()?, ..level });
                    }
                    Err(error) => return Err(error),
                }
                continue;
            };
            if entry.file_type != Some(FileType::Directory) {
                match level.dir.unlink(&entry.name) {
                    Ok(()) => continue,
                    // The type may be unknown, or another one by now.
                    Err(_) if level.dir.stat(&entry.name)?.is_some_and(|s| s.file_type == FileType::Directory) => {}
                    Err(_) if level.dir.stat(&entry.name)?.is_none() => continue,
                    Err(error) => return Err(error),
                }
            }
            if open.len() < MAX_OPEN {
                let parent = open.last().map_or(self, |level| &level.dir);
                let below = Level::open(parent, entry.name, mount)?;
                open.push(below);
                continue;
            }
            // The next listing of the top directory finds it there.
            let (top, deepest) = (&open[0].dir, &open[MAX_OPEN - 1].dir);
            loop {
                raised += 1;
                match deepest.rename_new(&entry.name, top, format!("keep-raised-{raised}").as_bytes()) {
                    Ok(()) => break,
                    Err(error) if error.source.kind() == std::io::ErrorKind::AlreadyExists => {}
                    Err(error) => return Err(error),
                }
            }
            open[0].left.push(Entry {
                name: format!("keep-raised-{raised}").into_bytes(),
                file_type: Some(FileType::Directory),
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture() -> (tempfile::TempDir, Dir) {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let dir = Dir::open_ambient(temp.path()).expect("it exists");
        (temp, dir)
    }

    #[test]
    fn a_tree_far_deeper_than_the_handles_we_may_open_goes_whole() {
        let (_temp, dir) = fixture();
        let mut at = dir.make_dir(b"top", 0o700).expect("makes");
        for _ in 0..MAX_OPEN * 10 {
            at.create_new(b"file", 0o600).expect("creates");
            at = at.make_dir(b"deeper", 0o700).expect("makes");
        }
        dir.remove_all(b"top").expect("removes");
        assert_eq!(dir.list().expect("lists"), []);
    }

    #[test]
    fn a_symlink_goes_and_what_it_points_to_stays() {
        let (_temp, dir) = fixture();
        dir.make_dir(b"outside", 0o700).expect("makes").create_new(b"kept", 0o600).expect("creates");
        let inside = dir.make_dir(b"inside", 0o700).expect("makes");
        inside.symlink(b"../outside", b"link").expect("links");
        dir.remove_all(b"inside").expect("removes");
        dir.symlink(b"outside", b"link").expect("links");
        dir.remove_all(b"link").expect("removes");
        assert!(dir.open_dir(b"outside").expect("opens").stat(b"kept").expect("stats").is_some());
        assert_eq!(dir.list().expect("lists").len(), 1);
    }

    #[test]
    fn what_is_not_there_is_removed_already() {
        let (_temp, dir) = fixture();
        dir.remove_all(b"absent").expect("nothing to do");
    }
}
