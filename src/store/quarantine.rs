//! Rejected things, kept: `quarantine/<id>/about.json` and, beside it, `content`.
//!
//! Promise: when [`Quarantine::keep_copy`] gives a fingerprint, bytes of that digest are durable here; when
//! [`Quarantine::take`] returns `Ok`, the name is free and what had it is here, or lies aside in its own directory where
//! the description says. Nothing is ever opened but regular files, and nothing is followed.
//! Limit: a file over the size cap or one we may not read, and every directory, is moved whole, so whoever has such a
//! file open can still write to it. What is on another file system and cannot be copied stays aside in its directory.
//! What lies aside is known to this run as it was left, by name, identity and stamps; a later run knows its description.
//! Source: rename(2) (`EXDEV`; moving a directory needs write permission on it), fsync(2).

mod error;
mod left;
mod putting;
mod taking;

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use platform::{Dir, FileId, FsError, attributes, file};

pub use error::{QuarantineError, QuarantineId};
use left::Left;

use super::about::{About, Held};
use super::objects::open_or_make;
use crate::digest::Digest;

/// What a thing that stays in its directory is called there, before its id.
pub const ASIDE: &str = ".keep-rejected-";

/// A description is one short line; paths are the longest part of it.
const MAX_ABOUT: u64 = 1 << 20;

/// So many things can be rejected within one millisecond.
const MAX_PER_MOMENT: u32 = 100_000;

fn bytes(operation: &'static str) -> impl FnOnce(io::Error) -> QuarantineError {
    move |source| QuarantineError::Bytes { operation, source }
}

/// What exactly was copied: the object and the digest of its bytes or text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    /// The object.
    pub id: FileId,
    /// Of what was copied.
    pub digest: Digest,
}

/// What to do if the place to put something back to is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfTaken {
    /// Fail with `AlreadyExists`.
    Refuse,
    /// Replace what is there, unless it is a directory.
    Replace,
}

/// The quarantine of one state folder.
#[derive(Debug)]
pub struct Quarantine {
    dir: Dir,
    max_copied: u64,
    /// The number the next name is tried with.
    next: AtomicU32,
    /// What was left aside in this run.
    left: Mutex<Left>,
}

impl Quarantine {
    /// Opens `quarantine` in the state folder, and makes it if there is none. Files of more than `max_copied` bytes are
    /// moved instead of copied.
    pub fn open(state: &Dir, max_copied: u64) -> Result<Self, QuarantineError> {
        Ok(Self {
            dir: open_or_make(state, b"quarantine")?,
            max_copied,
            next: AtomicU32::new(0),
            left: Mutex::default(),
        })
    }

