//! Learning of changes by looking: portable, slow, and the reference for every other backend.
//!
//! Promise: at each interval every covered path is compared with the round before by identity, times, size, bits, owner
//! and link count; whatever differs is hinted. A path that changed so recently that its times may not tell the next
//! change is hinted once more in the next round.
//! Limit: what changes and changes back within an interval leaves only its times; stores into a mapping may leave nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::clock::{Clock, Moment, SystemClock};
use crate::event::{EventSource, Hint, LostCause, Place, RootId, Sink, StartError, Subscription, WatchSet};
use crate::event_thread::{self, Flow, Orders, Voice};
use crate::relpath::RelPath;
use crate::stat::{FileId, Stat};
use crate::tree::{Roots, Tree, Unlisted};

const NAME: &str = "poll";

/// Two changes of a file within this time may leave equal times: a tick of the kernel's clock, generously.
const COARSE: Duration = Duration::from_millis(20);

/// The backend.
#[derive(Debug, Clone, Copy)]
pub struct Poll;

impl EventSource for Poll {
    fn name(&self) -> &'static str {
        NAME
    }

    fn probe(&self) -> Result<(), StartError> {
        Ok(())
    }

    fn start(&self, set: WatchSet, sink: Sink) -> Result<Box<dyn Subscription>, StartError> {
        let bell = Arc::new(Bell::default());
        let rings = Arc::clone(&bell);
        event_thread::start(NAME, Arc::new(move || rings.ring()), sink, move |voice| {
            Rounds::new(set).run(voice, &bell);
            Ok(())
        })
    }
}

/// What the thread waits by.
#[derive(Debug, Default)]
struct Bell {
    lock: Mutex<()>,
    rings: Condvar,
}

impl Bell {
    fn ring(&self) {
        // Whoever has looked at the orders and does not wait yet holds the lock.
        drop(self.lock.lock().expect("no holder of this lock panics"));
        self.rings.notify_all();
    }

    /// Waits for the next round, or for an order.
    fn wait(&self, orders: &Orders, interval: Duration) {
        let held = self.lock.lock().expect("no holder of this lock panics");
        let waited = self.rings.wait_timeout_while(held, interval, |()| !orders.is_any());
        drop(waited.expect("no holder of this lock panics"));
    }
}

/// A covered entry as a round found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    stat: Stat,
    /// Whether it may have changed again without its times telling.
    fresh: bool,
}

/// What a round found.
#[derive(Debug, Default)]
struct Round {
    entries: BTreeMap<Place, Seen>,
    directories: BTreeMap<Place, FileId>,
    unreadable: BTreeSet<Place>,
}

struct Rounds {
    set: WatchSet,
    tree: Roots,
    last: Option<Round>,
}

impl Rounds {
    fn new(set: WatchSet) -> Self {
        Self { tree: Roots(set.roots.clone()), set, last: None }
    }

    fn run(mut self, voice: &Voice, bell: &Bell) {
        let orders = voice.orders();
        let mut rescan = false;
        loop {
            let Some(round) = self.look(orders) else { return };
            let now = SystemClock.now();
            let hints = match &self.last {
                None => first_hints(&round),
                Some(_) if rescan => all_hints(&round, now),
                Some(last) => hints(last, &round, now),
            };
            if voice.say(hints) == Flow::Stop {
                return;
            }
            self.last = Some(round);
            bell.wait(orders, self.set.interval);
            if orders.is_over() {
                return;
            }
            rescan = orders.take_rescan();
        }
    }

    /// Looks at everything; `None` if it was stopped meanwhile.
    fn look(&self, orders: &Orders) -> Option<Round> {
        let mut round = Round::default();
        for index in 0..self.set.roots.len() {
            let root = RootId(u16::try_from(index).expect("a run has few roots"));
            let mut open = vec![(Place { root, path: RelPath::root() }, Arc::from([]))];
            while let Some((place, above)) = open.pop() {
                if orders.is_over() {
                    return None;
                }
                self.look_into(&place, &above, &mut round, &mut open);
            }
        }
        Some(round)
    }

    fn look_into(&self, place: &Place, above: &[FileId], round: &mut Round, open: &mut Vec<(Place, Arc<[FileId]>)>) {
        let interest = &self.set.interest;
        let wanted = &mut |name: &[u8]| interest.covers(place.root, &place.path, name);
        let listing = match self.tree.list(place, self.last.is_none(), wanted) {
            Ok(listing) => listing,
            Err(Unlisted::Unreadable) => {
                round.unreadable.insert(place.clone());
                return;
            }
            Err(Unlisted::Absent) => return,
        };
        let own = listing.own.id;
        if above.contains(&own) {
            return;
        }
        round.directories.insert(place.clone(), own);
        let above: Arc<[FileId]> = [above, &[own]].concat().into();
        for name in &listing.directories {
            let below = place.join(name);
            if interest.enters(place.root, &below.path) {
                open.push((below, Arc::clone(&above)));
            }
        }
        for (name, stat) in listing.entries {
            round.entries.insert(place.join(&name), Seen { stat, fresh: is_fresh(&stat) });
        }
    }
}

