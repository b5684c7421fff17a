//! Which objects are held open for kqueue to tell of, within a limit.
//!
//! Promise: at most `limit` objects; whoever is told to open and close does nothing else. What finds no room waits for some:
//! it is told of later then, by FSEvents, and never not at all.
//! Source: kqueue(2) of macOS, `EVFILT_VNODE`, which needs a descriptor for each object.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::Place;
use crate::stat::FileId;

/// An object to hold open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Which.
    pub id: FileId,
    /// Whether it is a directory, whose entries are meant.
    pub folder: bool,
}

/// Names one opened object for as long as it is open, and never another one later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub usize);

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Let it go.
    Close(Token),
    /// Open what is at the place.
    Open {
        /// Where.
        place: Place,
        /// What it is called from now on.
        token: Token,
        /// What is expected there.
        held: Held,
    },
}

/// See the module.
#[derive(Debug)]
pub struct Vnodes {
    limit: usize,
    next: usize,
    open: BTreeMap<Place, (Token, Held)>,
    places: BTreeMap<Token, Place>,
    waiting: BTreeMap<Place, Held>,
}

impl Vnodes {
    /// Holds nothing yet.
    pub fn new(limit: usize) -> Self {
        Self { limit, next: 0, open: BTreeMap::new(), places: BTreeMap::new(), waiting: BTreeMap::new() }
    }

    /// What an opened object is at.
    pub fn place(&self, token: Token) -> Option<&Place> {
        self.places.get(&token)
    }

    /// Follows places that may be other objects now, as `held` tells.
    pub fn follow(&mut self, places: BTreeSet<Place>, held: impl Fn(&Place) -> Option<Held>) -> Vec<Order> {
        let mut orders = Vec::new();
        for place in places {
            let now = held(&place);
            self.waiting.remove(&place);
            if let Some((token, before)) = self.open.get(&place).copied() {
                if now == Some(before) {
                    continue;
                }
                self.forget(token);
                orders.push(Order::Close(token));
            }
            if let Some(now) = now {
                self.waiting.insert(place, now);
            }
        }
        self.fill(&mut orders);
        orders
    }

    /// Entries come before folders: a write to one has no row of its folder.
    fn fill(&mut self, orders: &mut Vec<Order>) {
        while self.open.len() < self.limit {
            let entry = self.waiting.iter().find(|(_, held)| !held.folder).or_else(|| self.waiting.iter().next());
            let Some((place, held)) = entry.map(|(place, held)| (place.clone(), *held)) else { return };
            self.waiting.remove(&place);
            let token = Token(self.next);
            self.next += 1;
            self.open.insert(place.clone(), (token, held));
            self.places.insert(token, place.clone());
            orders.push(Order::Open { place, token, held });
        }
    }

    /// An object could not be opened, or is known to be gone.
    pub fn forget(&mut self, token: Token) {
        if let Some(place) = self.places.remove(&token) {
            self.open.remove(&place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relpath::RelPath;

    fn place(path: &str) -> Place {
        Place::tree(RelPath::parse(path.as_bytes()).expect("a relative path"))
    }

    fn entry(ino: u64) -> Held {
        Held { id: FileId { dev: 1, ino }, folder: false }
    }

    fn set(paths: &[&str]) -> BTreeSet<Place> {
        paths.iter().map(|path| place(path)).collect()
    }

    fn opened(orders: &[Order]) -> Vec<String> {
        let path = |order: &Order| match order {
            Order::Open { place, .. } => Some(String::from_utf8_lossy(place.path.as_bytes()).into_owned()),
            Order::Close(_) => None,
        };
        orders.iter().filter_map(path).collect()
    }

    #[test]
    fn an_object_that_stays_the_same_stays_open() {
        let mut vnodes = Vnodes::new(10);
        assert_eq!(opened(&vnodes.follow(set(&["a"]), |_| Some(entry(1)))), ["a"]);
        assert_eq!(vnodes.follow(set(&["a"]), |_| Some(entry(1))), []);
    }

    #[test]
    fn another_object_at_the_place_is_opened_under_another_token() {
        let mut vnodes = Vnodes::new(10);
        vnodes.follow(set(&["a"]), |_| Some(entry(1)));
        let orders = vnodes.follow(set(&["a"]), |_| Some(entry(2)));
        assert_eq!(orders[0], Order::Close(Token(0)));
        assert_eq!(orders[1], Order::Open { place: place("a"), token: Token(1), held: entry(2) });
        assert_eq!(vnodes.place(Token(0)), None);
        assert_eq!(vnodes.place(Token(1)), Some(&place("a")));
    }

    #[test]
    fn at_the_limit_entries_come_before_folders_and_the_rest_waits_for_room() {
        let folders = |found: &Place| Some(Held { folder: found.path.as_bytes().len() == 1, ..entry(1) });
        let mut vnodes = Vnodes::new(2);
        let orders = vnodes.follow(set(&["a", "a/x", "b", "b/x"]), folders);
        assert_eq!(opened(&orders), ["a/x", "b/x"]);
        let orders = vnodes.follow(set(&["a/x"]), |_| None);
        assert_eq!((orders[0].clone(), opened(&orders)), (Order::Close(Token(0)), vec!["a".to_owned()]));
        assert_eq!(vnodes.follow(set(&["b"]), |_| None), [], "what only waits is not closed");
    }

    #[test]
    fn what_could_not_be_opened_makes_room() {
        let mut vnodes = Vnodes::new(1);
        vnodes.follow(set(&["a", "b"]), |_| Some(entry(1)));
        vnodes.forget(Token(0));
        assert_eq!(opened(&vnodes.follow(BTreeSet::new(), |_| None)), ["b"]);
    }
}
