//! A killed watch, and what is done to the tree before and while the next one starts.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{Content, Sandbox, pause, sha, until};

/// A sandbox with hooks where `path` says, whose watch was killed.
fn killed_with_hooks(path: &str, folder: &str) -> Sandbox {
    let lab = Sandbox::new();
    let config = format!("[core]\n\trepositoryformatversion = 0\n\tbare = false\n\thooksPath = {path}\n");
    lab.write(".git/config", config.as_bytes());
    lab.write(format!("{folder}/pre-commit"), b"#!/bin/sh\n");
    lab.watch(&[]).killed();
    // As if there had never been such hooks.
    lab.write(".git/config", b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n");
    lab.write(format!("{folder}/pre-commit"), b"#!/bin/sh\nevil\n");
    lab.write(format!("{folder}/post-checkout"), b"#!/bin/sh\nevil\n");
    lab
}

fn has_its_hooks(lab: &Sandbox, folder: &str) {
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    assert_eq!(lab.content(format!("{folder}/pre-commit")), Content::File(0o644, b"#!/bin/sh\n".to_vec()));
    assert_eq!(lab.content(format!("{folder}/post-checkout")), Content::Absent, "{}", watch.text());
    // The run that begins guards them, too.
    lab.write(format!("{folder}/post-merge"), b"evil\n");
    watch.says("post-merge changed (git_control, added");
    watch.stop();
    assert_eq!(lab.content(format!("{folder}/post-merge")), Content::Absent);
}

#[test]
fn hooks_that_a_tampered_config_hides_are_put_right_after_a_kill() {
    has_its_hooks(&killed_with_hooks("tools/hooks", "tools/hooks"), "tools/hooks");
}

#[test]
fn hooks_outside_that_a_tampered_config_hides_are_put_right_after_a_kill() {
    has_its_hooks(&killed_with_hooks("../outside", "../outside"), "../outside");
}

#[test]
fn keep_recover_finds_hooks_that_a_tampered_config_hides() {
    let lab = killed_with_hooks("tools/hooks", "tools/hooks");
    assert_eq!(lab.keep(&["recover"]).status.code(), Some(3));
    assert_eq!(lab.content("tools/hooks/post-checkout"), Content::Absent);
}

#[test]
fn a_rule_file_rewritten_after_a_kill_does_not_weaken_the_next_run() {
    let lab = Sandbox::new();
    lab.write(".cage.yaml", b"protect:\n  - path: notes.txt\n");
    lab.write("notes.txt", b"mine\n");
    lab.watch(&[]).killed();
    lab.write(".cage.yaml", b"contest_limit: 1\n");
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    lab.write("notes.txt", b"evil\n");
    watch.asks("notes.txt", "cage_protect", "modified", &sha(b"evil\n"));
    watch.stop();
    assert_eq!(lab.content("notes.txt"), Content::File(0o644, b"mine\n".to_vec()));
}

#[test]
fn an_invalid_rule_file_left_after_a_kill_does_not_refuse_the_next_start() {
    let lab = Sandbox::new();
    lab.watch(&[]).killed();
    lab.write(".cage.yaml", b"{ nonsense");
    lab.watch(&[]).stop().came_to(3, &[]);
    assert_eq!(lab.content(".cage.yaml"), Content::Absent);
}

#[test]
fn a_change_between_recovery_and_the_first_walk_does_not_become_the_baseline() {
    let lab = Sandbox::new();
    let accepted = fs::read(lab.path(".env")).expect("reads");
    lab.watch(&[]).killed();
    lab.overwrite(".env", b"A=while nobody watched\n");
    let evil = b"A=between\n";
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            until("the recovery", || fs::read(lab.path(".env")).is_ok_and(|now| now == accepted));
            lab.overwrite(".env", evil);
            lab.write("svc/.env", evil);
            done.store(true, Ordering::Release);
        });
        let watch = lab.watch(&["--decision-timeout", "300"]);
        until("the change", || done.load(Ordering::Acquire));
        pause(std::time::Duration::from_millis(300));
        watch.stop();
    });
    assert!(lab.has_env(), "{:?}", lab.content(".env"));
    assert_eq!(lab.content("svc/.env"), Content::Absent);
}
