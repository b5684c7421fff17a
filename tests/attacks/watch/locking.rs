//! Files that are locked: every way to change one is refused by the kernel, and no flag outlives the watch for good.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use platform::Dir;
use platform::attributes::{Flags, set_flags};

use crate::support::{
    Content, ENV, Mounted, Sandbox, Watch, fresh, has_python, is_root, pause, python, sha, skip, until,
};

/// Whether files can be locked here: it takes privilege, and where temporary files lie the flag.
pub(super) fn can_lock() -> bool {
    if !is_root() {
        return false;
    }
    let file = tempfile::NamedTempFile::new().expect("a file");
    set_immutable(file.path(), true);
    let is_set = is_immutable(file.path());
    set_immutable(file.path(), false);
    is_set
}

/// A sandbox that can be removed whatever is immutable in it.
pub(super) struct Lab {
    pub(super) sandbox: Sandbox,
    _mounts: Vec<Mounted>,
    _folder: Option<tempfile::TempDir>,
}

impl std::ops::Deref for Lab {
    type Target = Sandbox;

    fn deref(&self) -> &Sandbox {
        &self.sandbox
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        release(&self.sandbox.base);
    }
}

fn release(at: &Path) {
    let Ok(found) = fs::symlink_metadata(at) else { return };
    if found.is_file() || found.is_dir() {
        set_immutable(at, false);
    }
    if found.is_dir() {
        for entry in fs::read_dir(at).into_iter().flatten().flatten() {
            release(&entry.path());
        }
    }
}

pub(super) fn set_immutable(path: &Path, immutable: bool) {
    let Ok(file) = File::open(path) else { return };
    let _ = set_flags(&file, Flags { immutable, append_only: false });
}

pub(super) fn is_immutable(path: &Path) -> bool {
    let name = path.file_name().expect("a path below a folder").as_encoded_bytes();
    let stat = Dir::open_ambient(path.parent().expect("a folder")).and_then(|dir| dir.stat(name)).expect("stats");
    stat.expect("it is there").immutable
}

impl Lab {
    /// A repository with a hook, on the file system of temporary files.
    pub(super) fn new() -> Self {
        Self::of(Sandbox::new(), Vec::new(), None)
    }

    fn of(sandbox: Sandbox, mounts: Vec<Mounted>, folder: Option<tempfile::TempDir>) -> Self {
        sandbox.write(".git/hooks/pre-commit", b"#!/bin/sh\nexit 0\n");
        sandbox.chmod(".git/hooks/pre-commit", 0o755);
        sandbox.write(".git/hooks/pre-push.sample", b"#!/bin/sh\n");
        Self { sandbox, _mounts: mounts, _folder: folder }
    }

    fn is_immutable(&self, path: &str) -> bool {
        is_immutable(&self.path(path))
    }

    /// What of the usual is immutable.
    fn immutable(&self) -> Vec<&'static str> {
        LOCKED.into_iter().filter(|path| self.path(path).exists() && self.is_immutable(path)).collect()
    }

    fn locked(&self, options: &[&str]) -> Watch {
        let mut watch = self.watch(&[&["--lock", "--decision-timeout", "300"], options].concat());
        watch.says("keep watch: locked: 4 files, 1 folder; u unlocks one path for 60 s");
        watch
    }

    /// Takes the flag off and puts another file there, as root can; again if the flag is back in between.
    fn unlocks_and_replaces(&self, path: &str, content: &[u8]) {
        let beside = self.base.join("beside");
        fs::write(&beside, content).expect("writes");
        until("it is replaced", || {
            set_immutable(&self.path(path), false);
            fs::rename(&beside, self.path(path)).is_ok()
        });
    }

    /// A watch without the right to change the flag.
    fn unprivileged(&self) -> Watch {
        let script = "exec setpriv --bounding-set -linux_immutable \"$KEEP\" watch --json \"$@\" >\"$OUT\"";
        let mut watch = Watch::start(&self.sandbox, script, &["--decision-timeout", "300"], 200, 50);
        watch.says("undecided changes are restored after");
        watch
    }
}

/// Kills the watch and its guardian, so that nobody is left to unlock anything.
pub(super) fn killed_with_guardian(watch: Watch) {
    // A stopped watch notices nothing of its guardian's end.
    watch.signal(rustix::process::Signal::STOP);
    kill_guardian(&watch);
    watch.killed();
}

