//! Where the rows of one batch say to look: a pure function of rows and of what the tree was.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{Interest, LostCause, Place, RootId};
use crate::relpath::RelPath;
use crate::stat::{FileType, Stat};

use super::index::{Index, parent_of};
use super::names::Names;
use super::row::{Flags, Row};
use super::spelling::{Spelling, Where};
use super::state::State;

/// Spellings of one path that are followed at most. More of them are a loss: then everything is looked at.
const SPELLINGS: usize = 64;

/// Something took a name, gave it up, or became something else.
const MOVED: Flags = Flags::CREATED.with(Flags::REMOVED).with(Flags::RENAMED).with(Flags::CLONED);

/// Only something that is no directory had the name.
const NO_DIRECTORY: Flags = Flags::IS_FILE.with(Flags::IS_SYMLINK);

/// Rows are missing, and which is not known.
const DROPPED: Flags = Flags::MUST_SCAN_SUB_DIRS.with(Flags::USER_DROPPED).with(Flags::KERNEL_DROPPED);

/// What the rows are compared with.
pub(super) struct Known<'k> {
    pub(super) root: RootId,
    pub(super) spelling: &'k Spelling,
    pub(super) state: &'k State,
    pub(super) covered: Covered<'k>,
    pub(super) volumes: &'k BTreeMap<u64, Names>,
    /// What the volume has at a place now: only it can tell whether two names are the same.
    pub(super) at: &'k dyn Fn(&Place) -> Option<Stat>,
}

/// Which names are covered.
#[derive(Clone, Copy)]
pub(super) struct Covered<'k> {
    pub(super) interest: &'k dyn Interest,
    /// Covered paths from an earlier run, whether they exist or not.
    pub(super) known: &'k BTreeSet<Place>,
    /// The same, by name.
    pub(super) index: &'k Index,
}

impl Covered<'_> {
    /// Whether this very name is covered.
    pub(super) fn is(&self, dir: &Place, name: &[u8]) -> bool {
        self.interest.covers(dir.root, &dir.path, name) || self.known.contains(&dir.join(name))
    }

    /// Covered names that the volume may take for `name`: its lower case, and those known from before.
    pub(super) fn alike(&self, dir: &Place, name: &[u8], names: Names) -> Vec<Place> {
        let mut found = self.index.alike(dir, name, names);
        let lower = name.to_ascii_lowercase();
        if names.folds_case() && lower != name && self.interest.covers(dir.root, &dir.path, &lower) {
            found.push(dir.join(&lower));
        }
        found
    }
}

/// Where to look.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Looks {
    /// Covered paths to hint.
    pub(super) touched: BTreeSet<Place>,
    /// Directories to list; with whether all below is to be looked at.
    pub(super) directories: BTreeMap<Place, bool>,
    /// Directories that may have been away, be it that the same one is back: each covered path below is to be hinted.
    pub(super) away: BTreeSet<Place>,
    /// What was lost.
    pub(super) lost: BTreeSet<Loss>,
    /// The root's path no longer leads to it, perhaps.
    pub(super) root_changed: bool,
}

/// Why not everything is known, in an order to say it in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Loss {
    Overflow,
    Unmounted,
    Mounted,
    Gap,
}

impl From<Loss> for LostCause {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::Overflow => Self::Overflow,
            Loss::Unmounted => Self::Unmounted,
            Loss::Mounted => Self::Mounted,
            Loss::Gap => Self::Gap,
        }
    }
}

impl Known<'_> {
    /// What is known of the volume a directory lies on.
    fn names(&self, dir: &Place) -> Names {
        let mut at = Some(dir.clone());
        while let Some(place) = at {
            if let Some(id) = self.state.directory(&place) {
                return self.volumes.get(&id.dev).copied().unwrap_or_default();
            }
            at = parent_of(&place);
        }
        Names::default()
    }

    /// The places a path below the root may mean: itself, or the known spellings of the same. If nothing is there now it may
    /// have been each of them. `None` if there are too many.
    fn places(&self, below: &[u8]) -> Option<Vec<Place>> {
        let root = Place { root: self.root, path: RelPath::root() };
        let mut found = vec![root];
        for name in below.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
            let mut next = Vec::new();
            for dir in &found {
                let place = dir.join(name);
                if self.is_known(&place) {
                    next.push(place);
                } else {
                    next.extend(self.respelled(place, self.state.alike(dir, name, self.names(dir))));
                }
            }
            if next.len() > SPELLINGS {
                return None;
            }
            found = next;
        }
        Some(found)
    }

    fn covers(&self, place: &Place) -> bool {
        parent_of(place).is_some_and(|dir| self.covered.is(&dir, place.path.name().unwrap_or_default()))
    }

    fn is_known(&self, place: &Place) -> bool {
        self.state.entry(place).is_some() || self.state.directory(place).is_some() || self.state.is_unreadable(place)
    }

    /// Which of a place and of others with alike names a row about the place is about.
    fn respelled(&self, place: Place, mut alike: Vec<Place>) -> Vec<Place> {
        let there = if alike.is_empty() { None } else { (self.at)(&place) };
        if let Some(stat) = there {
            alike.retain(|other| (self.at)(other).is_some_and(|found| found.id == stat.id));
        }
        // One object under two names may have two names: a hard link.
        if alike.is_empty() || there.is_none_or(|stat| !is_one_name(&stat)) {
            alike.insert(0, place);
        }
        alike
    }
}

