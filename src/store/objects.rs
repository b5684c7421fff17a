//! Content by its digest: `objects/<2 hex>/<62 hex>` in the state folder.
//!
//! Promise: what [`Objects::read`], [`Objects::get`] and [`Objects::copy_to`] give has the digest asked for, or they fail
//! with [`StoreError::Corrupt`]; after [`Objects::sync`] it survives a power cut. Until then an object may be torn, which
//! the same check finds.
//! Limit: whoever can write to the state folder can destroy objects, though not change them unseen.
//! Source: rename(2), fsync(2); a file that is renamed without fsync may be empty after a power cut.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::sync::Mutex;

use platform::stat::FileType;
use platform::{Dir, FsError, attributes, copy, durable, file, random};

use crate::digest::Digest;

/// Files up to this size are read into memory at once; larger ones are cloned or copied.
const IN_MEMORY: u64 = 256 * 1024;

/// Up to so many new objects are synced one by one; more make one sync of the whole file system cheaper.
const SYNCED_SINGLY: usize = 32;

/// The name an object has while it is being written.
const UNFINISHED: &str = "new-";

/// Why content could not be stored or had back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A name in the store could not be reached or changed.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// The bytes of an object could not be read or written.
    #[error("cannot {operation} an object")]
    Bytes {
        /// `read`, `write`, `sync`.
        operation: &'static str,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// The file to be stored could not be read.
    #[error("cannot read the file to be stored")]
    Source(#[source] io::Error),
    /// The file to be stored is larger than allowed; nothing was stored.
    #[error("the file has {size} bytes, more than {max_bytes}")]
    TooLarge {
        /// Its size.
        size: u64,
        /// What was allowed.
        max_bytes: u64,
    },
    /// There is no such object.
    #[error("object {digest} is missing")]
    Missing {
        /// The digest asked for.
        digest: Digest,
    },
    /// The object is torn or was tampered with: its bytes have another digest.
    #[error("object {digest} is damaged")]
    Corrupt {
        /// The digest asked for.
        digest: Digest,
    },
}

impl StoreError {
    /// The system's error number, if one is behind this.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Fs(error) => error.errno(),
            Self::Bytes { source, .. } | Self::Source(source) => source.raw_os_error(),
            Self::TooLarge { .. } | Self::Missing { .. } | Self::Corrupt { .. } => None,
        }
    }
}

fn unfinished_name() -> Result<Vec<u8>, StoreError> {
    Ok(format!("{UNFINISHED}{}", random::hex12().map_err(bytes("name"))?).into_bytes())
}

fn bytes(operation: &'static str) -> impl FnOnce(io::Error) -> StoreError {
    move |source| StoreError::Bytes { operation, source }
}

/// What was written since the last sync.
#[derive(Debug, Default)]
struct Fresh {
    /// The first objects of it.
    digests: Vec<Digest>,
    /// Whether there are more.
    many: bool,
}

/// The object store of one state folder.
#[derive(Debug)]
pub struct Objects {
    dir: Dir,
    fresh: Mutex<Fresh>,
}

impl Objects {
    /// Opens `objects` in the state folder, and makes it if there is none.
    pub fn open(state: &Dir) -> Result<Self, StoreError> {
        let dir = open_or_make(state, b"objects")?;
        Ok(Self { dir, fresh: Mutex::default() })
    }

    /// Stores these bytes.
    pub fn put(&self, content: &[u8]) -> Result<Digest, StoreError> {
        let digest = Digest::of(content);
        self.put_known(digest, content)?;
        Ok(digest)
    }

    /// Stores bytes whose digest the caller has just computed.
    pub(crate) fn put_known(&self, digest: Digest, content: &[u8]) -> Result<(), StoreError> {
        if self.holds(digest, content.len() as u64)? {
            return Ok(());
        }
        let (name, unfinished) = self.unfinished()?;
        let written = file::write_all(&unfinished, &name, content).map_err(StoreError::from);
        self.finish(&name, digest, written)
    }

    /// Stores the whole of `file`, at most `max_bytes` bytes; returns digest and size of what was stored, whatever
    /// happens to the file meanwhile.
    pub fn put_file(&self, file: &File, max_bytes: u64) -> Result<(Digest, u64), StoreError> {
        let size = file.metadata().map_err(StoreError::Source)?.len();
        if size > max_bytes {
            return Err(StoreError::TooLarge { size, max_bytes });
        }
        let mut source = file;
        source.rewind().map_err(StoreError::Source)?;
        if size <= IN_MEMORY {
            let limit = max_bytes.min(IN_MEMORY);
            let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
            source.take(limit + 1).read_to_end(&mut content).map_err(StoreError::Source)?;
            if content.len() as u64 <= limit {
                let digest = Digest::of(&content);
                self.put_known(digest, &content)?;
                return Ok((digest, content.len() as u64));
            }
            // It has grown meanwhile; go the long way.
            source.rewind().map_err(StoreError::Source)?;
        }
        self.put_large(file, max_bytes)
    }

