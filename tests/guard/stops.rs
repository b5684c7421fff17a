//! What a watch that was stopped hears of what its guardian did meanwhile, and the guardian of the watch.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;

use crate::Case;
use crate::openers::{end, open, opened, opener};
use crate::watch::{Watch, signal, stop};

pub const CASES: &[Case] = &[
    (
        "opens_refused_while_the_watch_was_stopped_are_told_when_it_goes_on",
        opens_refused_while_the_watch_was_stopped_are_told_when_it_goes_on,
    ),
    (
        "an_open_that_the_guardian_refused_is_known_so_although_the_process_lives_on",
        an_open_that_the_guardian_refused_is_known_so_although_the_process_lives_on,
    ),
    (
        "after_a_stop_the_numbers_of_opens_are_those_of_new_ones",
        after_a_stop_the_numbers_of_opens_are_those_of_new_ones,
    ),
    ("that_opens_wait_is_said_again_if_it_was_not_taken", that_opens_wait_is_said_again_if_it_was_not_taken),
];

fn opens_refused_while_the_watch_was_stopped_are_told_when_it_goes_on(dir: &Path) {
    let mut watch = Watch::start("hold", dir);
    stop(watch.pid());
    let writers: Vec<_> = (0..40).map(|_| open("append", &dir.join(".env"))).collect();
    let pids: BTreeSet<u32> = writers.iter().map(|writer| writer.id()).collect();
    for writer in writers {
        assert!(!opened(writer));
    }
    assert!(opened(open("read", &dir.join(".env"))), "who only reads is not held up");
    signal(watch.pid(), Signal::CONT);
    let object = std::fs::metadata(dir.join(".env")).expect("stats").ino();
    let mut told = BTreeSet::new();
    while told.len() < pids.len() {
        let line = watch.next("away");
        let fields: Vec<u64> = line.split(' ').map(|field| field.parse().expect("a number")).collect();
        let [ino, pid, 1] = fields[..] else { panic!("{line}") };
        assert_eq!(ino, object);
        assert!(told.insert(u32::try_from(pid).expect("a number")), "{line} is told twice");
    }
    assert_eq!(told, pids);
    watch.finish();
}

fn an_open_that_the_guardian_refused_is_known_so_although_the_process_lives_on(dir: &Path) {
    let mut watch = Watch::start("hold", dir);
    let mut writer = opener("linger", &dir.join(".env")).stdin(Stdio::piped()).spawn().expect("starts");
    let id = watch.next("held");
    stop(watch.pid());
    crate::openers::until("it is refused", || crate::watch::state(writer.id()) != Some('D'));
    signal(watch.pid(), Signal::CONT);
    assert_eq!(watch.next("relieved"), id);
    drop(writer.stdin.take());
    assert!(!end(&mut writer).success());
    watch.finish();
}

fn after_a_stop_the_numbers_of_opens_are_those_of_new_ones(dir: &Path) {
    let mut watch = Watch::start("hold", dir);
    for _ in 0..3 {
        let writers = [(); 5].map(|()| open("append", &dir.join(".env")));
        let held: BTreeSet<String> = writers.iter().map(|_| watch.next("held")).collect();
        stop(watch.pid());
        for writer in writers {
            assert!(!opened(writer));
        }
        signal(watch.pid(), Signal::CONT);
        let relieved: BTreeSet<String> = held.iter().map(|_| watch.next("relieved")).collect();
        assert_eq!(relieved, held);
        // They get the descriptors that were let go of, and wait for an answer of their own.
        let mut writers = [(); 5].map(|()| open("append", &dir.join(".env")));
        let held = [(); 5].map(|()| watch.next("held"));
        for id in held {
            watch.tell(&format!("allow {id}"));
            assert_eq!(watch.next("answered"), "true");
        }
        assert!(writers.iter_mut().all(|writer| end(writer).success()));
    }
    watch.finish();
}

fn that_opens_wait_is_said_again_if_it_was_not_taken(dir: &Path) {
    let mut watch = Watch::start("hold", dir);
    let writer = open("append", &dir.join(".env"));
    let id = watch.next("held");
    stop(watch.guardian);
    watch.tell("chatter 5000");
    watch.next("chattered");
    signal(watch.guardian, Signal::CONT);
    // The watch says it when there is room again, which it has to run for.
    watch.tell("settle 0");
    watch.next("settled");
    stop(watch.pid());
    assert!(!opened(writer), "nobody looked after it");
    signal(watch.pid(), Signal::CONT);
    assert_eq!(watch.next("relieved"), id);
    watch.finish();
}