/// Whether two names that lead to the object are one name in two spellings.
pub(super) fn is_one_name(stat: &Stat) -> bool {
    stat.nlink == 1 || stat.file_type == FileType::Directory
}

impl Looks {
    /// What a batch of rows of one root's stream comes to.
    pub(super) fn of(rows: &[Row], known: &Known<'_>) -> Self {
        let mut looks = Self::default();
        for row in rows {
            looks.row(row, known);
        }
        looks
    }

    fn row(&mut self, row: &Row, known: &Known<'_>) {
        let flags = row.flags;
        if flags == Flags::HISTORY_DONE {
            return;
        }
        for (flag, loss) in [
            (DROPPED, Loss::Overflow),
            (Flags::UNMOUNT, Loss::Unmounted),
            (Flags::MOUNT, Loss::Mounted),
            (Flags::IDS_WRAPPED.with(Flags::ROOT_CHANGED), Loss::Gap),
        ] {
            if flags.any(flag) {
                self.lost.insert(loss);
            }
        }
        self.root_changed |= flags.any(Flags::ROOT_CHANGED);
        if let Some(inode) = row.file {
            self.touched.extend(known.state.with_inode(inode).cloned());
        }
        let below = match row.path.as_deref().map(|path| known.spelling.find(path)) {
            Some(Where::Below(below)) => below,
            // Of what lies above, only the root concerns us, and all of it.
            Some(Where::Above) => Vec::new(),
            Some(Where::Elsewhere) | None => {
                self.lost.insert(Loss::Gap);
                return;
            }
        };
        let Some(places) = known.places(&below) else {
            self.lost.insert(Loss::Gap);
            return;
        };
        for place in &places {
            self.place(place, flags, known);
        }
    }

    fn place(&mut self, place: &Place, flags: Flags, known: &Known<'_>) {
        if let (Some(parent), Some(name)) = (parent_of(place), place.path.name()) {
            let alike = known.covered.alike(&parent, name, known.names(&parent));
            let spelled = known.respelled(place.clone(), alike).into_iter();
            self.touched.extend(spelled.filter(|found| known.covers(found) || known.state.entry(found).is_some()));
            self.unknown_above(&parent, known);
        }
        let is_known = known.state.directory(place).is_some() || known.state.is_unreadable(place);
        let may_be = !flags.any(NO_DIRECTORY) || flags.any(Flags::IS_DIR);
        let may_be = may_be && known.covered.interest.enters(place.root, &place.path);
        if !is_known && !may_be {
            return;
        }
        // Without a word on what happened anything may have; a changed attribute alone moves nothing.
        let whole = flags.any(MOVED.with(DROPPED).with(Flags::MOUNT).with(Flags::UNMOUNT).with(Flags::ROOT_CHANGED))
            || !is_known
            || known.state.is_unreadable(place);
        *self.directories.entry(place.clone()).or_default() |= whole;
        if is_known && flags.any(MOVED.with(Flags::ROOT_CHANGED)) {
            self.away.insert(place.clone());
        }
    }

    /// A row from a directory nobody has seen yet: the topmost of those above it is looked at.
    fn unknown_above(&mut self, parent: &Place, known: &Known<'_>) {
        let above = parent.path.ancestors().chain([parent.path.clone()]);
        let unknown = above
            .map(|path| Place { root: parent.root, path })
            .take_while(|place| known.covered.interest.enters(place.root, &place.path))
            .find(|place| known.state.directory(place).is_none());
        if let Some(place) = unknown {
            self.directories.insert(place, true);
        }
    }
}
