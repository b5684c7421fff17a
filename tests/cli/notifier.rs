//! The desktop: told of path and rule, and never waited for.

use std::time::Instant;

use crate::support::{Sandbox, sha, until};

#[test]
fn the_desktop_is_told_path_and_rule_and_nothing_of_the_content() {
    let mut lab = Sandbox::new();
    lab.desktop("exit 0");
    let mut watch = lab.watch(&[]);
    lab.write(".env", b"API_TOKEN=s3cr3t\n");
    watch.says("keep watch: .env changed");
    until("the notification", || !lab.notified().is_empty());
    let told = lab.notified();
    assert!(told[0].contains(".env changed (secrets)"), "{told:?}");
    assert!(!told[0].contains("s3cr3t") && !told[0].contains("API_TOKEN"), "{told:?}");
    watch.stop();
}

#[test]
fn a_notifier_that_hangs_fails_or_talks_costs_nothing() {
    for then in ["exec sleep 1000", "exit 1", "echo NOISE; echo NOISE >&2; kill -9 $$"] {
        let mut lab = Sandbox::new();
        lab.desktop(then);
        let mut watch = lab.watch(&[]);
        for content in [b"A=1\n", b"A=2\n"] {
            lab.write(".env", content);
            watch.asks(".env", "secrets", "modified", &sha(content));
            watch.rejects(".env");
        }
        until("the notification", || !lab.notified().is_empty());
        let asked = Instant::now();
        let ended = watch.stop();
        assert!(asked.elapsed().as_secs() < 5, "{then}: the end waited {:?}", asked.elapsed());
        assert!(!ended.text.contains("NOISE"), "{}", ended.text);
        ended.came_to(3, &[".env rejected", ".env rejected"]);
    }
}

#[test]
fn a_notifier_in_the_repository_is_not_run() {
    let mut lab = Sandbox::new();
    lab.desktop("exit 0");
    std::fs::rename(lab.base.join("bin"), lab.path("bin")).expect("moves");
    let path = format!("{}:/nonexistent", lab.path("bin").display());
    lab.set("PATH", &path);
    // The shell that starts the program needs none of it.
    let mut watch = lab.watch(&[]);
    lab.write(".env", b"A=1\n");
    watch.says("keep watch: .env changed");
    watch.rejects(".env");
    watch.stop();
    assert_eq!(lab.notified(), [""; 0]);
}

#[test]
fn without_notifications_the_notifier_is_not_run() {
    let mut lab = Sandbox::new();
    lab.desktop("exit 0");
    let mut watch = lab.watch(&["--no-notify"]);
    lab.write(".env", b"A=1\n");
    watch.says("keep watch: .env changed");
    watch.rejects(".env");
    watch.stop();
    assert_eq!(lab.notified(), [""; 0]);
}