/// Kills what the watch has forked off.
fn kill_guardian(watch: &Watch) {
    let own = watch.pid();
    for entry in fs::read_dir("/proc").expect("lists").flatten() {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<i32>().ok());
        let child =
            entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(rustix::process::Pid::from_raw);
        if let (Some(child), true) = (child, parent == Some(own.as_raw_pid())) {
            let _may_have_ended = rustix::process::kill_process(child, rustix::process::Signal::KILL);
        }
    }
}

const LOCKED: [&str; 5] = [".env", ".git/config", ".git/hooks", ".git/hooks/pre-commit", ".git/info/exclude"];

/// File systems that have the flag, with what makes one.
const FILE_SYSTEMS: [&str; 5] = ["ext4", "xfs", "btrfs", "tmpfs", "overlay"];

/// A repository on a file system of its own; `None` where there can be none.
fn on(kind: &str) -> Option<Lab> {
    let own = tempfile::tempdir().expect("a folder");
    let folder = own.path();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("chmods");
    let at = folder.join("mount");
    fs::create_dir(&at).expect("makes");
    let mut mounts = Vec::new();
    match kind {
        "tmpfs" => mounts.push(Mounted::new(&["-t", "tmpfs", "tmpfs"], &at)?),
        "overlay" => {
            // Its layers must not lie on an overlay themselves.
            mounts.push(Mounted::new(&["-t", "tmpfs", "tmpfs"], folder)?);
            for name in ["lower", "upper", "work", "mount"] {
                fs::create_dir(folder.join(name)).expect("makes");
            }
            let layer = |name: &str| format!("{name}dir={}", folder.join(name).display());
            let options = format!("{},{},{}", layer("lower"), layer("upper"), layer("work"));
            mounts.push(Mounted::new(&["-t", "overlay", "overlay", "-o", &options], &at)?);
        }
        kind => {
            let image = folder.join("image");
            File::create(&image).and_then(|file| file.set_len(400 << 20)).expect("makes");
            let made = Command::new(format!("mkfs.{kind}")).arg("-q").arg(&image).output();
            made.ok().filter(|made| made.status.success())?;
            mounts.push(Mounted::new(&["-o", "loop", image.to_str().expect("no odd folder")], &at)?);
        }
    }
    // The last mounted goes first.
    mounts.reverse();
    let sandbox = Sandbox::bare_in(&at);
    sandbox.make_repository("");
    sandbox.write(".env", ENV);
    sandbox.chmod(".env", 0o600);
    Some(Lab::of(sandbox, mounts, Some(own)))
}

/// Tries everything, and prints the name of each thing that was not refused with EPERM.
const TRY_ALL: &str = r#"
import ctypes, errno, os, sys
top, own = sys.argv[1], sys.argv[2]
env, hooks = top + "/.env", top + "/.git/hooks"
libc = ctypes.CDLL(None, use_errno=True)
def exchange():
    if libc.renameat2(-100, own.encode(), -100, env.encode(), 2):
        raise OSError(ctypes.get_errno(), "exchange")
attempts = {
    "write": lambda: os.open(env, os.O_WRONLY),
    "append": lambda: os.open(env, os.O_WRONLY | os.O_APPEND),
    "truncate on opening": lambda: os.open(env, os.O_RDONLY | os.O_TRUNC),
    "truncate": lambda: os.truncate(env, 0),
    "rm": lambda: os.unlink(env),
    "mv away": lambda: os.rename(env, top + "/moved"),
    "mv over": lambda: os.rename(own, env),
    "exchange": exchange,
    "link": lambda: os.link(env, top + "/linked"),
    "chmod": lambda: os.chmod(env, 0o666),
    "chown": lambda: os.chown(env, os.getuid(), os.getgid()),
    "utime": lambda: os.utime(env, (1, 1)),
    "setxattr": lambda: os.setxattr(env, "user.a", b"1"),
    "hook: create": lambda: os.open(hooks + "/post-commit", os.O_CREAT | os.O_WRONLY),
    "hook: mv in": lambda: os.rename(own, hooks + "/post-commit"),
    "hook: link in": lambda: os.link(own, hooks + "/post-commit"),
    "hook: symlink in": lambda: os.symlink(own, hooks + "/post-commit"),
    "hook: rm": lambda: os.unlink(hooks + "/pre-commit"),
    "hook: mkdir": lambda: os.mkdir(hooks + "/post-commit"),
    "hooks: mv": lambda: os.rename(hooks, top + "/.git/h"),
    "hooks: chmod": lambda: os.chmod(hooks, 0o777),
}
for name, attempt in attempts.items():
    try:
        attempt()
        print(name, "was done")
    except OSError as error:
        if error.errno != errno.EPERM:
            print(name, errno.errorcode[error.errno])
