//! One path's snapshot, taken from the disk.
//!
//! Promise: only a regular file is ever opened, nothing is followed and nothing outside the root is read; a file that
//! holds still while it is read gives a snapshot that was true at one moment. [`look_and_store`] gives a digest only for
//! bytes that are in the store.
//! Limit: a file written to all the time is taken as it is after three attempts, and said to be unstable; a store through
//! a shared mapping that has not yet changed a timestamp cannot be told from stillness.
//! Source: statx(2), open(2) `O_PATH`; timestamps of mapped writes in mmap(2), NOTES.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, SystemTime};

use platform::dir::stat_of;
use platform::file::is_open_for_writing;
use platform::{Dir, FileType, FsError, RelPath, Root, RootError, Stat, xattr};

use super::snapshot::{Content, Snapshot};
use crate::digest::Digest;
use crate::store::{Objects, StoreError};

/// Files up to this size hand their bytes to whoever shows a difference.
pub const SHOWN_BYTES: u64 = 64 * 1024;

/// How often a file that moves under the reading is read.
const ATTEMPTS: u32 = 3;

/// What was found at a path.
#[derive(Debug)]
pub struct Look {
    /// Its state.
    pub snapshot: Snapshot,
    /// Whether the file changed during every attempt to read it: content and attributes may be of different moments.
    pub unstable: bool,
    /// The bytes of a regular file of at most [`SHOWN_BYTES`].
    pub bytes: Option<Vec<u8>>,
    /// Whether anybody had a regular file open for writing before it was read; `None` if that could not be told. Asked only
    /// for what is stored.
    pub is_open: Option<bool>,
}

/// Why a path's state could not be told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LookError {
    /// The file is larger than allowed; its content was not read to the end.
    #[error("{path:?} has {size} bytes, more than {max_bytes}")]
    TooLarge {
        /// The path.
        path: RelPath,
        /// Its size, as far as it was seen.
        size: u64,
        /// What was allowed.
        max_bytes: u64,
        /// What is known without its content.
        stat: Box<Stat>,
    },
    /// Another file system is mounted over the path or a directory above it.
    #[error("another file system is mounted over {path:?}")]
    Mounted {
        /// The path.
        path: RelPath,
    },
    /// Something is there, and its state cannot be read.
    #[error("cannot read {path:?}")]
    Unreadable {
        /// The path.
        path: RelPath,
        /// What is known without its content, if anything.
        stat: Option<Box<Stat>>,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// The content could not be stored.
    #[error("cannot store the content of {path:?}")]
    Store {
        /// The path.
        path: RelPath,
        /// What failed.
        #[source]
        source: StoreError,
    },
}

impl LookError {
    /// The system's error number, if one is behind this.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Unreadable { source, .. } => source.raw_os_error(),
            Self::Store { source, .. } => source.errno(),
            Self::TooLarge { .. } | Self::Mounted { .. } => None,
        }
    }
}

/// Takes the snapshot of `path`. A file of more than `max_bytes` is an error.
pub fn look(root: &Root, path: &RelPath, max_bytes: u64) -> Result<Look, LookError> {
    Looker { root, path, max_bytes, store: None }.look()
}

/// Takes the snapshot of `path` and puts the content it names (bytes, link text, attributes) into the store.
pub fn look_and_store(root: &Root, path: &RelPath, max_bytes: u64, store: &Objects) -> Result<Look, LookError> {
    let looker = Looker { root, path, max_bytes, store: Some(store) };
    let look = looker.look()?;
    if let Content::Symlink { text } = &look.snapshot.content {
        store.put(text).map_err(|source| looker.not_stored(source))?;
    }
    if !look.snapshot.xattrs.is_empty() {
        let attributes = crate::store::serialize_attributes(&look.snapshot.xattrs);
        store.put(&attributes).map_err(|source| looker.not_stored(source))?;
    }
    Ok(look)
}

struct Looker<'a> {
    root: &'a Root,
    path: &'a RelPath,
    max_bytes: u64,
    store: Option<&'a Objects>,
}

