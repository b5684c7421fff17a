//! The notifier, with scripts in the place of the desktop.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

fn text(title: &str, body: &str) -> Notification {
    Notification { title: title.to_owned(), body: body.to_owned() }
}

/// A directory that is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("keepwatch-notify-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Self(path.canonicalize().expect("a real path"))
    }

    /// A notifier that writes a line per call, and then does as told.
    fn script(&self, then: &str) -> (Program, PathBuf) {
        let path = self.0.join("notify-send");
        let log = self.0.join("log");
        let script = format!("#!/bin/sh\necho \"$*\" >> '{}'\n{then}\n", log.display());
        fs::write(&path, script).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
        (Program::NotifySend, path)
    }

    fn calls(&self) -> Vec<String> {
        let log = fs::read_to_string(self.0.join("log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _best_effort = fs::remove_dir_all(&self.0);
    }
}

fn eventually(what: &str, mut probe: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(9);
    while !probe() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        thread::park_timeout(Duration::from_millis(5));
    }
}

fn strings(arguments: &[OsString]) -> Vec<&str> {
    arguments.iter().map(|argument| argument.to_str().expect("UTF-8")).collect()
}

#[test]
fn notify_send_gets_the_text_after_the_options_and_without_markup() {
    let arguments = Program::NotifySend.arguments(&text("-t --help", "<b>.env</b> & co"));
    let expected = ["--app-name=keepwatch", "--urgency=normal", "--category=security", "--", "-t --help"];
    assert_eq!(strings(&arguments)[..5], expected);
    assert_eq!(strings(&arguments)[5..], ["&lt;b&gt;.env&lt;/b&gt; &amp; co"]);
}

#[test]
fn osascript_gets_the_text_as_arguments_of_a_fixed_script() {
    let arguments = Program::Osascript.arguments(&text("-e", "\" & (do shell script \"id\") & \""));
    let expected = [
        "-e",
        "on run argv",
        "-e",
        "display notification (item 2 of argv) with title (item 1 of argv)",
        "-e",
        "end run",
        "--",
        "-e",
        "\" & (do shell script \"id\") & \"",
    ];
    assert_eq!(strings(&arguments), expected);
}

proptest::proptest! {
    #[test]
    fn whatever_is_said_no_part_of_it_is_an_option_or_a_line_of_the_script(title in ".*", body in ".*") {
        let told = text(&title, &body);
        let fixed = Program::Osascript.arguments(&text("", ""));
        let arguments = Program::Osascript.arguments(&told);
        let after = fixed.len() - 2;
        proptest::prop_assert_eq!(&arguments[..after], &fixed[..after]);
        proptest::prop_assert_eq!(arguments[after - 1].to_str(), Some("--"));
        proptest::prop_assert_eq!(strings(&arguments[after..]), [title.as_str(), body.as_str()]);
    }
}

#[test]
fn only_a_real_program_outside_the_repository_is_found() {
    let (folder, repository) = (Folder::new("find"), Folder::new("find-repository"));
    let (program, path) = folder.script("");
    repository.script("");
    let search = |directories: &[&Path]| {
        let joined = std::env::join_paths(directories).expect("no colons");
        find(program, &joined, std::slice::from_ref(&repository.0))
    };
    assert_eq!(search(&[&repository.0, &folder.0]), Some(path.clone()));
    assert_eq!(search(&[&repository.0]), None);
    assert_eq!(search(&[Path::new(""), Path::new("."), Path::new("bin")]), None, "relative directories");
    std::os::unix::fs::symlink(repository.0.join("notify-send"), folder.0.join("link")).expect("linked");
    fs::rename(folder.0.join("link"), &path).expect("renamed");
    assert_eq!(search(&[&folder.0]), None, "a link into the repository");
    fs::remove_file(&path).expect("removed");
    fs::write(&path, "").expect("written");
    assert_eq!(find(program, folder.0.as_os_str(), &[]), None, "not executable");
    assert_eq!(find(program, OsStr::new(""), &[]), None);
}

