//! Reading a directory; here in one piece.

use std::io;

use crate::dir::Dir;
use crate::stat::FileType;

/// Nothing is needed.
pub(crate) struct ListBuffer;

impl ListBuffer {
    /// Nothing.
    pub(crate) fn new() -> Self {
        Self
    }
}

/// Calls `see` for all entries of `dir` without `.` and `..`. Always `false`: there are no more.
pub(crate) fn list_some(
    dir: &Dir,
    _buffer: &mut ListBuffer,
    see: impl FnMut(&[u8], Option<FileType>),
) -> io::Result<bool> {
    dir.each_entry(see).map_err(|error| error.source)?;
    Ok(false)
}