impl Looker<'_> {
    fn look(&self) -> Result<Look, LookError> {
        let (dir, name) = match self.root.parent(self.path) {
            Ok(found) => found,
            Err(RootError::NoParent { .. }) => return Ok(nothing()),
            Err(RootError::Mounted { .. }) => return Err(LookError::Mounted { path: self.path.clone() }),
            Err(RootError::Fs(error)) => return Err(self.unreadable(None)(error.source)),
            Err(error) => return Err(self.unreadable(None)(io::Error::other(error))),
        };
        let mut attempt = 1;
        loop {
            // The usual case first: a regular file costs no call more than it must.
            let look = match dir.open_read(name) {
                Ok(file) => self.regular(&file)?,
                Err(error) => match self.other(&dir, name, error)? {
                    Some(look) => look,
                    None if attempt < ATTEMPTS => {
                        attempt += 1;
                        continue;
                    }
                    None => return Err(self.unreadable(None)(io::ErrorKind::Interrupted.into())),
                },
            };
            if !look.unstable || attempt == ATTEMPTS {
                return Ok(look);
            }
            attempt += 1;
        }
    }

    /// One reading of an open file, between two looks at its stamps.
    fn regular(&self, file: &File) -> Result<Look, LookError> {
        let before = self.own(stat_of(file.as_fd()), None)?;
        self.admitted(&before)?;
        if before.size > self.max_bytes {
            return Err(self.too_large(before.size, before));
        }
        // Before it is read: who has closed it by then has written before.
        let is_open = self.store.and_then(|_| is_open_for_writing(file));
        let (digest, size, bytes) = self.content(file, &before)?;
        let xattrs = self.own(xattr::read_file(file), Some(before))?;
        let stat = self.own(stat_of(file.as_fd()), Some(before))?;
        let unstable = (before.ctime, before.mtime, before.size) != (stat.ctime, stat.mtime, stat.size);
        let snapshot = with_attributes(Content::Regular { digest, size }, xattrs, stat);
        Ok(Look { snapshot, unstable, bytes, is_open })
    }

    fn content(&self, file: &File, stat: &Stat) -> Result<(Digest, u64, Option<Vec<u8>>), LookError> {
        let broken = |source| self.unreadable(Some(*stat))(source);
        if stat.size <= SHOWN_BYTES
            && let Some(bytes) = read_small(file, stat.size.min(self.max_bytes)).map_err(broken)?
        {
            let digest = Digest::of(&bytes);
            if let Some(store) = self.store {
                store.put_known(digest, &bytes).map_err(|source| self.not_stored(source))?;
            }
            return Ok((digest, bytes.len() as u64, Some(bytes)));
        }
        let (digest, size) = match self.store {
            Some(store) => store.put_file(file, self.max_bytes).map_err(|error| match error {
                StoreError::TooLarge { size, .. } => self.too_large(size, *stat),
                StoreError::Source(source) => self.unreadable(Some(*stat))(source),
                error => self.not_stored(error),
            })?,
            None => Digest::of_reader(&mut FromStart { file, at: 0 }, self.max_bytes).map_err(broken)?,
        };
        if size > self.max_bytes {
            return Err(self.too_large(size, *stat));
        }
        Ok((digest, size, None))
    }

    /// What is there if it could not be opened as a regular file; `None` if it has changed while being looked at.
    fn other(&self, dir: &Dir, name: &[u8], error: FsError) -> Result<Option<Look>, LookError> {
        let not_opened = match error.source.kind() {
            io::ErrorKind::NotFound => return Ok(Some(nothing())),
            io::ErrorKind::InvalidInput => None,
            _ => Some(error.source),
        };
        let Some(stat) = self.own(dir.stat(name), None)? else { return Ok(Some(nothing())) };
        self.admitted(&stat)?;
        let content = match stat.file_type {
            FileType::Regular => match not_opened {
                Some(source) => return Err(self.unreadable(Some(stat))(source)),
                None => return Ok(None),
            },
            FileType::Symlink => match dir.read_link(name) {
                Ok(text) => Content::Symlink { text },
                Err(error) => match error.source.kind() {
                    io::ErrorKind::NotFound | io::ErrorKind::InvalidInput => return Ok(None),
                    _ => return Err(self.unreadable(Some(stat))(error.source)),
                },
            },
            FileType::Directory => Content::Directory,
            FileType::Fifo => Content::Fifo,
            FileType::Socket => Content::Socket,
            FileType::CharDevice | FileType::BlockDevice => Content::Device,
        };
        // The link text must be of the object whose attributes we have.
        if self.own(dir.stat(name), Some(stat))?.is_none_or(|now| now.id != stat.id || now.ctime != stat.ctime) {
            return Ok(None);
        }
        let snapshot = with_attributes(content, std::collections::BTreeMap::new(), stat);
        Ok(Some(Look { snapshot, unstable: false, bytes: None, is_open: None }))
    }

    fn admitted(&self, stat: &Stat) -> Result<(), LookError> {
        if self.root.admits(stat.mount) { Ok(()) } else { Err(LookError::Mounted { path: self.path.clone() }) }
    }

    fn own<T>(&self, result: Result<T, FsError>, stat: Option<Stat>) -> Result<T, LookError> {
        result.map_err(|error| self.unreadable(stat)(error.source))
    }

    fn unreadable(&self, stat: Option<Stat>) -> impl FnOnce(io::Error) -> LookError {
        let path = self.path.clone();
        move |source| LookError::Unreadable { path, stat: stat.map(Box::new), source }
    }

    fn too_large(&self, size: u64, stat: Stat) -> LookError {
        LookError::TooLarge { path: self.path.clone(), size, max_bytes: self.max_bytes, stat: Box::new(stat) }
    }

    fn not_stored(&self, source: StoreError) -> LookError {
        LookError::Store { path: self.path.clone(), source }
    }
}

