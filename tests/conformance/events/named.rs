//! Who did it: what a backend with privilege tells of processes, and which files it has marked for opens.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use platform::backends::{Equipment, with_privilege};
use platform::event::{Names, WatchSet};
use platform::{Dir, Hint, Marker, Moment, Place, Root};

use super::fixture::{DEADLINE, Fixture, PRIVILEGED, TestInterest, groups, place};
use super::machine::{self, Mounted};

/// Notes who is named and what is marked.
#[derive(Default)]
struct Notes {
    named: Mutex<Vec<(Place, u32, Moment)>>,
    marked: Mutex<BTreeSet<Vec<u8>>>,
}

impl Names for Notes {
    fn named(&self, place: &Place, pid: u32, empty_since: Moment) {
        self.named.lock().expect("no panic in here").push((place.clone(), pid, empty_since));
    }
}

impl Marker for Notes {
    fn mark(&self, dir: &Dir, name: &[u8]) -> std::io::Result<()> {
        dir.stat(name).expect("a stat");
        self.marked.lock().expect("no panic in here").insert(name.to_vec());
        Ok(())
    }
}

impl Notes {
    /// Waits until this process is named for the place.
    fn has(&self, path: &str, pid: u32) -> Moment {
        let end = Instant::now() + DEADLINE;
        loop {
            let named = self.named.lock().expect("no panic in here");
            let found = named.iter().find(|(at, by, _)| *at == place(path.as_bytes()) && *by == pid);
            if let Some((_, _, since)) = found {
                return *since;
            }
            assert!(Instant::now() < end, "{pid} is not named for {path}: {named:?}");
            drop(named);
            std::thread::yield_now();
        }
    }
}

/// Runs a line of shell in the tree; returns the number of the shell, which does all of it itself.
fn shell(tree: &Path, line: &str) -> u32 {
    let mut child = Command::new("sh").args(["-c", line]).current_dir(tree).spawn().expect("a shell");
    assert!(child.wait().expect("it ends").success(), "{line}");
    child.id()
}

/// One program, by itself.
fn program(tree: &Path, words: &[&str]) -> u32 {
    let mut child = Command::new(words[0]).args(&words[1..]).current_dir(tree).spawn().expect("a program");
    assert!(child.wait().expect("it ends").success(), "{words:?}");
    child.id()
}

fn walked(hints: &Receiver<Hint>) {
    let end = Instant::now() + DEADLINE;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if matches!(hints.recv_timeout(left).expect("the walk ends"), Hint::Walked { .. }) {
            return;
        }
    }
}

fn whoever_does_something_is_named(file_system: &str, on: &Path) {
    println!("named on {file_system}");
    let fixture = Fixture::new(PRIVILEGED, on);
    fixture.write(".env", "x");
    fixture.write("d/e/.env", "x");
    fs::set_permissions(fixture.at(".env"), std::os::unix::fs::PermissionsExt::from_mode(0o644)).expect("a chmod");
    let notes = Arc::new(Notes::default());
    let equipment = Equipment {
        groups: groups(on).expect("root may have them"),
        marker: Some(Arc::clone(&notes) as Arc<dyn Marker>),
        names: Some(Arc::clone(&notes) as Arc<dyn Names>),
    };
    let source = with_privilege(equipment).into_iter().next().expect("the strongest");
    let set = WatchSet {
        roots: vec![Arc::new(Root::open(&fixture.tree).expect("the tree"))],
        interest: Arc::new(TestInterest),
        known: Vec::new(),
        interval: Duration::ZERO,
    };
    let powers = source.powers(&set);
    assert!(powers.names_the_writer);
    assert_eq!(powers.whole_file_system, file_system != "overlay");
    let (sender, hints) = channel();
    let running = source.start(set, Box::new(move |hint| sender.send(hint).is_ok())).expect("it starts");
    walked(&hints);

    let writer = shell(&fixture.tree, "echo other > other; echo more > .env");
    notes.has(".env", writer);
    let bits = program(&fixture.tree, &["chmod", "600", ".env"]);
    notes.has(".env", bits);
    let renamer = program(&fixture.tree, &["mv", "other", "config"]);
    let since = notes.has("config", renamer);
    assert!(since > Moment::default(), "the queue was seen empty after the walk");
    let remover = program(&fixture.tree, &["rm", ".env"]);
    notes.has(".env", remover);
    let mover = program(&fixture.tree, &["mv", "d", "away"]);
    notes.has("d", mover);
    let maker = program(&fixture.tree, &["cp", "-r", "away", "copied"]);
    notes.has("copied/e/.env", maker);
    let elsewhere = shell(&fixture.tree, "echo x > nobody-cares; mkdir -p ignored; echo x > ignored/.env");
    // Its own changes are not news.
    fixture.write("config", "by us");
    let last = shell(&fixture.tree, "echo last > config");
    notes.has("config", last);

    let named = notes.named.lock().expect("no panic in here").clone();
    assert!(!named.iter().any(|(_, pid, _)| [elsewhere, std::process::id(), 0].contains(pid)), "{named:?}");
    drop(running);
    let marked = notes.marked.lock().expect("no panic in here").clone();
    assert_eq!(marked, BTreeSet::from([b".env".to_vec(), b"config".to_vec()]), "covered files and no others");
}

#[test]
fn whoever_does_something_is_named_on_every_file_system() {
    if !machine::backends().contains(&PRIVILEGED) {
        return;
    }
    let disk = std::env::temp_dir();
    whoever_does_something_is_named(&machine::type_of(&disk), &disk);
    whoever_does_something_is_named("tmpfs", Path::new("/dev/shm"));
    for kind in ["btrfs", "xfs"] {
        if let Some(mounted) = Mounted::image(kind) {
            whoever_does_something_is_named(kind, mounted.path());
        }
    }
    if let Some(mounted) = Mounted::overlay() {
        whoever_does_something_is_named("overlay", mounted.path());
    }
}
