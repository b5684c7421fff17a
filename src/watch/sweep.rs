//! The verifying sweep: which known paths to look at in one round, for changes that raise no event.
//!
//! Promise: every path is compared by its stamps in turn and read again in turn, so that a store through a mapping made
//! earlier is found although it changed no time; of a small set that is done with every path within two rounds. Limit: one
//! round does a bounded amount of work; a set of tens of thousands of paths takes several rounds, as `docs/limits.md` says.

use std::collections::BTreeMap;
use std::ops::Bound;

use platform::Place;

/// Paths compared by their stamps in one round.
pub const STATS_PER_ROUND: usize = 1024;
/// Paths read again in one round, whatever their stamps say; of a set of up to twice as many, half.
pub const READS_PER_ROUND: usize = 32;
/// A set of so many is read whole in every round.
const ALWAYS_READ: usize = 16;
/// Bytes read again in one round, unless a single file has more.
pub const BYTES_PER_ROUND: u64 = 256 * 1024;

/// Where the next round goes on.
#[derive(Debug, Default)]
pub struct Sweep {
    stats_from: Option<Place>,
    reads_from: Option<Place>,
}

/// What to do in one round.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Compare the stamps of these.
    pub stats: Vec<Place>,
    /// Compare the stamps of these, too, and read them, whatever the stamps say.
    pub reads: Vec<Place>,
}

impl Sweep {
    /// The next round over these paths and their sizes.
    pub fn round<T>(&mut self, rows: &BTreeMap<Place, T>, size: impl Fn(&T) -> Option<u64>) -> Round {
        let mut round = Round::default();
        let sizes = || rows.values().filter_map(&size);
        // Half of a small set a round is the whole of it in two, stamps and all: more calls would find nothing sooner.
        let is_small = rows.len() <= 2 * READS_PER_ROUND && sizes().sum::<u64>() <= BYTES_PER_ROUND;
        let most = if is_small { sizes().count().div_ceil(2).max(ALWAYS_READ) } else { READS_PER_ROUND };
        let mut bytes = 0;
        for (place, row) in after(rows, self.reads_from.as_ref()).take(rows.len()) {
            let Some(size) = size(row) else { continue };
            if round.reads.len() == most || (bytes > 0 && bytes + size > BYTES_PER_ROUND) {
                break;
            }
            bytes += size;
            round.reads.push(place.clone());
        }
        let from = self.stats_from.take();
        for (place, row) in after(rows, from.as_ref()).take(rows.len().min(STATS_PER_ROUND)) {
            self.stats_from = Some(place.clone());
            let is_read_soon = is_small && size(row).is_some();
            if !is_read_soon && !round.reads.contains(place) {
                round.stats.push(place.clone());
            }
        }
        self.reads_from = round.reads.last().cloned().or(self.reads_from.take());
        round
    }
}

/// The rows after `from`, around the end and on from the start.
fn after<'r, T>(rows: &'r BTreeMap<Place, T>, from: Option<&Place>) -> impl Iterator<Item = (&'r Place, &'r T)> {
    let start = from.map_or(Bound::Unbounded, |place| Bound::Excluded(place.clone()));
    rows.range((start, Bound::Unbounded)).chain(rows.iter())
}

#[cfg(test)]
mod tests {
    use super::*;
    use platform::RelPath;
    use std::collections::BTreeSet;

    fn rows(count: u32, size: u64) -> BTreeMap<Place, u64> {
        (0..count)
            .map(|n| (Place::tree(RelPath::parse(format!("{n}/.env").as_bytes()).expect("a path")), size))
            .collect()
    }

    #[test]
    fn a_small_set_is_read_whole_in_two_rounds_and_a_smaller_one_in_every_round() {
        for (count, rounds) in [(1, 1), (16, 1), (20, 2), (50, 2), (64, 2)] {
            let rows = rows(count, 100);
            let mut sweep = Sweep::default();
            for _ in 0..3 {
                let read: BTreeSet<_> =
                    (0..rounds).flat_map(|_| sweep.round(&rows, |size| Some(*size)).reads).collect();
                assert_eq!(read.len(), rows.len(), "{count} paths");
            }
        }
    }

    #[test]
    fn what_is_not_read_within_two_rounds_is_compared_in_every_round() {
        let rows = rows(40, BYTES_PER_ROUND / 10);
        let mut sweep = Sweep::default();
        for _ in 0..5 {
            let round = sweep.round(&rows, |size| Some(*size));
            let seen: BTreeSet<_> = round.stats.iter().chain(&round.reads).collect();
            assert_eq!(seen.len(), rows.len());
        }
    }

    #[test]
    fn a_large_set_is_passed_in_turn_and_nothing_is_left_out() {
        let rows = rows(3_000, 100);
        let mut sweep = Sweep::default();
        let (mut compared, mut read) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..3_000_usize.div_ceil(READS_PER_ROUND) {
            let round = sweep.round(&rows, |size| Some(*size));
            assert!(round.stats.len() <= STATS_PER_ROUND && round.reads.len() <= READS_PER_ROUND);
            compared.extend(round.stats.into_iter().chain(round.reads.iter().cloned()));
            read.extend(round.reads);
        }
        assert_eq!((compared.len(), read.len()), (3_000, 3_000));
    }

    #[test]
    fn one_huge_file_does_not_stop_the_turn() {
        let mut rows = rows(3, 10);
        *rows.values_mut().next().expect("a row") = 100 * BYTES_PER_ROUND;
        let mut sweep = Sweep::default();
        let read: BTreeSet<_> = (0..4).flat_map(|_| sweep.round(&rows, |size| Some(*size)).reads).collect();
        assert_eq!(read.len(), 3);
    }

    #[test]
    fn paths_without_content_are_only_compared() {
        let rows = rows(5, 10);
        let round = Sweep::default().round(&rows, |_| None);
        assert_eq!((round.stats.len(), round.reads.len()), (5, 0));
    }
}
