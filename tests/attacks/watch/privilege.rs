//! A watch that was started with privilege, in a tree that would have it used: nothing of root's is read, written or named.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::support::{Content, Sandbox, Watch, fresh, is_root, skip, until};

/// `nobody` on every Linux.
const USER: u32 = 65_534;

/// What nobody but root may know.
const SECRET: &[u8] = b"ROOT_TOKEN=only-root-may-read-this\n";
/// A name nobody but root may know.
const NAME: &str = "known-to-root-alone";

/// Whether this is a system where root has anything to give up that can be seen.
fn may_have_privilege() -> bool {
    is_root() && Path::new("/proc/self/status").exists()
}

/// A home that belongs to an ordinary user.
fn users() -> Sandbox {
    let lab = Sandbox::new();
    give(&lab.base);
    lab
}

/// Gives a folder and all in it to the user, following nothing.
fn give(path: &Path) {
    std::os::unix::fs::lchown(path, Some(USER), Some(USER)).expect("chowns");
    if fs::symlink_metadata(path).expect("a stat").is_dir() {
        for entry in fs::read_dir(path).expect("lists") {
            give(&entry.expect("an entry").path());
        }
    }
}

/// Starts it as `sudo` would for the user.
fn by_sudo(lab: &mut Sandbox, options: &[&str]) -> Watch {
    lab.set("SUDO_UID", &USER.to_string());
    lab.set("SUDO_GID", &USER.to_string());
    lab.watch(options)
}

/// What each thread of the process may do, as the kernel has it.
fn shows_an_ordinary_user(watch: &Watch) {
    let tasks = PathBuf::from(format!("/proc/{}/task", watch.pid()));
    let mut threads = 0;
    for task in fs::read_dir(tasks).expect("lists") {
        let status = fs::read_to_string(task.expect("a thread").path().join("status")).expect("it runs");
        let has = |line: &str| assert!(status.lines().any(|found| found == line), "no {line:?} in {status}");
        for ids in ["Uid", "Gid"] {
            has(&format!("{ids}:\t{USER}\t{USER}\t{USER}\t{USER}"));
        }
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            has(&format!("{set}:\t0000000000000000"));
        }
        has("NoNewPrivs:\t1");
        threads += 1;
    }
    assert!(threads > 1, "the backend has a thread of its own");
}

/// A folder of root's with a file that was never read.
fn roots_own(lab: &Sandbox) -> (PathBuf, PathBuf) {
    let folder = lab.base.join("roots");
    fs::create_dir(&folder).expect("makes");
    let file = folder.join(NAME);
    fs::write(&file, SECRET).expect("writes");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("chmods");
    never_read(&file);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("chmods");
    (folder, file)
}

/// Sets the time of the last reading so far back that the next one changes it.
fn never_read(file: &Path) {
    let past = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    fs::File::open(file).and_then(|file| file.set_times(fs::FileTimes::new().set_accessed(past))).expect("sets");
}

/// Every byte below the state folder.
fn state_of(lab: &Sandbox) -> Vec<u8> {
    fn collect(path: &Path, into: &mut Vec<u8>) {
        for entry in fs::read_dir(path).expect("lists").map(|entry| entry.expect("an entry").path()) {
            into.extend_from_slice(entry.to_string_lossy().as_bytes());
            if entry.is_dir() { collect(&entry, into) } else { into.extend(fs::read(&entry).expect("reads")) }
        }
    }
    let mut all = Vec::new();
    collect(&lab.state, &mut all);
    all
}

fn holds(all: &[u8], wanted: &[u8]) -> bool {
    all.windows(wanted.len()).any(|found| found == wanted)
}

