//! Reading a directory piece by piece, so that a huge one does not hold up events.
//!
//! Source: getdents64(2).

use std::mem::MaybeUninit;
use std::os::fd::AsFd;

use rustix::fs::RawDir;

use crate::dir::Dir;
use crate::stat::FileType;

const BUFFER: usize = 32 * 1024;

/// Memory to read entries into.
pub(crate) struct ListBuffer(Box<[MaybeUninit<u8>]>);

impl ListBuffer {
    /// As much as a few hundred names take.
    pub(crate) fn new() -> Self {
        Self(vec![MaybeUninit::uninit(); BUFFER].into_boxed_slice())
    }
}

/// Calls `see` for the next entries of `dir` where the last call stopped, without `.` and `..`: as many as fit into the
/// buffer. `false` when there are no more.
pub(crate) fn list_some(
    dir: &Dir,
    buffer: &mut ListBuffer,
    mut see: impl FnMut(&[u8], Option<FileType>),
) -> std::io::Result<bool> {
    let mut entries = RawDir::new(dir.as_fd(), &mut buffer.0);
    loop {
        match entries.next() {
            None => return Ok(false),
            Some(entry) => {
                let entry = entry?;
                let name = entry.file_name().to_bytes();
                if name != b"." && name != b".." {
                    see(name, crate::dir::known_type(entry.file_type()));
                }
            }
        }
        if entries.is_buffer_empty() {
            return Ok(true);
        }
    }
}
