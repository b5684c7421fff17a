//! Events without end, a full queue, a stopped watch: nothing hides behind them.

use std::fs::{self, File};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;

use super::watched;
use crate::support::{fresh, sha, until};

#[test]
fn behind_forty_thousand_new_files_and_a_full_queue_the_change_is_found() {
    let (lab, mut watch) = watched();
    watch.signal(Signal::STOP);
    fs::create_dir(lab.path("flood")).expect("makes");
    for number in 0..20_000 {
        let path = lab.path(format!("flood-{number}"));
        File::create(&path).expect("creates");
        fs::remove_file(path).expect("removes");
    }
    let content = fresh();
    lab.write(".env", &content);
    lab.write("deep/new/.env", b"A=1\n");
    watch.signal(Signal::CONT);
    watch.shows(".env");
    watch.shows("deep/new/.env");
    let ended = watch.stop();
    assert_eq!(ended.code, 3, "{}", ended.text);
    assert!(lab.has_env());
    assert!(!lab.path("deep/new/.env").exists());
    let lost = ended.report()["lost"].clone();
    assert!(lost.as_object().is_some_and(|lost| !lost.is_empty()), "{lost}");
}

#[test]
fn among_decoys_that_change_without_end_the_change_is_asked_about() {
    let (lab, mut watch) = watched();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let decoys = scope.spawn(|| {
            let (one, two) = (lab.path("decoy-1"), lab.path("decoy-2"));
            while !stop.load(Ordering::Relaxed) {
                for path in [&one, &two] {
                    File::create(path).and_then(|file| file.set_len(1)).expect("writes");
                }
            }
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..3 {
                let content = fresh();
                lab.write(".env", &content);
                watch.asks(".env", "secrets", "modified", &sha(&content));
                watch.rejects(".env");
                assert!(lab.has_env());
            }
        }));
        stop.store(true, Ordering::Relaxed);
        decoys.join().expect("ends");
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
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
    let lab = crate::support::Sandbox::new();
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
