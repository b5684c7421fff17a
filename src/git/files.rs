//! Reads of small files below an open directory, with a cap.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use platform::dir::Dir;
use platform::{FsError, RelPath, Root, RootError};

/// What a capped read found.
#[derive(Debug, PartialEq, Eq)]
pub enum Content {
    /// No regular file has that name.
    Absent,
    /// More bytes than asked for.
    TooLarge,
    /// All of it.
    Bytes(Vec<u8>),
}

/// Reads the regular file `name` of the directory, at most `max_bytes` bytes.
pub fn read_in(dir: &Dir, name: &[u8], max_bytes: u64) -> Result<Content, FsError> {
    let file = match dir.open_read(name) {
        Ok(file) => file,
        Err(error) if is_absent(&error) => return Ok(Content::Absent),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    match file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes) {
        Ok(length) if length as u64 > max_bytes => Ok(Content::TooLarge),
        Ok(_) => Ok(Content::Bytes(bytes)),
        Err(source) => Err(FsError { operation: "read", path: OsStr::from_bytes(name).into(), source }),
    }
}

/// The same for a path below a root; a directory on the way that is gone or a link means that nothing is there.
pub fn read_below(root: &Root, path: &RelPath, max_bytes: u64) -> Result<Content, RootError> {
    match root.parent(path) {
        Ok((dir, name)) => Ok(read_in(&dir, name, max_bytes)?),
        Err(RootError::NoParent { .. }) => Ok(Content::Absent),
        Err(error) => Err(error),
    }
}

fn is_absent(error: &FsError) -> bool {
    // `InvalidInput`: something else than a regular file has the name; it was not opened.
    matches!(error.source.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::InvalidInput)
}
