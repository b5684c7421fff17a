//! The state folder of one root: journal, lock, objects, quarantine and session logs lie in it.
//!
//! Promise: the folder, and the one it lies in, are directories of our own that nobody else can write to or look into; a
//! symlink in place of either is refused. What is ours and was only readable by others is tightened to `0700`; what others
//! could write to is refused, since they may have put something there. Everything below is reached through the handle.
//! Limit: the way to the folder that holds them is the person's, and is followed as given.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use platform::{Dir, FileId, FileType, FsError, Stat, file};

use crate::digest::Digest;

/// The bits of every directory of ours.
const PRIVATE: u32 = 0o700;

/// Why there is no state folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// A folder on the way could not be opened or made.
    #[error("cannot open the state folder")]
    Open(#[source] FsError),
    /// The path has no last component.
    #[error("{} cannot hold state", crate::text::escaped(.0.as_os_str().as_bytes()))]
    NoName(PathBuf),
    /// It is there, and we do not trust whoever can write it.
    #[error("{} {reason}", crate::text::escaped(.path.as_os_str().as_bytes()))]
    NotOurs {
        /// Which folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl StateError {
    /// The stable code in refusals.
    pub const fn code(&self) -> &'static str {
        "GXT_CAGE_JOURNAL"
    }
}

/// The open state folder of one root.
#[derive(Debug)]
pub struct StateFolder {
    dir: Dir,
    path: PathBuf,
}

impl StateFolder {
    /// Opens the folder of the root `id` at `root` below `top`, and makes both if they are missing. `owner` is the user we
    /// run as; `top` comes from [`platform::state_dir::state_dir`].
    pub fn open(top: &Path, owner: u32, root: &Path, id: FileId) -> Result<Self, StateError> {
        let path = top.join(folder_name(root, id));
        let dir = private_dir(&private_top(top, owner)?, &path, owner)?;
        Ok(Self { dir, path })
    }

    /// The same without making anything; `None` if there is no folder for this root.
    pub fn existing(top: &Path, owner: u32, root: &Path, id: FileId) -> Result<Option<Self>, StateError> {
        let path = top.join(folder_name(root, id));
        let top_dir = match Dir::open_ambient(top) {
            Ok(dir) => dir,
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StateError::Open(error)),
        };
        match top_dir.stat(name_of(&path)?).map_err(StateError::Open)? {
            None => Ok(None),
            Some(_) => {
                let dir = private_dir(&top_dir, &path, owner)?;
                Ok(Some(Self { dir, path }))
            }
        }
    }

    /// The handle of the folder.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Its path, for people to read.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the folder `name` in it, and makes it if it is missing.
    pub fn subfolder(&self, name: &str, owner: u32) -> Result<Dir, StateError> {
        private_dir(&self.dir, &self.path.join(name), owner)
    }
}

/// The name of a root's folder: device and inode, since a path can be given another tree, and a digest of the path, since
/// an inode can be given to another tree.
pub fn folder_name(root: &Path, id: FileId) -> String {
    format!("{}-{}-{}", id.dev, id.ino, Digest::of(root.as_os_str().as_bytes()).short())
}

fn name_of(path: &Path) -> Result<&[u8], StateError> {
    path.file_name().map(|name| name.as_bytes()).ok_or_else(|| StateError::NoName(path.to_path_buf()))
}

/// The folder state is kept in, made with all above it.
fn parents(path: &Path) -> Result<Dir, StateError> {
    match Dir::open_ambient(path) {
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => {
            let parent = path.parent().ok_or(StateError::Open(error))?;
            open_or_make(&parents(parent)?, name_of(path)?).map_err(StateError::Open)
        }
        opened => opened.map_err(StateError::Open),
    }
}

fn open_or_make(parent: &Dir, name: &[u8]) -> Result<Dir, FsError> {
    match parent.make_dir(name, PRIVATE) {
        Ok(dir) => {
            // A journal in a folder that a power cut takes away would be no journal.
            parent.sync()?;
            Ok(dir)
        }
        Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists => parent.open_dir(name),
        Err(error) => Err(error),
    }
}

/// Opens the folder that holds the state of all roots, and makes it with all above it if it is missing.
pub(crate) fn private_top(top: &Path, owner: u32) -> Result<Dir, StateError> {
    let parent = top.parent().ok_or_else(|| StateError::NoName(top.to_path_buf()))?;
    private_dir(&parents(parent)?, top, owner)
}

/// Whether a file in a folder of ours is ours alone; if not, what is wrong with it.
pub(crate) fn is_ours_alone(stat: &Stat, owner: u32) -> Result<(), &'static str> {
    if stat.file_type != FileType::Regular {
        Err("is not a regular file")
    } else if stat.uid != owner {
        Err("belongs to another user")
    } else if stat.mode & 0o022 != 0 {
        Err("can be written by other users")
    } else if stat.nlink != 1 {
        Err("has a second name elsewhere")
    } else {
        Ok(())
    }
}

