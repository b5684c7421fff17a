//! How long an open of a marked file takes: `cargo run --release --example held_cost -- [OPENS]`, as root.
//!
//! Another process opens one file for reading and another for writing, over and over. Printed are the median and the p99 in
//! microseconds: of a file that is not marked, of one whose opens pass once their opener was named, and of one whose
//! opens are held and allowed at once by another thread.

#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "it times and prints")]

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use platform::openings::{Identify, Openings, group};
use platform::witness::connector;
use platform::{Access, Dir, Doorkeeper, HeldId, Opening, Ruling, Verdict, Witness};

#[path = "../support/meanwhile.rs"]
mod meanwhile;

use meanwhile::meanwhile;

struct Door(Mutex<Sender<HeldId>>);

impl Doorkeeper for Door {
    fn rule(&self, opening: &Opening) -> Ruling {
        if opening.access == Access::Write { Ruling::Hold } else { Ruling::Pass }
    }

    fn held(&self, id: HeldId, _opening: Opening) {
        let _nobody_may_hear = self.0.lock().expect("nobody panics").send(id);
    }

    fn gone(&self, _id: HeldId) {}
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--open", how, path, count] => open(how, Path::new(path), count.parse().expect("a number")),
        [] => run("5000"),
        [count] => run(count),
        _ => panic!("one number"),
    }
}

fn run(count: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    for name in ["plain", "marked"] {
        fs::write(path(name), "A=1\n").expect("writes");
    }
    let (held, hear) = channel();
    // As a watch has it, where the kernel tells of processes.
    let witness = Witness::new(connector().ok()) as Arc<dyn Identify>;
    let openings = Openings::start(group().expect("needs root"), Arc::new(Door(Mutex::new(held))), witness);
    let openings = openings.expect("starts");
    openings.marker().mark(&Dir::open_ambient(folder.path()).expect("opens"), b"marked").expect("marks");
    let answering = &openings;
    let allow = move || {
        if let Ok(id) = hear.recv_timeout(Duration::from_millis(100)) {
            answering.answer(id, Verdict::Allow);
        }
    };
    meanwhile(allow, || {
        for (what, how, name) in [("plain", "read", "plain"), ("passed", "read", "marked"), ("held", "write", "marked")]
        {
            let mut opener = Command::new(std::env::current_exe().expect("the system tells"));
            let done = opener.args(["--open", how]).arg(path(name)).arg(count).output().expect("runs");
            assert!(done.status.success());
            println!("{what} {}", String::from_utf8_lossy(&done.stdout).trim());
        }
    });
}

fn open(how: &str, path: &Path, count: usize) {
    let mut times: Vec<Duration> = (0..count)
        .map(|_| {
            let started = Instant::now();
            let file = File::options().read(how == "read").write(how == "write").open(path).expect("opens");
            let time = started.elapsed();
            drop(file);
            time
        })
        .collect();
    times.sort();
    let micros = |at: usize| times[at].as_secs_f64() * 1e6;
    println!("{:.1} {:.1}", micros(count / 2), micros(count * 99 / 100));
}
