//! Questions and what becomes of them.

use std::fs;

use crate::support::{Content, ENV, Sandbox, fresh, sha, until};

#[test]
fn a_change_is_asked_about_in_one_exact_line() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&[]);
    let content = fresh();
    lab.write(".env", &content);
    let left = watch.asks(".env", "secrets", "modified", &sha(&content));
    assert!((19..=20).contains(&left), "{left} s left");
    assert!(watch.raw().contains(&0x07), "no bell");
    watch.stop().came_to(3, &[".env restored_at_exit"]);
    assert!(lab.has_env());
}

#[test]
fn an_accepted_change_stays_and_is_the_new_baseline() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&[]);
    let content = fresh();
    lab.write(".env", &content);
    watch.asks(".env", "secrets", "modified", &sha(&content));
    watch.accepts(".env");
    lab.write(".env", b"A=another\n");
    watch.asks(".env", "secrets", "modified", &sha(b"A=another\n"));
    watch.rejects(".env");
    assert_eq!(lab.content(".env"), Content::File(0o600, content));
    watch.stop().came_to(3, &[".env accepted", ".env rejected"]);
}

#[test]
fn a_run_with_nothing_but_accepted_changes_ends_with_0() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&[]);
    fs::remove_file(lab.path(".env")).expect("removes");
    watch.asks(".env", "secrets", "deleted", "gone");
    watch.accepts(".env");
    watch.stop().came_to(0, &[".env accepted"]);
    assert_eq!(lab.content(".env"), Content::Absent);
}

#[test]
fn a_rejected_change_is_put_back_and_its_bytes_are_kept() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&[]);
    let content = fresh();
    lab.write(".env", &content);
    lab.chmod(".env", 0o644);
    watch.says("keep watch: .env changed");
    watch.rejects(".env");
    assert!(lab.has_env());
    assert!(lab.quarantined().contains(&content));
    assert_eq!(lab.temporary_names(""), [""; 0]);
    let ended = watch.stop();
    assert!(ended.came_to(3, &[".env rejected"]).report()["decisions"][0]["quarantine"].is_string());
}

#[test]
fn no_answer_is_a_rejection_when_the_time_is_over() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&["--decision-timeout", "1"]);
    let content = fresh();
    lab.write(".env", &content);
    watch.asks(".env", "secrets", "modified", &sha(&content));
    watch.says("keep watch: .env restored (no answer)");
    assert!(lab.has_env());
    watch.stop().came_to(3, &[".env timed_out"]);
}

#[test]
fn a_rewrite_shows_the_new_digest_under_the_old_deadline() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&["--decision-timeout", "4"]);
    lab.write(".env", b"A=1\n");
    watch.asks(".env", "secrets", "modified", &sha(b"A=1\n"));
    watch.says("rejected in 2s");
    lab.write(".env", b"A=2\n");
    let left = watch.asks(".env", "secrets", "modified", &sha(b"A=2\n"));
    assert!(left <= 2, "{left} s left");
    watch.says("keep watch: .env restored (no answer)");
    watch.stop().came_to(3, &[".env timed_out"]);
}

#[test]
fn each_kind_of_change_has_its_word_and_is_undone() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    lab.write(".claude/settings.json", b"{}");
    watch.asks(".claude/settings.json", "agent_config", "added", &sha(b"{}"));
    watch.rejects(".claude/settings.json");
    assert_eq!(lab.content(".claude"), Content::Directory.min_with(lab.content(".claude")), "nothing in it is left");
    fs::remove_file(lab.path(".env")).expect("removes");
    watch.asks(".env", "secrets", "deleted", "gone");
    watch.rejects(".env");
    lab.chmod(".env", 0o755);
    watch.asks(".env", "secrets", "mode", "mode 0755");
    watch.answers(b"r", "keep watch: .env restored");
    fs::remove_file(lab.path(".git/config")).expect("removes");
    fs::create_dir(lab.path(".git/config")).expect("makes");
    watch.says("keep watch: .git/config changed (git_control, replaced, directory)");
    watch.rejects(".git/config");
    assert!(lab.has_env());
    watch
        .stop()
        .came_to(3, &[".claude/settings.json rejected", ".env rejected", ".env rejected", ".git/config rejected"]);
}

impl Content {
    /// The other, if that is nothing: an emptied directory may be gone or stay.
    fn min_with(self, other: Content) -> Content {
        if other == Content::Absent { Content::Absent } else { self }
    }
}

#[test]
fn a_third_rejection_makes_a_path_contested() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&[]);
    for number in 0..3 {
        lab.write(".env", format!("A={number}\n").as_bytes());
        watch.asks(".env", "secrets", "modified", &sha(format!("A={number}\n").as_bytes()));
        watch.rejects(".env");
    }
    watch.shows("keep watch: .env is contested: refused 3 times, from now on restored without asking");
    lab.write(".env", b"A=again\n");
    watch.says("keep watch: .env restored (contested)");
    assert!(lab.has_env());
    let ended = watch.stop();
    ended.came_to(3, &[".env rejected", ".env rejected", ".env rejected", ".env auto_restored"]);
    assert_eq!(ended.report()["contested"], serde_json::json!([".env"]));
}