#[test]
fn started_by_sudo_nothing_of_roots_is_read_written_or_named() {
    if !may_have_privilege() {
        return skip("root");
    }
    let mut lab = users();
    let (folder, file) = roots_own(&lab);
    // Linked in every way there is, where a watch looks first.
    for name in ["svc/.env", "a/b/.env.local", "CLAUDE.md", "package-lock.json"] {
        let _ = fs::remove_file(lab.path(name));
        fs::create_dir_all(lab.path(name).parent().expect("a parent")).expect("makes");
        symlink(&file, lab.path(name)).expect("links");
    }
    for name in [".env.hard", "deep/.env", ".mcp.json"] {
        fs::create_dir_all(lab.path(name).parent().expect("a parent")).expect("makes");
        fs::hard_link(&file, lab.path(name)).expect("links");
    }
    fs::remove_dir(lab.path(".git/hooks")).expect("removes");
    for name in [".git/hooks", ".github", ".claude", "packages"] {
        symlink(&folder, lab.path(name)).expect("links");
    }
    lab.write(".gitignore", b"");
    for entry in ["svc", "a", "a/b", "deep", ".git", ".github", "svc/.env", ".gitignore"] {
        std::os::unix::fs::lchown(lab.path(entry), Some(USER), Some(USER)).expect("chowns");
    }
    let before = fs::metadata(&file).expect("a stat");

    let mut watch = by_sudo(&mut lab, &["--decision-timeout", "300"]);
    shows_an_ordinary_user(&watch);
    // What is put in their place, and back.
    let evil = fresh();
    fs::remove_file(lab.path("svc/.env")).expect("removes");
    lab.write("svc/.env", &evil);
    watch.says("svc/.env changed (secrets");
    watch.rejects("svc/.env");
    assert_eq!(lab.content("svc/.env"), Content::Link(file.clone()));
    fs::remove_file(lab.path(".env.hard")).expect("removes");
    watch.says(".env.hard is gone; it could not be read at the start");
    let ended = watch.stop();

    let after = fs::metadata(&file).expect("a stat");
    assert_eq!(fs::read(&file).expect("root reads"), SECRET);
    assert_eq!((after.mode(), after.uid(), after.mtime()), (before.mode(), before.uid(), before.mtime()));
    let state = state_of(&lab);
    for said in [&state, ended.text.as_bytes(), ended.output.as_bytes()] {
        assert!(!holds(said, b"only-root-may-read-this"), "{}", ended.text);
    }
    // The path of the file is text of the user's links; what the folder holds is only to be had by listing it.
    for said in [ended.text.as_bytes(), ended.output.as_bytes()] {
        assert!(!holds(said, format!(".github/{NAME}").as_bytes()), "{}", ended.text);
        assert!(!holds(said, format!("hooks/{NAME}").as_bytes()), "{}", ended.text);
    }
    assert!(!holds(&state, format!("hooks/{NAME}").as_bytes()));
    assert_eq!(after.atime(), before.atime(), "it was read");
    assert_eq!(fs::metadata(&lab.state).expect("a stat").uid(), USER, "state is the user's");
}

#[test]
fn started_by_sudo_a_file_of_roots_is_not_taken_for_rules() {
    if !may_have_privilege() {
        return skip("root");
    }
    for linked in ["symlink", "hard link"] {
        let mut lab = users();
        let (_, file) = roots_own(&lab);
        match linked {
            "symlink" => symlink(&file, lab.path(".cage.yaml")).expect("links"),
            _ => fs::hard_link(&file, lab.path(".cage.yaml")).expect("links"),
        }
        never_read(&file);
        let before = fs::metadata(&file).expect("a stat").atime();
        lab.set("SUDO_UID", &USER.to_string());
        lab.set("SUDO_GID", &USER.to_string());
        let ended = lab.spawn(&[]).finish();
        assert!(!ended.text.contains("ROOT_TOKEN") && !ended.text.contains("only-root"), "{linked}: {}", ended.text);
        assert_eq!(ended.code, 2, "{linked}: {}", ended.text);
        assert_eq!(fs::metadata(&file).expect("a stat").atime(), before, "{linked}: it was read");
    }
}

/// The file capability `CAP_SYS_ADMIN`, permitted and effective (capabilities(7), `struct vfs_ns_cap_data`).
fn set_capability(program: &Path) {
    let mut value = 0x0200_0001_u32.to_le_bytes().to_vec();
    for part in [1_u32 << 21, 0, 0, 0] {
        value.extend(part.to_le_bytes());
    }
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(program, "security.capability", &value, flags).expect("root sets it");
}

/// A copy of the program for the user to start, with the capability or without.
fn start_copy(lab: &mut Sandbox, is_capable: bool, options: &[&str]) -> Watch {
    let program = lab.base.join("bin/copy");
    fs::copy(crate::support::keep(), &program).expect("copies");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("chmods");
    if is_capable {
        set_capability(&program);
    }
    lab.set("COPY", program.to_str().expect("text"));
    let as_user = "exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$COPY\" watch --json \"$@\" >\"$OUT\"";
    let mut watch = Watch::start(lab, as_user, options, 200, 50);
    watch.says("undecided changes are restored after");
    watch
}

fn by_capability(lab: &mut Sandbox, options: &[&str]) -> Watch {
    start_copy(lab, true, options)
}

