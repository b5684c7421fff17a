//! What an event backend tells that was opened as root, once the process is an ordinary user: all scenarios of the
//! conformance suite, on every file system there is.
//!
//! Root is given up before there is a second thread, which the usual test harness starts for every test. So this program
//! is its own harness, and each scenario runs in a process of its own. `KEEP_ONLY` and `KEEP_EXPECT` are as for the suite.

#![allow(
    dead_code,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests arrange files and time themselves, say what they pass over, and share parts they use in part"
)]

#[path = "../conformance/events/fixture.rs"]
mod fixture;
#[path = "../conformance/events/machine.rs"]
mod machine;
#[path = "../support/meanwhile.rs"]
mod meanwhile;
#[path = "../conformance/events/scenarios.rs"]
mod scenarios;
#[path = "../support/tally.rs"]
mod tally;

use std::path::Path;
use std::process::{Command, ExitCode};

use fixture::{Fixture, PRIVILEGED, READY, groups};
use machine::{Mounted, open_to_all, present, type_of};
use platform::privilege;
use tally::Tally;

/// `nobody` on every Linux.
const NOBODY: u32 = 65_534;

/// Watches that a scenario may start.
const WATCHES: usize = 3;

/// With `--scenario NAME DIR`: is one. Otherwise runs them all; a filter as `cargo test` passes it picks some.
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name, dir] = arguments.as_slice()
        && flag == "--scenario"
    {
        play(name, Path::new(dir));
        return ExitCode::SUCCESS;
    }
    if !machine::is_root() {
        println!("pass over: only root can give root up");
        return ExitCode::SUCCESS;
    }
    if !present(PRIVILEGED, groups(Path::new("/")).is_some()) {
        return ExitCode::SUCCESS;
    }
    let filter = arguments.iter().find(|argument| !argument.starts_with('-')).cloned();
    let filter = filter.or_else(|| std::env::var("KEEP_ONLY").ok());
    let mut tally = Tally::default();
    places().iter().for_each(|(kind, dir)| suite(&mut tally, kind, dir.path(), filter.as_deref()));
    tally.end()
}

/// Where to play.
enum On {
    Here(tempfile::TempDir),
    Mounted(Mounted),
}

impl On {
    fn path(&self) -> &Path {
        match self {
            On::Here(dir) => dir.path(),
            On::Mounted(mounted) => mounted.path(),
        }
    }
}

/// Directories of every file system there is, which everybody may write into.
fn places() -> Vec<(String, On)> {
    let shared = Path::new("/dev/shm");
    let mut found = vec![(type_of(&std::env::temp_dir()), On::Here(tempfile::tempdir().expect("a directory")))];
    if present("tmpfs", shared.is_dir()) {
        found.push(("tmpfs".to_owned(), On::Here(tempfile::tempdir_in(shared).expect("a directory"))));
    }
    let images = ["btrfs", "xfs"].map(|kind| (kind, Mounted::image(kind)));
    let all = images.into_iter().chain([("overlay", Mounted::overlay())]);
    found.extend(all.filter_map(|(kind, mounted)| Some((kind.to_owned(), On::Mounted(mounted?)))));
    for (_, on) in &found {
        open_to_all(on.path());
    }
    found
}

/// Runs the scenarios on one file system.
fn suite(tally: &mut Tally, kind: &str, on: &Path, filter: Option<&str>) {
    for (_, name) in scenarios::ALL {
        let case = format!("dropped/{kind}/{name}");
        if filter.is_some_and(|filter| !case.contains(filter)) {
            continue;
        }
        let own = std::env::current_exe().expect("this program");
        let output = Command::new(own).args(["--scenario", name]).arg(on).output().expect("starts");
        tally.told(&case, output);
    }
}

/// Opens what needs root, gives root up, plays.
fn play(name: &str, on: &Path) {
    let (scenario, _) = scenarios::ALL.iter().find(|(_, known)| *known == name).expect("a scenario");
    let opened = (0..WATCHES).map(|_| groups(on).expect("root may have them"));
    READY.lock().expect("no panic in here").extend(opened);
    privilege::drop_to(NOBODY, NOBODY).expect("drops");
    assert!(
        platform::Privileged::open(&platform::Dir::open_ambient(on).expect("opens"), platform::Wanted::ALL)
            .expect("nothing fails")
            .is_none()
    );
    scenario(&Fixture::new(PRIVILEGED, on));
}