#[test]
fn without_a_desktop_there_is_nothing_to_show() {
    assert!(!Program::NotifySend.has_desktop(&|_| false));
    assert!(Program::NotifySend.has_desktop(&|name| name == "WAYLAND_DISPLAY"));
    assert!(Program::Osascript.has_desktop(&|_| false));
    let notifier = Notifier::start(None).expect("nothing to start");
    notifier.notify(text("a", "b"));
}

#[test]
fn at_most_one_a_second_and_the_last_one_counts() {
    let folder = Folder::new("pace");
    let notifier = Notifier::start(Some(folder.script("exit 7"))).expect("a thread");
    let started = Instant::now();
    notifier.notify(text("keep watch", "first"));
    eventually("the first", || folder.calls().len() == 1);
    for n in 0..50 {
        notifier.notify(text("keep watch", &format!("number {n}")));
    }
    eventually("the second", || folder.calls().len() == 2);
    assert!(started.elapsed() >= PACE, "{:?}", started.elapsed());
    assert!(folder.calls()[1].ends_with("keep watch number 49"), "{:?}", folder.calls());
}

#[test]
fn what_is_over_is_not_told() {
    let folder = Folder::new("forget");
    let notifier = Notifier::start(Some(folder.script(""))).expect("a thread");
    notifier.notify(text("keep watch", "first"));
    eventually("the first", || folder.calls().len() == 1);
    notifier.notify(text("keep watch", "withdrawn"));
    notifier.forget();
    notifier.notify(text("keep watch", "third"));
    eventually("another", || folder.calls().len() == 2);
    assert!(folder.calls()[1].ends_with("third"), "{:?}", folder.calls());
}

/// Whether a process with that number still runs.
fn runs(pid: &str) -> bool {
    let number = pid.trim().parse().ok().and_then(Pid::from_raw).expect("a process id");
    rustix::process::test_kill_process(number).is_ok()
}

#[test]
fn a_hanging_notifier_and_its_children_are_killed_when_dropped() {
    let folder = Folder::new("hang");
    let pids = folder.0.join("pids");
    let hang = format!("sleep 60 & echo $! > '{0}.new'; mv '{0}.new' '{0}'; wait", pids.display());
    let notifier = Notifier::start(Some(folder.script(&hang))).expect("a thread");
    let started = Instant::now();
    notifier.notify(text("keep watch", "first"));
    notifier.notify(text("keep watch", "second"));
    assert!(started.elapsed() < Duration::from_millis(500), "notify waited");
    eventually("a child", || pids.exists());
    let child = fs::read_to_string(&pids).expect("its number");
    assert!(runs(&child));
    let dropping = Instant::now();
    drop(notifier);
    assert!(dropping.elapsed() < Duration::from_millis(500), "drop waited");
    eventually("the end of its child", || !runs(&child) || is_zombie(&child));
}

#[test]
fn a_hanging_notifier_is_killed_after_a_while_and_the_next_one_shown() {
    let folder = Folder::new("limit");
    let notifier =
        Notifier::start_with(Some(folder.script("exec sleep 60")), Duration::from_millis(1500)).expect("a thread");
    notifier.notify(text("keep watch", "first"));
    eventually("the first", || folder.calls().len() == 1);
    let started = Instant::now();
    notifier.notify(text("keep watch", "second"));
    eventually("the second", || folder.calls().len() == 2);
    assert!(started.elapsed() > Duration::from_millis(700), "{:?}", started.elapsed());
}

/// Ended, but nobody has asked yet: in a container without an init that does.
fn is_zombie(pid: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    status.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}

#[test]
fn whoever_waits_for_the_end_has_it_shown_by_then() {
    let folder = Folder::new("finish");
    let notifier = Notifier::start(Some(folder.script("sleep 0.2; echo over >> \"$0.over\""))).expect("starts");
    notifier.notify(text("keep", "one"));
    notifier.finish();
    assert_eq!(folder.calls().len(), 1);
    assert!(folder.0.join("notify-send.over").exists(), "it was ended before");
}