#[test]
fn names_in_directories_that_the_user_may_not_list_are_not_told_by_the_mark_on_the_file_system() {
    if !may_have_privilege() {
        return skip("root");
    }
    for way in ["no privilege", "a capability", "sudo"] {
        let mut lab = users();
        for (folder, mode) in [("closed", 0o700), ("passage", 0o711)] {
            fs::create_dir(lab.path(folder)).expect("makes");
            fs::write(lab.path(folder).join("before"), SECRET).expect("writes");
            lab.chmod(folder, mode);
        }
        // Everything is protected.
        let options = ["--decision-timeout", "300", "--allow-only", "none/**"];
        let mut watch = match way {
            "no privilege" => start_copy(&mut lab, false, &options),
            "a capability" => by_capability(&mut lab, &options),
            _ => by_sudo(&mut lab, &options),
        };
        assert_eq!(watch.has_said("(whole filesystem"), way != "no privilege", "{}", watch.text());
        for folder in ["closed", "passage"] {
            let folder = lab.path(folder);
            fs::write(folder.join(format!("{NAME}-made")), SECRET).expect("writes");
            fs::rename(folder.join("before"), folder.join(format!("{NAME}-renamed"))).expect("renames");
            fs::create_dir(folder.join(format!("{NAME}-folder"))).expect("makes");
            fs::write(folder.join(format!("{NAME}-folder/{NAME}-below")), SECRET).expect("writes");
        }
        // What is told in the same queue, after those.
        lab.write("afterwards", b"x\n");
        watch.says("afterwards changed (");
        let ended = watch.stop();
        let state = state_of(&lab);
        for said in [&state, ended.text.as_bytes(), ended.output.as_bytes()] {
            assert!(!holds(said, NAME.as_bytes()), "{way}: {}", ended.text);
        }
    }
}

#[test]
fn with_a_capability_on_the_program_the_watch_has_it_no_more_once_it_runs() {
    if !may_have_privilege() {
        return skip("root");
    }
    let mut lab = users();
    let mut watch = by_capability(&mut lab, &["--decision-timeout", "300"]);
    assert!(watch.text().contains("; fanotify (whole filesystem"), "{}", watch.text());
    shows_an_ordinary_user(&watch);
    lab.overwrite(".env", &fresh());
    watch.says(".env changed (secrets, modified");
    watch.stop();
    assert!(lab.has_env());
}

#[test]
fn a_file_that_was_given_to_root_after_it_was_marked_is_held_for_nobody() {
    if !may_have_privilege() {
        return skip("root");
    }
    let mut lab = users();
    let mut watch = by_capability(&mut lab, &["--hold", "--decision-timeout", "300"]);
    watch.says("keep watch: opens for writing are held");
    chown(lab.path(".env"), Some(0), Some(0)).expect("chowns");
    let elsewhere = lab.base.join("roots-env");
    for moved in [false, true] {
        if moved {
            fs::rename(lab.path(".env"), &elsewhere).expect("renames");
        }
        let mut root = lab.command("/bin/sh");
        root.args(["-c", "echo B=2 >> \"$0\""]).arg(if moved { elsewhere.clone() } else { lab.path(".env") });
        let mut root = root.spawn().expect("starts");
        until("root's open has gone through", || root.try_wait().expect("waits").is_some());
        assert!(root.wait().expect("ends").success(), "moved: {moved}; {}", watch.text());
    }
    assert!(!watch.has_said("wants to write"), "{}", watch.text());
}

#[test]
fn what_root_watches_for_itself_stays_roots() {
    if !may_have_privilege() {
        return skip("root");
    }
    let lab = Sandbox::new();
    chown(&lab.repo, Some(0), Some(0)).expect("chowns");
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    lab.overwrite(".env", &fresh());
    watch.says(".env changed (secrets, modified");
    watch.stop();
    assert!(lab.has_env());
}

#[test]
fn root_does_not_work_for_itself_in_somebody_elses_repository() {
    if !may_have_privilege() {
        return skip("root");
    }
    let lab = users();
    let folder = lab.path("build");
    fs::create_dir(&folder).expect("makes");
    let message = lab.refuses("GXT_CAGE_PRIVILEGE", &[folder.to_str().expect("a text")]);
    assert!(message.contains("is not root's"), "{message}");
}

#[test]
fn a_tree_that_the_user_cannot_reach_is_refused_with_who_that_is() {
    if !may_have_privilege() {
        return skip("privileged");
    }
    let mut lab = Sandbox::new();
    fs::set_permissions(&lab.base, fs::Permissions::from_mode(0o700)).expect("chmods");
    lab.set("SUDO_UID", &USER.to_string());
    lab.set("SUDO_GID", &USER.to_string());
    let message = lab.refuses("GXT_CAGE_ROOT", &[]);
    assert!(message.starts_with(&format!("as user {USER} (named by SUDO_UID): ")), "{message}");
    let shown = lab.spawn(&[]).finish().text;
    assert!(shown.contains("hint: root works for that user only: name a tree that user can reach"), "{shown}");
}
