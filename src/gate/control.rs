//! The control folder of one root: policy, grants, audit, notes and the socket of its gate lie in it.
//!
//! Promise: it lies outside the root, under every name and every mount the root was reached by, and so does everything
//! that leads to it; no root lies among the state of others. It is a directory of our own that nobody else can look into.
//! Limit: a tree that is mounted into the root from outside is not looked through; the file tools do not cross mounts.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use platform::holder::Holder;
use platform::lock::{Lock, LockError};
use platform::{Dir, FileId, FsError, Root, ambient};

use crate::state::{StateError, folder_name, private_dir, private_top};
use crate::text::escaped;

/// The folder of all control folders, in the state folder.
const FOLDER: &str = "gate";

/// The name of the gate's socket in the control folder.
pub const SOCKET: &str = "socket";

/// Why there is no control folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The root holds the control folder: its tools could write their own grants.
    #[error("{} holds the control folder {}", shown(.root), shown(.folder))]
    Around {
        /// The root.
        root: PathBuf,
        /// Where the control folder would be.
        folder: PathBuf,
    },
    /// The root lies in the state folder: its tools could write the grants of other roots.
    #[error("{} lies in the state folder {}", shown(.root), shown(.state))]
    Within {
        /// The root.
        root: PathBuf,
        /// The state folder.
        state: PathBuf,
    },
    /// It cannot be told whether the root holds it.
    #[error("cannot tell where the control folder lies")]
    Place(#[source] FsError),
    /// It cannot be opened or made, or is not ours alone.
    #[error(transparent)]
    Folder(#[from] StateError),
}

fn shown(path: &Path) -> String {
    escaped(path.as_os_str().as_bytes())
}

/// The open control folder of one root.
#[derive(Debug)]
pub struct Control {
    dir: Dir,
    path: PathBuf,
    owner: u32,
    /// The folder it lies in, and the name of the root's lock there.
    folder: Dir,
    lock: String,
}

impl Control {
    /// Opens the control folder of `root` below the state folder, and makes it if there is none. `owner` is the user we run
    /// as; nothing is made if the root is refused.
    pub fn open(state_parent: &Path, root: &Root, owner: u32) -> Result<Self, ControlError> {
        let path = place(state_parent, root);
        apart(state_parent, root, &path)?;
        let top = private_top(state_parent, owner)?;
        let folder = private_dir(&top, &state_parent.join(FOLDER), owner)?;
        let dir = private_dir(&folder, &path, owner)?;
        Ok(Self { dir, path, owner, folder, lock: lock_name(root.id()) })
    }

    /// The same without making anything; `None` if no gate was ever held for this root.
    pub fn existing(state_parent: &Path, root: &Root, owner: u32) -> Result<Option<Self>, ControlError> {
        let path = place(state_parent, root);
        match ambient::id(&path).map_err(ControlError::Place)? {
            None => Ok(None),
            Some(_) => Self::open(state_parent, root, owner).map(Some),
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

    /// Whose files are in it.
    pub fn owner(&self) -> u32 {
        self.owner
    }

    /// Takes the root for one gate, or says who has it. The lock is the directory's, not its path's: a second gate under
    /// another name of the same directory is refused, too.
    pub fn lock(&self, holder: &Holder) -> Result<Lock, LockError> {
        Lock::try_acquire(&self.folder, self.lock.as_bytes(), holder)
    }
}

fn place(state_parent: &Path, root: &Root) -> PathBuf {
    state_parent.join(FOLDER).join(folder_name(root.path(), root.id()))
}

fn lock_name(id: FileId) -> String {
    format!("{}-{}.lock", id.dev, id.ino)
}

/// Whether neither the root nor the folders of state lie in the other. Directories are compared by what they are: a path
/// tells nothing about what is mounted a second time.
fn apart(state_parent: &Path, root: &Root, folder: &Path) -> Result<(), ControlError> {
    let (mut state, mut is_whole) = (state_parent, true);
    let resolved = loop {
        match ambient::resolve(state) {
            Ok(resolved) => break resolved,
            Err(error) if error.source.kind() == std::io::ErrorKind::NotFound => {
                // What is missing will be made below what is there.
                state = state.parent().ok_or(ControlError::Place(error))?;
                is_whole = false;
            }
            Err(error) => return Err(ControlError::Place(error)),
        }
    };
    if passes(&resolved, root.id())? {
        return Err(ControlError::Around { root: root.path().to_path_buf(), folder: folder.to_path_buf() });
    }
    if let (true, Some(state)) = (is_whole, ambient::id(&resolved).map_err(ControlError::Place)?) {
        let root_path = ambient::resolve(root.path()).map_err(ControlError::Place)?;
        if passes(&root_path, state)? {
            return Err(ControlError::Within { root: root.path().to_path_buf(), state: state_parent.to_path_buf() });
        }
    }
    Ok(())
}

/// Whether this directory is on the way to `path`, or at its end.
fn passes(path: &Path, directory: FileId) -> Result<bool, ControlError> {
    for ancestor in path.ancestors() {
        if ambient::id(ancestor).map_err(ControlError::Place)? == Some(directory) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    struct Lab {
        folder: tempfile::TempDir,
        owner: u32,
    }

    impl Lab {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("makes a folder");
            let owner = Dir::open_ambient(folder.path()).and_then(|dir| dir.own_stat()).expect("stats").uid;
            for name in ["root", "home/state"] {
                fs::create_dir_all(folder.path().join(name)).expect("makes");
            }
            Self { folder, owner }
        }

        fn at(&self, path: &str) -> PathBuf {
            self.folder.path().join(path)
        }

        fn root(&self, path: &str) -> Root {
            Root::open(&self.at(path)).expect("opens")
        }

        fn open(&self, root: &str) -> Result<Control, ControlError> {
            Control::open(&self.at("home/state/keepwatch"), &self.root(root), self.owner)
        }
    }

    fn holder() -> Holder {
        Holder::this_process("keep gate", "2026-11-30T09:41:07Z").expect("the system tells")
    }

    #[test]
    fn it_is_made_private_below_the_state_folder() {
        let lab = Lab::new();
        let control = lab.open("root").expect("opens");
        assert!(control.path().starts_with(lab.at("home/state/keepwatch/gate")));
        for folder in [control.path(), control.path().parent().expect("has one"), &lab.at("home/state/keepwatch")] {
            assert_eq!(fs::metadata(folder).expect("is there").permissions().mode() & 0o7777, 0o700, "{folder:?}");
        }
        let again = lab.open("root").expect("opens again");
        assert_eq!(again.dir().own_stat().expect("stats").id, control.dir().own_stat().expect("stats").id);
    }

    #[test]
    fn a_root_around_it_is_refused_under_every_name_and_nothing_is_made_in_it() {
        let lab = Lab::new();
        symlink(lab.at("home"), lab.at("other-name")).expect("links");
        symlink(lab.folder.path(), lab.at("root/up")).expect("links");
        for root in ["", "home", "home/state", "other-name", "other-name/state", "root/..", "root/up"] {
            let error = lab.open(root).expect_err(root);
            assert!(matches!(error, ControlError::Around { .. }), "{root}: {error}");
        }
        assert_eq!(fs::read_dir(lab.at("home/state")).expect("lists").count(), 0);
        // The state folder itself may be reached through a link that leads into the root.
        fs::create_dir(lab.at("root/hidden")).expect("makes");
        symlink(lab.at("root/hidden"), lab.at("home/state/keepwatch")).expect("links");
        assert!(matches!(lab.open("root"), Err(ControlError::Around { .. })));
        assert_eq!(fs::read_dir(lab.at("root/hidden")).expect("lists").count(), 0);
    }

    #[test]
    fn a_root_among_the_state_is_refused() {
        let lab = Lab::new();
        let control = lab.open("root").expect("opens");
        fs::create_dir(control.path().join("memory")).expect("makes");
        let inside = |path: &Path| path.strip_prefix(lab.folder.path()).expect("lies there").to_owned();
        for root in [control.path().to_owned(), control.path().join("memory"), lab.at("home/state/keepwatch/gate")] {
            let root = inside(&root);
            let error = lab.open(root.to_str().expect("is text")).expect_err("refused");
            assert!(matches!(error, ControlError::Within { .. } | ControlError::Around { .. }), "{root:?}: {error}");
        }
    }

    #[test]
    fn one_directory_has_one_gate_under_all_its_names() {
        let lab = Lab::new();
        fs::create_dir(lab.at("second")).expect("makes");
        let lock = lab.open("root").expect("opens").lock(&holder()).expect("is free");
        // A name that was not resolved before, as a second mount has one.
        let other_name = lab.open("second/../root").expect("opens");
        assert!(matches!(other_name.lock(&holder()), Err(LockError::Held { .. })));
        assert_ne!(other_name.path(), lab.open("root").expect("opens").path());
        let _second = lab.open("second").expect("opens").lock(&holder()).expect("is another directory");
        drop(lock);
        other_name.lock(&holder()).expect("is free again");
    }

    #[test]
    fn looking_for_it_makes_nothing() {
        let lab = Lab::new();
        let look = || Control::existing(&lab.at("home/state/keepwatch"), &lab.root("root"), lab.owner).expect("looks");
        assert!(look().is_none());
        assert_eq!(fs::read_dir(lab.at("home/state")).expect("lists").count(), 0);
        lab.open("root").expect("makes");
        assert!(look().is_some());
    }

    #[test]
    fn a_folder_others_can_write_or_that_is_a_link_is_refused() {
        let lab = Lab::new();
        let control = lab.open("root").expect("opens");
        fs::set_permissions(control.path(), fs::Permissions::from_mode(0o777)).expect("chmods");
        assert!(matches!(lab.open("root"), Err(ControlError::Folder(_))));
        fs::rename(control.path(), lab.at("moved")).expect("moves");
        symlink(lab.at("moved"), control.path()).expect("links");
        assert!(matches!(lab.open("root"), Err(ControlError::Folder(_))));
    }
}