    /// A new, empty place for something rejected at this wall time (RFC 3339).
    pub fn reserve(&self, rejected_at: &str) -> Result<QuarantineId, QuarantineError> {
        let digits: String = rejected_at.chars().filter(|&at| at.is_ascii_digit() || at == 'T').take(24).collect();
        for _ in 0..MAX_PER_MOMENT {
            let number = self.next.fetch_add(1, Ordering::Relaxed) % MAX_PER_MOMENT;
            let name = format!("{digits}Z-{number:05}");
            match self.dir.make_dir(name.as_bytes(), 0o700) {
                Ok(_) => return Ok(QuarantineId(name)),
                Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(QuarantineError::Crowded { at: rejected_at.to_owned() })
    }

    /// Gives up a place that was not needed; one with something in it stays.
    pub fn release(&self, id: &QuarantineId) {
        // It fails for a place in use, which is the point; an empty place that stays does no harm.
        let _ = self.dir.remove_dir(id.as_str().as_bytes());
    }

    /// Forgets a copy whose original is still in place.
    pub fn discard(&self, id: &QuarantineId) {
        // What cannot be removed is one copy too many, not a loss.
        let _ = self.dir.remove_all(id.as_str().as_bytes());
    }

    /// Files of more bytes are moved instead of copied.
    pub fn max_copied(&self) -> u64 {
        self.max_copied
    }

    fn entry(&self, id: &QuarantineId) -> Result<Dir, QuarantineError> {
        Ok(open_or_make(&self.dir, id.as_str().as_bytes())?)
    }

    /// Writes the description and makes all that is there durable.
    fn describe(&self, entry: &Dir, about: &About) -> Result<(), QuarantineError> {
        let fresh = b"about.new";
        entry.remove_all(fresh)?;
        let described = entry.create_new(fresh, 0o600)?;
        file::write_all(&described, fresh, about.to_line().as_bytes())?;
        attributes::sync(&described)?;
        entry.rename(fresh, entry, b"about.json")?;
        entry.sync()?;
        Ok(self.dir.sync()?)
    }

    /// Everything that is kept, oldest first. Empty places and unfinished ones are left out.
    pub fn list(&self) -> Result<Vec<About>, QuarantineError> {
        let mut found = Vec::new();
        for entry in self.dir.list()? {
            let Some(id) = std::str::from_utf8(&entry.name).ok().and_then(QuarantineId::parse) else { continue };
            match self.about(&id) {
                Ok(about) => found.push(about),
                Err(QuarantineError::Missing { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        found.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(found)
    }

    /// The description of one thing.
    pub fn about(&self, id: &QuarantineId) -> Result<About, QuarantineError> {
        let missing = |error: FsError| match error.source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidInput => {
                QuarantineError::Missing { id: id.clone() }
            }
            _ => error.into(),
        };
        let entry = self.dir.open_dir(id.as_str().as_bytes()).map_err(missing)?;
        let file = entry.open_read(b"about.json").map_err(missing)?;
        let mut line = Vec::new();
        file.take(MAX_ABOUT).read_to_end(&mut line).map_err(bytes("read"))?;
        let about = About::parse(&line).filter(|about| about.id == id.as_str());
        about.ok_or_else(|| QuarantineError::Missing { id: id.clone() })
    }

    /// Opens the content of a regular file, or the text of a symlink, checked against the digest where there is one.
    pub fn content(&self, id: &QuarantineId) -> Result<File, QuarantineError> {
        let about = self.about(id)?;
        let none = || QuarantineError::NoContent { id: id.clone() };
        if !matches!(about.held, Held::Copied | Held::Moved) {
            return Err(none());
        }
        let entry = self.dir.open_dir(id.as_str().as_bytes())?;
        let mut file = entry.open_read(b"content").map_err(|error| match error.source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::InvalidInput => none(),
            _ => error.into(),
        })?;
        if let Some(wanted) = about.sha256 {
            let (found, _) = Digest::of_reader(&mut file, about.size).map_err(bytes("read"))?;
            if found != wanted {
                return Err(QuarantineError::Corrupt { id: id.clone() });
            }
            file.rewind().map_err(bytes("read"))?;
        }
        Ok(file)
    }

    /// Removes what an interrupted run left here: empty places, half copies without a description, and descriptions of what
    /// never came or was put back. Only for the one
    /// process that holds the state folder's lock. Content that was moved here always has a description.
    pub fn tidy(&self) -> Result<(), QuarantineError> {
        for entry in self.dir.list()? {
            let Ok(place) = self.dir.open_dir(&entry.name) else { continue };
            let names: Vec<Vec<u8>> = place.list()?.into_iter().map(|entry| entry.name).collect();
            let has = |wanted: &[u8]| names.iter().any(|name| name == wanted);
            let id = std::str::from_utf8(&entry.name).ok().and_then(QuarantineId::parse);
            let held = id.and_then(|id| self.about(&id).ok()).map(|about| about.held);
            let empty = matches!(held, Some(Held::Copied | Held::Moved)) && !has(b"content");
            if !has(b"about.json") || empty {
                self.dir.remove_all(&entry.name)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