fn nothing() -> Look {
    Look { snapshot: Snapshot::absent(), unstable: false, bytes: None, is_open: None }
}

fn with_attributes(content: Content, xattrs: std::collections::BTreeMap<Vec<u8>, Vec<u8>>, stat: Stat) -> Snapshot {
    Snapshot {
        content,
        mode: stat.mode,
        uid: stat.uid,
        gid: stat.gid,
        xattrs,
        immutable: stat.immutable,
        append_only: stat.append_only,
        stat: Some(stat),
    }
}

/// Whether the file has exactly this content, read from its start. One that cannot be read has not.
pub fn holds(file: &File, digest: Digest, size: u64) -> bool {
    if size <= SHOWN_BYTES {
        return matches!(read_small(file, size), Ok(Some(bytes)) if Digest::of(&bytes) == digest);
    }
    Digest::of_reader(&mut FromStart { file, at: 0 }, size).is_ok_and(|found| found == (digest, size))
}

/// The whole of a small file in one allocation; `None` if it has grown past `size` meanwhile.
fn read_small(file: &File, size: u64) -> io::Result<Option<Vec<u8>>> {
    let size = usize::try_from(size).expect("at most 64 KiB");
    let mut bytes = vec![0; size + 1];
    let mut filled = 0;
    loop {
        match file.read_at(&mut bytes[filled..], filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if filled > size {
            return Ok(None);
        }
        if filled == size {
            // There was room for one byte more: this is the end, and the second look at the size confirms it.
            break;
        }
    }
    bytes.truncate(filled);
    Ok(Some(bytes))
}

/// Reads a file from its start, whatever its position is.
struct FromStart<'f> {
    file: &'f File,
    at: u64,
}

impl io::Read for FromStart<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Whether the object was last changed, by its ctime, before this wall time.
///
/// No program can set ctime, but a kernel before 6.13 counts it in ticks, so two changes within one tick look alike. What
/// had changed just before that time is therefore never taken for older.
pub fn is_older(stat: &Stat, than: SystemTime) -> bool {
    let (seconds, nanos) = stat.ctime;
    let Ok(seconds) = u64::try_from(seconds) else { return false };
    SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos) + TICKS <= than
}

/// Longer than any kernel's tick (10 ms at 100 Hz), and than the two a late timer may lag.
const TICKS: Duration = Duration::from_millis(40);

#[cfg(test)]
mod tests;
