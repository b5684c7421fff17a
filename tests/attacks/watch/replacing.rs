//! Something else in the place of the file, or of what it lies in.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::watched;
use crate::support::{Content, ENV, Sandbox, is_root, sha, skip};

/// Puts something in the place of `.env`, and expects it to be refused as `shown` and moved away.
fn is_replaced(shown: &str, put: impl FnOnce(&Sandbox)) -> Sandbox {
    let (lab, mut watch) = watched();
    put(&lab);
    watch.says(&format!("keep watch: .env changed (secrets, replaced, {shown})"));
    watch.rejects(".env");
    assert!(lab.has_env());
    watch.stop().came_to(3, &[".env rejected"]);
    lab
}

fn make(program: &str, words: &[&str], lab: &Sandbox) {
    fs::remove_file(lab.path(".env")).expect("removes");
    let made = Command::new(program).arg(lab.path(".env")).args(words).status();
    assert!(made.expect("runs").success());
}

#[test]
fn a_symlink_in_its_place_is_refused_and_its_target_left_alone() {
    let target = tempfile::NamedTempFile::new().expect("a file");
    fs::write(target.path(), ENV).expect("writes");
    let before = fs::symlink_metadata(target.path()).expect("stats");
    let lab = is_replaced(&sha(target.path().as_os_str().as_encoded_bytes()), |lab| {
        fs::remove_file(lab.path(".env")).expect("removes");
        symlink(target.path(), lab.path(".env")).expect("links");
    });
    drop(lab);
    let after = fs::symlink_metadata(target.path()).expect("stats");
    assert_eq!(before.modified().expect("a time"), after.modified().expect("a time"));
    assert_eq!(before.permissions(), after.permissions());
    assert_eq!(fs::read(target.path()).expect("reads"), ENV);
}

#[test]
fn a_folder_in_its_place_goes_to_quarantine_whole() {
    let lab = is_replaced("directory", |lab| {
        fs::remove_file(lab.path(".env")).expect("removes");
        lab.write(".env/deep/file", b"to lose");
    });
    assert!(lab.quarantined().contains(&b"to lose".to_vec()));
}

#[test]
fn a_fifo_in_its_place_hangs_nobody() {
    is_replaced("fifo", |lab| make("mkfifo", &[], lab));
}

#[test]
fn a_socket_in_its_place_is_not_connected_to() {
    let mut listener = None;
    is_replaced("socket", |lab| {
        fs::remove_file(lab.path(".env")).expect("removes");
        listener = Some(UnixListener::bind(lab.path(".env")).expect("binds"));
    });
    let listener = listener.expect("is bound");
    listener.set_nonblocking(true).expect("sets");
    assert!(listener.accept().is_err(), "somebody connected");
}

#[test]
fn a_device_in_its_place_is_not_opened() {
    if !is_root() {
        return skip("root");
    }
    is_replaced("device", |lab| make("mknod", &["c", "1", "5"], lab));
}

#[test]
fn a_whiteout_in_its_place_is_a_device_like_any_other() {
    if !is_root() {
        return skip("root");
    }
    is_replaced("device", |lab| make("mknod", &["c", "0", "0"], lab));
}

#[test]
fn exchanging_two_names_is_asked_about_by_what_is_there() {
    let (lab, mut watch) = watched();
    lab.write("decoy", b"A=exchanged\n");
    let exchanged = renameat_with(CWD, lab.path("decoy"), CWD, lab.path(".env"), RenameFlags::EXCHANGE);
    if exchanged.is_err() {
        return skip("rename exchange");
    }
    watch.asks(".env", "secrets", "modified", &sha(b"A=exchanged\n"));
    watch.rejects(".env");
    assert!(lab.has_env());
    watch.stop().came_to(3, &[".env rejected"]);
}

#[test]
fn a_sparse_file_of_five_gigabytes_is_not_read_and_is_moved_away() {
    let (lab, mut watch) = watched();
    let started = Instant::now();
    let file = fs::File::options().write(true).open(lab.path(".env")).expect("opens");
    file.set_len(5 << 30).expect("is sparse");
    drop(file);
    watch.says("keep watch: .env changed (secrets, modified, 5368709120 bytes, not read)");
    watch.answers(b"a", "keep watch: .env cannot be kept: ");
    watch.rejects(".env");
    assert!(lab.has_env());
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    let mut sizes = Vec::new();
    let mut open = vec![lab.state_folder().join("quarantine")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("lists") {
            let entry = entry.expect("an entry");
            match entry.metadata().expect("stats") {
                found if found.is_dir() => open.push(entry.path()),
                found => sizes.push(found.len()),
            }
        }
    }
    let beside = fs::read_dir(&lab.repo)
        .expect("lists")
        .any(|entry| entry.expect("an entry").metadata().is_ok_and(|found| found.len() == 5 << 30));
    assert!(sizes.contains(&(5 << 30)) || beside, "the rejected file is gone: {sizes:?}");
    let before = started.elapsed();
    watch.stop().came_to(3, &[".env rejected"]);
    assert!(started.elapsed() - before < Duration::from_secs(20), "the end read it");
}

