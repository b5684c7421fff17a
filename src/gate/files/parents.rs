//! The directory a new file goes to, made if it is missing.
//!
//! Promise: made as any program would make it, with the bits that the umask leaves; what was made for a change that then
//! fails is removed again, if it is still empty. No symlink is followed and no mount is crossed.

use platform::{Dir, RelPath, Root, RootError};

use super::error::FilesError;

/// An open directory, and those that had to be made for it.
pub(super) struct Parents {
    pub(super) dir: Dir,
    /// Each with the directory it lies in, topmost first.
    made: Vec<(Dir, Vec<u8>)>,
}

impl Parents {
    /// The directory of `path`.
    pub(super) fn of(root: &Root, path: &RelPath) -> Result<Self, FilesError> {
        match root.parent(path) {
            Ok((dir, _)) => Ok(Self { dir, made: Vec::new() }),
            Err(RootError::NoParent { .. }) => {
                let mut parents = Self { dir: root.dir().try_clone()?, made: Vec::new() };
                let walked = parents.walk(root, path);
                if walked.is_err() {
                    parents.undo();
                }
                walked.map(|()| parents)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn walk(&mut self, root: &Root, path: &RelPath) -> Result<(), FilesError> {
        for above in path.ancestors() {
            let name = above.name().expect("an ancestor is not the root");
            let below = match self.dir.stat(name)? {
                Some(_) => self.dir.open_dir(name)?,
                None => {
                    let below = self.dir.make_plain_dir(name)?;
                    self.made.push((self.dir.try_clone()?, name.to_vec()));
                    below
                }
            };
            if !root.admits(below.own_stat()?.mount) {
                return Err(FilesError::Mounted { path: above });
            }
            self.dir = below;
        }
        Ok(())
    }

    /// Removes what was made.
    pub(super) fn undo(&mut self) {
        for (dir, name) in self.made.drain(..).rev() {
            // Somebody may have put something there meanwhile: then it stays.
            let _ = dir.remove_dir(&name);
        }
    }

    /// Makes the names of what was made durable.
    pub(super) fn sync(&self) -> Result<(), FilesError> {
        self.made.iter().try_for_each(|(dir, _)| sync(dir))
    }
}

/// Makes the names in a directory durable; one that may not be listed cannot be synced, and is as durable as the system
/// makes it.
pub(super) fn sync(dir: &Dir) -> Result<(), FilesError> {
    match dir.sync() {
        Err(error) if error.source.kind() == std::io::ErrorKind::PermissionDenied || is_no_handle(&error.source) => {
            Ok(())
        }
        done => Ok(done?),
    }
}

/// `EBADF`: the handle only passes through the directory.
fn is_no_handle(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(9)
}
