//! What becomes of opens that wait when the watch, its guardian or both are killed or stopped.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::openers::{open, opened, opener, until};
use crate::watch::{Watch, signal, state, stop};
use crate::{Case, NOBODY};

pub const CASES: &[Case] = &[
    ("a_killed_watch_lets_nothing_through", a_killed_watch_lets_nothing_through),
    (
        "opens_nobody_had_read_are_refused_when_the_watch_is_killed",
        opens_nobody_had_read_are_refused_when_the_watch_is_killed,
    ),
    ("a_watch_without_its_guardian_hears_of_it_and_holds_on", a_watch_without_its_guardian_hears_of_it_and_holds_on),
    ("with_both_killed_held_opens_go_through", with_both_killed_held_opens_go_through),
    (
        "a_stopped_watch_holds_up_no_reader_and_lets_no_writer_through",
        a_stopped_watch_holds_up_no_reader_and_lets_no_writer_through,
    ),
    (
        "a_reader_goes_through_a_stopped_watch_that_keeps_a_writer_waiting",
        a_reader_goes_through_a_stopped_watch_that_keeps_a_writer_waiting,
    ),
    ("what_a_stopped_watch_had_read_is_refused_soon", what_a_stopped_watch_had_read_is_refused_soon),
    ("a_stopped_watch_that_only_names_holds_up_nobody", a_stopped_watch_that_only_names_holds_up_nobody),
    ("a_stopped_watch_that_is_killed_lets_nothing_through", a_stopped_watch_that_is_killed_lets_nothing_through),
    (
        "a_watch_that_ends_refuses_what_waits_and_leaves_no_mark",
        a_watch_that_ends_refuses_what_waits_and_leaves_no_mark,
    ),
    ("nobody_else_can_kill_stop_or_look_into_the_guardian", nobody_else_can_kill_stop_or_look_into_the_guardian),
    ("the_guardian_has_no_right_that_it_does_not_need", the_guardian_has_no_right_that_it_does_not_need),
];

fn text(dir: &Path) -> String {
    fs::read_to_string(dir.join(".env")).expect("reads")
}

fn a_killed_watch_lets_nothing_through(dir: &Path) {
    let mut watch = Watch::start("hold", dir);
    let writers: Vec<_> = (0..5).map(|_| open("append", &dir.join(".env"))).collect();
    for _ in &writers {
        watch.next("held");
    }
    watch.kill();
    for writer in writers {
        assert!(!opened(writer));
    }
    until("the guardian ends", || !platform::process::exists(watch.guardian));
    assert_eq!(text(dir), "A=1\n");
    assert!(opened(open("append", &dir.join(".env"))), "nobody guards any more");
}

fn opens_nobody_had_read_are_refused_when_the_watch_is_killed(dir: &Path) {
    let mut watch = Watch::start("hold", dir);
    let first = open("append", &dir.join(".env"));
    watch.next("held");
    stop(watch.pid());
    let second = open("append", &dir.join(".env"));
    until("it waits", || state(second.id()) == Some('D'));
    watch.kill();
    assert!(!opened(first) && !opened(second));
    until("the guardian ends", || !platform::process::exists(watch.guardian));
    assert_eq!(text(dir), "A=1\n");
}

fn a_watch_without_its_guardian_hears_of_it_and_holds_on(dir: &Path) {
    let mut watch = Watch::start("hold", dir);
    let writers = [(); 2].map(|()| open("append", &dir.join(".env")));
    let held = [(); 2].map(|()| watch.next("held"));
    signal(watch.guardian, Signal::KILL);
    watch.next("alone");
    watch.tell(&format!("allow {}", held[0]));
    assert_eq!(watch.next("answered"), "true");
    watch.tell(&format!("refuse {}", held[1]));
    assert_eq!(watch.next("answered"), "true");
    let done = writers.map(opened);
    assert_eq!(done.iter().filter(|&&done| done).count(), 1);
    watch.finish();
}

fn with_both_killed_held_opens_go_through(dir: &Path) {
    let mut watch = Watch::start("hold", dir);
    let writer = open("append", &dir.join(".env"));
    watch.next("held");
    // Neither gets to do anything in between.
    stop(watch.pid());
    stop(watch.guardian);
    signal(watch.pid(), Signal::KILL);
    signal(watch.guardian, Signal::KILL);
    assert!(opened(writer), "the kernel lets go of what nobody can answer");
    assert_eq!(text(dir), "A=1\nB=2\n");
}

fn a_stopped_watch_holds_up_no_reader_and_lets_no_writer_through(dir: &Path) {
    let mut watch = Watch::start("hold", dir);
    stop(watch.pid());
    for _ in 0..3 {
        let started = Instant::now();
        assert!(opened(open("read", &dir.join(".env"))));
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
        assert!(!opened(open("append", &dir.join(".env"))));
    }
    assert_eq!(text(dir), "A=1\n");
    signal(watch.pid(), Signal::CONT);
    // The watch reads again what comes; the guardian may answer once more before it has seen that.
    let mut writer = open("append", &dir.join(".env"));
    for _ in 0..3 {
        watch.next("away");
    }
    let id = watch.next("held");
    watch.tell(&format!("allow {id}"));
    assert_eq!(watch.next("answered"), "true");
    assert!(crate::openers::end(&mut writer).success());
    watch.finish();
}

fn a_reader_goes_through_a_stopped_watch_that_keeps_a_writer_waiting(dir: &Path) {
    let mut watch = Watch::start("hold", dir);
    let writer = open("append", &dir.join(".env"));
    watch.next("held");
    stop(watch.pid());
    let reader = open("read", &dir.join(".env"));
    assert!(opened(reader));
    assert!(!opened(writer));
}

