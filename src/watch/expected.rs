//! What an interrupted run had accepted, for the walk that follows its recovery.
//!
//! Promise: a path that this run covers and that one did, too, starts from what was accepted there, not from what the walk
//! finds; so nothing that changes between recovery and walk becomes the baseline. Limit: what only this run covers is
//! taken as it is found.

use std::collections::BTreeMap;

use platform::{Place, RootId};

use crate::baseline::{Row, Snapshot};
use crate::journal::Stamps;
use crate::roots::Roots;
use crate::rules::Mode;
use crate::rules::set::RuleSet;

use super::recovery::Recovered;

/// The accepted states that the walk has not come to yet. Empty unless there was a recovery.
#[derive(Debug, Default)]
pub struct Expected {
    rows: BTreeMap<Place, Snapshot>,
    /// Paths that the earlier rules restore and that have no row were accepted as absent.
    rules: Option<RuleSet>,
    /// What the earlier run could not read and did not guard, and what it knew of it: what is there may have been there all
    /// the time.
    unguarded: BTreeMap<Place, Option<Stamps>>,
    /// Roots beyond the tree are the same ones in both runs.
    same_roots: bool,
}

impl Expected {
    /// After this recovery, which went by these `rules` and roots; `rows` is what was accepted, in the roots of this run.
    pub fn after(
        recovered: &Recovered,
        (rules, earlier): (RuleSet, &Roots),
        rows: BTreeMap<Place, Row>,
        unguarded: BTreeMap<Place, Option<Stamps>>,
        roots: &Roots,
    ) -> Self {
        let restored = rows.into_iter().filter(|(_, row)| row.class.mode == Mode::Restore);
        let mut rows: BTreeMap<_, _> = restored.map(|(place, row)| (place, row.snapshot)).collect();
        // What could not be put back may be something that was accepted as absent.
        for (place, accepted) in &recovered.unrestored {
            if let Some(place) = roots.find(&earlier.stored(place)) {
                rows.insert(place, accepted.clone());
            }
        }
        let paths = |roots: &Roots| roots.all().iter().map(|root| root.path().to_path_buf()).collect::<Vec<_>>();
        let same_roots = paths(earlier) == paths(roots);
        Self { rows, rules: Some(rules), unguarded, same_roots }
    }

    /// What was accepted at a path that the walk has found.
    pub fn take(&mut self, place: &Place) -> Option<Snapshot> {
        let row = self.rows.remove(place);
        let comparable = self.same_roots || place.root == RootId::default();
        let rules = self.rules.as_ref().filter(|_| comparable);
        let is_covered = || rules.and_then(|rules| rules.classify(place)).is_some_and(|was| was.mode == Mode::Restore);
        let was_guarded = !is_below_any(&self.unguarded, place);
        row.or_else(|| (was_guarded && is_covered()).then(Snapshot::absent))
    }

    /// What the earlier run knew of a file that it could not read.
    pub fn unread(&self, place: &Place) -> Option<Stamps> {
        self.unguarded.get(place).copied().flatten()
    }

    /// What was accepted at the paths that the walk has not found.
    pub fn take_rest(&mut self) -> BTreeMap<Place, Snapshot> {
        std::mem::take(&mut self.rows)
    }
}

/// Whether the path is one of these or lies below one.
pub(super) fn is_below_any(dirs: &BTreeMap<Place, Option<Stamps>>, place: &Place) -> bool {
    dirs.keys().any(|dir| dir.root == place.root && place.path.is_below(&dir.path))
}
