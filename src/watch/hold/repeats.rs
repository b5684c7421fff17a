//! Decisions that a program can bring about as often as it likes: said once, then counted for a second.
//!
//! Promise: none is left out; each is in some entry's count, at the latest when the watch ends.

use std::collections::BTreeMap;
use std::time::Duration;

use platform::{Access, Moment, Place};

use super::{Decision, Held};

/// Alike decisions within this time are one entry.
const TOGETHER: Duration = Duration::from_secs(1);
/// So many kinds are counted at one time; any other is said at once.
const MOST: usize = 1024;

/// What makes two decisions alike: path, purpose, outcome and program.
type Key = (Place, Access, Decision, Option<Vec<u8>>);

#[derive(Debug)]
struct Counted {
    since: Moment,
    /// The last of those that were not said, and how many there are.
    unsaid: Option<(Held, u32)>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Repeats(BTreeMap<Key, Counted>);

impl Repeats {
    /// Takes one; `true` if it is to be said now.
    pub(super) fn is_news(&mut self, held: &Held, decision: Decision, opens: u32, now: Moment) -> bool {
        let key = (held.place.clone(), held.access, decision, held.by.program.exe.clone());
        let is_full = self.0.len() >= MOST;
        match self.0.get_mut(&key) {
            Some(counted) => {
                let before = counted.unsaid.take().map_or(0, |(_, opens)| opens);
                counted.unsaid = Some((held.clone(), before.saturating_add(opens)));
                false
            }
            None if is_full => true,
            None => {
                self.0.insert(key, Counted { since: now, unsaid: None });
                true
            }
        }
    }

    /// Takes out what is to be said by now; of those that go on, counting goes on, too.
    pub(super) fn due(&mut self, now: Moment) -> Vec<(Held, Decision, u32)> {
        let mut due = Vec::new();
        self.0.retain(|(_, _, decision, _), counted| {
            if now < counted.since + TOGETHER {
                return true;
            }
            counted.since = now;
            counted.unsaid.take().is_some_and(|(held, opens)| {
                due.push((held, *decision, opens));
                true
            })
        });
        due
    }

    /// Takes out all.
    pub(super) fn rest(&mut self) -> Vec<(Held, Decision, u32)> {
        let all = std::mem::take(&mut self.0);
        all.into_iter()
            .filter_map(|((_, _, decision, _), counted)| counted.unsaid.map(|(held, opens)| (held, decision, opens)))
            .collect()
    }

    /// When something is to be said.
    pub(super) fn wake_at(&self) -> Option<Moment> {
        self.0.values().filter(|counted| counted.unsaid.is_some()).map(|counted| counted.since + TOGETHER).min()
    }
}