print("tried", len(attempts))
"#;

#[test]
fn every_way_of_changing_a_locked_file_is_refused_to_its_owner_and_to_root_on_every_file_system() {
    if !can_lock() {
        return skip("immutable");
    }
    if !has_python() {
        return skip("python3");
    }
    const NOBODY: u32 = 65_534;
    for kind in FILE_SYSTEMS {
        let Some(lab) = on(kind) else {
            skip(kind);
            continue;
        };
        // Without the lock, its owner could do all of it.
        for path in ["", ".git", ".git/hooks", ".env", ".git/hooks/pre-commit"] {
            chown(lab.path(path), Some(NOBODY), Some(NOBODY)).expect("gives away");
        }
        for folder in [lab.base.clone(), lab.base.join("home")] {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("chmods");
        }
        // Root goes on as root only in folders of its own.
        for path in ["", ".git"] {
            chown(lab.path(path), Some(0), Some(NOBODY)).expect("gives away");
            lab.chmod(path, 0o775);
        }
        let watch = lab.locked(&[]);
        assert_eq!(lab.immutable(), LOCKED, "{kind}");
        for uid in [NOBODY, 0] {
            lab.write("own", b"evil\n");
            chown(lab.path("own"), Some(uid), None).expect("gives");
            let tried = python(TRY_ALL, &[&lab.path(""), &lab.path("own")])
                .uid(uid)
                .gid(uid)
                .current_dir("/")
                .output()
                .expect("runs");
            let said = String::from_utf8_lossy(&tried.stdout).into_owned() + &String::from_utf8_lossy(&tried.stderr);
            assert_eq!(said, "tried 21\n", "{kind}, user {uid}");
        }
        assert!(lab.has_env(), "{kind}");
        let ended = watch.stop();
        ended.came_to(0, &[]);
        assert_eq!(lab.immutable(), [""; 0], "{kind}: {}", ended.text);
    }
}

#[test]
fn a_descriptor_opened_before_the_lock_is_refused_or_asked_about() {
    if !can_lock() {
        return skip("immutable");
    }
    for kind in FILE_SYSTEMS {
        let Some(lab) = on(kind) else {
            skip(kind);
            continue;
        };
        let mut before = File::options().append(true).open(lab.path(".env")).expect("opens");
        let mut watch = lab.locked(&[]);
        match before.write_all(b"EVIL=1\n") {
            Err(error) => assert_eq!((kind, error.raw_os_error()), ("ext4", Some(1))),
            Ok(()) => {
                assert_ne!(kind, "ext4");
                watch.says("keep watch: .env changed (secrets, modified");
                watch.rejects(".env");
                lab.becomes(".env", &Content::File(0o600, ENV.to_vec()));
                until("it is locked again", || lab.is_immutable(".env"));
            }
        }
        watch.stop();
        assert_eq!((lab.has_env(), lab.immutable()), (true, vec![]), "{kind}");
    }
}

#[test]
fn git_works_with_locked_hooks_and_secrets() {
    if !can_lock() {
        return skip("immutable");
    }
    let lab = Lab::new();
    fs::remove_dir_all(lab.path(".git")).expect("removes");
    lab.git(&["init", "-q", "-b", "main"]);
    lab.write(".git/hooks/pre-commit", b"#!/bin/sh\necho ran >>ran.log\n");
    lab.chmod(".git/hooks/pre-commit", 0o755);
    let watch = lab.locked(&[]);
    lab.git(&["add", "-A"]);
    lab.git(&["commit", "-q", "-m", "one"]);
    lab.write("src/lib.rs", b"// two\n");
    lab.git(&["checkout", "-q", "-b", "side"]);
    lab.git(&["add", "-A"]);
    lab.git(&["commit", "-q", "-m", "two"]);
    lab.git(&["checkout", "-q", "main"]);
    lab.git(&["merge", "-q", "side"]);
    lab.git(&["stash", "list"]);
    lab.git(&["gc", "-q"]);
    assert_eq!(fs::read(lab.path("ran.log")).expect("the hook ran"), b"ran\nran\n");
    // It writes its configuration by renaming, which is refused in words.
    let config = lab.command("git").args(["config", "core.fsmonitor", "evil"]).output().expect("runs");
    assert!(!config.status.success(), "{config:?}");
    watch.stop().came_to(0, &[]);
    assert_eq!(lab.immutable(), [""; 0]);
}

