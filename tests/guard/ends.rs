//! The end of a watch while another one on the same file system keeps opens waiting.
//!
//! The kernel lets nobody close the last descriptor of a group whose mark an open that is held has met.

use std::fs;
use std::path::{Path, PathBuf};

use crate::openers::{open, opened, until};
use crate::watch::{Watch, state};
use crate::{Case, NOBODY};

pub const CASES: &[Case] = &[
    ("a_watch_ends_at_once_while_another_holds_an_open", a_watch_ends_at_once_while_another_holds_an_open),
    (
        "a_watch_that_is_killed_is_gone_at_once_while_another_holds_an_open",
        a_watch_that_is_killed_is_gone_at_once_while_another_holds_an_open,
    ),
];

fn folder(dir: &Path, name: &str) -> PathBuf {
    let folder = dir.join(name);
    fs::create_dir(&folder).expect("makes");
    std::os::unix::fs::chown(&folder, Some(NOBODY), Some(NOBODY)).expect("chowns");
    folder
}

/// Ends a watch while another holds an open; what is left ends as soon as that is answered.
fn ends(dir: &Path, end: fn(&mut Watch)) {
    let (ours, theirs) = (folder(dir, "ours"), folder(dir, "theirs"));
    // Dropped in the other order: after a failure nothing holds this one any more.
    let mut watch = Watch::start("whole", &ours);
    let mut other = Watch::start("hold", &theirs);
    let writer = open("append", &theirs.join(".env"));
    let id = other.next("held");
    end(&mut watch);
    until("the watch is gone", || watch.process.try_wait().expect("waits").is_some());
    assert_eq!(state(writer.id()), Some('D'), "the open still waits");
    other.tell(&format!("refuse {id}"));
    assert_eq!(other.next("answered"), "true");
    assert!(!opened(writer));
    until("the guardian ends, too", || !platform::process::exists(watch.guardian));
    other.finish();
}

fn a_watch_ends_at_once_while_another_holds_an_open(dir: &Path) {
    ends(dir, Watch::let_go);
}

fn a_watch_that_is_killed_is_gone_at_once_while_another_holds_an_open(dir: &Path) {
    // Not waited for: it would be in vain, were it not gone.
    ends(dir, |watch| watch.process.kill().expect("kills"));
}
