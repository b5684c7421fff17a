//! A simulated kernel over real directories: any changes, and events as inotify and fanotify give them: merged into earlier
//! ones, repeated, late, dropped with an overflow, marks used up.
//!
//! The changes and the property are those of the simulated FSEvents: nothing that changed goes unreported.

mod kernel;
mod machine;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use crate::clock::Moment;
use crate::event::{Hint, WatchSet};
use crate::root::Root;
use crate::simulation::{Few, Step, missed, step};

use super::engine::Engine;

use self::kernel::{Simulated, lock};
use self::machine::{Contents, Machine};

/// A step, whether its events are dropped, whether they come twice, how often the engine reads and steps before the next.
type Turn = (Step, bool, bool, usize);

fn turns(drops: bool) -> impl Strategy<Value = Vec<Turn>> {
    let dropped = prop_oneof![9 => Just(false), 1 => Just(drops)];
    proptest::collection::vec((step(), dropped, any::<bool>(), 0..4usize), 0..40)
}

struct Bench {
    machine: Machine,
    engine: Engine<Simulated>,
    now: Moment,
    hints: Vec<Hint>,
}

impl Bench {
    fn turn(&mut self, (step, dropped, twice, steps): &Turn, turn: usize) {
        lock(&self.machine.kernel).dropping = *dropped;
        self.machine.act(step, turn);
        let mut kernel = lock(&self.machine.kernel);
        kernel.dropping = false;
        if *twice {
            let again: Vec<_> = kernel.queues[1].iter().cloned().collect();
            kernel.queues[1].extend(again);
        }
        drop(kernel);
        if *steps > 1 {
            self.read();
        }
        for _ in 0..*steps {
            self.engine.step(self.now);
        }
        self.hints.extend(self.engine.take_hints());
    }

    fn read(&mut self) {
        for queue in [0, 1] {
            let now = self.now;
            self.engine.read(queue, || now).expect("a reading");
        }
    }

    fn settle(&mut self) {
        let waits = |bench: &Self| lock(&bench.machine.kernel).queues.iter().any(|queue| !queue.is_empty());
        loop {
            self.read();
            let left = self.engine.tick(self.now);
            while self.engine.is_busy() {
                self.engine.step(self.now);
            }
            match left {
                Some(left) => self.now = self.now + left,
                None if !waits(self) && !self.engine.is_busy() => break,
                None => {}
            }
        }
        self.hints.extend(self.engine.take_hints());
    }
}

fn nothing_is_missed(before: &[Turn], during: &[Turn], after: &[Turn]) -> Result<(), TestCaseError> {
    let machine = Machine::new();
    for (turn, (step, ..)) in before.iter().enumerate() {
        machine.act(step, turn);
    }
    let set = WatchSet {
        roots: vec![Arc::new(Root::open(&machine.at("")).expect("the tree"))],
        interest: Arc::new(Few),
        known: Vec::new(),
        interval: Duration::ZERO,
    };
    let engine = Engine::new(set, Simulated(Arc::clone(&machine.kernel)), None).expect("the root is marked");
    let mut bench = Bench { machine, engine, now: Moment::from_nanos(1), hints: Vec::new() };
    // What comes and goes while the walk has not got there yet was never there. What is there at its end is known.
    let mut before = Contents::new();
    for (round, turns) in [during, after].into_iter().enumerate() {
        for (turn, step) in turns.iter().enumerate() {
            bench.turn(step, (round + 1) * 100 + turn);
        }
        bench.settle();
        let now = bench.machine.contents();
        let hints = std::mem::take(&mut bench.hints);
        let missed = missed(&before, &now, &hints, |place| place.path.as_bytes().to_vec());
        prop_assert!(missed.is_empty(), "missed {missed:?}; said {hints:?}");
        before = now;
    }
    // What is there is marked as it is: a write to each brings a hint.
    let files: BTreeSet<_> = before.keys().cloned().collect();
    for (turn, place) in files.iter().enumerate() {
        let path = String::from_utf8_lossy(place.path.as_bytes()).into_owned();
        bench.turn(&(Step::Write(path), false, false, 0), 1000 + turn);
    }
    bench.settle();
    let missed = missed(&before, &bench.machine.contents(), &bench.hints, |place| place.path.as_bytes().to_vec());
    prop_assert!(missed.is_empty(), "at last missed {missed:?}; said {:?}", bench.hints);
    Ok(())
}

fn run(drops: bool) {
    let usual = ProptestConfig::default();
    // Each case has three lists of turns.
    let config = ProptestConfig { failure_persistence: None, cases: usual.cases / 3, ..usual };
    proptest::test_runner::TestRunner::new(config)
        .run(&(turns(drops), turns(drops), turns(drops)), |(before, during, after)| {
            nothing_is_missed(&before, &during, &after)
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn whatever_events_are_merged_late_or_repeated_nothing_that_changed_goes_unreported() {
    run(false);
}

#[test]
fn events_that_are_dropped_with_an_overflow_leave_nothing_unknown() {
    run(true);
}