#[test]
fn a_folder_swapped_for_a_symlink_is_put_right_and_nothing_outside_is_touched() {
    for folder in [".claude", ".git/hooks"] {
        let lab = Sandbox::new();
        let inside = format!("{folder}/settings");
        let (content, outside) = (b"mine\n", lab.base.join("outside"));
        lab.write(&inside, content);
        fs::create_dir(&outside).expect("makes");
        fs::write(outside.join("settings"), b"outside\n").expect("writes");
        fs::write(outside.join("evil"), b"outside\n").expect("writes");
        let mut watch = lab.watch(&["--decision-timeout", "300"]);
        fs::rename(lab.path(folder), lab.base.join("away")).expect("moves");
        symlink(&outside, lab.path(folder)).expect("links");
        watch.says("keep watch: ");
        watch.says(" changed (");
        let ended = watch.stop();
        assert_eq!(ended.code, 3, "{}", ended.text);
        assert_eq!(lab.content(&inside), Content::File(0o644, content.to_vec()), "{}", ended.text);
        assert_eq!(lab.content(folder), Content::Directory, "{folder} is still a link");
        let names = fs::read_dir(&outside).expect("lists").count();
        assert_eq!(names, 2, "something was made or removed outside");
        assert_eq!(fs::read(outside.join("settings")).expect("reads"), b"outside\n");
    }
}

#[test]
fn a_git_directory_swapped_for_a_pointer_is_put_right() {
    let (lab, mut watch) = watched();
    let away = lab.base.join("away");
    fs::rename(lab.path(".git"), &away).expect("moves");
    lab.write(".git", format!("gitdir: {}\n", away.display()).as_bytes());
    watch.says(" changed (");
    let ended = watch.stop();
    assert_eq!(ended.code, 3, "{}", ended.text);
    assert!(lab.path(".git/config").is_file(), "{}", ended.text);
    assert_eq!(fs::read(away.join("config")).expect("reads"), fs::read(lab.path(".git/config")).expect("reads"));
}

#[test]
fn the_names_the_watch_makes_beside_a_file_cannot_be_taken() {
    let (lab, mut watch) = watched();
    // What an adversary has seen of such names in earlier restores, and a symlink under one.
    let outside = lab.base.join("outside");
    fs::write(&outside, b"outside\n").expect("writes");
    for number in 0..300_u32 {
        symlink(&outside, lab.path(format!(".keep-{number:016x}"))).expect("links");
        fs::write(lab.path(format!(".keep-rejected-{number}")), b"squatted").expect("writes");
    }
    lab.write(".env", b"A=1\n");
    watch.asks(".env", "secrets", "modified", &sha(b"A=1\n"));
    watch.rejects(".env");
    assert!(lab.has_env());
    assert_eq!(fs::read(outside).expect("reads"), b"outside\n");
    assert_eq!(fs::read(lab.path(".keep-rejected-0")).expect("stays"), b"squatted");
    watch.stop().came_to(3, &[".env rejected"]);
}

#[test]
fn bits_that_let_others_in_are_a_change_and_special_bits_as_well() {
    let lab = Sandbox::new();
    lab.write(".cage.yaml", b"contest_limit: 0\n");
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    for mode in [0o644, 0o666, 0o4600, 0o1600] {
        fs::set_permissions(lab.path(".env"), fs::Permissions::from_mode(mode)).expect("chmods");
        watch.asks(".env", "secrets", "mode", &format!("mode {mode:04o}"));
        watch.rejects(".env");
        assert!(lab.has_env());
    }
    assert_eq!(watch.stop().code, 3);
}

#[test]
fn an_own_inode_linked_in_as_the_file_stays_in_sight_by_its_other_name() {
    let (lab, mut watch) = watched();
    lab.write("mine", b"A=harmless\n");
    lab.chmod("mine", 0o600);
    fs::remove_file(lab.path(".env")).expect("removes");
    fs::hard_link(lab.path("mine"), lab.path(".env")).expect("links");
    watch.says(&format!("keep watch: .env changed (secrets, modified, {})", sha(b"A=harmless\n")));
    watch.accepts(".env");
    lab.overwrite("mine", b"A=through the other name\n");
    watch.asks(".env", "secrets", "modified", &sha(b"A=through the other name\n"));
    watch.rejects(".env");
    assert_eq!(fs::read(lab.path(".env")).expect("reads"), b"A=harmless\n");
    watch.stop().came_to(3, &[".env accepted", ".env rejected"]);
}

#[test]
fn a_protected_symlink_that_is_retargeted_is_put_back_by_its_text() {
    let lab = Sandbox::new();
    lab.link("README.md", ".env.link");
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    symlink("/etc/hostname", lab.path("new")).expect("links");
    fs::rename(lab.path("new"), lab.path(".env.link")).expect("renames");
    watch.asks(".env.link", "secrets", "modified", &sha(b"/etc/hostname"));
    watch.rejects(".env.link");
    assert_eq!(lab.content(".env.link"), Content::Link("README.md".into()));
    // What it points to is not protected by that.
    lab.write("README.md", b"# Other\n");
    watch.stop().came_to(3, &[".env.link rejected"]);
    assert_eq!(fs::read(lab.path("README.md")).expect("reads"), b"# Other\n");
}
