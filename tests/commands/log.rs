//! `keep log`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt as _;

use crate::lab::{Lab, SESSION};

fn watched() -> Lab {
    let lab = Lab::new();
    lab.begin(&[(".env", "A=hidden-value\n")]);
    lab.journal(&[lab.accepted(".env", "A=other-value\n"), Lab::restored("a\u{1b}[2J/.env")]);
    lab
}

#[test]
fn a_tree_that_was_never_watched_has_no_entries_and_gets_no_state() {
    let lab = Lab::new();
    for arguments in [&["log"][..], &["log", "--json"]] {
        let ran = lab.keep(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (0, ""));
        assert!(ran.err.contains("no watch has kept a journal"), "{}", ran.err);
    }
    assert_eq!(lab.keep(&["log", "--verify"]).out, "0 entries in 0 files, the chain holds\n");
    assert!(!lab.has_state());
}

#[test]
fn people_read_one_line_an_event_without_content_and_without_control_characters() {
    let ran = watched().keep(&["log"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines.len(), 4, "{}", ran.out);
    assert!(lines[0].contains("keep watch began in "), "{}", lines[0]);
    assert!(lines[1].ends_with("the baseline is complete: 1 protected file"), "{}", lines[1]);
    assert!(lines[2].contains("accepted") && lines[2].contains(".env (secrets, modified, sha256 "), "{}", lines[2]);
    assert!(lines[3].contains("a\\x1b[2J/.env") && lines[3].ends_with(", rejected"), "{}", lines[3]);
    assert!(!ran.out.contains("value") && !ran.out.contains('\x1b'), "{}", ran.out);
}

#[test]
fn json_has_every_entry_as_it_stands_in_the_journal() {
    let lab = watched();
    let ran = lab.keep(&["log", "--json"]);
    assert_eq!(ran.out, fs::read_to_string(lab.journal_file()).expect("reads"));
    assert!(ran.out.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
}

#[test]
fn a_session_is_named_by_its_id_or_its_process() {
    let lab = watched();
    let all = lab.keep(&["log"]).out;
    assert_eq!(lab.keep(&["log", "--session", SESSION]).out, all);
    assert_eq!(lab.keep(&["log", "--session", "4242"]).out, all);
    let none = lab.keep(&["log", "--session", "242"]);
    assert_eq!((none.code, none.out.as_str()), (0, ""));
    assert!(none.err.contains("no entry is of session 242"), "{}", none.err);
}

#[test]
fn verify_counts_what_holds() {
    let lab = watched();
    assert_eq!(lab.keep(&["log", "--verify"]).out, "5 entries in 1 file, the chain holds\n");
    let json = lab.keep(&["log", "--verify", "--json"]).json();
    assert_eq!(
        (&json["holds"], &json["entries"], &json["broken"]),
        (&true.into(), &5.into(), &serde_json::Value::Null)
    );
}

#[test]
fn verify_says_where_an_altered_entry_is_and_ends_with_1() {
    let lab = watched();
    let text = fs::read_to_string(lab.journal_file()).expect("reads");
    let altered = text.replacen("\"rule\":\"secrets\"", "\"rule\":\"lockfile\"", 1);
    assert_ne!(text, altered);
    fs::write(lab.journal_file(), altered).expect("writes");
    let ran = lab.keep(&["log", "--verify"]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.starts_with("the chain does not hold: journal.jsonl, line 2: "), "{}", ran.out);
    let json = lab.keep(&["log", "--verify", "--json"]).json();
    assert_eq!((&json["holds"], &json["broken"]["line"]), (&false.into(), &2.into()));
    let listed = lab.keep(&["log"]);
    assert_eq!((listed.code, listed.out.lines().count()), (1, 1), "{}", listed.out);
    assert!(listed.err.contains("nothing after it can be trusted"), "{}", listed.err);
}

#[test]
fn a_running_watch_is_not_disturbed_and_its_unfinished_batch_is_left_alone() {
    let lab = watched();
    let _lock = lab.lock();
    let mut journal = fs::OpenOptions::new().append(true).open(lab.journal_file()).expect("opens");
    journal.write_all(b"{\"seq\":6,\"batch\":6,\"prev").expect("writes");
    let before = fs::read(lab.journal_file()).expect("reads");
    let ran = lab.keep(&["log"]);
    assert_eq!((ran.code, ran.out.lines().count()), (0, 4));
    let verified = lab.keep(&["log", "--verify"]);
    assert_eq!(verified.code, 0);
    assert!(verified.out.contains("24 bytes at the end are not finished"), "{}", verified.out);
    assert_eq!(fs::read(lab.journal_file()).expect("reads"), before);
}

#[test]
fn a_journal_that_is_not_ours_is_refused() {
    let lab = watched();
    fs::rename(lab.journal_file(), lab.at("elsewhere")).expect("moves");
    std::os::unix::fs::symlink(lab.at("elsewhere"), lab.journal_file()).expect("links");
    for arguments in [&["log", "--json"][..], &["log", "--verify", "--json"]] {
        let ran = lab.keep(arguments);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert_eq!(ran.json()["error_code"], "GXT_CAGE_JOURNAL");
    }
}

#[test]
fn colour_is_for_terminals_and_for_who_asks_for_it() {
    let lab = watched();
    assert!(lab.keep(&["log", "--color", "always"]).out.contains("\x1b[32maccepted"));
    assert!(!lab.keep(&["log", "--color", "never"]).out.contains('\x1b'));
    assert!(!lab.keep(&["log", "--color", "always", "--json"]).out.contains('\x1b'));
}

#[test]
fn entries_before_a_time_are_left_out_and_a_time_that_is_none_is_refused() {
    let lab = watched();
    assert_eq!(lab.keep(&["log", "--since", "2026-11-30T09:41:07.124Z"]).out, "");
    let all = lab.keep(&["log"]).out;
    for from in ["2026-11-30T10:41:07.123+01:00", "36500d"] {
        assert_eq!(lab.keep(&["log", "--since", from]).out, all, "{from}");
    }
    let refused = lab.keep(&["log", "--since", "yesterday"]);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("so long ago: 90s, 15m, 25h, 7d"), "{}", refused.err);
}

#[test]
fn the_desktop_is_told_how_many_changes_ended_how_and_nothing_if_none_did() {
    let lab = watched();
    let bin = lab.at("../bin");
    fs::create_dir(&bin).expect("makes");
    for name in ["notify-send", "osascript"] {
        let script = format!("#!/bin/sh\necho \"$*\" >>'{}'\n", bin.join("told").display());
        fs::write(bin.join(name), script).expect("writes");
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).expect("chmods");
    }
    let run = |arguments: &[&str]| {
        let mut command = lab.command(arguments);
        command.env("PATH", format!("{}:/usr/bin:/bin", bin.display())).env("DISPLAY", ":0");
        assert!(command.output().expect("starts").status.success());
        fs::read_to_string(bin.join("told")).unwrap_or_default()
    };
    assert_eq!(run(&["log", "--notify", "--since", "0s"]), "", "nothing is new");
    let told = run(&["log", "--notify"]);
    assert!(told.contains(": 1 restored, 1 accepted; keep log shows which\n"), "{told}");
    assert_eq!(told.lines().count(), 1);
}
