//! `--log`: what collectors on this machine are told while a watch runs, by sockets that the test reads.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{PATIENCE, Sandbox, sha};

/// A collector's socket.
struct Collector {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Collector {
    fn at(path: PathBuf) -> Self {
        let socket = UnixDatagram::bind(&path).expect("binds");
        socket.set_read_timeout(Some(PATIENCE)).expect("sets");
        Self { socket, path }
    }

    fn option(&self, name: &str) -> String {
        format!("{name}={}", self.path.display())
    }

    fn next(&self) -> String {
        let mut record = vec![0; 1 << 18];
        let length = self.socket.recv(&mut record).expect("a record in time");
        record.truncate(length);
        String::from_utf8(record).expect("is text")
    }

    /// The next whose text has these words; those before it are dropped.
    fn next_with(&self, words: &str) -> String {
        std::iter::repeat_with(|| self.next()).find(|record| record.contains(words)).expect("comes in time")
    }
}

/// The fields of a record none of whose values has a newline.
fn fields(record: &str) -> BTreeMap<&str, &str> {
    record.lines().map(|line| line.split_once('=').expect("a field")).collect()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("reads");
    text.lines().map(|line| serde_json::from_str(line).expect("is JSON")).collect()
}

fn named(rows: &[Value]) -> Vec<String> {
    rows.iter().map(|row| row["event"].as_str().expect("is named").to_owned()).collect()
}

#[test]
fn each_collector_hears_of_a_change_that_was_put_back_and_of_nothing_in_it() {
    let lab = Sandbox::new();
    let journald = Collector::at(lab.base.join("journald"));
    let syslog = Collector::at(lab.base.join("syslog"));
    let to = format!("{},{}", journald.option("journald"), syslog.option("syslog"));
    let mut watch = lab.watch(&["--backend", "poll", "--log", &to, "--log", "file"]);
    lab.overwrite(".env", b"API_TOKEN=tampered\nMODE=dev\n");
    watch.asks(".env", "secrets", "modified", &sha(b"API_TOKEN=tampered\nMODE=dev\n"));
    watch.rejects(".env");
    watch.stop().came_to(3, &[".env rejected"]);

    let record = journald.next_with("KEEPWATCH_EVENT=restored\n");
    let found = fields(&record);
    for (name, value) in [
        ("SYSLOG_IDENTIFIER", "keep"),
        ("PRIORITY", "4"),
        ("KEEPWATCH_PATH", ".env"),
        ("KEEPWATCH_RULE", "secrets"),
        ("KEEPWATCH_OUTCOME", "rejected"),
        ("KEEPWATCH_ROOT", lab.repo.to_str().expect("is text")),
    ] {
        assert_eq!(found.get(name), Some(&value), "{record}");
    }
    assert!(found["MESSAGE"].starts_with("restored: .env (secrets, modified, sha256 "), "{record}");
    let line = syslog.next_with(" | event=\"restored\" ");
    assert!(line.starts_with("<84>keep[") && line.contains("]: restored: .env (secrets"), "{line}");

    let state = lab.state_folder();
    let rows = lines(&state.join("events.jsonl"));
    assert_eq!(named(&rows), ["session", "sealed", "restoring", "restored", "ended"]);
    assert_eq!(fs::metadata(state.join("events.jsonl")).expect("stats").permissions().mode() & 0o777, 0o600);
    let all = format!("{record}{line}{}", fs::read_to_string(state.join("events.jsonl")).expect("reads"));
    assert!(!all.contains("tampered") && !all.contains("API_TOKEN"), "{all}");
    // Number and digest of each are those of the entry: the next entry has the digest, too.
    let journal: Vec<Value> = lab.journal().lines().map(|line| serde_json::from_str(line).expect("is JSON")).collect();
    for row in &rows {
        let seq = row["seq"].as_u64().expect("a number");
        let entry = journal.iter().find(|entry| entry["seq"] == seq).expect("is in the journal");
        assert_eq!((&entry["event"], &entry["at"], &entry["session"]), (&row["event"], &row["at"], &row["session"]));
        if let Some(next) = journal.iter().find(|entry| entry["seq"] == seq + 1) {
            assert_eq!(next["previous"], row["chain"]);
        }
    }
    assert!(found["KEEPWATCH_CHAIN"] == rows[3]["chain"].as_str().expect("a digest"));
}

#[test]
fn what_a_start_after_a_crash_puts_back_is_told() {
    let lab = Sandbox::new();
    lab.watch(&["--backend", "poll"]).killed();
    lab.overwrite(".env", b"API_TOKEN=tampered\nMODE=dev\n");
    lab.watch(&["--backend", "poll", "--log", "file"]).stop();
    let rows = lines(&lab.state_folder().join("events.jsonl"));
    let restored = rows.iter().find(|row| row["event"] == "restored").expect("is told");
    assert_eq!((&restored["path"], &restored["outcome"]), (&".env".into(), &"recovered".into()));
    assert!(rows.iter().any(|row| row["event"] == "recovered"), "{rows:?}");
}

#[test]
fn a_collector_that_goes_away_costs_a_line_and_a_count_and_the_watch_goes_on() {
    let lab = Sandbox::new();
    let gone = Collector::at(lab.base.join("gone"));
    let mut watch = lab.watch(&["--backend", "poll", "--log", &gone.option("syslog")]);
    gone.next_with("event=\"sealed\"");
    fs::remove_file(&gone.path).expect("removes");
    let path = gone.path.clone();
    drop(gone);
    lab.overwrite(".env", b"API_TOKEN=tampered\nMODE=dev\n");
    watch.rejects(".env");
    watch.shows("takes no notice: ");
    let back = Collector::at(path);
    lab.overwrite("package-lock.json", b"{\"lockfileVersion\": 4}\n");
    watch.shows("package-lock.json changed (lockfile");
    // The entry that it was done may come late enough to be heard; that it was about to be done was missed.
    let heard = back.next();
    assert!(heard.contains(" before this one could not be sent)") && heard.contains(" missed=\""), "{heard}");
    if !heard.contains("event=\"kept\"") {
        assert!(!back.next_with("event=\"kept\"").contains("missed="), "it is told once");
    }
    let ended = watch.stop();
    ended.came_to(3, &[".env rejected"]);
    assert_eq!(ended.text.matches("takes no notice").count(), 1, "{}", ended.text);
}

#[test]
fn a_collector_that_is_not_there_refuses_the_start_and_leaves_no_journal() {
    let lab = Sandbox::new();
    let nowhere = lab.base.join("nowhere");
    for kind in ["journald", "syslog"] {
        let message = lab.refuses("GXT_CAGE_LOG", &["--log", &format!("{kind}={}", nowhere.display())]);
        assert!(message.starts_with(kind) && message.contains("nobody takes records at "), "{message}");
    }
    assert!(!lab.state_folder().join("journal.jsonl").exists());
}

#[test]
fn a_file_is_refused_that_lies_in_the_tree_or_the_state_folder_or_is_none_of_ours() {
    let lab = Sandbox::new();
    fs::create_dir(lab.path("logs")).expect("makes");
    symlink(lab.path("logs"), lab.base.join("way-in")).expect("links");
    symlink(lab.base.join("target"), lab.base.join("link")).expect("links");
    for (path, why) in [
        (lab.path("events.jsonl"), "in the tree"),
        (lab.base.join("way-in/events.jsonl"), "in the tree"),
        (lab.state.join("events.jsonl"), "in the state folder"),
        (lab.base.join("link"), "is not a regular file"),
        (lab.base.join("bin"), "is not a regular file"),
        (lab.base.join("no-such-folder/events"), ""),
    ] {
        let message = lab.refuses("GXT_CAGE_LOG", &["--log", &format!("file={}", path.display())]);
        assert!(message.contains(why), "{message}");
    }
    assert!(!lab.base.join("target").exists());
}

#[test]
fn a_file_that_was_set_aside_is_made_anew() {
    let lab = Sandbox::new();
    let path = lab.base.join("events");
    let watch = lab.watch(&["--backend", "poll", "--log", &format!("file={}", path.display())]);
    crate::support::until("the start is told", || named(&lines(&path)).contains(&"sealed".to_owned()));
    fs::rename(&path, lab.base.join("events.1")).expect("renames");
    watch.stop().came_to(0, &[]);
    assert_eq!(named(&lines(&lab.base.join("events.1"))), ["session", "sealed"]);
    assert_eq!(named(&lines(&path)), ["ended"]);
}
