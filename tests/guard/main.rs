//! Held opens and their guardian, with real processes that are killed, stopped and multiplied.
//!
//! The guardian is forked off while its process has one thread, so this program is its own harness: each case runs in a
//! process of its own, and so does each watch, which starts a guardian and then goes on as an ordinary user.

#![allow(
    clippy::disallowed_methods,
    clippy::drop_non_drop,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests arrange files and time themselves, and say what they pass over"
)]

mod attacks;
mod deaths;
mod ends;
mod flags;
mod footing;
mod many;
mod openers;
mod stops;
#[path = "../support/tally.rs"]
mod tally;
mod watch;

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use tally::Tally;

/// `nobody` on every Linux.
pub const NOBODY: u32 = 65_534;

/// A case: what it shows, and how, given an empty directory that everybody can enter.
pub type Case = (&'static str, fn(&Path));

fn cases() -> impl Iterator<Item = &'static Case> {
    deaths::CASES
        .iter()
        .chain(stops::CASES)
        .chain(ends::CASES)
        .chain(flags::CASES)
        .chain(many::CASES)
        .chain(attacks::CASES)
        .chain(footing::CASES)
}

/// Without arguments, or with a filter as `cargo test` passes it: runs the cases. Otherwise it is one of the processes of a
/// case: see the modules.
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--case", name, dir] => {
            let (_, case) = cases().find(|(case, _)| case == name).expect("a case of the list");
            case(Path::new(dir));
            return ExitCode::SUCCESS;
        }
        ["--watch", settings, dir] => return watch::be(settings, Path::new(dir)),
        ["--flag", dir] => return flags::be(Path::new(dir)),
        ["--open", how, path] => return openers::be(how, Path::new(path)),
        ["--threads", count, dir] => return openers::be_many(count.parse().expect("a number"), Path::new(dir)),
        _ => {}
    }
    if !platform::privilege::is_root() || !cfg!(target_os = "linux") {
        let promised = std::env::var("KEEP_EXPECT").unwrap_or_default();
        assert!(!promised.split(',').any(|word| word == "root"), "this machine was to have root");
        println!("skipped: needs root");
        return ExitCode::SUCCESS;
    }
    let filter = arguments.iter().find(|argument| !argument.starts_with('-'));
    let mut tally = Tally::default();
    for (name, _) in cases().filter(|(name, _)| filter.is_none_or(|filter| name.contains(filter.as_str()))) {
        let temp = tempfile::tempdir().expect("a temporary directory");
        fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o755)).expect("chmods");
        // An ordinary user may not be able to reach the program where it was built.
        let program = temp.path().join("program");
        fs::copy(own_program(), &program).expect("copies");
        let dir = temp.path().join("tree");
        fs::create_dir(&dir).expect("makes");
        std::os::unix::fs::chown(&dir, Some(NOBODY), Some(NOBODY)).expect("chowns");
        let output = Command::new(&program).args(["--case", name]).arg(&dir).output().expect("starts");
        // What a case has left immutable could not be removed.
        for entry in fs::read_dir(&dir).expect("lists").flatten() {
            if let Ok(object) = fs::File::open(entry.path()) {
                let _ = platform::flags::change(object.as_fd(), false);
            }
        }
        tally.told(name, output);
    }
    tally.end()
}

/// Where this program is.
pub fn own_program() -> PathBuf {
    std::env::current_exe().expect("the system tells")
}

/// A file of nobody's.
pub fn put(path: &Path, content: &str) {
    fs::write(path, content).expect("writes");
    std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).expect("chowns");
}
