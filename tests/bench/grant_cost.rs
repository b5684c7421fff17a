//! How long the gate decides about a call that a grant covers: `cargo run --release --example grant_cost -- [GRANTS]`.
//!
//! Once the decisions: no disk, no process, no client, one call after the other, each covered by another grant. And once the
//! look at a `grants.json` that did not change, which comes before each of them. Printed are the number of grants, the median
//! and the p99 in microseconds, for one grant and for many.

#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "it times and prints")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use keepwatch::digest::Digest;
use keepwatch::gate::control::Control;
use keepwatch::gate::grants::GrantFile;
use keepwatch::gate::machine::{Call, Caller, Effect, Input, Machine, Settings, Ticket};
use keepwatch::gate::path::FilePath;
use keepwatch::gate::{Action, Grant, Policy, Tool};
use platform::{Moment, Root};

const ROUNDS: usize = 10_000;

fn main() {
    let most = std::env::args().nth(1).map_or(10_000, |count| count.parse().expect("a number"));
    for count in [1, most] {
        for (what, mut times) in [("decision", decide(count)), ("look", look(count))] {
            times.sort();
            let micros = |at: usize| times[at].as_secs_f64() * 1e6;
            println!("{what} {count} {:.3} {:.3}", micros(ROUNDS / 2), micros(ROUNDS * 99 / 100 - 1));
        }
    }
}

fn grants(count: usize) -> Vec<Grant> {
    // Half of them widenings, spread over folders as a long session leaves them.
    let grant = |number: usize| match number % 2 {
        0 => Grant::exact(&action(number)).expect("can be remembered"),
        _ => Grant::widened(&action(number)).expect("has a directory"),
    };
    (0..count).map(grant).collect()
}

fn action(number: usize) -> Action {
    let path = format!("folder{}/deeper{number}/file.txt", number % 100);
    Action::file(FilePath::parse(&path).expect("a path"))
}

fn look(count: usize) -> Vec<Duration> {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("root")).expect("makes");
    let root = Root::open(&folder.path().join("root")).expect("opens");
    let owner = root.dir().own_stat().expect("looks").uid;
    let control = Control::open(&folder.path().join("state"), &root, owner).expect("opens");
    let mut file = GrantFile::open(&control).expect("opens");
    file.remember(&grants(count)).expect("stores");
    // For two seconds what was written is read at every look, for its times cannot tell a second write yet.
    std::thread::sleep(Duration::from_secs(3));
    file.read_if_changed();
    let mut timed = || {
        let start = Instant::now();
        assert!(black_box(file.read_if_changed()).is_none(), "it did not change");
        start.elapsed()
    };
    (0..ROUNDS).map(|_| timed()).collect()
}

fn decide(count: usize) -> Vec<Duration> {
    let settings = Settings { ask_timeout: Duration::from_secs(120), guarded: false, has_terminal: true };
    let mut machine = Machine::new(Policy::default(), settings, Box::new(|| [0; 16]));
    machine.step(Input::Grants(grants(count)), Moment::default());
    let caller = Caller { connection: 1, name: "bench".to_owned(), unattended: false };
    let mut times = Vec::with_capacity(ROUNDS);
    for round in 0..ROUNDS {
        let call = Call {
            ticket: Ticket(round as u64),
            caller: caller.clone(),
            tool: Tool::FileWrite,
            digest: Digest::from_bytes([0; 32]),
            actions: vec![action(round * 7919 % count)],
            facts: Vec::new(),
            difference: Vec::new(),
        };
        let start = Instant::now();
        let effects = machine.step(Input::Called(black_box(call)), Moment::default());
        times.push(start.elapsed());
        assert!(effects.iter().any(|effect| matches!(effect, Effect::Run { .. })), "round {round} is not covered");
    }
    times
}