/// Opens or makes the last component of `path` in `parent`, and sees to it that it is ours alone.
pub(crate) fn private_dir(parent: &Dir, path: &Path, owner: u32) -> Result<Dir, StateError> {
    let name = name_of(path)?;
    let refuse = |reason| StateError::NotOurs { path: path.to_path_buf(), reason };
    let there = parent.stat(name).map_err(StateError::Open)?;
    match there.map(|stat| stat.file_type) {
        Some(FileType::Symlink) => return Err(refuse("is a symlink")),
        Some(file_type) if file_type != FileType::Directory => return Err(refuse("is not a directory")),
        _ => {}
    }
    let dir = match there {
        Some(_) => parent.open_dir(name),
        None => open_or_make(parent, name),
    }
    .map_err(StateError::Open)?;
    let stat = dir.own_stat().map_err(StateError::Open)?;
    if stat.uid != owner {
        return Err(refuse("belongs to another user"));
    }
    if stat.mode & 0o022 != 0 {
        return Err(refuse("can be written by other users"));
    }
    if stat.mode != PRIVATE {
        file::set_mode(&dir, name, PRIVATE).map_err(StateError::Open)?;
    }
    Ok(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: FileId = FileId { dev: 8, ino: 1234 };

    struct Lab {
        folder: tempfile::TempDir,
        dir: Dir,
        owner: u32,
    }

    fn lab() -> Lab {
        let folder = tempfile::tempdir().expect("makes a folder");
        let dir = Dir::open_ambient(folder.path()).expect("opens it");
        let owner = dir.own_stat().expect("stats").uid;
        Lab { folder, dir, owner }
    }

    impl Lab {
        fn open(&self, top: &str) -> Result<StateFolder, StateError> {
            StateFolder::open(&self.folder.path().join(top), self.owner, Path::new("/repo"), ID)
        }

        fn refusal(&self, top: &str) -> String {
            self.open(top).expect_err("refused").to_string()
        }
    }

    #[test]
    fn the_folder_is_named_by_device_inode_and_path() {
        let digest = Digest::of(b"/repo").short();
        assert_eq!(folder_name(Path::new("/repo"), ID), format!("8-1234-{digest}"));
    }

    #[test]
    fn everything_on_the_way_is_made_private() {
        let lab = lab();
        let state = lab.open("a/b/keepwatch").expect("opens");
        assert!(state.path().starts_with(lab.folder.path().join("a/b/keepwatch")));
        assert_eq!(state.dir().own_stat().expect("stats").mode, 0o700);
        let a = lab.dir.open_dir(b"a").expect("was made");
        let top = a.open_dir(b"b").and_then(|b| b.open_dir(b"keepwatch")).expect("was made");
        assert_eq!((a.own_stat().expect("stats").mode, top.own_stat().expect("stats").mode), (0o700, 0o700));
        let again = lab.open("a/b/keepwatch").expect("opens again");
        assert_eq!(again.dir().own_stat().expect("stats").id, state.dir().own_stat().expect("stats").id);
        let objects = again.subfolder("objects", lab.owner).expect("makes");
        assert_eq!(objects.own_stat().expect("stats").mode, 0o700);
    }

    #[test]
    fn looking_for_a_folder_makes_none() {
        let lab = lab();
        let top = lab.folder.path().join("keepwatch");
        let look = || StateFolder::existing(&top, lab.owner, Path::new("/repo"), ID).expect("looks");
        assert!(look().is_none());
        assert_eq!(lab.dir.list().expect("lists"), []);
        lab.open("keepwatch").expect("makes");
        assert!(look().is_some());
    }

    #[test]
    fn a_symlink_or_a_file_in_its_place_is_refused() {
        let lab = lab();
        lab.dir.make_dir(b"real", 0o700).expect("makes");
        lab.dir.symlink(b"real", b"link").expect("links");
        lab.dir.create_new(b"file", 0o600).expect("makes");
        assert!(lab.refusal("link").ends_with("is a symlink"));
        assert!(lab.refusal("file").ends_with("is not a directory"));
        let top = lab.dir.make_dir(b"top", 0o700).expect("makes");
        top.symlink(b"../real", folder_name(Path::new("/repo"), ID).as_bytes()).expect("links");
        assert!(lab.refusal("top").ends_with("is a symlink"));
        assert_eq!(lab.dir.open_dir(b"real").expect("opens").list().expect("lists"), []);
    }

    #[test]
    fn a_folder_others_can_write_is_refused_and_one_they_can_read_is_tightened() {
        let lab = lab();
        for (name, mode) in [(&b"group"[..], 0o770), (b"all", 0o707), (b"sticky", 0o1777)] {
            lab.dir.make_dir(name, mode).expect("makes");
            let name = std::str::from_utf8(name).expect("is ASCII");
            assert!(lab.refusal(name).ends_with("can be written by other users"), "{name}");
        }
        let readable = lab.dir.make_dir(b"readable", 0o755).expect("makes");
        lab.open("readable").expect("opens");
        assert_eq!(readable.own_stat().expect("stats").mode, 0o700);
    }

    #[test]
    fn a_folder_of_another_user_is_refused() {
        let lab = lab();
        lab.dir.make_dir(b"theirs", 0o700).expect("makes");
        let error = StateFolder::open(&lab.folder.path().join("theirs"), lab.owner + 1, Path::new("/repo"), ID);
        assert!(error.expect_err("refused").to_string().ends_with("belongs to another user"));
    }
}
