//! Two watches whose trees overlap: what one of them locks is no change for the other, and nothing that it accepts.

use std::fs;

use crate::support::{Watch, skip, until};

use super::locking::{Lab, can_lock, is_immutable, killed_with_guardian, set_immutable};

/// A repository in a repository: files of the inner one are protected by a watch of either.
fn nested() -> Lab {
    let lab = Lab::new();
    lab.make_repository("svc");
    lab.write("svc/.env", b"A=1\n");
    lab
}

/// A watch of the inner repository.
fn inner(lab: &Lab, options: &[&str]) -> Watch {
    let mut watch = Watch::start(
        &lab.sandbox,
        "cd svc && exec \"$KEEP\" watch --json --watch-interval-ms 50 \"$@\" >\"$OUT\"",
        &[&["--decision-timeout", "300"], options].concat(),
        200,
        50,
    );
    watch.says("undecided changes are restored after");
    watch
}

/// Has the watch find a new file: whatever came before has been looked at by then.
fn sees_what_came_before(lab: &Lab, watch: &mut Watch, name: &str) {
    lab.write(format!("svc/{name}"), b"NEW=1\n");
    watch.says(&format!("keep watch: {name} changed (secrets, added"));
    watch.rejects(name);
}

fn outer(lab: &Lab) -> Watch {
    let mut watch = lab.watch(&["--lock", "--decision-timeout", "300"]);
    watch.says("locked: ");
    watch
}

fn journals(lab: &Lab) -> Vec<String> {
    let folders = fs::read_dir(&lab.state).expect("there is state");
    let journal = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("journal.jsonl")).expect("has a journal");
    folders.map(|entry| journal(entry.expect("an entry"))).collect()
}

#[test]
fn what_another_watch_locks_and_unlocks_is_no_change() {
    if !can_lock() {
        return skip("immutable");
    }
    let lab = nested();
    let mut first = inner(&lab, &[]);
    let locking = outer(&lab);
    until("it is locked", || is_immutable(&lab.path("svc/.env")));
    sees_what_came_before(&lab, &mut first, ".envrc");
    locking.stop();
    assert!(!is_immutable(&lab.path("svc/.env")));
    sees_what_came_before(&lab, &mut first, ".env.two");
    let ended = first.stop();
    ended.came_to(3, &[".envrc rejected", ".env.two rejected"]);
    assert!(!is_immutable(&lab.path("svc/.env")));
}

#[test]
fn what_another_watch_has_locked_is_not_accepted_as_immutable_also_if_that_was_killed() {
    if !can_lock() {
        return skip("immutable");
    }
    let lab = nested();
    let locking = outer(&lab);
    let mut second = inner(&lab, &[]);
    killed_with_guardian(locking);
    sees_what_came_before(&lab, &mut second, ".envrc");
    assert!(is_immutable(&lab.path("svc/.env")), "it was released by nobody");
    second.killed();
    // Recovery takes the flag for no change either, and a start does not put it back.
    inner(&lab, &[]).stop().came_to(0, &[]);
    let mut second = inner(&lab, &[]);
    assert_eq!(lab.keep(&["recover"]).status.code(), Some(0));
    assert!(!is_immutable(&lab.path("svc/.env")));
    sees_what_came_before(&lab, &mut second, ".env.two");
    second.stop().came_to(3, &[".env.two rejected"]);
    assert!(!is_immutable(&lab.path("svc/.env")));
    assert!(journals(&lab).iter().all(|journal| !journal.contains(r#""immutable":true"#)));
}

#[test]
fn two_locks_say_whose_a_path_is_and_end_in_any_order() {
    if !can_lock() {
        return skip("immutable");
    }
    for first_ends_first in [true, false] {
        let lab = nested();
        let locking = outer(&lab);
        let second = inner(&lab, &["--lock"]);
        assert!(second.has_said("locked by another keep watch"), "{}", second.text());
        let (ends, stays) = if first_ends_first { (locking, second) } else { (second, locking) };
        let left = ends.stop();
        assert!(!left.text.contains("stays locked"), "{}", left.text);
        stays.stop();
        assert!(!is_immutable(&lab.path("svc/.env")));
    }
}

#[test]
fn a_flag_of_the_administrators_is_still_what_was_accepted() {
    if !can_lock() {
        return skip("immutable");
    }
    let lab = nested();
    set_immutable(&lab.path("svc/.env"), true);
    let mut watch = inner(&lab, &[]);
    set_immutable(&lab.path("svc/.env"), false);
    watch.says("keep watch: .env changed (secrets, mode");
    watch.rejects(".env");
    assert!(is_immutable(&lab.path("svc/.env")));
    set_immutable(&lab.path("svc/.env"), false);
    watch.stop();
}
