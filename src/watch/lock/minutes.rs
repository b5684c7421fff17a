//! Which places are unlocked, and until when.
//!
//! Promise: pure. A place stays unlocked for [`MINUTE`], and longer only while the caller says that it is being decided
//! about; its folder stays unlocked with it, since saving makes a new file there.

use std::collections::BTreeMap;
use std::time::Duration;

use platform::{Moment, Place};

/// How long a place stays unlocked.
pub const MINUTE: Duration = Duration::from_secs(60);

/// The places that are unlocked.
#[derive(Debug, Default)]
pub struct Minutes {
    until: BTreeMap<Place, Moment>,
}

impl Minutes {
    /// The place is unlocked from now on.
    pub fn open(&mut self, place: Place, now: Moment) {
        self.until.insert(place, now + MINUTE);
    }

    /// Whether this file, or this folder, has to stay unlocked: for its own sake, or for that of what lies in it.
    pub fn spare(&self, place: &Place) -> bool {
        self.until.contains_key(place) || self.until.keys().any(|unlocked| is_in(unlocked, place))
    }

    /// The places whose time is over and about which nothing is being decided; they are to be locked again.
    pub fn take_due(&mut self, now: Moment, is_being_decided: impl Fn(&Place) -> bool) -> Vec<Place> {
        let is_due = |place: &Place, until: &Moment| *until <= now && !is_being_decided(place);
        self.until.extract_if(.., |place, until| is_due(place, until)).map(|(place, _)| place).collect()
    }

    /// When the next time is over. What is over already waits for a decision, and that comes by itself.
    pub fn wake_at(&self, now: Moment) -> Option<Moment> {
        self.until.values().filter(|until| **until > now).min().copied()
    }
}

/// Whether it is an entry of the folder.
fn is_in(place: &Place, folder: &Place) -> bool {
    place.root == folder.root && place.path.parent().is_some_and(|parent| parent == folder.path)
}

#[cfg(test)]
mod tests {
    use platform::RelPath;

    use super::*;

    fn place(path: &str) -> Place {
        Place::tree(RelPath::parse(path.as_bytes()).expect("a path"))
    }

    fn at(seconds: u64) -> Moment {
        Moment::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn several_places_are_unlocked_at_once_each_for_its_own_minute() {
        let mut minutes = Minutes::default();
        minutes.open(place(".env"), at(0));
        minutes.open(place("CLAUDE.md"), at(30));
        assert_eq!(minutes.wake_at(at(30)), Some(at(60)));
        assert_eq!(minutes.take_due(at(59), |_| false), []);
        assert_eq!(minutes.take_due(at(60), |_| false), [place(".env")]);
        assert!(!minutes.spare(&place(".env")) && minutes.spare(&place("CLAUDE.md")));
        assert_eq!(minutes.take_due(at(90), |_| false), [place("CLAUDE.md")]);
        assert_eq!(minutes.wake_at(at(90)), None);
    }

    #[test]
    fn what_is_being_decided_about_is_locked_once_it_is_decided() {
        let mut minutes = Minutes::default();
        minutes.open(place(".env"), at(0));
        assert_eq!(minutes.take_due(at(70), |_| true), []);
        assert_eq!(minutes.wake_at(at(70)), None, "the decision wakes by itself");
        assert!(minutes.spare(&place(".env")));
        assert_eq!(minutes.take_due(at(80), |_| false), [place(".env")]);
    }

    #[test]
    fn a_folder_stays_unlocked_for_what_lies_right_in_it_and_not_the_other_way_round() {
        let mut minutes = Minutes::default();
        minutes.open(place(".git/hooks/pre-commit"), at(0));
        assert!(minutes.spare(&place(".git/hooks")));
        assert!(!minutes.spare(&place(".git")) && !minutes.spare(&place(".git/hooks/post-merge")));
        minutes.open(place(".claude"), at(0));
        assert!(!minutes.spare(&place(".claude/settings.json")));
    }
}