fn is_fresh(stat: &Stat) -> bool {
    let wall = SystemClock.wall().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default();
    let changed = Duration::new(u64::try_from(stat.ctime.0).unwrap_or(0), stat.ctime.1);
    wall < changed + COARSE
}

fn unreadable(round: &Round) -> impl Iterator<Item = Hint> + '_ {
    round.unreadable.iter().map(|place| Hint::Lost(LostCause::Unreadable(place.clone())))
}

fn first_hints(round: &Round) -> Vec<Hint> {
    let found = round.entries.keys().cloned().map(Hint::Found);
    let walked = Hint::Walked { directories: round.directories.len() };
    found.chain(unreadable(round)).chain([walked]).collect()
}

fn all_hints(round: &Round, at: Moment) -> Vec<Hint> {
    let touched = round.entries.keys().map(|place| Hint::Touched { place: place.clone(), at });
    let walked = Hint::Walked { directories: round.directories.len() };
    touched.chain(unreadable(round)).chain([walked]).collect()
}

/// What differs between two rounds.
fn hints(last: &Round, now: &Round, at: Moment) -> Vec<Hint> {
    let mut hints = Vec::new();
    for place in now.unreadable.difference(&last.unreadable) {
        hints.push(Hint::Lost(LostCause::Unreadable(place.clone())));
    }
    for (place, id) in &last.directories {
        if now.directories.get(place) != Some(id) {
            hints.push(Hint::Vanished { place: place.clone(), at });
        }
    }
    for (place, id) in &now.directories {
        if last.directories.get(place) != Some(id) {
            hints.push(Hint::Appeared(place.clone()));
        }
    }
    for (place, seen) in &now.entries {
        let before = last.entries.get(place);
        if before.is_none_or(|before| before.stat != seen.stat || before.fresh) {
            hints.push(Hint::Touched { place: place.clone(), at });
        }
    }
    for place in last.entries.keys().filter(|place| !now.entries.contains_key(place)) {
        hints.push(Hint::Touched { place: place.clone(), at });
    }
    hints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(ino: u64, size: u64) -> Stat {
        Stat { size, id: FileId { dev: 1, ino }, ..Stat::sample() }
    }

    fn place(text: &str) -> Place {
        Place::tree(RelPath::parse(text.as_bytes()).expect("a valid path"))
    }

    fn round(entries: &[(&str, Stat, bool)], directories: &[(&str, u64)]) -> Round {
        Round {
            entries: entries.iter().map(|&(path, stat, fresh)| (place(path), Seen { stat, fresh })).collect(),
            directories: directories.iter().map(|&(path, ino)| (place(path), FileId { dev: 1, ino })).collect(),
            unreadable: BTreeSet::new(),
        }
    }

    const AT: Moment = Moment::from_nanos(7);

    fn touched(path: &str) -> Hint {
        Hint::Touched { place: place(path), at: AT }
    }

    #[test]
    fn what_differs_is_touched_and_what_does_not_is_not() {
        let last = round(&[("a", stat(1, 1), false), ("b", stat(2, 1), false), ("c", stat(3, 1), false)], &[]);
        let now = round(&[("a", stat(1, 2), false), ("b", stat(2, 1), false), ("d", stat(3, 1), false)], &[]);
        assert_eq!(hints(&last, &now, AT), [touched("a"), touched("d"), touched("c")]);
    }

    #[test]
    fn a_path_that_changed_just_before_the_last_round_is_touched_once_more() {
        let last = round(&[("a", stat(1, 1), true)], &[]);
        let now = round(&[("a", stat(1, 1), false)], &[]);
        assert_eq!(hints(&last, &now, AT), [touched("a")]);
        assert_eq!(hints(&now, &now, AT), []);
    }

    #[test]
    fn another_directory_of_the_same_name_vanished_and_appeared() {
        let (last, now) = (round(&[], &[("d", 1)]), round(&[], &[("d", 2)]));
        assert_eq!(hints(&last, &now, AT), [Hint::Vanished { place: place("d"), at: AT }, Hint::Appeared(place("d"))]);
    }
}
