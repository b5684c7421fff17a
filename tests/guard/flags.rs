//! Immutable flags that the guardian sets: they come off when it is told so, and not when the watch is killed.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use platform::attributes::{Flags, set_flags};
use platform::flags::FlagError;
use platform::guardian::{Guardian, GuardianError, OnDeath, Settings};
use platform::openings::group;
use platform::privilege;
use rustix::process::Signal;

use crate::openers::until;
use crate::watch::{signal, state, stop};
use crate::{Case, NOBODY, own_program, put};

pub const CASES: &[Case] = &[
    ("a_flag_holds_until_it_is_taken_off", a_flag_holds_until_it_is_taken_off),
    ("flags_of_others_and_objects_of_others_are_left_alone", flags_of_others_and_objects_of_others_are_left_alone),
    ("flags_stay_when_the_watch_is_gone_without_a_word", flags_stay_when_the_watch_is_gone_without_a_word),
    (
        "a_flag_that_an_earlier_guardian_left_comes_off_before_the_watch_begins",
        a_flag_that_an_earlier_guardian_left_comes_off_before_the_watch_begins,
    ),
    ("with_both_killed_a_flag_stays_until_the_next_start", with_both_killed_a_flag_stays_until_the_next_start),
    ("a_guardian_that_may_not_flag_does_not", a_guardian_that_may_not_flag_does_not),
    ("a_guardian_is_not_made_while_other_threads_run", a_guardian_is_not_made_while_other_threads_run),
];

/// A guardian of this process, which is nobody from then on. `None` where the file system has no such flag.
fn start(dir: &Path, may_flag: bool) -> Option<Guardian> {
    put(&dir.join("file"), "A=1\n");
    fs::create_dir(dir.join("folder")).expect("makes");
    chown(dir.join("folder"), Some(NOBODY), Some(NOBODY)).expect("chowns");
    let probe = File::open(dir.join("file")).expect("opens");
    let tried = set_flags(&probe, Flags { immutable: true, append_only: false });
    if tried.and_then(|()| set_flags(&probe, Flags::default())).is_err() {
        println!("skipped: needs a file system with flags");
        return None;
    }
    let settings = Settings { on_death: OnDeath::Refuse, may_flag, user: NOBODY };
    let guardian = Guardian::start(group().expect("root may").as_fd(), &[], settings).expect("starts");
    privilege::drop_to(NOBODY, NOBODY).expect("drops");
    Some(guardian)
}

fn is_writable(path: &Path) -> bool {
    File::options().append(true).open(path).is_ok()
}

fn a_flag_holds_until_it_is_taken_off(dir: &Path) {
    let Some(guardian) = start(dir, true) else { return };
    let (file, folder) = (dir.join("file"), dir.join("folder"));
    for path in [&file, &folder] {
        let object = File::open(path).expect("opens");
        guardian.set_immutable(object.as_fd()).expect("sets");
        guardian.set_immutable(object.as_fd()).expect("it is set, by us");
    }
    assert!(!is_writable(&file) && fs::remove_file(&file).is_err() && fs::write(folder.join("new"), "").is_err());
    for path in [&file, &folder] {
        guardian.clear_immutable(File::open(path).expect("opens").as_fd()).expect("takes it off");
    }
    assert!(is_writable(&file) && fs::write(folder.join("new"), "").is_ok());
}

fn flags_of_others_and_objects_of_others_are_left_alone(dir: &Path) {
    let roots = dir.join("roots");
    fs::write(&roots, "").expect("writes");
    let before = dir.join("before");
    put(&before, "");
    let object = File::open(&before).expect("opens");
    let is_set = platform::flags::change(object.as_fd(), true).is_ok();
    if let Some(guardian) = start(dir, true) {
        assert!(is_set);
        let done = guardian.set_immutable(File::open(&before).expect("opens").as_fd());
        assert!(matches!(done, Err(FlagError::Already)), "{done:?}");
        let done = guardian.clear_immutable(File::open(&before).expect("opens").as_fd());
        assert!(matches!(done, Err(FlagError::NotOurs)), "{done:?}");
        let done = guardian.set_immutable(File::open(&roots).expect("opens").as_fd());
        assert!(matches!(done, Err(FlagError::NotOurs)), "{done:?}");
        let done = guardian.set_immutable(File::open("/dev/null").expect("opens").as_fd());
        assert!(matches!(done, Err(FlagError::NotOurs)), "{done:?}");
        assert!(!is_writable(&before));
        drop(guardian);
        assert!(!is_writable(&before), "it never was ours");
    }
}

