//! Getting a yes for something the person did not see.

use std::fs;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use super::watched;
use crate::support::{Content, Sandbox, fresh, meanwhile, pause, sha, until};

#[test]
fn swapped_between_the_question_and_the_key_nothing_unseen_is_ever_accepted() {
    let lab = Sandbox::new();
    // One file a round, so that none becomes contested.
    for round in 0..20 {
        lab.write(format!("d{round}/.env"), b"A=accepted\n");
    }
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    // Several questions at a time would need several keys; one after another is what a person does.
    for round in 0..20 {
        let path = format!("d{round}/.env");
        let (seen, swapped) = (fresh(), fresh());
        lab.write(&path, &seen);
        watch.asks(&path, "secrets", "modified", &sha(&seen));
        watch.settle();
        let file = lab.path(&path);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                pause(std::time::Duration::from_micros(round * 150));
                fs::write(&file, &swapped).expect("writes");
            });
            watch.types(b"a");
        });
        // Either the key came first, and the swap is a question of its own; or it did not count.
        watch.says(&format!("(secrets, modified, {})", sha(&swapped)));
        watch.rejects(&path);
        let Content::File(_, now) = lab.content(&path) else { panic!("{path} is gone") };
        let accepted = watch.has_said(&format!("keep watch: {path} accepted"));
        let wanted: &[u8] = if accepted { &seen } else { b"A=accepted\n" };
        assert_eq!(now, wanted, "round {round}");
    }
    let ended = watch.stop();
    let report = ended.report();
    for row in report["decisions"].as_array().expect("a list") {
        assert!(
            row["outcome"] != "accepted" || ended.text.contains(&row["sha256_after"].as_str().expect("text")[..12])
        );
    }
}

#[test]
fn swapped_by_rename_two_hundred_times_while_the_key_is_pressed_no_accept_is_wrong() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    lab.write(".env", b"A=shown\n");
    watch.asks(".env", "secrets", "modified", &sha(b"A=shown\n"));
    watch.settle();
    let number = AtomicU64::new(0);
    let swap = || {
        let number = number.fetch_add(1, Ordering::Relaxed);
        lab.save_by_rename(".env", format!("A=swapped-{number}\n").as_bytes());
    };
    meanwhile(swap, || {
        for _ in 0..20 {
            watch.types(b"a");
            pause(std::time::Duration::from_millis(310));
        }
        until("two hundred swaps", || number.load(Ordering::Relaxed) >= 200);
    });
    let ended = watch.stop();
    // Whatever was accepted had been on the screen by its digest.
    for row in ended.report()["decisions"].as_array().expect("a list") {
        if row["outcome"] == "accepted" {
            let digest = &row["sha256_after"].as_str().expect("text")[..12];
            assert!(ended.text.contains(digest), "{digest} was accepted unseen: {}", ended.text);
        }
    }
    let Content::File(_, now) = lab.content(".env") else { panic!("it is gone") };
    let digest = sha(&now);
    let accepted = ended.outcomes().iter().any(|(_, outcome)| outcome == "accepted");
    assert!(if accepted { ended.text.contains(&digest) } else { lab.has_env() }, "{now:?}");
}

#[test]
fn a_file_slipped_into_the_list_just_before_the_key_is_not_decided_by_it() {
    let (lab, mut watch) = watched();
    lab.write(".env.a", b"A=1\n");
    watch.says("keep watch: .env.a changed (secrets, added");
    watch.settle();
    lab.write(".env.b", b"B=slipped in\n");
    watch.types(b"a");
    watch.says(".env.b");
    watch.settle();
    let ended = watch.stop();
    assert_eq!(lab.content(".env.b"), Content::Absent, "{}", ended.text);
    assert!(ended.outcomes().contains(&(".env.b".to_owned(), "restored_at_exit".to_owned())), "{}", ended.text);
}

#[test]
fn undone_and_written_again_the_deadline_stays() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&["--decision-timeout", "3"]);
    let started = std::time::Instant::now();
    lab.overwrite(".env", b"A=1\n");
    watch.asks(".env", "secrets", "modified", &sha(b"A=1\n"));
    // The writer goes on as long as the watch lets it.
    let mut number = 0;
    let env = lab.path(".env");
    watch.wait("restore", |watch| {
        number += 1;
        let _ = fs::write(&env, crate::support::ENV);
        let _ = fs::write(&env, format!("A={number}\n"));
        pause(std::time::Duration::from_millis(number % 7));
        // A writer this fast may change it again before the restore is proven: then that is said, and tried again.
        let words = ["keep watch: .env restored (no answer)", "keep watch: .env NOT restored"];
        words.iter().any(|words| watch.has_said(words)).then_some(())
    });
    assert!(started.elapsed().as_secs() < 15, "{:?}", started.elapsed());
    watch.stop();
    assert!(lab.has_env());
}

#[test]
fn no_file_socket_or_signal_answers() {
    let (lab, mut watch) = watched();
    lab.write(".env", b"A=1\n");
    watch.asks(".env", "secrets", "modified", &sha(b"A=1\n"));
    watch.settle();
    // An agent of the same user writes to the terminal's device: that is drawn, and answers nothing.
    fs::File::options().write(true).open(watch.device()).and_then(|mut file| file.write_all(b"a")).expect("writes");
    for name in ["answer", "lock", "answers.jsonl"] {
        let path = lab.state_folder().join(name);
        if !path.exists() {
            fs::write(path, b"a").expect("writes");
        }
    }
    watch.signal(rustix::process::Signal::WINCH);
    watch.signal(rustix::process::Signal::CONT);
    watch.settle();
    watch.rejects(".env");
    assert!(lab.has_env());
    watch.stop().came_to(3, &[".env rejected"]);
}

#[test]
fn the_process_gives_its_terminal_and_memory_to_nobody() {
    let (lab, watch) = watched();
    let pid = watch.pid().as_raw_nonzero();
    let status = fs::read_to_string(format!("/proc/{pid}/status"));
    let Ok(status) = status else { return crate::support::skip("procfs") };
    if crate::support::is_root() {
        // Root may look; an ordinary user of the same number may not, which the other run of this test shows.
        assert!(status.contains("Name:\tkeep"), "{status}");
        return drop(lab);
    }
    assert!(fs::read_dir(format!("/proc/{pid}/fd")).is_err(), "its descriptors can be listed");
    assert!(fs::File::options().write(true).open(format!("/proc/{pid}/mem")).is_err(), "its memory can be written");
    watch.stop().came_to(0, &[]);
}

#[test]
fn a_program_named_git_in_the_path_and_an_fsmonitor_are_never_run() {
    let mut lab = Sandbox::new();
    let ran = lab.base.join("ran");
    let script = format!("#!/bin/sh\necho ran >>'{}'\n", ran.display());
    for path in [lab.base.join("bin/git"), lab.path("fsmonitor")] {
        fs::write(&path, &script).expect("writes");
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("chmods");
    }
    let config = format!(
        "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = {0}\n\tpager = {0}\n\tsshCommand = {0}\n",
        lab.path("fsmonitor").display()
    );
    lab.write(".git/config", config.as_bytes());
    lab.set("GIT_EXTERNAL_DIFF", lab.path("fsmonitor").to_str().expect("is text"));
    let mut watch = lab.watch(&["--decision-timeout", "300", "--allow-only", "src/**"]);
    lab.write(".env", b"A=1\n");
    watch.says("keep watch: .env changed");
    watch.rejects(".env");
    watch.stop();
    assert!(!ran.exists(), "a program of the repository was run");
}
