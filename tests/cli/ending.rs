//! How a watch ends, and in which state.

use std::fs;

use rustix::process::Signal;

use crate::support::{Content, Sandbox, Watch, fresh, sha, until};

/// A watch with one change on screen and one that came behind it.
fn pending(lab: &Sandbox) -> Watch {
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    let content = fresh();
    lab.write(".env", &content);
    watch.asks(".env", "secrets", "modified", &sha(&content));
    // By somebody else: what one program does within a moment is one question, where it is known who it was.
    let by_another =
        std::process::Command::new("sh").args(["-c", "echo obey > CLAUDE.md"]).current_dir(lab.path("")).status();
    assert!(by_another.expect("runs").success());
    watch.shows("waiting: 1 more");
    watch
}

fn ended_in_order(lab: &Sandbox, watch: Watch, signal: &str) {
    let ended = watch.finish();
    ended.came_to(3, &[".env restored_at_exit", "CLAUDE.md restored_at_exit"]);
    assert_eq!(ended.report()["trapped_signal"], signal);
    assert!(lab.has_env());
    assert_eq!(lab.content("CLAUDE.md"), Content::Absent);
}

#[test]
fn every_signal_that_ends_it_rejects_what_is_pending() {
    for (signal, name) in
        [(Signal::INT, "SIGINT"), (Signal::TERM, "SIGTERM"), (Signal::HUP, "SIGHUP"), (Signal::QUIT, "SIGQUIT")]
    {
        let lab = Sandbox::new();
        let watch = pending(&lab);
        watch.signal(signal);
        ended_in_order(&lab, watch, name);
    }
}

#[test]
fn a_typed_ctrl_c_is_sigint_and_a_second_one_skips_nothing() {
    let lab = Sandbox::new();
    let mut watch = pending(&lab);
    watch.types(b"\x03");
    watch.types(b"\x03\x03\x03");
    ended_in_order(&lab, watch, "SIGINT");
}

#[test]
fn a_terminal_that_hangs_up_is_sighup() {
    let lab = Sandbox::new();
    let mut watch = pending(&lab);
    watch.hangs_up();
    ended_in_order(&lab, watch, "SIGHUP");
}

#[test]
fn what_nobody_saw_yet_is_put_back_at_the_end() {
    let lab = Sandbox::new();
    let watch = lab.watch(&["--backend", "poll", "--watch-interval-ms", "600000"]);
    lab.write(".env", b"A=unseen\n");
    lab.write("sub/.env", b"A=unseen\n");
    let ended = watch.stop();
    let mut outcomes = ended.outcomes();
    outcomes.sort();
    let expected = [".env", "sub/.env"].map(|path| (path.to_owned(), "restored_at_exit".to_owned()));
    assert_eq!(outcomes, expected, "{}", ended.text);
    assert_eq!(ended.code, 3);
    assert!(lab.has_env());
    assert_eq!(lab.content("sub/.env"), Content::Absent);
}

#[test]
fn the_summary_says_what_it_came_to() {
    let lab = Sandbox::new();
    let watch = pending(&lab);
    let ended = watch.stop();
    let summary =
        "keep watch: ended by SIGTERM; 2 changes restored, 0 accepted; rejected content: keep quarantine list";
    assert!(ended.text.contains(summary), "{}", ended.text);
}

#[test]
fn a_tree_that_is_deleted_ends_the_watch_and_nothing_is_made_again() {
    let lab = Sandbox::new();
    let watch = lab.watch(&[]);
    fs::remove_dir_all(&lab.repo).expect("removes");
    let ended = watch.finish();
    assert_eq!(ended.code, 1, "{}", ended.text);
    assert!(ended.text.contains("was moved or deleted"), "{}", ended.text);
    assert_eq!(ended.report()["trapped_signal"], serde_json::Value::Null);
    assert!(!lab.repo.exists(), "the tree was made again");
}

#[test]
fn a_tree_that_is_moved_ends_the_watch_and_stays_as_it_is_there() {
    let lab = Sandbox::new();
    let watch = lab.watch(&[]);
    let away = lab.base.join("away");
    fs::rename(&lab.repo, &away).expect("moves");
    let ended = watch.finish();
    assert_eq!(ended.code, 1, "{}", ended.text);
    assert!(ended.text.contains("was moved or deleted"), "{}", ended.text);
    assert!(!lab.repo.exists(), "the tree was made again");
    assert_eq!(fs::read(away.join(".env")).expect("reads"), crate::support::ENV);
}

#[test]
fn an_ended_watch_leaves_no_process_and_no_lock() {
    let lab = Sandbox::new();
    lab.watch(&[]).stop().came_to(0, &[]);
    let watch = lab.watch(&[]);
    watch.stop().came_to(0, &[]);
    until("the journal tells of both ends", || lab.journal().matches("\"ended\"").count() == 2);
}
