//! What the last run knew at its end, if it ended properly, and what differs from it at the start of this one.
//!
//! Promise: pure. What the last run did not cover (another option, another rule file) is told apart from what was changed
//! while nobody watched. Limit: what git's own files say of hooks is taken as it is now for both runs.

use std::collections::BTreeMap;

use platform::Place;

use crate::baseline::{Baseline, Snapshot};
use crate::journal::Stamps;
use crate::roots::Roots;
use crate::rules::set::RuleSet;

use super::expected::is_below_any;

/// What the last run covered.
#[derive(Debug, Default)]
pub enum Covered {
    /// The same as this one: the same options and the same rule file.
    #[default]
    Same,
    /// What these rules cover, in these roots.
    By(Box<RuleSet>, Roots),
    /// That is not known any more.
    Unknown,
}

/// What the last run knew.
#[derive(Debug, Default)]
pub struct Previous {
    /// The accepted states.
    pub snapshots: BTreeMap<Place, Snapshot>,
    /// What it could not read, and so did not guard.
    pub unguarded: BTreeMap<Place, Option<Stamps>>,
    /// What it covered.
    pub covered: Covered,
}

/// What differs, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Between {
    /// Other than it was.
    pub changed: Vec<Place>,
    /// There now, and nothing the last run had to know.
    pub newly_covered: Vec<Place>,
}

impl Previous {
    /// Compares with what was found now, of which `is_missing` says of a path that is no row whether it is gone.
    pub fn compare(&self, baseline: &Baseline, roots: &Roots, is_missing: impl Fn(&Place) -> bool) -> Between {
        let mut between = Between::default();
        if self.snapshots.is_empty() {
            return between;
        }
        for (place, row) in baseline.rows() {
            match self.snapshots.get(place) {
                Some(previous) if previous.compare(&row.snapshot).is_none() => {}
                None if !self.was_covered(place, roots) => between.newly_covered.push(place.clone()),
                _ => between.changed.push(place.clone()),
            }
        }
        let gone = self.snapshots.iter().filter(|(place, snapshot)| !snapshot.is_absent() && is_missing(place));
        between.changed.extend(gone.map(|(place, _)| place.clone()));
        between.changed.sort();
        between
    }

    /// Whether the last run would have known of the path, had it been there. Where that is not known, it would.
    fn was_covered(&self, place: &Place, roots: &Roots) -> bool {
        let by_rule = match &self.covered {
            Covered::Same | Covered::Unknown => true,
            Covered::By(rules, earlier) => {
                earlier.find(&roots.stored(place)).is_some_and(|place| rules.classify(&place).is_some())
            }
        };
        by_rule && !is_below_any(&self.unguarded, place)
    }
}
