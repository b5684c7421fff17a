//! Listing one directory of a run's roots: what the backends that look, rather than mark, have in common.
//!
//! Promise: a place is reached from its root's handle without following a link; directories are told from the rest, and of
//! the rest only what is asked for costs a call. Limit: a listing is what was there while it was read, not a moment's state.

use std::sync::Arc;

use crate::event::Place;
use crate::root::{Root, RootError};
use crate::stat::{FileType, Stat};

/// What is in a directory.
#[derive(Debug, Clone)]
pub struct Listing {
    /// The directory itself.
    pub own: Stat,
    /// Names of the directories in it.
    pub directories: Vec<Vec<u8>>,
    /// Everything else that was asked for.
    pub entries: Vec<(Vec<u8>, Stat)>,
}

/// Why a place could not be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unlisted {
    /// It may not, or cannot, be read.
    Unreadable,
    /// There is no directory there, or it belongs to a file system that is none of ours.
    Absent,
}

/// Directories by place.
pub trait Tree: Send {
    /// Lists the directory at `place`. Entries that are not directories are looked at if `wanted` says so. A file system
    /// that was not known before is entered only if `admit` is set, and is known from then on.
    fn list(&self, place: &Place, admit: bool, wanted: &mut dyn FnMut(&[u8]) -> bool) -> Result<Listing, Unlisted>;

    /// What is at `place`, following nothing; `None` if nothing is, or if it cannot be told.
    fn stat(&self, place: &Place) -> Option<Stat>;
}

/// The roots of a run.
#[derive(Debug, Clone)]
pub struct Roots(pub Vec<Arc<Root>>);

impl Tree for Roots {
    fn list(&self, place: &Place, admit: bool, wanted: &mut dyn FnMut(&[u8]) -> bool) -> Result<Listing, Unlisted> {
        let root = self.0.get(usize::from(place.root.0)).ok_or(Unlisted::Absent)?;
        let dir = root.open_any_dir(&place.path).map_err(|error| match error {
            RootError::Fs(_) => Unlisted::Unreadable,
            _ => Unlisted::Absent,
        })?;
        let own = dir.own_stat().map_err(|_| Unlisted::Unreadable)?;
        let names = dir.reopen().and_then(|dir| dir.list()).map_err(|_| Unlisted::Unreadable)?;
        if !root.admits(own.mount) {
            if !admit {
                return Err(Unlisted::Absent);
            }
            root.admit_mount(own.mount);
        }
        let mut listing = Listing { own, directories: Vec::new(), entries: Vec::new() };
        for entry in names {
            let stat = || dir.stat(&entry.name).ok().flatten();
            if entry.file_type.or_else(|| stat().map(|stat| stat.file_type)) == Some(FileType::Directory) {
                listing.directories.push(entry.name);
            } else if wanted(&entry.name)
                && let Some(stat) = stat()
            {
                listing.entries.push((entry.name, stat));
            }
        }
        Ok(listing)
    }

    fn stat(&self, place: &Place) -> Option<Stat> {
        self.0.get(usize::from(place.root.0))?.stat(&place.path).ok().flatten()
    }
}