#[test]
fn a_checkout_that_leaves_locked_files_behind_is_said_and_an_attempt_is_asked_about_by_nobody() {
    if !can_lock() {
        return skip("immutable");
    }
    let lab = Lab::new();
    fs::remove_dir_all(lab.path(".git")).expect("removes");
    lab.git(&["init", "-q", "-b", "main"]);
    lab.write(".git/hooks/pre-commit", b"#!/bin/sh\n");
    lab.write("CLAUDE.md", b"# one\n");
    lab.git(&["add", "-A"]);
    lab.git(&["commit", "-q", "-m", "one"]);
    lab.git(&["checkout", "-q", "-b", "side"]);
    lab.write("CLAUDE.md", b"# two\n");
    lab.write("free.txt", b"two\n");
    lab.git(&["add", "-A"]);
    lab.git(&["commit", "-q", "-m", "two"]);
    lab.git(&["checkout", "-q", "main"]);
    let mut watch = lab.watch(&["--lock", "--hold", "--decision-timeout", "300"]);
    watch.says("keep watch: locked: ");
    // Refused by the flag before the open is held.
    assert!(!lab.command("sh").args(["-c", "echo x >> .env"]).status().expect("runs").success());
    let _some_of_it_is_refused = lab.command("git").args(["checkout", "-q", "side"]).output().expect("runs");
    watch.says("keep watch: git is at another branch or commit; locked files were left as they were");
    assert_eq!(fs::read(lab.path("CLAUDE.md")).expect("reads"), b"# one\n");
    assert!(lab.path("free.txt").exists());
    let ended = watch.stop();
    assert!(!ended.text.contains("Let it?") && !ended.text.contains("Keep it?"), "{}", ended.text);
    ended.came_to(0, &[]);
}

