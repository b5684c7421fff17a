//! Events without end, a full queue, a stopped watch: nothing hides behind them.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::watched;
use crate::support::{Sandbox, Watch, fresh, meanwhile, pause, sha, skip, until};

#[test]
fn behind_forty_thousand_new_files_and_a_full_queue_the_change_is_found() {
    for backend in platform::backends::backends() {
        if backend.probe().is_err() || backend.name() == "poll" {
            continue;
        }
        let lab = Sandbox::new();
        let mut watch = lab.watch(&["--decision-timeout", "300", "--backend", backend.name()]);
        watch.signal(Signal::STOP);
        for number in 0..40_000 {
            File::create(lab.path(format!("flood-{number}"))).expect("creates");
        }
        let content = fresh();
        lab.write(".env", &content);
        lab.write("deep/new/.env", b"A=1\n");
        watch.signal(Signal::CONT);
        watch.shows_one_of(&["2 protected files changed", "waiting: 1 more"]);
        let ended = watch.stop();
        assert_eq!(ended.code, 3, "{}", ended.text);
        assert_eq!(ended.outcomes().len(), 2, "{}", ended.text);
        assert!(lab.has_env());
        assert!(!lab.path("deep/new/.env").exists());
        let lost = ended.report()["lost"].clone();
        assert!(lost.as_object().is_some_and(|lost| !lost.is_empty()), "{lost}");
        if backend.name() == "inotify" {
            assert!(lost["overflow"].as_u64() >= Some(1), "the queue was not full: {lost}");
        }
    }
}

/// Starts a watch in a user namespace of its own that allows so many of something.
fn with_a_limit(lab: &Sandbox, limit: &str, backend: &str) -> Watch {
    let script = format!(
        "unshare -Ur sh -c 'echo 6 >/proc/sys/user/{limit}' || {{ echo no namespace; exit 9; }}\n\
         exec unshare -Ur sh -c 'echo 6 >/proc/sys/user/{limit}; exec \"$KEEP\" watch --json \"$@\" >\"$OUT\"' sh \"$@\""
    );
    Watch::start(lab, &script, &["--decision-timeout", "300", "--backend", backend], 200, 50)
}

#[test]
fn with_the_systems_watches_used_up_the_rest_is_polled_and_that_is_said() {
    for (limit, backend) in [("max_inotify_watches", "inotify"), ("max_fanotify_marks", "fanotify")] {
        let lab = Sandbox::new();
        for number in 0..30 {
            lab.write(format!("d{number}/.env"), b"A=1\n");
        }
        let mut watch = with_a_limit(&lab, limit, backend);
        watch.shows_one_of(&["undecided changes", "no namespace", "GXT_CAGE_BACKEND_UNAVAILABLE"]);
        if !watch.has_said("undecided changes") {
            return skip("userns");
        }
        watch.shows("keep watch: the system's limit on watches is reached at ");
        watch.shows("what is not covered is polled");
        for number in [0, 15, 29] {
            let path = format!("d{number}/.env");
            lab.write(&path, b"A=2\n");
            watch.asks(&path, "secrets", "modified", &sha(b"A=2\n"));
            watch.rejects(&path);
        }
        lab.write("new/folder/.env", b"A=1\n");
        watch.asks("new/folder/.env", "secrets", "added", &sha(b"A=1\n"));
        let ended = watch.stop();
        assert_eq!(ended.code, 3, "{}", ended.text);
        assert!(ended.report()["lost"]["limit"].as_u64() >= Some(1), "{}", ended.output);
    }
}

#[test]
fn among_decoys_that_change_without_end_the_change_is_asked_about() {
    let (lab, mut watch) = watched();
    let decoys = [lab.path("decoy-1"), lab.path("decoy-2")];
    let change = || {
        for path in &decoys {
            File::create(path).and_then(|file| file.set_len(1)).expect("writes");
        }
    };
    meanwhile(change, || {
        for _ in 0..3 {
            let content = fresh();
            lab.write(".env", &content);
            watch.asks(".env", "secrets", "modified", &sha(&content));
            watch.rejects(".env");
            assert!(lab.has_env());
        }
    });
    watch.stop().came_to(3, &[".env rejected", ".env rejected", ".env rejected"]);
}

