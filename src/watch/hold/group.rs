//! Opens that are asked about together: those of one program in one burst, for one purpose.

use std::collections::{BTreeMap, BTreeSet};

use platform::{Access, HeldId, Moment, Place, Writer};

use crate::rules::Class;

use super::Held;

/// Opens that are asked about together.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) id: u64,
    pub(super) access: Access,
    pub(super) first: Moment,
    pub(super) last: Moment,
    /// Whether more of the same burst may join.
    pub(super) open: bool,
    /// Goes up with every difference a person could see.
    pub(super) version: u64,
    /// The opens, in the order in which they came, each with the version at which it joined.
    members: BTreeMap<HeldId, (Held, u64)>,
    /// The paths for which a refusal has been counted.
    pub(super) counted: BTreeSet<Place>,
}

/// What a person sees of a group.
#[derive(PartialEq, Eq)]
struct Sight {
    places: Vec<Place>,
    /// The process that is named.
    pid: Option<u32>,
    /// Whether there are others.
    several: bool,
}

impl Group {
    pub(super) fn new(id: u64, access: Access, at: Moment) -> Self {
        let (members, counted) = (BTreeMap::new(), BTreeSet::new());
        Self { id, access, first: at, last: at, open: true, version: 0, members, counted }
    }

    /// Takes one in.
    pub(super) fn admit(&mut self, held: Held) {
        let is_seen = !self.members.values().any(|(other, _)| other.place == held.place)
            || (!self.is_several() && !self.members.values().any(|(other, _)| is_same_process(&other.by, &held.by)));
        self.version += u64::from(is_seen);
        self.last = self.last.max(held.at);
        self.members.insert(held.id, (held, self.version));
    }

    /// Takes these out, as far as they are in it.
    pub(super) fn release(&mut self, ids: &[HeldId]) -> Vec<Held> {
        let before = self.sight();
        let released: Vec<Held> = ids.iter().filter_map(|id| self.members.remove(id)).map(|(held, _)| held).collect();
        self.version += u64::from(self.sight() != before);
        released
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Those that were there at the version.
    pub(super) fn shown_at(&self, version: u64) -> Vec<HeldId> {
        self.members.iter().filter(|(_, (_, joined))| *joined <= version).map(|(id, _)| *id).collect()
    }

    /// All opens in it.
    pub(super) fn members(&self) -> impl Iterator<Item = &Held> {
        self.members.values().map(|(held, _)| held)
    }

    /// Whether the open belongs here by who it is for what.
    pub(super) fn is_of(&self, held: &Held) -> bool {
        self.access == held.access && self.members().next().is_some_and(|one| is_same_program(&one.by, &held.by))
    }

    fn is_several(&self) -> bool {
        let mut members = self.members();
        members.next().is_some_and(|one| members.any(|other| !is_same_process(&one.by, &other.by)))
    }

    fn sight(&self) -> Sight {
        let pid = self.members().next().map(|one| one.by.program.pid);
        Sight {
            places: self.items().into_iter().map(|item| item.place.clone()).collect(),
            pid,
            several: self.is_several(),
        }
    }

    /// Its paths, each once.
    fn items(&self) -> Vec<Item<'_>> {
        let mut known = BTreeSet::new();
        let firsts = self.members().filter(|held| known.insert(&held.place));
        firsts.map(|held| Item { place: &held.place, class: held.class }).collect()
    }
}

/// One path in a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item<'m> {
    /// The path.
    pub place: &'m Place,
    /// Its rule and mode.
    pub class: Class,
}

/// What is asked at one time.
#[derive(Debug, Clone)]
pub struct Question<'m> {
    /// Stays the same while opens join and leave.
    pub id: u64,
    /// Goes up whenever what is shown would differ; the countdown does not count.
    pub version: u64,
    /// What for.
    pub access: Access,
    /// Who; the first of them.
    pub by: &'m Writer,
    /// Whether there are other processes of the program.
    pub several: bool,
    /// The paths, in the order in which they were opened. Never empty.
    pub items: Vec<Item<'m>>,
    /// When the first of the opens is refused without an answer.
    pub deadline: Moment,
    /// How many other questions wait.
    pub waiting: usize,
}

impl<'m> Question<'m> {
    pub(super) fn new(group: &'m Group, deadline: Moment, waiting: usize) -> Self {
        let by = &group.members().next().expect("a group has a member").by;
        let (several, items) = (group.is_several(), group.items());
        Self { id: group.id, version: group.version, access: group.access, by, several, items, deadline, waiting }
    }
}

/// Whether it is the same process, running the same program.
pub(super) fn is_same_process(one: &Writer, other: &Writer) -> bool {
    let (one, other) = (&one.program, &other.program);
    (one.pid, one.started, &one.exe) == (other.pid, other.started, &other.exe)
}

/// Whether it is the same process, or one that was started from the same file by the same process for the same user.
fn is_same_program(one: &Writer, other: &Writer) -> bool {
    let above = |writer: &Writer| writer.ancestors.first().map(|parent| (parent.pid, parent.started));
    is_same_process(one, other)
        || (one.program.exe.is_some()
            && one.program.exe == other.program.exe
            && one.program.uid == other.program.uid
            && above(one).is_some()
            && above(one) == above(other))
}