    /// Clones or copies first and hashes the copy: nobody else can write to that one, so digest and bytes agree.
    fn put_large(&self, file: &File, max_bytes: u64) -> Result<(Digest, u64), StoreError> {
        let name = unfinished_name()?;
        let copied = copy::copy_new(file, max_bytes.saturating_add(1), &self.dir, &name)?;
        let mut reader = &copied;
        let hashed = reader.rewind().and_then(|()| Digest::of_reader(&mut reader, max_bytes)).map_err(bytes("read"));
        let known = hashed.and_then(|(digest, size)| {
            if size > max_bytes {
                return Err(StoreError::TooLarge { size, max_bytes });
            }
            Ok((digest, size, self.holds(digest, size)?))
        });
        match known {
            Ok((digest, size, false)) => self.finish(&name, digest, Ok(())).map(|()| (digest, size)),
            Ok((digest, size, true)) => {
                self.dir.unlink(&name)?;
                Ok((digest, size))
            }
            Err(error) => {
                let _ = self.dir.unlink(&name);
                Err(error)
            }
        }
    }

    /// A new file nobody else knows, and its name.
    fn unfinished(&self) -> Result<(Vec<u8>, File), StoreError> {
        let name = unfinished_name()?;
        let file = self.dir.create_new(&name, 0o600)?;
        Ok((name, file))
    }

    /// Gives a written file the name of its digest, in place of whatever has it; removes it if writing failed.
    fn finish(&self, name: &[u8], digest: Digest, written: Result<(), StoreError>) -> Result<(), StoreError> {
        let placed = written.and_then(|()| {
            let (shelf, rest) = names(digest);
            let shelf = open_or_make(&self.dir, &shelf)?;
            match self.dir.rename(name, &shelf, &rest) {
                Ok(()) => Ok(()),
                // Something that cannot be renamed over has our name: a directory.
                Err(_) if shelf.stat(&rest)?.is_some_and(|stat| stat.file_type == FileType::Directory) => {
                    shelf.remove_all(&rest)?;
                    Ok(self.dir.rename(name, &shelf, &rest)?)
                }
                Err(error) => Err(error.into()),
            }
        });
        match placed {
            Ok(()) => {
                let mut fresh = self.fresh.lock().expect("no holder of this lock panics");
                if fresh.digests.len() < SYNCED_SINGLY {
                    fresh.digests.push(digest);
                } else {
                    fresh.many = true;
                }
                Ok(())
            }
            Err(error) => {
                // The first failure is the one to tell; what cannot be removed now is removed by `retain`.
                let _ = self.dir.unlink(name);
                Err(error)
            }
        }
    }

    /// Opens an object whose bytes were just found to be right.
    pub fn get(&self, digest: Digest) -> Result<File, StoreError> {
        let mut file = self.open_unchecked(digest)?;
        let size = file.metadata().map_err(bytes("read"))?.len();
        let (found, _) = Digest::of_reader(&mut file, size).map_err(bytes("read"))?;
        if found != digest {
            return Err(StoreError::Corrupt { digest });
        }
        file.rewind().map_err(bytes("read"))?;
        Ok(file)
    }

    /// The bytes of an object, at most `max_bytes` of them.
    pub fn read(&self, digest: Digest, max_bytes: u64) -> Result<Vec<u8>, StoreError> {
        let file = self.open_unchecked(digest)?;
        let size = file.metadata().map_err(bytes("read"))?.len();
        if size > max_bytes {
            return Err(StoreError::TooLarge { size, max_bytes });
        }
        let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        file.take(max_bytes).read_to_end(&mut content).map_err(bytes("read"))?;
        if Digest::of(&content) == digest { Ok(content) } else { Err(StoreError::Corrupt { digest }) }
    }

    /// Copies an object into the empty file `to` and checks what arrived there; returns its size. On an error the file
    /// holds anything.
    pub fn copy_to(&self, digest: Digest, to: &File) -> Result<u64, StoreError> {
        let from = self.open_unchecked(digest)?;
        let size = from.metadata().map_err(bytes("read"))?.len();
        copy::copy(&from, to, size).map_err(bytes("copy"))?;
        let mut arrived = to;
        arrived.rewind().map_err(bytes("read"))?;
        let (found, size) = Digest::of_reader(&mut arrived, size).map_err(bytes("read"))?;
        if found == digest { Ok(size) } else { Err(StoreError::Corrupt { digest }) }
    }