fn flags_stay_when_the_watch_is_gone_without_a_word(dir: &Path) {
    let Some(guardian) = start(dir, true) else { return };
    guardian.set_immutable(File::open(dir.join("file")).expect("opens").as_fd()).expect("sets");
    let pid = guardian.pid();
    drop(guardian);
    until("the guardian has ended", || !matches!(state(pid), Some(state) if state != 'Z'));
    assert!(!is_writable(&dir.join("file")), "to be killed must unlock nothing");
}

fn a_flag_that_an_earlier_guardian_left_comes_off_before_the_watch_begins(dir: &Path) {
    put(&dir.join("left"), "");
    let left = File::open(dir.join("left")).expect("opens");
    if platform::flags::change(left.as_fd(), true).is_err() {
        return;
    }
    let Some(guardian) = start(dir, true) else { return };
    guardian.clear_earlier(left.as_fd()).expect("it is the user's");
    assert!(is_writable(&dir.join("left")));
    guardian.begin().expect("begins");
    let done = guardian.clear_earlier(left.as_fd());
    assert!(matches!(done, Err(FlagError::NotOurs)), "{done:?}");
}

/// Makes `file` of the folder immutable, says the guardian's number, and waits.
pub fn be(dir: &Path) -> ExitCode {
    let Some(guardian) = start(dir, true) else { return ExitCode::FAILURE };
    guardian.set_immutable(File::open(dir.join("file")).expect("opens").as_fd()).expect("sets");
    println!("{}", guardian.pid());
    let _ = std::io::stdin().read_line(&mut String::new());
    ExitCode::SUCCESS
}

fn with_both_killed_a_flag_stays_until_the_next_start(dir: &Path) {
    let mut command = Command::new(own_program());
    let mut watch =
        command.arg("--flag").arg(dir).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
    let mut line = String::new();
    BufReader::new(watch.stdout.take().expect("a pipe")).read_line(&mut line).expect("reads");
    let Ok(guardian) = line.trim().parse() else {
        watch.wait().expect("it has said why");
        return;
    };
    stop(guardian);
    watch.kill().expect("kills");
    signal(guardian, Signal::KILL);
    until("both are gone", || !matches!(state(guardian), Some(state) if state != 'Z'));
    watch.wait().expect("ends");
    let file = dir.join("file");
    assert!(!is_writable(&file), "nobody was left to take it off");
    let settings = Settings { on_death: OnDeath::Refuse, may_flag: true, user: NOBODY };
    let next = Guardian::start(group().expect("root may").as_fd(), &[], settings).expect("starts");
    next.clear_earlier(File::open(&file).expect("opens").as_fd()).expect("it is the user's");
    assert!(is_writable(&file));
}

fn a_guardian_that_may_not_flag_does_not(dir: &Path) {
    let Some(guardian) = start(dir, false) else { return };
    let done = guardian.set_immutable(File::open(dir.join("file")).expect("opens").as_fd());
    assert!(matches!(done, Err(FlagError::NotOurs)), "{done:?}");
    assert!(is_writable(&dir.join("file")));
}

fn a_guardian_is_not_made_while_other_threads_run(_dir: &Path) {
    let (stop, wait) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || wait.recv());
    let settings = Settings { on_death: OnDeath::Allow, may_flag: false, user: NOBODY };
    let done = Guardian::start(group().expect("root may").as_fd(), &[], settings);
    assert!(matches!(done, Err(GuardianError::Threads { count: 2 })), "{done:?}");
    drop(stop);
    assert!(other.join().expect("does not panic").is_err());
}
