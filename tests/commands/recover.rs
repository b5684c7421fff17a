//! `keep recover`.

use std::fs;

use keepwatch::digest::Digest;
use keepwatch::journal::Event;

use crate::lab::{Lab, Ran};

/// A tree whose watch was killed, and whose `.env` is not what was accepted last.
fn interrupted() -> Lab {
    let lab = Lab::new();
    lab.begin(&[(".env", "A=1\n")]);
    lab.journal(&[lab.accepted(".env", "A=2\n")]);
    lab.write(".env", "A=evil\n");
    lab
}

fn nothing(ran: &Ran, why: &str) {
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{}", ran.err);
    assert!(ran.err.contains("nothing to recover") && ran.err.contains(why), "{}", ran.err);
}

#[test]
fn where_no_watch_was_killed_there_is_nothing_to_recover() {
    let lab = Lab::new();
    nothing(&lab.keep(&["recover"]), "no watch has run there");
    assert!(!lab.has_state());
    lab.begin(&[(".env", "A=1\n")]);
    lab.journal(&[Event::Ended { signal: Some("SIGINT".into()), exit_code: 0 }]);
    let before = fs::read(lab.journal_file()).expect("reads");
    nothing(&lab.keep(&["recover"]), "ended properly");
    assert_eq!(lab.keep(&["recover", "--json"]).json()["recovery"], serde_json::Value::Null);
    assert_eq!(fs::read(lab.journal_file()).expect("reads"), before);
    assert_eq!(lab.read(".env"), None);
}

#[test]
fn what_was_accepted_last_is_put_back_once_and_what_was_there_is_kept() {
    let lab = interrupted();
    let ran = lab.keep(&["recover"]);
    assert_eq!((ran.code, ran.out.as_str()), (3, ".env\n"), "{}", ran.err);
    assert_eq!(lab.read(".env").as_deref(), Some("A=2\n"));
    let kept = lab.keep(&["quarantine", "list", "--json"]).json();
    let id = kept["entries"][0]["id"].as_str().expect("one is kept").to_owned();
    assert_eq!(lab.keep(&["quarantine", "show", &id, "--content"]).out, "A=evil\n");
    lab.write(".env", "A=3\n");
    nothing(&lab.keep(&["recover"]), "ended properly");
    assert_eq!(lab.read(".env").as_deref(), Some("A=3\n"), "an edit while nobody watches is no tampering");
}

#[test]
fn it_is_a_session_of_its_own_in_a_chain_that_holds() {
    let lab = interrupted();
    let report = lab.keep(&["recover", "--json"]);
    assert_eq!(report.code, 3, "{}", report.err);
    let report = report.json();
    assert_eq!((&report["schema"], &report["exit_code"]), (&"keepwatch.recover.v1".into(), &3.into()));
    assert_eq!(report["recovery"]["restored"], serde_json::json!([".env"]));
    let listed = lab.keep(&["log"]);
    assert!(listed.out.contains("keep recover began in "), "{}", listed.out);
    assert!(listed.out.trim_end().ends_with("exit code 3"), "{}", listed.out);
    assert_eq!(lab.keep(&["log", "--verify"]).code, 0);
}

#[test]
fn nothing_differs_ends_with_0_and_ends_the_matter() {
    let lab = Lab::new();
    lab.begin(&[]);
    let ran = lab.keep(&["recover"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{}", ran.err);
    assert!(ran.err.contains("nothing differs"), "{}", ran.err);
    nothing(&lab.keep(&["recover"]), "ended properly");
}

#[test]
fn what_could_not_be_put_back_is_tried_again_by_the_next_one() {
    let lab = interrupted();
    let object = {
        let digest = Digest::of(b"A=2\n").to_string();
        let objects = lab.state().path().join("objects");
        fs::read_dir(&objects)
            .expect("lists")
            .map(|entry| entry.expect("lists").path())
            .flat_map(|path| match path.is_dir() {
                true => fs::read_dir(path).expect("lists").map(|entry| entry.expect("lists").path()).collect(),
                false => vec![path],
            })
            .find(|path| digest.ends_with(path.file_name().and_then(|name| name.to_str()).expect("is text")))
            .expect("it is there")
    };
    let aside = lab.at("aside");
    fs::rename(&object, &aside).expect("moves");
    let failed = lab.keep(&["recover", "--json"]);
    assert_eq!(failed.code, 3);
    assert_eq!(failed.json()["recovery"]["failed"], serde_json::json!([".env"]));
    assert_eq!(lab.read(".env").as_deref(), Some("A=evil\n"));
    fs::rename(&aside, &object).expect("moves back");
    assert_eq!(lab.keep(&["recover", "--json"]).json()["recovery"]["restored"], serde_json::json!([".env"]));
    assert_eq!(lab.read(".env").as_deref(), Some("A=2\n"));
}

#[test]
fn while_a_watch_runs_it_is_refused_and_nothing_is_touched() {
    let lab = interrupted();
    let lock = lab.lock();
    let ran = lab.keep(&["recover", "--json"]);
    assert_eq!((ran.code, ran.json()["error_code"].as_str()), (2, Some("GXT_CAGE_ACTIVE")));
    assert!(ran.err.contains("keep watch runs in"), "{}", ran.err);
    assert_eq!(lab.read(".env").as_deref(), Some("A=evil\n"));
    drop(lock);
    assert_eq!(lab.keep(&["recover"]).code, 3);
}

#[test]
fn an_altered_journal_is_refused_and_nothing_is_touched() {
    let lab = interrupted();
    let text = fs::read_to_string(lab.journal_file()).expect("reads");
    fs::write(lab.journal_file(), text.replacen("secrets", "lockfile", 1)).expect("writes");
    let ran = lab.keep(&["recover"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.starts_with("keep: [GXT_CAGE_JOURNAL] journal.jsonl, line 2"), "{}", ran.err);
    assert_eq!(lab.read(".env").as_deref(), Some("A=evil\n"));
}
