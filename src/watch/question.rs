//! The question on screen: one change, or those of one burst, with the time that is left.

use std::collections::BTreeMap;

use platform::{Moment, Place};

use crate::baseline::Change;
use crate::rules::{Class, Rule};

use super::machine::{By, Pending};

/// Place of a question in the queue: its number, and the number of the part it was taken apart into.
pub(super) type Order = (u64, u64);

/// Changes that are asked about together.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub(super) id: u64,
    pub(super) rule: Rule,
    /// Which process made the first of them, if that is known.
    pub(super) by: Option<By>,
    pub(super) first: Moment,
    pub(super) last: Moment,
    /// Whether more of the same burst may join.
    pub(super) open: bool,
    /// Goes up with every difference a person could see.
    pub(super) version: u64,
    /// The paths by seat, in the order in which they joined.
    pub(super) members: BTreeMap<u64, Place>,
}

impl Group {
    pub(super) fn new(id: u64, rule: Rule, at: Moment) -> Self {
        Self { id, rule, by: None, first: at, last: at, open: true, version: 0, members: BTreeMap::new() }
    }

    /// Gives the path a seat, and returns that and the version at which it joined.
    pub(super) fn admit(&mut self, place: Place) -> (u64, u64) {
        self.version += 1;
        let seat = self.members.last_key_value().map_or(0, |(seat, _)| seat + 1);
        self.members.insert(seat, place);
        (seat, self.version)
    }
}

/// One change in a question.
#[derive(Debug, Clone, Copy)]
pub struct Member<'m> {
    /// The path.
    pub place: &'m Place,
    /// Its rule and mode.
    pub class: Class,
    /// How it differs from the baseline.
    pub change: &'m Change,
}

/// What is asked at one time.
#[derive(Debug, Clone)]
pub struct Question<'m> {
    /// Stays the same while members join, leave or change.
    pub id: u64,
    /// Goes up whenever what is shown would differ; the countdown does not count.
    pub version: u64,
    /// The changes, in the order in which they were seen. Never empty.
    pub members: Vec<Member<'m>>,
    /// When the first of them is restored without an answer.
    pub deadline: Moment,
    /// How many other questions wait.
    pub waiting: usize,
}

impl<'m> Question<'m> {
    pub(super) fn new(group: &'m Group, pending: &'m BTreeMap<Place, Pending>, waiting: usize) -> Self {
        let members: Vec<_> = group
            .members
            .values()
            .map(|place| {
                let Pending { seen, deadline, .. } = &pending[place];
                (Member { place, class: seen.class, change: &seen.change }, *deadline)
            })
            .collect();
        let deadline = members.iter().map(|(_, deadline)| *deadline).min().expect("a group has a member");
        let members = members.into_iter().map(|(member, _)| member).collect();
        Self { id: group.id, version: group.version, members, deadline, waiting }
    }
}