    /// Whether an object of this digest is there and undamaged.
    pub fn contains(&self, digest: Digest) -> Result<bool, StoreError> {
        match self.get(digest) {
            Ok(_) => Ok(true),
            Err(StoreError::Missing { .. } | StoreError::Corrupt { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn holds(&self, digest: Digest, size: u64) -> Result<bool, StoreError> {
        let file = match self.open_unchecked(digest) {
            Ok(file) => file,
            Err(StoreError::Missing { .. } | StoreError::Corrupt { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        if file.metadata().map_err(bytes("read"))?.len() != size {
            return Ok(false);
        }
        let (found, _) = Digest::of_reader(&mut &file, size).map_err(bytes("read"))?;
        Ok(found == digest)
    }

    fn open_unchecked(&self, digest: Digest) -> Result<File, StoreError> {
        let (shelf, rest) = names(digest);
        let opened = self.dir.open_dir(&shelf).and_then(|shelf| shelf.open_read(&rest));
        opened.map_err(|error| match error.source.kind() {
            io::ErrorKind::NotFound => StoreError::Missing { digest },
            // Not a regular file, or a shelf that is no directory: somebody was here.
            io::ErrorKind::InvalidInput | io::ErrorKind::NotADirectory => StoreError::Corrupt { digest },
            _ => StoreError::Fs(error),
        })
    }

    /// Makes every object stored since the last call durable.
    pub fn sync(&self) -> Result<(), StoreError> {
        let fresh = std::mem::take(&mut *self.fresh.lock().expect("no holder of this lock panics"));
        let synced = self.sync_these(&fresh);
        if synced.is_err() {
            let mut now = self.fresh.lock().expect("no holder of this lock panics");
            now.many |= fresh.many;
            now.digests.extend(fresh.digests);
        }
        synced
    }

    fn sync_these(&self, fresh: &Fresh) -> Result<(), StoreError> {
        if fresh.many {
            if durable::sync_file_system(&self.dir).map_err(bytes("sync"))? {
                return Ok(());
            }
            return self.sync_all();
        }
        if fresh.digests.is_empty() {
            return Ok(());
        }
        let shelves: BTreeSet<Vec<u8>> = fresh.digests.iter().map(|digest| names(*digest).0).collect();
        for digest in &fresh.digests {
            attributes::sync(&self.open_unchecked(*digest)?)?;
        }
        for shelf in shelves {
            self.dir.open_dir(&shelf)?.sync()?;
        }
        Ok(self.dir.sync()?)
    }

    fn sync_all(&self) -> Result<(), StoreError> {
        self.each(|shelf, rest, _| {
            attributes::sync(&shelf.open_read(rest)?)?;
            Ok(())
        })?;
        for entry in self.dir.list()? {
            if entry.file_type == Some(FileType::Directory) {
                self.dir.open_dir(&entry.name)?.sync()?;
            }
        }
        Ok(self.dir.sync()?)
    }

    /// Removes every object that is not in `wanted`, and what an interrupted run left half written; returns how many
    /// objects went. Only for the one process that holds the state folder's lock.
    pub fn retain(&self, wanted: &BTreeSet<Digest>) -> Result<usize, StoreError> {
        let mut removed = 0;
        self.each(|shelf, rest, digest| {
            if !digest.is_some_and(|digest| wanted.contains(&digest)) {
                shelf.remove_all(rest)?;
                removed += 1;
            }
            Ok(())
        })?;
        for entry in self.dir.list()? {
            if entry.name.starts_with(UNFINISHED.as_bytes()) {
                self.dir.remove_all(&entry.name)?;
            }
        }
        Ok(removed)
    }

    /// Calls `see` with every name on every shelf.
    fn each(
        &self,
        mut see: impl FnMut(&Dir, &[u8], Option<Digest>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        for entry in self.dir.list()? {
            let Ok(shelf) = self.dir.open_dir(&entry.name) else { continue };
            for object in shelf.list()? {
                let name = [&entry.name[..], &object.name].concat();
                see(&shelf, &object.name, std::str::from_utf8(&name).ok().and_then(Digest::parse))?;
            }
        }
        Ok(())
    }
}

/// The directory `name`, made with `0700` if nothing has that name.
pub(crate) fn open_or_make(dir: &Dir, name: &[u8]) -> Result<Dir, FsError> {
    match dir.open_dir(name) {
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => match dir.make_dir(name, 0o700) {
            Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists => dir.open_dir(name),
            made => made,
        },
        opened => opened,
    }
}

/// The two names an object is found by.
fn names(digest: Digest) -> (Vec<u8>, Vec<u8>) {
    let hex = digest.to_string();
    (hex.as_bytes()[..2].to_vec(), hex.as_bytes()[2..].to_vec())
}

#[cfg(test)]
mod tests;
