//! Every backend of this machine, on every file system it offers, as root and as an ordinary user: nothing is missed.
//!
//! Each case is named in the output: `events/fanotify/ext4/a_file_is_renamed_over_a_covered_one`. `KEEP_ONLY` picks those
//! whose name contains it. `KEEP_EXPECT` lists what must be there (`fanotify,inotify,btrfs,xfs,overlay`): a thing that is
//! listed and missing fails; otherwise its cases are passed over, and that is said.

mod fixture;
mod limits;
mod machine;
mod mounts;
mod named;
mod random;
mod scenarios;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;

use fixture::{ELSEWHERE, Fixture, PRIVILEGED, source};

/// Runs every scenario on every backend there.
fn suite(file_system: &str, on: &Path) {
    suite_of(&machine::backends(), file_system, on);
}

fn suite_of(backends: &[&'static str], file_system: &str, on: &Path) {
    let mut failed = Vec::new();
    for &backend in backends {
        for (scenario, name) in scenarios::ALL {
            let case = format!("events/{backend}/{file_system}/{name}");
            if std::env::var("KEEP_ONLY").is_ok_and(|only| !case.contains(&only)) {
                continue;
            }
            let run = || scenario(&Fixture::new(backend, on));
            match catch_unwind(AssertUnwindSafe(run)) {
                Ok(()) => println!("ok   {case}"),
                Err(_) => {
                    println!("FAIL {case}");
                    failed.push(case);
                }
            }
        }
    }
    assert!(failed.is_empty(), "{} failed: {failed:#?}", failed.len());
}

#[test]
fn on_tmpfs() {
    let shared = Path::new("/dev/shm");
    if machine::present("tmpfs", shared.is_dir()) {
        suite("tmpfs", shared);
    }
}

#[test]
fn on_the_disk() {
    let dir = std::env::temp_dir();
    suite(&machine::type_of(&dir), &dir);
}

#[test]
fn on_btrfs() {
    if let Some(mounted) = machine::Mounted::image("btrfs") {
        suite("btrfs", mounted.path());
    }
}

#[test]
fn on_xfs() {
    if let Some(mounted) = machine::Mounted::image("xfs") {
        suite("xfs", mounted.path());
    }
}

#[test]
fn on_overlay() {
    if let Some(mounted) = machine::Mounted::overlay() {
        suite("overlay", mounted.path());
    }
}

/// The one mark is on another file system than the tree, as it is for what lies below a mount.
#[test]
fn on_tmpfs_with_the_mark_elsewhere() {
    let shared = Path::new("/dev/shm");
    if machine::present("tmpfs", shared.is_dir()) && machine::backends().contains(&PRIVILEGED) {
        suite_of(&[ELSEWHERE], "tmpfs", shared);
    }
}

/// Root may read and mark everything; most people are not root.
#[test]
fn as_an_ordinary_user() {
    if !machine::is_root() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    machine::open_to_all(dir.path());
    let copy = dir.path().join("conformance");
    std::fs::copy(std::env::current_exe().expect("this program"), &copy).expect("a copy anybody may run");
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&copy)
        .args(["--nocapture", "events::on_tmpfs", "events::on_the_disk", "events::random"])
        .current_dir("/")
        .env("PROPTEST_CASES", "32")
        .output()
        .expect("setpriv");
    print!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "as uid 65534: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_strongest_backend_comes_first_and_polling_last() {
    let names: Vec<_> = platform::backends().iter().map(|source| source.name()).collect();
    assert_eq!(names.last(), Some(&"poll"));
    assert!(source("poll", Path::new("/")).probe().is_ok());
}
