//! Directories, what is done to them, and what the kernel hears of it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::event::{Interest, Place, RootId};
use crate::relpath::RelPath;
use crate::simulation::{Few, Step};

use super::kernel::{Shared, Told, lock};

/// The directories, and the kernel that hears of what is done to them.
pub struct Machine {
    dir: tempfile::TempDir,
    pub kernel: Shared,
}

/// What is at a covered path: inode, bits, links, content.
pub type Contents = BTreeMap<Place, (u64, u32, u64, Vec<u8>)>;

/// What is at a path: inode, whether it is a directory, links.
type Found = (u64, bool, u64);

impl Machine {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir(dir.path().join("repo")).expect("a tree");
        Self { dir, kernel: Shared::default() }
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join("repo").join(path)
    }

    fn found(&self, path: &Path) -> Option<Found> {
        let stat = fs::symlink_metadata(path).ok()?;
        Some((stat.ino(), stat.is_dir(), stat.nlink()))
    }

    /// The directory a path lies in, and its name there.
    fn parent<'p>(&self, path: &'p str) -> Option<(u64, &'p str)> {
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        Some((self.found(&self.at(dir))?.0, name))
    }

    fn left(&self, path: &str, (inode, is_dir, links): Found) {
        let mut kernel = lock(&self.kernel);
        if let Some((dir, name)) = self.parent(path) {
            kernel.entry(dir, name, is_dir, true);
        }
        if is_dir || links == 1 { kernel.gone(inode, is_dir) } else { kernel.own(inode, false) }
    }

    fn came(&self, path: &str) {
        if let (Some((dir, name)), Some((inode, is_dir, _))) = (self.parent(path), self.found(&self.at(path))) {
            let mut kernel = lock(&self.kernel);
            kernel.entry(dir, name, is_dir, false);
            kernel.own(inode, is_dir);
        }
    }

    fn remove_all(&self, path: &str) {
        let Some(found) = self.found(&self.at(path)) else { return };
        if found.1 {
            let names: Vec<_> = fs::read_dir(self.at(path))
                .expect("our own")
                .map(|entry| entry.expect("our own").file_name())
                .collect();
            for name in names {
                self.remove_all(&format!("{path}/{}", name.to_string_lossy()));
            }
            fs::remove_dir(self.at(path)).expect("it is empty");
        } else {
            fs::remove_file(self.at(path)).expect("our own");
        }
        self.left(path, found);
    }

    fn rename(&self, from: &str, to: &str) {
        let (moved, over) = (self.found(&self.at(from)), self.found(&self.at(to)));
        let Some(moved) = moved.filter(|moved| over.is_none_or(|over| over.0 != moved.0)) else { return };
        if fs::rename(self.at(from), self.at(to)).is_err() {
            return;
        }
        if let Some((dir, name)) = self.parent(from) {
            lock(&self.kernel).entry(dir, name, moved.1, true);
        }
        self.came(to);
        if let Some((inode, is_dir, links)) = over {
            let mut kernel = lock(&self.kernel);
            if is_dir || links == 1 { kernel.gone(inode, is_dir) } else { kernel.own(inode, false) }
        }
    }

    /// Does it, if it can be done now.
    pub fn act(&self, step: &Step, turn: usize) {
        match step {
            Step::Write(path) => {
                let known = self.found(&self.at(path));
                if known.is_none_or(|found| !found.1) && fs::write(self.at(path), format!("{turn}")).is_ok() {
                    self.came(path);
                }
            }
            Step::Remove(path) => {
                if let Some(found) = self.found(&self.at(path)).filter(|found| !found.1) {
                    fs::remove_file(self.at(path)).expect("our own");
                    self.left(path, found);
                }
            }
            Step::RemoveAll(path) => self.remove_all(path),
            Step::MakeDirs(path) => {
                let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
                for path in ends.map(|end| &path[..end]) {
                    if fs::create_dir(self.at(path)).is_ok() {
                        self.came(path);
                    }
                }
            }
            Step::Rename(from, to) => self.rename(from, to),
            Step::Exchange(one, other) => {
                for (from, to) in [(one.as_str(), "../swap"), (other, one), ("../swap", other)] {
                    self.rename(from, to);
                }
            }
            Step::Link(from, to) => {
                if fs::hard_link(self.at(from), self.at(to)).is_ok() {
                    self.came(to);
                }
            }
            Step::Symlink(path) => {
                if symlink("nowhere", self.at(path)).is_ok() {
                    self.came(path);
                }
            }
            Step::Bits(path) | Step::Shut(path) | Step::Open(path) => self.bits(path, turn),
        }
    }

    fn bits(&self, path: &str, turn: usize) {
        let Some((inode, is_dir, _)) = self.found(&self.at(path)) else { return };
        let bits = if is_dir { 0o700 } else { 0o600 } | u32::try_from(turn % 8).expect("it is small");
        let is_link = fs::symlink_metadata(self.at(path)).is_ok_and(|found| found.is_symlink());
        if is_link || fs::set_permissions(self.at(path), fs::Permissions::from_mode(bits)).is_err() {
            return;
        }
        let mut kernel = lock(&self.kernel);
        if !is_dir {
            kernel.own(inode, false);
        } else if let Some(&mark) = kernel.marks.get(&inode) {
            kernel.tell(1, Told::Attributes(mark));
        }
    }

    pub fn contents(&self) -> Contents {
        let mut all = Contents::new();
        let mut open = vec![Place::tree(RelPath::root())];
        while let Some(dir) = open.pop() {
            let path = self.dir.path().join("repo").join(dir.path.as_path());
            for entry in fs::read_dir(path).expect("a directory").map(|entry| entry.expect("an entry")) {
                let below = dir.join(&std::os::unix::ffi::OsStringExt::into_vec(entry.file_name()));
                let found = fs::symlink_metadata(entry.path()).expect("a stat");
                if found.is_dir() {
                    open.push(below);
                } else if Few.covers(RootId(0), &dir.path, below.path.name().expect("it has one")) {
                    let content = if found.is_file() { fs::read(entry.path()).expect("a read") } else { Vec::new() };
                    all.insert(below, (found.ino(), found.mode(), found.nlink(), content));
                }
            }
        }
        all
    }
}
