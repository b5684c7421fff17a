//! Trees with odd shapes: nested, circular, linked, deep.

use std::fs;

use crate::support::{Content, Mounted, Sandbox, fresh, sha, skip, until};

#[test]
fn two_hundred_nested_repositories_are_guarded_to_the_last() {
    let lab = Sandbox::new();
    let mut at = String::new();
    for _ in 0..200 {
        at.push_str("n/");
        lab.make_repository(&at);
    }
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    let hook = format!("{at}.git/hooks/post-checkout");
    lab.write(&hook, b"#!/bin/sh\n");
    watch.shows(&format!("{hook} changed (git_control, added, {})", sha(b"#!/bin/sh\n")));
    watch.settle();
    watch.types(b"r");
    until("the removal", || lab.content(&hook) == Content::Absent);
    watch.stop().came_to(3, &[&format!("{hook} rejected")]);
}

#[test]
fn a_nested_repository_made_while_watching_has_its_hooks_guarded() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    lab.make_repository("sub");
    lab.write("sub/.git/hooks/post-checkout", b"#!/bin/sh\nevil\n");
    watch.shows("sub/.git/hooks/post-checkout (added");
    let ended = watch.stop();
    assert_eq!(ended.code, 3);
    assert_eq!(lab.content("sub/.git/hooks/post-checkout"), Content::Absent);
}

#[test]
fn a_circle_of_bind_mounts_is_not_followed() {
    let lab = Sandbox::new();
    fs::create_dir_all(lab.path("a/b")).expect("makes");
    lab.write("a/.env", b"A=1\n");
    let Some(_mounted) = Mounted::new(&["--bind", lab.repo.to_str().expect("is text")], &lab.path("a/b")) else {
        return skip("mounts");
    };
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    lab.write("a/.env", b"A=2\n");
    watch.shows(&format!("a/.env changed (secrets, modified, {})", sha(b"A=2\n")));
    let ended = watch.stop();
    assert_eq!(ended.code, 3, "{}", ended.text);
    assert_eq!(fs::read(lab.path("a/.env")).expect("reads"), b"A=1\n");
}

#[test]
fn a_circle_of_symlinks_is_not_followed() {
    let lab = Sandbox::new();
    lab.write("a/.env", b"A=1\n");
    lab.link("..", "a/up");
    lab.link("loop", "loop");
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    assert!(watch.has_said("keep watch: 5 protected files"), "{}", watch.text());
    lab.write("a/.env", b"A=2\n");
    watch.asks("a/.env", "secrets", "modified", &sha(b"A=2\n"));
    watch.stop().came_to(3, &["a/.env restored_at_exit"]);
}

#[test]
fn hooks_elsewhere_are_guarded_where_they_are() {
    let lab = Sandbox::new();
    let hooks = lab.base.join("hooks");
    fs::create_dir(&hooks).expect("makes");
    fs::write(hooks.join("pre-commit"), b"#!/bin/sh\nmine\n").expect("writes");
    lab.write(
        ".git/config",
        format!("[core]\n\trepositoryformatversion = 0\n\thooksPath = {}\n", hooks.display()).as_bytes(),
    );
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    let path = hooks.join("pre-commit");
    fs::write(&path, b"#!/bin/sh\nevil\n").expect("writes");
    let shown = path.to_str().expect("is text").to_owned();
    watch.asks(&shown, "git_control", "modified", &sha(b"#!/bin/sh\nevil\n"));
    watch.rejects(&shown);
    assert_eq!(fs::read(path).expect("reads"), b"#!/bin/sh\nmine\n");
    watch.stop().came_to(3, &[&format!("{shown} rejected")]);
}

#[test]
fn a_linked_worktree_guards_the_hooks_all_worktrees_share() {
    let lab = Sandbox::new();
    lab.git(&["add", "README.md"]);
    lab.git(&["commit", "-q", "-m", "start"]);
    let tree = lab.base.join("tree");
    lab.git(&["worktree", "add", "-q", tree.to_str().expect("is text")]);
    let mut watch = lab.watch(&["--decision-timeout", "300", tree.to_str().expect("is text")]);
    let hook = lab.path(".git/hooks/post-checkout");
    fs::write(&hook, b"#!/bin/sh\n").expect("writes");
    let shown = hook.to_str().expect("is text");
    watch.asks(shown, "git_control", "added", &sha(b"#!/bin/sh\n"));
    watch.rejects(shown);
    assert!(!hook.exists());
    fs::write(tree.join(".git"), b"gitdir: /elsewhere\n").expect("writes");
    watch.asks(".git", "git_control", "modified", &sha(b"gitdir: /elsewhere\n"));
    watch.rejects(".git");
    watch.stop();
}

#[test]
fn ordinary_git_work_is_silent() {
    let lab = Sandbox::new();
    lab.git(&["add", "-A"]);
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    lab.git(&["commit", "-q", "-m", "start"]);
    for number in 0..5 {
        lab.git(&["checkout", "-q", "-b", &format!("b{number}")]);
        lab.write(format!("src/{number}.txt"), b"text");
        lab.git(&["add", "-A"]);
        lab.git(&["commit", "-q", "-m", "more"]);
    }
    lab.git(&["gc", "-q"]);
    // What is asked about first is the change after all that.
    let content = fresh();
    lab.write(".env", &content);
    watch.asks(".env", "secrets", "modified", &sha(&content));
    assert_eq!(watch.text().matches("changed (").count(), 1, "{}", watch.text());
    watch.stop().came_to(3, &[".env restored_at_exit"]);
}

#[test]
fn a_directory_that_comes_with_everything_in_it_is_found() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    let made = lab.base.join("made");
    fs::create_dir_all(made.join("x/y")).expect("makes");
    fs::write(made.join("x/y/.env"), b"A=1\n").expect("writes");
    fs::rename(made, lab.path("moved")).expect("moves");
    watch.asks("moved/x/y/.env", "secrets", "added", &sha(b"A=1\n"));
    watch.rejects("moved/x/y/.env");
    for number in 0..20 {
        let path = format!("n{number}/a/b/c/.env");
        lab.write(&path, b"A=1\n");
        watch.shows(&path);
    }
    let ended = watch.stop();
    assert_eq!(ended.outcomes().len(), 21, "{}", ended.text);
}