#[test]
fn c_takes_back_that_a_path_is_contested_and_only_once_nothing_is_asked() {
    let lab = Sandbox::new();
    lab.write(".cage.yaml", b"contest_limit: 1\n");
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    lab.write(".env", &fresh());
    watch.says("keep watch: .env changed");
    watch.answers(b"r", "keep watch: .env is contested");
    watch.shows("c takes that back");
    let change = fresh();
    lab.write("svc/.env", &change);
    watch.says("keep watch: svc/.env changed");
    watch.answers(b"c", "a contested path can be chosen once nothing is asked any more");
    watch.accepts("svc/.env");
    watch.says("ask about .env again?");
    // A key of the list is none of a question.
    watch.answers(b"\r", "keep watch: .env is asked about again");
    let change = fresh();
    lab.write(".env", &change);
    watch.says("keep watch: .env changed (secrets, modified");
    watch.accepts(".env");
    watch.answers(b"c", "keep watch: nothing is contested");
    let ended = watch.stop();
    ended.came_to(3, &[".env rejected", "svc/.env accepted", ".env accepted"]);
    assert_eq!(ended.report()["contested"], serde_json::json!([]));
    assert!(lab.journal().contains(r#""event":"uncontested""#));
}

#[test]
fn of_a_folder_that_was_moved_away_it_is_said_where_the_rest_is() {
    let lab = Sandbox::new();
    lab.write("svc/.env", b"S=1\n");
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    fs::rename(lab.path(".git"), lab.path(".git.old")).expect("renames");
    watch.says("Keep them?");
    watch.answers(
        b"r",
        "keep watch: .git/ was moved to .git.old/; what is protected in it was put back, the rest of it is still there",
    );
    watch.says("keep watch: .git/info/exclude restored (rejected)");
    fs::remove_dir_all(lab.path("svc")).expect("removes");
    watch.says("keep watch: svc/.env changed (secrets, deleted");
    watch.answers(
        b"r",
        "keep watch: svc/ was removed or moved away; what is protected in it was put back, the rest of it was not",
    );
    let ended = watch.stop();
    assert_eq!(ended.text.matches(" was put back").count(), 2, "{}", ended.text);
}

#[test]
fn a_contested_path_has_at_most_one_line_a_second() {
    let lab = Sandbox::new();
    lab.write(".cage.yaml", b"contest_limit: 1\n");
    let mut watch = lab.watch(&[]);
    lab.write(".env", b"A=0\n");
    watch.says("keep watch: .env changed");
    watch.rejects(".env");
    let started = std::time::Instant::now();
    let contents: Vec<Vec<u8>> = (0..30).map(|number| format!("A=again-{number}\n").into_bytes()).collect();
    for content in &contents {
        lab.save_by_rename(".env", content);
        until("the restore", || lab.has_env());
    }
    let seconds = started.elapsed().as_secs() as usize + 2;
    let ended = watch.stop();
    let lines = ended.text.matches(".env restored (contested)").count();
    assert!((1..=seconds).contains(&lines), "{lines} lines in {seconds} s");
    let kept = lab.quarantined();
    assert!(contents.iter().all(|content| kept.contains(content)), "something that was rejected is lost");
}

#[test]
fn contest_limit_0_asks_for_ever() {
    let lab = Sandbox::new();
    lab.write(".cage.yaml", b"contest_limit: 0\n");
    let mut watch = lab.watch(&[]);
    for number in 0..5 {
        let content = format!("A={number}\n");
        lab.write(".env", content.as_bytes());
        watch.asks(".env", "secrets", "modified", &sha(content.as_bytes()));
        watch.rejects(".env");
    }
    assert_eq!(watch.stop().report()["contested"], serde_json::json!([]));
}

#[test]
fn a_burst_is_one_list_and_one_answer() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&[]);
    for name in [".env.a", ".env.b", ".env.c"] {
        lab.write(name, name.as_bytes());
    }
    watch
        .says("keep watch: 3 protected files changed (secrets). Keep them? [a]ccept / [r]eject / [e]ach; rejected in ");
    for name in [".env.a", ".env.b", ".env.c"] {
        assert!(watch.has_said(&format!("  {name} (added, {})", sha(name.as_bytes()))), "{}", watch.text());
    }
    watch.answers(b"r", ".env.c restored (rejected)");
    for name in [".env.a", ".env.b", ".env.c"] {
        assert_eq!(lab.content(name), Content::Absent);
    }
    watch.stop().came_to(3, &[".env.a rejected", ".env.b rejected", ".env.c rejected"]);
}