#[test]
fn after_a_kill_the_next_start_with_privilege_unlocks_and_one_without_names_what_is_locked() {
    if !can_lock() {
        return skip("immutable");
    }
    let lab = Lab::new();
    killed_with_guardian(lab.locked(&[]));
    assert_eq!(lab.immutable(), LOCKED);
    let mut watch = lab.unprivileged();
    watch.shows("keep watch: warning: still locked since the last run:");
    watch.shows("sudo keep recover unlocks");
    // The flag is no change, and not taken for the accepted state.
    assert!(!watch.has_said(" changed ("), "{}", watch.text());
    watch.stop().came_to(0, &[]);
    assert_eq!(lab.immutable(), LOCKED);
    let watch = lab.watch(&[]);
    assert!(watch.has_said("keep watch: unlocked what the last run had left locked: "), "{}", watch.text());
    assert_eq!(lab.immutable(), [""; 0]);
    watch.stop().came_to(0, &[]);
    assert!(!lab.journal().contains(r#""immutable":true"#), "the flag was taken for a state");
}

#[test]
fn a_watch_that_loses_its_guardian_says_what_stays_locked_in_one_line_and_that_it_failed() {
    if !can_lock() {
        return skip("immutable");
    }
    let lab = Lab::new();
    let mut watch = lab.locked(&[]);
    kill_guardian(&watch);
    watch.says("keep watch: the guardian is gone; ");
    watch.says("; locked: 4 files, 1 folder: that stays until sudo keep recover");
    let ended = watch.stop();
    ended.came_to(1, &[]);
    let stay: Vec<&str> = ended.text.lines().filter(|line| line.contains("locked: the process")).collect();
    assert_eq!(stay.len(), 1, "{}", ended.text);
    assert!(stay[0].contains("5 paths stay (.env, .git/config, "), "{stay:?}");
    assert!(!ended.text.contains("held opens"), "nothing was held: {}", ended.text);
    assert_eq!(ended.report()["exit_code"], 1);
    assert_eq!(lab.immutable(), LOCKED);
    assert_eq!(lab.keep(&["recover"]).status.code(), Some(0));
    assert_eq!(lab.immutable(), [""; 0]);
}

#[test]
fn keep_recover_unlocks_what_a_killed_watch_left_and_puts_right_what_was_changed() {
    if !can_lock() {
        return skip("immutable");
    }
    let lab = Lab::new();
    killed_with_guardian(lab.locked(&[]));
    // As root may.
    set_immutable(&lab.path(".env"), false);
    lab.write(".env", b"EVIL=1\n");
    let done = lab.keep(&["recover", "--json"]);
    assert_eq!(done.status.code(), Some(3), "{done:?}");
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).expect("is JSON");
    assert_eq!(report["unlocked"].as_array().map(Vec::len), Some(5), "{report}");
    assert_eq!(report["locked"], serde_json::json!([]));
    assert_eq!((lab.has_env(), lab.immutable()), (true, vec![]));
    // There is nothing left to do.
    assert_eq!(lab.keep(&["recover"]).status.code(), Some(0));
    killed_with_guardian(lab.locked(&[]));
    assert_eq!(lab.keep(&["recover"]).status.code(), Some(0), "only flags had to be taken off");
    assert_eq!(lab.immutable(), [""; 0]);
}

#[test]
fn killed_at_any_moment_of_its_life_no_flag_outlives_the_next_start() {
    if !can_lock() {
        return skip("immutable");
    }
    let lab = Lab::new();
    for number in 0..40 {
        lab.write(format!("d{number}/.env"), b"A=1\n");
    }
    let everything = || {
        let many = (0..40).map(|number| format!("d{number}/.env"));
        many.chain(LOCKED.map(str::to_owned)).filter(|path| lab.is_immutable(path)).count()
    };
    let mut seen = Vec::new();
    for round in 0..12_u64 {
        let mut watch = lab.spawn(&["--lock"]);
        match round % 3 {
            // Before anything is locked, or somewhere on the way.
            0 => pause(Duration::from_millis(4 * round * round)),
            // While it locks.
            1 => {
                until("the first lock", || lab.is_immutable("d0/.env") || lab.is_immutable(".env"));
                pause(Duration::from_micros(100 * round));
            }
            // While it unlocks.
            _ => {
                watch.says("keep watch: locked: ");
                watch.signal(rustix::process::Signal::TERM);
                pause(Duration::from_millis(round));
            }
        }
        killed_with_guardian(watch);
        seen.push(everything());
        lab.watch(&[]).stop();
        assert_eq!(everything(), 0, "round {round}");
    }
    assert!(seen.iter().any(|count| *count > 0), "no round came as far as a lock: {seen:?}");
}

#[test]
fn killed_at_any_moment_of_a_restore_under_the_lock_it_ends_accepted_and_unlocked() {
    if !can_lock() {
        return skip("immutable");
    }
    let lab = Lab::new();
    for round in 0..12_u64 {
        let mut watch = lab.locked(&["--watch-interval-ms", "50"]);
        let evil = fresh();
        lab.unlocks_and_replaces(".env", &evil);
        watch.says("keep watch: .env changed");
        watch.settle();
        watch.types(b"r");
        // From before the first step to after the last one.
        pause(Duration::from_micros(round * round * 400));
        watch.killed();
        lab.watch(&[]).stop();
        assert!(lab.has_env(), "round {round}: {:?}", lab.content(".env"));
        assert_eq!(lab.immutable(), [""; 0], "round {round}");
        assert_eq!(lab.temporary_names(""), [""; 0], "round {round}");
        assert!(lab.quarantined().contains(&evil), "round {round}: something is lost");
    }
}

#[test]
fn a_lock_that_root_takes_off_is_set_again_and_what_was_changed_meanwhile_is_asked_about() {
    if !can_lock() {
        return skip("immutable");
    }
    let lab = Lab::new();
    let mut watch = lab.locked(&["--watch-interval-ms", "100"]);
    for path in [".env", ".git/hooks"] {
        set_immutable(&lab.path(path), false);
        watch.shows(&format!("keep watch: somebody unlocked {path}; it is locked again"));
        assert!(lab.is_immutable(path));
    }
    lab.unlocks_and_replaces(".env", b"EVIL=1\n");
    watch.says("keep watch: .env changed (secrets, modified");
    watch.rejects(".env");
    until("it is locked again", || lab.has_env() && lab.is_immutable(".env"));
    // What is accepted is locked as well.
    let accepted = fresh();
    lab.unlocks_and_replaces(".env", &accepted);
    watch.asks(".env", "secrets", "modified", &sha(&accepted));
    watch.accepts(".env");
    until("it is locked again", || lab.is_immutable(".env"));
    lab.write("new/.env", b"A=1\n");
    watch.asks("new/.env", "secrets", "added", &sha(b"A=1\n"));
    watch.accepts("new/.env");
    until("it is locked", || lab.is_immutable("new/.env"));
    watch.stop();
    assert_eq!((lab.immutable(), lab.is_immutable("new/.env")), (vec![], false));
}

#[test]
fn a_folder_moved_away_with_locked_files_is_put_right_and_nothing_stays_locked() {
    if !can_lock() {
        return skip("immutable");
    }
    let lab = Lab::new();
    let mut watch = lab.locked(&[]);
    fs::rename(lab.path(".git"), lab.path("away")).expect("a folder above can be moved");
    watch.says("protected files changed (git_control)");
    watch.answers(b"r", "restored (rejected)");
    until("all of it is back and locked", || lab.immutable() == LOCKED);
    let ended = watch.stop();
    assert_eq!(lab.immutable(), [""; 0], "{}", ended.text);
    for path in ["away/config", "away/hooks", "away/hooks/pre-commit", "away/info/exclude"] {
        assert!(!lab.is_immutable(path), "{path}");
    }
}

#[test]
fn what_was_immutable_before_stays_so_and_is_never_unlocked() {
    if !can_lock() {
        return skip("immutable");
    }
    let lab = Lab::new();
    set_immutable(&lab.path(".env"), true);
    let mut watch = lab.watch(&["--lock"]);
    watch.says("keep watch: locked: 3 files, 1 folder");
    let ended = watch.stop();
    assert!(ended.report()["limits"].to_string().contains("1 path immutable before"), "{}", ended.output);
    assert_eq!(lab.immutable(), [".env"]);
    lab.watch(&["--lock"]).killed();
    lab.watch(&[]).stop();
    assert_eq!(lab.immutable(), [".env"]);
}

#[test]
fn u_unlocks_one_path_for_a_minute_and_its_changes_are_asked_about() {
    if !can_lock() {
        return skip("immutable");
    }
    let lab = Lab::new();
    let mut watch = lab.locked(&[]);
    let choose = |watch: &mut Watch, letters: &[u8], path: &str| {
        watch.answers(b"u", "closes in ");
        watch.settle();
        for letter in letters {
            pause(Duration::from_millis(60));
            watch.types(&[*letter]);
        }
        watch.says(&format!("unlock {path} for 60 s?"));
        // Never by a paste.
        watch.types(b"\r\r");
        watch.answers(b"\r", &format!("keep watch: {path} is unlocked for 60 s"));
    };
    choose(&mut watch, b"pre-c", ".git/hooks/pre-commit");
    let begun = Instant::now();
    assert_eq!(lab.immutable(), [".env", ".git/config", ".git/info/exclude"], "its folder is unlocked with it");
    let hook = b"#!/bin/sh\nexit 1\n";
    lab.save_by_rename(".git/hooks/pre-commit", hook);
    watch.asks(".git/hooks/pre-commit", "git_control", "modified", &sha(hook));
    watch.accepts(".git/hooks/pre-commit");
    // Several at once.
    choose(&mut watch, b".env", ".env");
    lab.write(".env", b"EVIL=1\n");
    watch.asks(".env", "secrets", "modified", &sha(b"EVIL=1\n"));
    watch.rejects(".env");
    assert!(lab.has_env() && !lab.is_immutable(".env"), "its minute is not over");
    let deadline = begun + Duration::from_secs(100);
    for path in [".git/hooks/pre-commit", ".env"] {
        let line = format!("keep watch: {path} is locked again");
        while !watch.has_said(&line) {
            assert!(Instant::now() < deadline, "{}", watch.text());
            pause(Duration::from_millis(100));
        }
    }
    assert!(begun.elapsed() > Duration::from_secs(59));
    assert_eq!(lab.immutable(), LOCKED);
    watch.stop();
    assert_eq!((lab.immutable(), lab.has_env()), (vec![], true));
}

#[test]
fn letters_typed_in_the_choice_answer_no_question_and_escape_leaves_it() {
    if !can_lock() {
        return skip("immutable");
    }
    let lab = Lab::new();
    let mut watch = lab.locked(&[]);
    watch.answers(b"u", "closes in ");
    lab.write("new/.env", b"A=1\n");
    watch.says("waiting: 1 more");
    for letter in b"arar" {
        pause(Duration::from_millis(400));
        watch.types(&[*letter]);
    }
    pause(Duration::from_millis(400));
    assert!(!watch.has_said("new/.env accepted") && !watch.has_said("new/.env restored"), "{}", watch.text());
    watch.types(b"\x1b");
    watch.asks("new/.env", "secrets", "added", &sha(b"A=1\n"));
    // A choice that is asked for now comes after the question.
    watch.answers(b"u", "can be chosen once nothing is asked any more");
    watch.rejects("new/.env");
    watch.says("closes in ");
    assert_eq!(lab.immutable(), LOCKED);
    watch.stop();
}

#[test]
fn without_the_privilege_a_lock_is_refused_or_left_out_and_said() {
    if !can_lock() {
        return skip("immutable");
    }
    let lab = Lab::new();
    let script = "exec setpriv --bounding-set -linux_immutable \"$KEEP\" watch --json --lock \"$@\" >\"$OUT\"";
    let message = Watch::start(&lab.sandbox, script, &[], 200, 50).finish().refused("GXT_CAGE_BACKEND_UNAVAILABLE");
    assert!(message.contains("takes privilege"), "{message}");
    let mut watch = Watch::start(&lab.sandbox, script, &["--best-effort"], 200, 50);
    watch.says("undecided changes are restored after");
    let ended = watch.stop();
    assert!(ended.report()["limits"].to_string().contains("Nothing is locked: "), "{}", ended.output);
    assert_eq!(lab.immutable(), [""; 0]);
}

fn give_away(at: &Path, to: u32) {
    chown(at, Some(to), Some(to)).expect("gives away");
    if fs::symlink_metadata(at).expect("exists").is_dir() {
        fs::read_dir(at).expect("lists").for_each(|entry| give_away(&entry.expect("an entry").path(), to));
    }
}

#[test]
fn where_root_works_for_a_user_the_guardian_locks_and_a_killed_watch_leaves_it_so_until_the_next_start() {
    if !can_lock() {
        return skip("immutable");
    }
    let mut lab = Lab::new();
    for name in ["SUDO_UID", "SUDO_GID"] {
        lab.sandbox.set(name, "65534");
    }
    give_away(&lab.base, 65_534);
    let mut watch = lab.locked(&[]);
    assert_eq!(lab.immutable(), LOCKED);
    // What needs the lock lifted goes through it, too.
    lab.unlocks_and_replaces(".env", b"EVIL=1\n");
    watch.says("keep watch: .env changed (secrets, modified");
    watch.rejects(".env");
    until("it is locked again", || lab.has_env() && lab.is_immutable(".env"));
    watch.stop().came_to(3, &[".env rejected"]);
    assert_eq!(lab.immutable(), [""; 0]);
    lab.locked(&[]).killed();
    assert_eq!(lab.immutable(), LOCKED, "to kill the watch unlocks nothing");
    lab.watch(&[]).stop().came_to(0, &[]);
    assert_eq!(lab.immutable(), [""; 0], "the next start has taken the flags off");
    // With neither of them left, a recovery with privilege does it.
    for path in LOCKED {
        set_immutable(&lab.path(path), true);
    }
    assert_eq!(lab.keep(&["recover"]).status.code(), Some(0));
    assert_eq!(lab.immutable(), LOCKED, "nothing in the journal says that these flags are ours");
}

#[test]
fn where_no_file_system_has_the_flag_a_lock_is_refused() {
    if !can_lock() {
        return skip("immutable");
    }
    let folder = tempfile::tempdir().expect("a folder");
    // It has no flags at all (FS_IOC_GETFLAGS is ENOTTY), as FUSE has none.
    let Some(mount) = Mounted::new(&["-t", "ramfs", "ramfs"], folder.path()) else { return skip("mounts") };
    let sandbox = Sandbox::bare_in(folder.path());
    sandbox.write(".env", ENV);
    let message = sandbox.refuses("GXT_CAGE_BACKEND_UNAVAILABLE", &["--lock"]);
    assert!(message.contains("no immutable flag"), "{message}");
    let mut watch = sandbox.watch(&["--lock", "--best-effort"]);
    watch.says("keep watch: locked: nothing");
    watch.stop().came_to(0, &[]);
    drop((sandbox, mount));
}
