//! Rejected things, kept: `quarantine/<id>/about.json` and, beside it, `content`.
//!
//! Promise: when [`Quarantine::keep_copy`] gives a fingerprint, bytes of that digest are durable here; when
//! [`Quarantine::take`] returns `Ok`, the name is free and what had it is here, or lies aside in its own directory where
//! the description says. Nothing is ever opened but regular files, and nothing is followed.
//! Limit: a file over the size cap or one we may not read, and every directory, is moved whole, so whoever has such a
//! file open can still write to it. What is on another file system and cannot be copied stays aside in its directory.
//! Source: rename(2) (`EXDEV`; moving a directory needs write permission on it), fsync(2).

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU32, Ordering};

use platform::dir::stat_of;
use platform::stat::FileType;
use platform::{Dir, FileId, FsError, Stat, attributes, copy, durable, random};

use super::about::{About, Held, Rejection};
use super::objects::open_or_make;
use crate::digest::Digest;

/// What a thing that stays in its directory is called there, before its id.
pub const ASIDE: &str = ".keep-rejected-";

/// A description is one short line; paths are the longest part of it.
const MAX_ABOUT: u64 = 1 << 20;

/// So many things can be rejected within one millisecond.
const MAX_PER_MOMENT: u32 = 100_000;

/// Name of one rejected thing: the wall time in digits and a number; names sort by time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuarantineId(String);

