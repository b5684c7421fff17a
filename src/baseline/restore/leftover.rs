//! What an interrupted restore left beside its place.
//!
//! Promise: only names that [`is_temporary`] allows and the journal gives are touched; what is not known to be accepted
//! content goes to quarantine. Limit: a half-written copy of accepted content cannot be told from rejected bytes, so it
//! goes to quarantine as well.

use std::io;

use platform::{Dir, FileType, Place, RelPath, Root, RootError};

use super::error::RestoreError;
use super::{REPLACED, is_temporary};
use crate::digest::Digest;
use crate::store::{Objects, Quarantine, QuarantineId, Rejection};

/// Clears away what has the temporary name of an unfinished restore of `place`, beside it or beside a directory above it.
/// Returns where things went. A name that is not one of ours is left alone.
pub fn clear_leftover(
    root: &Root,
    place: &Place,
    temporary: &[u8],
    objects: &Objects,
    quarantine: &Quarantine,
    why: &Rejection,
) -> Result<Vec<QuarantineId>, RestoreError> {
    let mut kept = Vec::new();
    if !is_temporary(temporary) {
        return Ok(kept);
    }
    let replaced = [temporary, REPLACED].concat();
    for path in std::iter::once(RelPath::root()).chain(place.path.ancestors()) {
        let dir = match root.open_dir(&path) {
            Ok(dir) => dir,
            Err(RootError::NoParent { .. }) => break,
            Err(error) => return Err(error.into()),
        };
        for name in [temporary, &replaced[..]] {
            if !clear(&dir, name, objects, quarantine.max_copied())? {
                let id = quarantine.reserve(&why.rejected_at)?;
                match quarantine.take(&id, why, &dir, name)? {
                    Some(_) => kept.push(id),
                    None => quarantine.release(&id),
                }
            }
        }
    }
    Ok(kept)
}

/// Removes the name if nothing is lost by that; `false` if there is something to keep.
fn clear(dir: &Dir, name: &[u8], objects: &Objects, max_bytes: u64) -> Result<bool, RestoreError> {
    let Some(stat) = dir.stat(name)? else { return Ok(true) };
    match stat.file_type {
        // One that was to be a directory above the place, and is still empty.
        FileType::Directory => match dir.remove_dir(name) {
            Ok(()) => {}
            Err(_) => return Ok(false),
        },
        FileType::Regular if stat.size == 0 => dir.unlink(name)?,
        FileType::Regular => {
            let Ok(mut file) = dir.open_read(name) else { return Ok(false) };
            let read = Digest::of_reader(&mut file, max_bytes);
            let (digest, size) = read.map_err(|source| io_error(source, name))?;
            let known = size <= max_bytes
                && objects
                    .contains(digest)
                    .map_err(|source| RestoreError::Content { path: RelPath::root(), source })?;
            if !known {
                return Ok(false);
            }
            dir.unlink(name)?;
        }
        _ => return Ok(false),
    }
    dir.sync()?;
    Ok(true)
}

fn io_error(source: io::Error, name: &[u8]) -> RestoreError {
    use std::os::unix::ffi::OsStrExt as _;
    let path = std::ffi::OsStr::from_bytes(name).into();
    platform::FsError { operation: "read", path, source }.into()
}
