//! A watch from which another process of the same user takes what it needs to go on.

use std::path::Path;
use std::process::Command;

use crate::support::{Content, Watch, fresh, skip};

/// Sets the limit on the descriptors of a running watch: the soft one, so that it can be raised again.
fn limit(watch: &Watch, descriptors: &str) {
    let pid = watch.pid().as_raw_nonzero().to_string();
    let limit = format!("--nofile={descriptors}");
    assert!(Command::new("prlimit").args([&limit, "--pid", &pid]).status().expect("runs").success());
}

#[test]
fn a_watch_without_descriptors_takes_nothing_for_gone_and_finds_everything_once_it_has_some() {
    if !Path::new("/usr/bin/prlimit").exists() {
        return skip("prlimit");
    }
    let (lab, mut watch) = super::watched();
    limit(&watch, "4:");
    // Opens of what is marked already fail: the kernel has no descriptor to tell of them.
    lab.save_by_rename(".env", &fresh());
    lab.write("late/deep/.env", &fresh());
    watch.shows(&format!("{} cannot be looked at just now: ", lab.repo.display()));
    limit(&watch, "1024:");
    watch.says("~ API_TOKEN");
    watch.rejects(".env");
    watch.says("keep watch: late/deep/.env changed (secrets, added");
    watch.rejects("late/deep/.env");
    assert!(lab.has_env());
    assert_eq!(lab.content("late/deep/.env"), Content::Absent);
    let ended = watch.stop();
    assert_eq!(ended.code, 3, "{}", ended.text);
}