impl QuarantineId {
    /// Takes a name as [`Quarantine::reserve`] makes them.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'T' | b'Z' | b'-');
        (text.len() >= 6 && text.len() <= 40 && text.bytes().all(fits)).then(|| Self(text.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for QuarantineId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Why something could not be kept, found or put back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QuarantineError {
    /// A name could not be reached or changed.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// Bytes could not be read or written.
    #[error("cannot {operation} rejected content")]
    Bytes {
        /// What was tried.
        operation: &'static str,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// No name is left for this moment.
    #[error("too many things were rejected at {at}")]
    Crowded {
        /// The moment.
        at: String,
    },
    /// There is no such thing in the quarantine, or no whole description of it.
    #[error("nothing in quarantine is named {id}")]
    Missing {
        /// The name asked for.
        id: QuarantineId,
    },
    /// It has no content that could be opened or put back: only described, aside, or never moved.
    #[error("{id} has no content in quarantine")]
    NoContent {
        /// The name asked for.
        id: QuarantineId,
    },
    /// The content is not what was put there.
    #[error("the content of {id} is damaged")]
    Corrupt {
        /// The name asked for.
        id: QuarantineId,
    },
}

impl QuarantineError {
    /// The system's error number, if one is behind this.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Fs(error) => error.errno(),
            Self::Bytes { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }
}

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
}

impl Quarantine {
    /// Opens `quarantine` in the state folder, and makes it if there is none. Files of more than `max_copied` bytes are
    /// moved instead of copied.
    pub fn open(state: &Dir, max_copied: u64) -> Result<Self, QuarantineError> {
        Ok(Self { dir: open_or_make(state, b"quarantine")?, max_copied, next: AtomicU32::new(0) })
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

    /// Copies the regular file or symlink `name` of `dir`, which stays where it is. `None` if it is something else, over
    /// the cap, or gone: then nothing was kept.
    pub fn keep_copy(
        &self,
        id: &QuarantineId,
        why: &Rejection,
        dir: &Dir,
        name: &[u8],
    ) -> Result<Option<Fingerprint>, QuarantineError> {
        let Some(stat) = dir.stat(name)? else { return Ok(None) };
        let entry = self.entry(id)?;
        let copied = match stat.file_type {
            FileType::Regular if stat.size <= self.max_copied => self.copy_file(&entry, &dir.open_read(name)?),
            FileType::Symlink => self.copy_text(&entry, &dir.read_link(name)?, stat),
            _ => Ok(None),
        };
        match copied {
            Ok(Some((stat, digest, size))) => {
                let about = about(id, why, &stat, size, Some(digest), Held::Copied);
                self.describe(&entry, &about)?;
                Ok(Some(Fingerprint { id: stat.id, digest }))
            }
            Ok(None) => Ok(None),
            Err(error) => {
                // Half a copy must not pass for the whole.
                let _ = entry.remove_all(b"content");
                Err(error)
            }
        }
    }

    fn copy_file(&self, entry: &Dir, from: &File) -> Result<Option<(Stat, Digest, u64)>, QuarantineError> {
        entry.remove_all(b"content")?;
        let to = entry.create_new(b"content", 0o600)?;
        copy::copy(from, &to, self.max_copied.saturating_add(1)).map_err(bytes("copy"))?;
        let mut copied = &to;
        copied.rewind().map_err(bytes("read"))?;
        let (digest, size) = Digest::of_reader(&mut copied, self.max_copied).map_err(bytes("read"))?;
        if size > self.max_copied {
            entry.unlink(b"content")?;
            return Ok(None);
        }
        attributes::sync(&to)?;
        Ok(Some((stat_of(from.as_fd())?, digest, size)))
    }

    fn copy_text(&self, entry: &Dir, text: &[u8], stat: Stat) -> Result<Option<(Stat, Digest, u64)>, QuarantineError> {
        entry.remove_all(b"content")?;
        let to = entry.create_new(b"content", 0o600)?;
        durable::write_all(&to, text).map_err(bytes("write"))?;
        attributes::sync(&to)?;
        Ok(Some((stat, Digest::of(text), text.len() as u64)))
    }

    /// Takes whatever `name` of `dir` is out of there: copies it and removes it, or moves it. Nothing may be kept under
    /// `id` yet.
    pub fn take(
        &self,
        id: &QuarantineId,
        why: &Rejection,
        dir: &Dir,
        name: &[u8],
    ) -> Result<Option<Held>, QuarantineError> {
        let Some(stat) = dir.stat(name)? else { return Ok(None) };
        // An attempt that failed, for want of space or of permission to read, leaves the other ways.
        if let Ok(Some(copied)) = self.keep_copy(id, why, dir, name)
            && self.is_still(copied, dir, name)
            && dir.unlink(name).is_ok()
        {
            dir.sync()?;
            return Ok(Some(Held::Copied));
        }
        match self.move_in(id, why, dir, name, &stat) {
            Ok(held) => Ok(Some(held)),
            Err(_) => self.set_aside(id, why, dir, name, &stat).map(Some),
        }
    }

    /// Whether `name` is still the object that was copied, with the content that was copied.
    pub fn is_still(&self, copied: Fingerprint, dir: &Dir, name: &[u8]) -> bool {
        let now = match dir.stat(name) {
            Ok(Some(stat)) if stat.id == copied.id => stat,
            _ => return false,
        };
        let digest = match now.file_type {
            FileType::Symlink => dir.read_link(name).ok().map(|text| Digest::of(&text)),
            FileType::Regular => dir.open_read(name).ok().and_then(|mut file| {
                let (digest, size) = Digest::of_reader(&mut file, self.max_copied).ok()?;
                (size <= self.max_copied).then_some(digest)
            }),
            _ => None,
        };
        digest == Some(copied.digest)
    }

    fn move_in(
        &self,
        id: &QuarantineId,
        why: &Rejection,
        dir: &Dir,
        name: &[u8],
        stat: &Stat,
    ) -> Result<Held, QuarantineError> {
        let entry = self.entry(id)?;
        entry.remove_all(b"content")?;
        // The description first: what is found here without one could not be told from rubbish.
        self.describe(&entry, &about(id, why, stat, stat.size, None, Held::Moved))?;
        match dir.rename_new(name, &entry, b"content") {
            Ok(()) => {
                entry.sync()?;
                dir.sync()?;
                Ok(Held::Moved)
            }
            Err(_) if !matches!(stat.file_type, FileType::Regular | FileType::Symlink | FileType::Directory) => {
                // On another file system. It has no content; its description is all there is to keep.
                self.describe(&entry, &about(id, why, stat, 0, None, Held::Described))?;
                dir.unlink(name)?;
                dir.sync()?;
                Ok(Held::Described)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The last way, which needs neither space nor another file system.
    fn set_aside(
        &self,
        id: &QuarantineId,
        why: &Rejection,
        dir: &Dir,
        name: &[u8],
        stat: &Stat,
    ) -> Result<Held, QuarantineError> {
        let aside = format!("{ASIDE}{id}").into_bytes();
        dir.rename_new(name, dir, &aside)?;
        dir.sync()?;
        let held = Held::Aside { name: aside };
        // On a full disk the name alone has to tell.
        if let Ok(entry) = self.entry(id) {
            let _ = self.describe(&entry, &about(id, why, stat, stat.size, None, held.clone()));
        }
        Ok(held)
    }

    fn entry(&self, id: &QuarantineId) -> Result<Dir, QuarantineError> {
        Ok(open_or_make(&self.dir, id.as_str().as_bytes())?)
    }

    /// Writes the description and makes all that is there durable.
    fn describe(&self, entry: &Dir, about: &About) -> Result<(), QuarantineError> {
        let fresh = b"about.new";
        entry.remove_all(fresh)?;
        let file = entry.create_new(fresh, 0o600)?;
        durable::write_all(&file, about.to_line().as_bytes()).map_err(bytes("describe"))?;
        attributes::sync(&file)?;
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

    /// Puts the thing back as `name` in `dir`, with its permission bits but without set-id ones, and as ours. A copy stays
    /// here, too; what was moved here leaves.
    pub fn put_back(
        &self,
        id: &QuarantineId,
        dir: &Dir,
        name: &[u8],
        if_taken: IfTaken,
    ) -> Result<(), QuarantineError> {
        let about = self.about(id)?;
        if about.held == Held::Moved {
            let entry = self.dir.open_dir(id.as_str().as_bytes())?;
            if entry.stat(b"content")?.is_none() {
                return Err(QuarantineError::NoContent { id: id.clone() });
            }
            self.place(&entry, b"content", dir, name, if_taken)?;
            dir.sync()?;
            return Ok(entry.sync()?);
        }
        let content = self.content(id)?;
        let temporary = format!(".keep-{}", random::hex12().map_err(bytes("name"))?).into_bytes();
        let placed = self.lay_beside(&about, &content, dir, &temporary).and_then(|()| {
            self.place(dir, &temporary, dir, name, if_taken)?;
            Ok(dir.sync()?)
        });
        if placed.is_err() {
            let _ = dir.unlink(&temporary);
        }
        placed
    }

    fn lay_beside(&self, about: &About, content: &File, dir: &Dir, temporary: &[u8]) -> Result<(), QuarantineError> {
        if about.file_type == "symlink" {
            let mut text = Vec::new();
            content.take(about.size).read_to_end(&mut text).map_err(bytes("read"))?;
            return Ok(dir.symlink(&text, temporary)?);
        }
        let file = dir.create_new(temporary, 0o600)?;
        copy::copy(content, &file, about.size).map_err(bytes("copy"))?;
        attributes::chmod(&file, about.mode & 0o777)?;
        Ok(attributes::sync(&file)?)
    }

    fn place(&self, from: &Dir, name: &[u8], dir: &Dir, to: &[u8], if_taken: IfTaken) -> Result<(), QuarantineError> {
        match if_taken {
            IfTaken::Refuse => from.rename_new(name, dir, to)?,
            IfTaken::Replace => from.rename(name, dir, to)?,
        }
        Ok(())
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

fn about(id: &QuarantineId, why: &Rejection, stat: &Stat, size: u64, sha256: Option<Digest>, held: Held) -> About {
    let file_type = match stat.file_type {
        FileType::Regular => "regular",
        FileType::Directory => "directory",
        FileType::Symlink => "symlink",
        FileType::Fifo => "fifo",
        FileType::Socket => "socket",
        FileType::CharDevice | FileType::BlockDevice => "device",
    };
    About {
        id: id.to_string(),
        rejection: why.clone(),
        file_type: file_type.to_owned(),
        mode: stat.mode,
        uid: stat.uid,
        gid: stat.gid,
        size,
        sha256,
        held,
    }
}

#[cfg(test)]
mod tests;
