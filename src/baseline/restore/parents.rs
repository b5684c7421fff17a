//! The way to the place: directories that vanished are made again, and what stands where one was is moved away.
//!
//! Promise: nothing on the way is followed, and a directory that is there keeps its bits; one that is made again appears
//! with the accepted owner and bits or not at all.
//! Limit: in a directory accepted without write permission for us nothing can be made, in a new one as little as in the
//! old one.

use std::io;

use platform::{Dir, FileType, Place, RelPath, attributes, xattr};

use super::super::set::Directory;
use super::error::RestoreError;
use super::{Progress, Restore, take_flags_off};

/// How often somebody may swap a component under us before it counts as an attack that outruns us.
const ROUNDS: u32 = 64;

impl Restore<'_> {
    /// The directory of the place, made again if need be. `None` if nothing was accepted at the place and nothing leads
    /// there: then nothing is there.
    pub(super) fn parent(&self, progress: &mut Progress) -> Result<Option<Dir>, RestoreError> {
        let Some(parent) = self.place.path.parent() else { return Err(RestoreError::IsRoot) };
        let mut dir = self.root.dir().try_clone()?;
        let mut path = RelPath::root();
        for name in parent.components() {
            path = path.join(name);
            match self.enter(&dir, &path, name, progress)? {
                Some(below) => dir = below,
                None => return Ok(None),
            }
        }
        Ok(Some(dir))
    }

    fn enter(
        &self,
        dir: &Dir,
        path: &RelPath,
        name: &[u8],
        progress: &mut Progress,
    ) -> Result<Option<Dir>, RestoreError> {
        for _ in 0..ROUNDS {
            let stat = dir.stat(name)?;
            match stat {
                Some(stat) if stat.file_type == FileType::Directory => match dir.open_dir(name) {
                    Ok(below) if self.root.admits(below.own_stat()?.mount) => return Ok(Some(below)),
                    Ok(_) => return Err(RestoreError::Mounted { path: path.clone() }),
                    // Another thing has the name by now.
                    Err(error) if is_swapped(&error.source) => continue,
                    Err(error) => return Err(error.into()),
                },
                _ if self.accepted.is_absent() => return Ok(None),
                Some(stat) => {
                    self.admitted(&stat)?;
                    take_flags_off(dir, name, &stat);
                    match dir.rename_new(name, dir, &progress.temporary) {
                        Ok(()) => {}
                        Err(error) if is_swapped(&error.source) => continue,
                        Err(error) => return Err(RestoreError::from(error).with_flags(dir, name)),
                    }
                    let temporary = progress.temporary.clone();
                    // A directory that came in between was moved, too; it is kept like the rest.
                    self.quarantine(dir, &temporary, progress)?;
                }
                None => {
                    if self.make(dir, path, name, &progress.temporary).map_err(|error| error.with_flags(dir, name))? {
                        progress.remade.push(path.clone());
                    }
                }
            }
        }
        Err(RestoreError::Contended { attempts: 1 })
    }

    /// Makes the directory `name`; `false` if somebody else was faster.
    fn make(&self, dir: &Dir, path: &RelPath, name: &[u8], temporary: &[u8]) -> Result<bool, RestoreError> {
        let place = Place { root: self.place.root, path: path.clone() };
        // One that is not known was never accepted: only the owner gets in.
        let unknown = Directory { mode: 0o700, ..Directory::default() };
        let known = self.baseline.directory(&place);
        let made =
            self.make_beside(dir, temporary, known.unwrap_or(&unknown), known.is_some()).and_then(|()| {
                match dir.rename_new(temporary, dir, name) {
                    Ok(()) => Ok(true),
                    Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                    Err(error) => Err(error.into()),
                }
            });
        if !matches!(made, Ok(true)) {
            let _ = dir.remove_dir(temporary);
        }
        dir.sync()?;
        made
    }

    fn make_beside(&self, dir: &Dir, temporary: &[u8], wanted: &Directory, known: bool) -> Result<(), RestoreError> {
        let below = dir.make_dir(temporary, 0o700)?;
        let stat = below.own_stat()?;
        if known && (stat.uid, stat.gid) != (wanted.uid, wanted.gid) {
            // Without the right to give it away it stays ours, which lets in nobody but us.
            let _ = attributes::chown(&below, wanted.uid, wanted.gid);
        }
        if known {
            // An ACL we may not set leaves the bits, which are never wider.
            let _ = xattr::set_dir(&below, &wanted.xattrs);
        }
        Ok(attributes::chmod(&below, wanted.mode)?)
    }
}

/// Whether the error says that the name is not what it was a moment ago.
fn is_swapped(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
