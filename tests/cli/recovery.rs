//! After a kill: the next start ends in the last accepted state, and nothing is lost.

use std::fs;

use rustix::fs::{XattrFlags, getxattr, setxattr};

use crate::support::{Content, ENV, Sandbox, fresh, pause, sha, skip};

#[test]
fn killed_during_a_question_the_next_start_restores_and_says_so() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&[]);
    let accepted = fresh();
    lab.write(".env", &accepted);
    watch.asks(".env", "secrets", "modified", &sha(&accepted));
    watch.accepts(".env");
    let undecided = fresh();
    lab.write(".env", &undecided);
    watch.asks(".env", "secrets", "modified", &sha(&undecided));
    watch.killed();
    lab.write("CLAUDE.md", b"while nobody watched\n");
    lab.write("package-lock.json", b"{}");
    let watch = lab.watch(&[]);
    let line = "keep watch: the last run did not end properly; restored to what was accepted: .env, CLAUDE.md";
    assert!(watch.has_said(line), "{}", watch.text());
    assert_eq!(lab.content(".env"), Content::File(0o600, accepted));
    assert_eq!(lab.content("CLAUDE.md"), Content::Absent);
    let kept = lab.quarantined();
    assert!(kept.contains(&undecided) && kept.contains(&b"while nobody watched\n".to_vec()));
    let ended = watch.stop();
    let report = ended.came_to(3, &[]).report();
    assert_eq!(report["recovery"]["restored"], serde_json::json!([".env", "CLAUDE.md"]));
    assert_eq!(report["recovery"]["kept"], serde_json::json!(["package-lock.json"]));
    assert_eq!(lab.journal().matches(r#""event":"recovered""#).count(), 1, "one recovery is one entry");
    lab.watch(&[]).stop().came_to(0, &[]);
}

#[test]
fn killed_before_the_start_line_nothing_is_taken_for_tampering() {
    let lab = Sandbox::new();
    let mut before = ENV.to_vec();
    for round in 0..6 {
        let watch = lab.spawn(&[]);
        pause(std::time::Duration::from_millis(7 * round));
        watch.killed();
        let content = fresh();
        lab.write(".env", &content);
        lab.watch(&[]).stop();
        // Whether it had come as far as its baseline or not: one of the two is there, whole, and the other is kept.
        let Content::File(_, found) = lab.content(".env") else { panic!("it is gone") };
        assert!(found == content || found == before, "round {round}: {found:?}");
        assert!(found == content || lab.quarantined().contains(&content), "round {round}: {content:?} is lost");
        before = found;
    }
}

#[test]
fn killed_at_any_moment_of_a_restore_it_ends_in_the_accepted_state_and_nothing_is_lost() {
    let lab = Sandbox::new();
    lab.write(".cage.yaml", b"contest_limit: 1\n");
    lab.write("CLAUDE.md", b"mine\n");
    let mut rejected = Vec::new();
    for round in 0..30_u64 {
        let mut watch = lab.watch(&["--decision-timeout", "300"]);
        // Contested paths are restored at once: the kill comes somewhere in the middle of that.
        let content = fresh();
        lab.write(".env", &content);
        watch.says("keep watch: .env changed");
        rejected.push(content);
        watch.settle();
        watch.types(b"r");
        // From before the first step to after the last one.
        pause(std::time::Duration::from_micros(round * round * 60));
        watch.killed();
        lab.watch(&[]).stop();
        assert!(lab.has_env(), "round {round}: {:?}", lab.content(".env"));
        assert_eq!(lab.temporary_names(""), [""; 0], "round {round}");
        let kept = lab.quarantined();
        assert!(rejected.iter().all(|content| kept.contains(content)), "round {round}: something is lost");
    }
    assert_eq!(fs::read(lab.path("CLAUDE.md")).expect("untouched"), b"mine\n");
}

#[test]
fn killed_while_it_recovers_the_next_start_recovers() {
    let lab = Sandbox::new();
    for number in 0..20 {
        lab.write(format!("d{number}/.env"), b"A=accepted\n");
    }
    lab.watch(&[]).killed();
    for number in 0..20 {
        lab.write(format!("d{number}/.env"), format!("A=changed-{number}\n").as_bytes());
    }
    for round in 0..6 {
        let watch = lab.spawn(&[]);
        pause(std::time::Duration::from_millis(10 + 12 * round));
        watch.killed();
    }
    lab.watch(&[]).stop();
    for number in 0..20 {
        assert_eq!(lab.content(format!("d{number}/.env")), Content::File(0o644, b"A=accepted\n".to_vec()));
        assert!(lab.quarantined().contains(&format!("A=changed-{number}\n").into_bytes()), "{number} is lost");
    }
}

/// A default ACL as the kernel takes it (acl(5), version 2): the owner everything, the group nothing but entering, others
/// nothing.
const DEFAULT_ACL: &[u8] =
    b"\x02\0\0\0\x01\0\x07\0\xff\xff\xff\xff\x04\0\x01\0\xff\xff\xff\xff\x20\0\0\0\xff\xff\xff\xff";

#[test]
fn a_folder_that_vanished_with_its_default_acl_comes_back_with_it_after_a_kill() {
    let lab = Sandbox::new();
    lab.write("conf/.env", b"A=accepted\n");
    let folder = lab.path("conf");
    if setxattr(&folder, "system.posix_acl_default", DEFAULT_ACL, XattrFlags::empty()).is_err() {
        return skip("access control lists");
    }
    // One folder from the start, one accepted while watched.
    let mut watch = lab.watch(&[]);
    let later = lab.path("later");
    fs::create_dir(&later).expect("makes");
    setxattr(&later, "system.posix_acl_default", DEFAULT_ACL, XattrFlags::empty()).expect("sets");
    lab.write("later/.env", b"A=later\n");
    watch.asks("later/.env", "secrets", "added", &sha(b"A=later\n"));
    watch.accepts("later/.env");
    watch.killed();
    for folder in [&folder, &later] {
        fs::remove_dir_all(folder).expect("removes");
    }
    let ended = lab.watch(&[]).stop();
    assert_eq!(ended.report()["recovery"]["restored"], serde_json::json!(["conf/.env", "later/.env"]));
    for folder in [&folder, &later] {
        let mut acl = [0; 64];
        let length = getxattr(folder, "system.posix_acl_default", &mut acl).expect("has one again");
        assert_eq!(&acl[..length], DEFAULT_ACL);
    }
}
