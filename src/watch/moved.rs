//! Folders that vanished with protected files in them: only those are put back, so it is said where the rest is.
//!
//! Limit: it is found if the folder lies beside its old place under another name, and a file of it is still in it; otherwise
//! it is only said that the rest was not put back.

use std::time::Duration;

use platform::{FileType, Moment, Place};

use super::lines;
use super::session::Session;

/// Folders in a folder that was made again within this time are of the same move.
const SAME_MOVE: Duration = Duration::from_secs(10);
/// Entries looked through for the folder.
const MOST_BESIDE: usize = 4096;

/// A folder above a path that is not there.
#[derive(Debug)]
pub(super) struct Missing {
    folder: Place,
    /// Where it is now, if it was found.
    now: Option<Place>,
}

/// The folder that was put back last, in part.
pub(super) type Remade = Option<(Place, Moment)>;

impl Session {
    /// Looks, before a path is put back, whether a folder above it has vanished with more in it than is protected.
    pub(super) fn missing_above(&self, place: &Place) -> Option<Missing> {
        let object = self.baseline.get(place)?.snapshot.id();
        let root = self.parts.roots.get(place.root);
        let folder = place.path.ancestors().find(|path| matches!(root.stat(path), Ok(None)))?;
        let folder = Place { root: place.root, path: folder };
        let now = self.now();
        let is_same_move = |(remade, at): &(Place, Moment)| {
            remade.root == folder.root && folder.path.is_below(&remade.path) && now.since(*at) < SAME_MOVE
        };
        if self.remade.as_ref().is_some_and(is_same_move) || self.parts.rules.covers_whole(&folder) {
            return None;
        }
        let below = place.path.below(&folder.path)?;
        let beside = folder.path.parent()?;
        let entries = root.open_dir(&beside).and_then(|dir| Ok(dir.list()?)).unwrap_or_default();
        let folders = entries.into_iter().filter(|entry| matches!(entry.file_type, None | Some(FileType::Directory)));
        let found = folders.take(MOST_BESIDE).map(|entry| beside.join(&entry.name)).find(|other| {
            let stat = root.stat(&other.join_path(&below)).ok().flatten();
            object.is_some() && stat.map(|stat| stat.id) == object
        });
        Some(Missing { now: found.map(|path| Place { root: place.root, path }), folder })
    }

    /// The path was put back, and with it the folder.
    pub(super) fn say_where_the_rest_is(&mut self, missing: Missing) {
        let shown = self.parts.roots.shown(&missing.folder);
        let now = missing.now.map(|place| self.parts.roots.shown(&place));
        self.say(&lines::put_back_in_part(&shown, now.as_deref()));
        self.remade = Some((missing.folder, self.now()));
    }
}