#[test]
fn a_burst_can_be_decided_one_by_one() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&["--decision-timeout", "60"]);
    for name in [".env.a", ".env.b"] {
        lab.write(name, name.as_bytes());
    }
    watch.says("keep watch: 2 protected files changed");
    watch.answers(b"e", "keep watch: .env.a changed (secrets, added");
    watch.answers(b"a", "keep watch: .env.b changed (secrets, added");
    watch.rejects(".env.b");
    assert_eq!(fs::read(lab.path(".env.a")).expect("stays"), b".env.a");
    assert_eq!(lab.content(".env.b"), Content::Absent);
    watch.stop().came_to(3, &[".env.a accepted", ".env.b rejected"]);
}

#[test]
fn a_report_mode_change_is_a_line_and_no_question() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&[]);
    let content = b"{\"lockfileVersion\": 4}\n";
    lab.write("package-lock.json", content);
    watch.says(&format!(
        "keep watch: package-lock.json changed (lockfile, modified, {}); kept, reported only",
        sha(content)
    ));
    let ended = watch.stop();
    ended.came_to(0, &[]);
    let report = ended.report();
    assert_eq!(report["kept"][0]["path"], "package-lock.json");
    assert!(!ended.text.contains("Keep it?"), "{}", ended.text);
    assert_eq!(fs::read(lab.path("package-lock.json")).expect("stays"), content);
}

#[test]
fn every_change_of_a_report_mode_file_over_the_cap_is_named() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&["--max-file-bytes", "1000"]);
    // Just as long each time, so that only its stamps differ.
    for byte in [b'a', b'b', b'c'] {
        lab.overwrite("package-lock.json", &[byte; 2000]);
        watch.says("keep watch: package-lock.json changed (lockfile, modified, 2000 bytes, not read); kept");
    }
    lab.chmod("package-lock.json", 0o600);
    watch.says("keep watch: package-lock.json changed (lockfile, mode, mode 0600); kept");
    lab.write("package-lock.json", b"{}");
    watch.says(&format!("keep watch: package-lock.json changed (lockfile, modified, {}); kept", sha(b"{}")));
    let ended = watch.stop();
    ended.came_to(0, &[]);
    assert_eq!(ended.report()["kept"].as_array().map(Vec::len), Some(5));
}

#[test]
fn frozen_dependencies_are_asked_about() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&["--lock-deps"]);
    lab.write("package.json", b"{}");
    watch.asks("package.json", "dependency_manifest", "added", &sha(b"{}"));
    watch.rejects("package.json");
    lab.write("package-lock.json", b"{}");
    watch.asks("package-lock.json", "lockfile", "modified", &sha(b"{}"));
    watch.rejects("package-lock.json");
    watch.stop().came_to(3, &["package.json rejected", "package-lock.json rejected"]);
}

#[test]
fn a_change_outside_the_allowed_area_is_asked_about() {
    let lab = Sandbox::new();
    lab.write("src/a.rs", b"one");
    lab.write("other.txt", b"one");
    lab.git(&["add", "-A"]);
    let mut watch = lab.watch(&["--allow-only", "src/**"]);
    lab.write("src/a.rs", b"two");
    lab.write("x.log", b"ignored");
    lab.write("other.txt", b"two");
    watch.asks("other.txt", "out_of_scope", "modified", &sha(b"two"));
    watch.rejects("other.txt");
    watch.stop().came_to(3, &["other.txt rejected"]);
}

#[test]
fn a_change_undone_before_an_answer_leaves_no_decision_but_an_entry() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&[]);
    lab.overwrite(".env", b"A=1\n");
    watch.asks(".env", "secrets", "modified", &sha(b"A=1\n"));
    lab.overwrite(".env", ENV);
    until("the entry", || lab.journal().contains("\"transient\""));
    watch.stop().came_to(0, &[]);
}

#[test]
fn a_second_name_for_a_protected_file_is_reported_and_a_write_through_it_is_asked_about() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&[]);
    fs::hard_link(lab.path(".env"), lab.path("innocent.txt")).expect("links");
    watch.says("keep watch: .env linked (secrets): the file now has 2 names");
    lab.overwrite("innocent.txt", b"A=through the link\n");
    watch.asks(".env", "secrets", "modified", &sha(b"A=through the link\n"));
    watch.rejects(".env");
    assert!(lab.has_env());
    let ended = watch.stop();
    ended.came_to(3, &[".env rejected"]);
    assert_eq!(ended.report()["linked"], serde_json::json!([".env"]));
}

#[test]
fn the_question_shows_keys_and_structure_and_never_a_value() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&[]);
    lab.write(".env", b"API_TOKEN=s3cr3t-new\nMODE=dev\nNEW_KEY=s3cr3t-too\n");
    watch.shows("NEW_KEY");
    watch.says("keep watch: .env changed");
    watch.settle();
    watch.types(b"d");
    watch.says("keep watch: .env changed");
    let ended = watch.stop();
    for secret in ["s3cr3t", "baseline"] {
        assert!(!ended.text.contains(secret) && !ended.output.contains(secret), "{}", ended.text);
    }
    assert!(!lab.journal().contains("s3cr3t"));
}
