//! Places that another watch has locked: when one that was released is ours to lock.
//!
//! Promise: pure. A place that the other watch unlocks for a minute is left alone for that minute. Limit: it goes by looks
//! that are [`BETWEEN`] apart, so that up to two minutes after the other watch has ended nothing is locked.

use std::collections::BTreeMap;
use std::time::Duration;

use platform::{Moment, Place};

use super::minutes::MINUTE;

/// Time between two looks.
const BETWEEN: Duration = Duration::from_secs(30);

/// The places, and since when each is known to be free.
#[derive(Debug, Default)]
pub struct Waiting {
    free_since: BTreeMap<Place, Option<Moment>>,
    next: Option<Moment>,
}

impl Waiting {
    /// Another watch has locked this.
    pub fn add(&mut self, place: Place, now: Moment) {
        self.free_since.insert(place, None);
        self.next.get_or_insert(now + BETWEEN);
    }

    /// Takes the places that have been free for longer than a minute, if it is time for a look; `is_locked` looks.
    pub fn take_due(&mut self, now: Moment, is_locked: impl Fn(&Place) -> bool) -> Vec<Place> {
        if self.next.is_none_or(|next| now < next) {
            return Vec::new();
        }
        for (place, since) in &mut self.free_since {
            if is_locked(place) {
                *since = None;
            } else {
                since.get_or_insert(now);
            }
        }
        let is_due = |since: &Option<Moment>| since.is_some_and(|since| now.since(since) > MINUTE);
        let due = self.free_since.extract_if(.., |_, since| is_due(since)).map(|(place, _)| place).collect();
        self.next = (!self.free_since.is_empty()).then_some(now + BETWEEN);
        due
    }
}

#[cfg(test)]
mod tests {
    use platform::RelPath;

    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn what_is_released_for_a_minute_is_left_alone_and_what_is_released_for_good_is_taken() {
        let place = Place::tree(RelPath::parse(b".env").expect("a path"));
        let mut waiting = Waiting::default();
        waiting.add(place.clone(), at(0));
        let mut take = |seconds, is_locked| waiting.take_due(at(seconds), |_| is_locked);
        assert_eq!(take(29, false), [], "it is not looked at yet");
        assert_eq!(take(30, true), []);
        assert_eq!(take(60, false), []);
        assert_eq!(take(120, false), [], "a minute is not over before it is");
        assert_eq!(take(150, true), [], "it was locked again");
        assert_eq!(take(180, false), []);
        assert_eq!(take(241, false), [place]);
        assert_eq!(take(500, false), [], "it waits no more");
    }
}
