//! The ways into quarantine: a copy, a move, and as the last one a name beside.

use std::fs::File;
use std::io::Seek as _;
use std::os::fd::AsFd as _;

use platform::dir::stat_of;
use platform::stat::FileType;
use platform::{Dir, Stat, attributes, copy, file};

use super::super::about::{About, Held, Rejection};
use super::{ASIDE, Fingerprint, Quarantine, QuarantineError, QuarantineId, bytes};
use crate::digest::Digest;

impl Quarantine {
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
        let to = copy::copy_new(from, self.max_copied.saturating_add(1), entry, b"content")?;
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
        file::write_all(&to, b"content", text)?;
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
        // Only what was looked at before is vouched for; another object that came in between is nobody's.
        if let Ok(Some(left)) = dir.stat(&aside)
            && left.id == stat.id
        {
            self.leave(&aside, left);
        }
        dir.sync()?;
        let held = Held::Aside { name: aside };
        // On a full disk the name alone has to tell.
        if let Ok(entry) = self.entry(id) {
            let _ = self.describe(&entry, &about(id, why, stat, stat.size, None, held.clone()));
        }
        Ok(held)
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