fn what_a_stopped_watch_had_read_is_refused_soon(dir: &Path) {
    let mut watch = Watch::start("hold", dir);
    let writer = open("append", &dir.join(".env"));
    let id = watch.next("held");
    stop(watch.pid());
    assert!(!opened(writer));
    signal(watch.pid(), Signal::CONT);
    // Not that the writer is gone, which it is by now.
    assert_eq!(watch.next("relieved"), id);
    watch.tell(&format!("allow {id}"));
    assert_eq!(watch.next("answered"), "false");
    assert_eq!(text(dir), "A=1\n");
}

fn a_stopped_watch_that_only_names_holds_up_nobody(dir: &Path) {
    let watch = Watch::start("name", dir);
    assert!(opened(open("append", &dir.join(".env"))));
    stop(watch.pid());
    assert!(opened(open("append", &dir.join(".env"))));
    assert!(opened(open("read", &dir.join(".env"))));
    signal(watch.pid(), Signal::CONT);
    watch.finish();
}

fn a_stopped_watch_that_is_killed_lets_nothing_through(dir: &Path) {
    let mut watch = Watch::start("hold", dir);
    stop(watch.pid());
    let writers: Vec<_> = (0..20).map(|_| open("append", &dir.join(".env"))).collect();
    // Whoever had not come so far would find no mark any more.
    for writer in &writers {
        until("it waits, or was refused", || matches!(state(writer.id()), Some('D' | 'Z')));
    }
    watch.kill();
    for writer in writers {
        assert!(!opened(writer));
    }
    until("the guardian ends", || !platform::process::exists(watch.guardian));
    assert_eq!(text(dir), "A=1\n");
}

fn a_watch_that_ends_refuses_what_waits_and_leaves_no_mark(dir: &Path) {
    let mut watch = Watch::start("hold", dir);
    let writer = open("append", &dir.join(".env"));
    watch.next("held");
    watch.finish();
    assert!(!opened(writer));
    assert!(opened(open("append", &dir.join(".env"))));
}

fn nobody_else_can_kill_stop_or_look_into_the_guardian(dir: &Path) {
    use std::os::unix::process::CommandExt;
    let watch = Watch::start("hold", dir);
    let guardian = watch.guardian;
    let as_nobody = |program: &str, arguments: &[&str]| {
        let mut command = std::process::Command::new(program);
        command.args(arguments).uid(NOBODY).gid(NOBODY).stderr(std::process::Stdio::null());
        command.stdout(std::process::Stdio::null()).status().expect("runs").success()
    };
    for name in ["KILL", "STOP", "TERM", "CONT"] {
        assert!(!as_nobody("kill", &["-s", name, &guardian.to_string()]), "{name}");
    }
    for file in ["mem", "environ", "maps", "syscall", "fd/0"] {
        assert!(!as_nobody("head", &["-c", "1", &format!("/proc/{guardian}/{file}")]), "{file}");
    }
    assert!(!as_nobody("ls", &[&format!("/proc/{guardian}/fd/")]));
    // Root's friendly signals do not end it either: it ends with the watch.
    for name in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        signal(guardian, name);
    }
    let mut opener = opener("append", &dir.join(".env")).spawn().expect("starts");
    let mut watch = watch;
    let id = watch.next("held");
    assert!(platform::process::exists(guardian));
    watch.tell(&format!("refuse {id}"));
    watch.next("answered");
    assert!(!crate::openers::end(&mut opener).success());
    watch.finish();
}

fn the_guardian_has_no_right_that_it_does_not_need(dir: &Path) {
    let watch = Watch::start("hold", dir);
    let status = fs::read_to_string(format!("/proc/{}/status", watch.guardian)).expect("root may look");
    for line in [
        "CapInh:\t0000000000000000",
        "CapPrm:\t0000000000000000",
        "CapEff:\t0000000000000000",
        "CapAmb:\t0000000000000000",
        "NoNewPrivs:\t1",
        "Seccomp:\t2",
        "Threads:\t1",
        "Name:\tkeep-guardian",
        // Root, but for files.
        "Uid:\t0\t0\t0\t65534",
    ] {
        assert!(status.lines().any(|it| it == line), "{line}\n{status}");
    }
    let fds = format!("/proc/{}/fd", watch.guardian);
    let (mut others, mut occupied) = (Vec::new(), std::collections::BTreeSet::new());
    for entry in fs::read_dir(fds).expect("lists") {
        let entry = entry.expect("is listed");
        let link = fs::read_link(entry.path()).expect("reads").to_string_lossy().into_owned();
        let number: u32 = entry.file_name().to_str().and_then(|name| name.parse().ok()).expect("a number");
        if link == "/dev/null" {
            occupied.insert(number);
        } else {
            others.push((number, link));
        }
    }
    others.sort();
    let kinds: Vec<_> = others.iter().map(|(_, link)| link.split(['[', ':']).next().unwrap_or("")).collect();
    assert_eq!(others.len(), 5, "{others:?}");
    assert!(kinds.contains(&"socket") && kinds.contains(&"anon_inode"), "{others:?}");
    // The watch's numbers are all taken, so that none of an event it reads can be one of the watch's.
    let limits = fs::read_to_string(format!("/proc/{}/limits", watch.pid())).expect("reads");
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("is listed");
    let limit: u32 = limit.split_whitespace().next().and_then(|word| word.parse().ok()).expect("a number");
    assert!(others.iter().all(|&(number, _)| number >= limit), "{limit} {others:?}");
    assert!((0..limit).all(|number| occupied.contains(&number)), "a number is free: {occupied:?}");
    watch.finish();
}