#[test]
fn a_thousand_protected_files_at_once_are_one_question_and_all_put_back() {
    let (lab, mut watch) = watched();
    for number in 0..1000 {
        lab.write(format!("d/{number}/.env"), b"A=1\n");
    }
    watch.says(" protected files changed (secrets). Keep them?");
    let ended = watch.stop();
    assert_eq!(ended.outcomes().len(), 1000, "{}", ended.text);
    assert!((0..1000).all(|number| !lab.path(format!("d/{number}/.env")).exists()));
}

#[test]
fn writing_as_fast_as_it_is_put_back_ends_in_the_accepted_state_once_the_writer_stops() {
    let lab = Sandbox::new();
    lab.write(".cage.yaml", b"contest_limit: 1\n");
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    lab.write(".env", b"A=0\n");
    watch.says("keep watch: .env changed");
    watch.rejects(".env");
    for number in 0..2000 {
        // It may be exchanged at this very moment.
        let _ = fs::write(lab.path(".env"), format!("A={number}\n"));
    }
    until("the accepted state", || lab.has_env());
    let ended = watch.stop();
    assert!(lab.has_env());
    assert_eq!(ended.report()["contested"], serde_json::json!([".env"]));
}

#[test]
fn a_thousand_changes_leave_no_descriptor_behind() {
    let lab = Sandbox::new();
    lab.write(".cage.yaml", b"contest_limit: 1\n");
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    let folder = format!("/proc/{}/fd", watch.pid().as_raw_nonzero());
    // Files that are accepted may stay open, each once; what was replaced or removed may not.
    let is_accepted = |open: PathBuf| fs::read_link(open).is_ok_and(|to| to.starts_with(&lab.repo) && to.is_file());
    let count =
        || Ok::<_, std::io::Error>(fs::read_dir(&folder)?.flatten().filter(|fd| !is_accepted(fd.path())).count());
    // Its own user may not look into it; root may.
    let Ok(before) = count() else { return skip("root") };
    for number in 0..200 {
        lab.write(format!("d{number}/e/package-lock.json"), b"{}");
    }
    lab.write(".env", b"A=0\n");
    watch.says("keep watch: .env changed");
    watch.rejects(".env");
    for number in 0..100 {
        lab.save_by_rename(".env", format!("A={number}\n").as_bytes());
        until("the restore", || lab.has_env());
    }
    let after = count().expect("it runs");
    // One held open for a moment may be among them, and the last one that was replaced.
    assert!(after <= before + 4, "{before} descriptors before, {after} after");
    watch.stop();
}

#[test]
fn a_path_that_goes_and_comes_all_the_time_is_asked_about() {
    let (lab, mut watch) = watched();
    let (env, away) = (lab.path(".env"), lab.base.join("away"));
    let go_and_come = || {
        fs::rename(&env, &away).expect("goes");
        pause(Duration::from_millis(8));
        fs::rename(&away, &env).expect("comes");
        pause(Duration::from_millis(5));
    };
    meanwhile(go_and_come, || {
        let begun = Instant::now();
        watch.says("keep watch: .env changed (secrets, deleted");
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    });
    watch.stop();
    assert!(lab.has_env());
}

#[test]
fn a_long_answer_is_not_taken_for_a_stop_of_the_machine() {
    let (lab, mut watch) = watched();
    for number in 0..1200 {
        lab.write(format!(".claude/f{number}"), b"evil\n");
    }
    watch.says(" protected files changed (agent_config). Keep them?");
    until("the restores", || {
        watch.settle();
        watch.types(b"r");
        fs::read_dir(lab.path(".claude")).map_or(0, Iterator::count) == 0
    });
    let ended = watch.stop();
    assert_eq!(ended.outcomes().len(), 1200);
    // 1,200 restores take some seconds; nothing stood still.
    assert_eq!(ended.report()["lost"], serde_json::json!({}));
}
