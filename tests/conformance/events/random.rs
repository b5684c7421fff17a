//! Any sequence of changes: whatever is another thing afterwards was told, or a loss was.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use platform::{Hint, Interest, Place, RelPath, RootId};
use proptest::prelude::*;

use super::fixture::{Fixture, PRIVILEGED, TestInterest, place};
use super::machine;

/// Shorter than elsewhere: a failure is repeated many times to find the shortest sequence.
const PATIENCE: Duration = Duration::from_secs(6);

const DIRECTORIES: [&str; 6] = ["", "a", "a/b", "a/b/c", "d", "d/e"];
const NAMES: [&str; 3] = [".env", "config", "other"];

#[derive(Debug, Clone)]
enum Step {
    Write(String),
    Append(String),
    Remove(String),
    MakeDirs(String),
    RemoveAll(String),
    Rename(String, String),
    Link(String, String),
    Symlink(String),
    Bits(String, u32),
    Leave(String),
    Enter(String),
}

fn directory() -> impl Strategy<Value = String> {
    proptest::sample::select(&DIRECTORIES[1..]).prop_map(str::to_owned)
}

fn file() -> impl Strategy<Value = String> {
    (proptest::sample::select(&DIRECTORIES[..]), proptest::sample::select(&NAMES[..]))
        .prop_map(|(dir, name)| if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => file().prop_map(Step::Write),
        2 => file().prop_map(Step::Append),
        2 => file().prop_map(Step::Remove),
        3 => directory().prop_map(Step::MakeDirs),
        1 => directory().prop_map(Step::RemoveAll),
        2 => (file(), file()).prop_map(|(from, to)| Step::Rename(from, to)),
        2 => (directory(), directory()).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => (file(), directory()).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => (file(), file()).prop_map(|(from, to)| Step::Link(from, to)),
        1 => file().prop_map(Step::Symlink),
        1 => (file(), 0o600u32..0o700).prop_map(|(path, bits)| Step::Bits(path, bits)),
        1 => directory().prop_map(Step::Leave),
        1 => directory().prop_map(Step::Enter),
    ]
}

/// Does it, if it can be done now.
fn act(fixture: &Fixture, step: &Step, turn: usize) {
    let at = |path: &String| fixture.at(path);
    let aside = fixture.outside.join("aside");
    // A step that does not fit the present tree is no step.
    let _ = match step {
        Step::Write(path) => fs::write(at(path), format!("{turn}")),
        Step::Append(path) => fs::OpenOptions::new()
            .append(true)
            .open(at(path))
            .and_then(|mut file| std::io::Write::write_all(&mut file, b"more")),
        Step::Remove(path) => fs::remove_file(at(path)),
        Step::MakeDirs(path) => fs::create_dir_all(at(path)),
        Step::RemoveAll(path) => fs::remove_dir_all(at(path)),
        Step::Rename(from, to) => fs::rename(at(from), at(to)),
        Step::Link(from, to) => fs::hard_link(at(from), at(to)),
        Step::Symlink(path) => symlink("nowhere", at(path)),
        Step::Bits(path, bits) => match fs::symlink_metadata(at(path)) {
            Ok(found) if found.is_file() => fs::set_permissions(at(path), fs::Permissions::from_mode(*bits)),
            _ => Ok(()),
        },
        Step::Leave(path) => fs::rename(at(path), aside),
        Step::Enter(path) => fs::rename(aside, at(path)),
    };
}

type State = BTreeMap<RelPath, (u64, u64, u32, u64, Vec<u8>)>;

/// What is at every covered path, by plain listing.
fn state(dir: &Path, path: &RelPath, into: &mut State) {
    for entry in fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry")) {
        let name = std::os::unix::ffi::OsStringExt::into_vec(entry.file_name());
        let below = path.join(&name);
        let found = fs::symlink_metadata(entry.path()).expect("a stat");
        if found.is_dir() {
            state(&entry.path(), &below, into);
        }
        if TestInterest.covers(RootId(0), path, &name) {
            let content = if found.is_file() { fs::read(entry.path()).expect("a read") } else { Vec::new() };
            into.insert(below, (found.dev(), found.ino(), found.mode(), found.nlink(), content));
        }
    }
}

fn whole(fixture: &Fixture) -> State {
    let mut found = State::new();
    state(&fixture.tree, &RelPath::root(), &mut found);
    found
}

fn nothing_is_missed(backend: &'static str, on: &Path, before: &[Step], after: &[Step]) -> Result<(), TestCaseError> {
    let fixture = Fixture::new(backend, on);
    for (turn, step) in before.iter().enumerate() {
        act(&fixture, step, turn);
    }
    let mut watch = fixture.watch();
    let start = whole(&fixture);
    for (turn, step) in after.iter().enumerate() {
        act(&fixture, step, turn + 100);
    }
    let end = whole(&fixture);
    let paths: HashSet<&RelPath> = start.keys().chain(end.keys()).collect();
    let mut missing: HashSet<Place> =
        paths.into_iter().filter(|path| start.get(*path) != end.get(*path)).cloned().map(Place::tree).collect();
    // The marks hold, too: every covered path that is there now is written to in a second round.
    let mut rounds = 2;
    loop {
        let until = Instant::now() + PATIENCE;
        while !missing.is_empty() {
            match watch.hints.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Hint::Touched { place, .. }) => {
                    missing.remove(&place);
                }
                Ok(Hint::Vanished { place, .. }) => missing.retain(|wanted| !wanted.path.is_below(&place.path)),
                Ok(Hint::Lost(_)) => missing.clear(),
                Ok(_) => {}
                Err(_) => return Err(TestCaseError::fail(format!("{backend} missed {missing:?}"))),
            }
        }
        rounds -= 1;
        if rounds == 0 {
            return Ok(());
        }
        watch.rescan();
        watch.walk();
        watch.forget();
        let is_file =
            |path: &&RelPath| fs::symlink_metadata(fixture.at(path.as_path())).is_ok_and(|found| found.is_file());
        for path in end.keys().filter(is_file) {
            fs::OpenOptions::new()
                .append(true)
                .open(fixture.at(path.as_path()))
                .and_then(|mut file| std::io::Write::write_all(&mut file, b"again"))
                .expect("our own file");
            missing.insert(place(path.as_bytes()));
        }
    }
}

fn run(backend: &'static str) {
    if !machine::backends().contains(&backend) {
        return;
    }
    let on = std::env::temp_dir();
    let steps = || proptest::collection::vec(step(), 0..40);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 100,
        ..ProptestConfig::default()
    });
    runner
        .run(&(steps(), steps()), |(before, after)| nothing_is_missed(backend, &on, &before, &after))
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn fanotify_misses_nothing() {
    run("fanotify");
}

#[test]
fn with_privilege_nothing_is_missed() {
    run(PRIVILEGED);
}

#[test]
fn inotify_misses_nothing() {
    run("inotify");
}

#[test]
fn fsevents_misses_nothing() {
    run("fsevents");
}

#[test]
fn polling_misses_nothing() {
    run("poll");
}
