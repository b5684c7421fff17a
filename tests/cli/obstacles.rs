//! What keeps a file from being put back is named, and it is put back when that is gone.

use std::fs;
use std::io::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::{Content, Mounted, Sandbox, fresh, goes_on_as_an_ordinary_user, is_root, pause, sha, skip, until};

/// Rejects the change of `svc/.env`, which cannot be put back for this reason; `clear` takes the obstacle away.
fn is_named_and_then_restored(lab: &Sandbox, reason: &str, put: impl FnOnce(), clear: impl FnOnce()) {
    let mut watch = lab.watch(&["--decision-timeout", "300", "--watch-interval-ms", "100"]);
    let content = fresh();
    lab.write("svc/.env", &content);
    watch.asks("svc/.env", "secrets", "modified", &sha(&content));
    put();
    watch.answers(b"r", "keep watch: svc/.env NOT restored: ");
    watch.says(reason);
    assert_eq!(fs::read(lab.path("svc/.env")).expect("stays"), content);
    clear();
    watch.says("keep watch: svc/.env restored (rejected)");
    lab.becomes("svc/.env", &Content::File(0o644, b"A=accepted\n".to_vec()));
    assert!(lab.quarantined().contains(&content));
    assert_eq!(lab.temporary_names("svc"), [""; 0]);
    let ended = watch.stop();
    let report = ended.came_to(3, &["svc/.env rejected"]).report();
    assert!(report["decisions"][0]["restore_attempts"].as_u64() >= Some(2), "{report}");
}

fn lab() -> Sandbox {
    let lab = Sandbox::new();
    lab.write("svc/.env", b"A=accepted\n");
    lab
}

#[test]
fn a_read_only_directory_is_named_and_not_loosened() {
    if !goes_on_as_an_ordinary_user!() {
        return;
    }
    let lab = lab();
    is_named_and_then_restored(&lab, "ermission denied", || lab.chmod("svc", 0o555), || lab.chmod("svc", 0o755));
}

#[test]
fn what_cannot_be_restored_until_the_end_is_told_and_the_next_start_tries_again() {
    if !goes_on_as_an_ordinary_user!() {
        return;
    }
    let lab = lab();
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    lab.write("svc/.env", b"A=1\n");
    watch.asks("svc/.env", "secrets", "modified", &sha(b"A=1\n"));
    lab.chmod("svc", 0o555);
    let ended = watch.stop();
    ended.came_to(3, &["svc/.env restore_failed"]);
    assert!(ended.text.contains("1 NOT restored"), "{}", ended.text);
    lab.chmod("svc", 0o755);
    let ended = lab.watch(&[]).stop();
    assert_eq!(ended.report()["recovery"]["restored"], serde_json::json!(["svc/.env"]));
    assert_eq!(lab.content("svc/.env"), Content::File(0o644, b"A=accepted\n".to_vec()));
}

#[test]
fn a_change_behind_a_closed_directory_is_not_forgotten_at_the_end() {
    if !goes_on_as_an_ordinary_user!() {
        return;
    }
    let lab = Sandbox::new();
    lab.write("svc/.env", b"A=accepted\n");
    let mut held = fs::File::options().append(true).open(lab.path("svc/.env")).expect("opens");
    let watch = lab.watch(&["--decision-timeout", "300", "--watch-interval-ms", "100"]);
    lab.chmod("svc", 0o000);
    held.write_all(b"EVIL=1\n").expect("writes");
    pause(Duration::from_millis(500));
    let ended = watch.stop();
    lab.chmod("svc", 0o755);
    ended.came_to(3, &["svc/.env restore_failed"]);
    lab.watch(&[]).stop();
    assert_eq!(lab.content("svc/.env"), Content::File(0o644, b"A=accepted\n".to_vec()));
}

#[test]
fn a_read_only_mount_is_named() {
    let lab = lab();
    let at = lab.path("svc");
    // Mounted before the start, so that it belongs to the tree.
    let Some(_mounted) = Mounted::new(&["-t", "tmpfs", "tmpfs"], &at) else { return skip("mounts") };
    lab.write("svc/.env", b"A=accepted\n");
    let remount = |how: &str| {
        let done = Command::new("mount").args(["-o", &format!("remount,{how}")]).arg(&at).status();
        assert!(done.expect("runs").success());
    };
    is_named_and_then_restored(&lab, "ead-only file system", || remount("ro"), || remount("rw"));
}

#[test]
fn a_full_file_system_is_named_and_nothing_is_cut_short() {
    let lab = lab();
    let at = lab.path("svc");
    let Some(_mounted) = Mounted::new(&["-t", "tmpfs", "-o", "size=64k", "tmpfs"], &at) else { return skip("mounts") };
    lab.write("svc/.env", b"A=accepted\n");
    let filler = at.join("filler");
    let fill = || {
        let mut file = fs::File::create(&filler).expect("creates");
        while file.write_all(&[1; 512]).is_ok() {}
    };
    is_named_and_then_restored(&lab, "o space left", fill, || fs::remove_file(&filler).expect("removes"));
}

#[test]
fn a_full_state_folder_loses_no_rejected_bytes() {
    let lab = lab();
    fs::create_dir(&lab.state).expect("makes");
    let Some(_mounted) = Mounted::new(&["-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs"], &lab.state) else {
        return skip("mounts");
    };
    let mut watch = lab.watch(&["--decision-timeout", "300", "--watch-interval-ms", "100"]);
    let filler = lab.state.join("filler");
    let mut file = fs::File::create(&filler).expect("creates");
    while file.write_all(&[1; 512]).is_ok() {}
    let content = vec![b'e'; 50_000];
    lab.write("svc/.env", &content);
    watch.asks("svc/.env", "secrets", "modified", &sha(&content));
    watch.settle();
    watch.types(b"r");
    watch.says(": No space left on device");
    drop(file);
    fs::remove_file(filler).expect("removes");
    lab.becomes("svc/.env", &Content::File(0o644, b"A=accepted\n".to_vec()));
    // Where there was no room for a copy, it was left beside the file, by name.
    let beside = || lab.temporary_names("svc").iter().any(|name| has(&lab, &format!("svc/{name}"), &content));
    until("the rejected bytes", || lab.quarantined().contains(&content) || beside());
    watch.stop().came_to(3, &["svc/.env rejected"]);
}

#[test]
fn what_is_left_beside_in_a_protected_folder_is_not_asked_about_but_its_name_hides_nothing() {
    let lab = lab();
    for name in ["one", "two"] {
        lab.write(format!(".claude/{name}"), b"accepted\n");
    }
    fs::create_dir(&lab.state).expect("makes");
    // Another file system: what cannot be copied cannot be moved there either.
    let Some(_mounted) = Mounted::new(&["-t", "tmpfs", "-o", "mode=700", "tmpfs"], &lab.state) else {
        return skip("mounts");
    };
    let mut watch = lab.watch(&["--decision-timeout", "300", "--watch-interval-ms", "100"]);
    let huge = fs::File::options().write(true).open(lab.path(".claude/one")).expect("opens");
    huge.set_len(100 << 20).expect("a sparse file");
    drop(huge);
    watch.asks(".claude/one", "agent_config", "modified", "104857600 bytes, not read");
    watch.rejects(".claude/one");
    fs::remove_file(lab.path(".claude/two")).expect("removes");
    fs::create_dir(lab.path(".claude/two")).expect("makes");
    watch.asks(".claude/two", "agent_config", "replaced", "directory");
    // Long enough for what comes next not to belong to it.
    watch.settle();
    lab.write(".claude/two/inner", b"inner\n");
    watch.says("waiting: 1 more");
    watch.rejects(".claude/two");
    let left = lab.temporary_names(".claude");
    assert_eq!(left.len(), 2, "{left:?}");
    // What comes next is the next question.
    lab.write("svc/.env", b"A=1\n");
    watch.asks("svc/.env", "secrets", "modified", &sha(b"A=1\n"));
    watch.rejects("svc/.env");
    assert!(!watch.has_said("keep watch: .claude/.keep-rejected-"), "{}", watch.text());
    let is_file = |name: &&String| lab.path(format!(".claude/{name}")).is_file();
    let file = format!(".claude/{}", left.iter().find(is_file).expect("the large file"));
    let folder = format!(".claude/{}", left.iter().find(|name| !is_file(name)).expect("the folder"));
    // Its own name, and a name like it, for something else.
    for hidden in [file.clone(), format!("{folder}/inner"), format!("{folder}/more"), ".claude/.keep-rejected-x".into()]
    {
        lab.write(&hidden, b"EVIL=1\n");
        watch.asks(&hidden, "agent_config", "added", &sha(b"EVIL=1\n"));
        watch.rejects(&hidden);
    }
    watch.stop();
}

fn has(lab: &Sandbox, path: &str, content: &[u8]) -> bool {
    matches!(lab.content(path), Content::File(_, found) if found == content)
}

#[test]
fn an_accept_that_cannot_be_written_down_is_no_accept() {
    let lab = lab();
    fs::create_dir(&lab.state).expect("makes");
    let Some(_mounted) = Mounted::new(&["-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs"], &lab.state) else {
        return skip("mounts");
    };
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    let filler = lab.state.join("filler");
    let mut file = fs::File::create(&filler).expect("creates");
    while file.write_all(&[1; 512]).is_ok() {}
    let content = vec![b'e'; 50_000];
    lab.write("svc/.env", &content);
    watch.asks("svc/.env", "secrets", "modified", &sha(&content));
    watch.answers(b"a", "keep watch: svc/.env cannot be kept: ");
    drop(file);
    fs::remove_file(filler).expect("removes");
    watch.accepts("svc/.env");
    watch.stop().came_to(0, &["svc/.env accepted"]);
}

#[test]
fn an_accept_that_the_journal_has_no_room_for_leaves_the_first_deadline() {
    let lab = lab();
    fs::create_dir(&lab.state).expect("makes");
    let Some(_mounted) = Mounted::new(&["-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs"], &lab.state) else {
        return skip("mounts");
    };
    let mut watch = lab.watch(&["--decision-timeout", "4"]);
    let filler = lab.state.join("filler");
    let mut file = fs::File::create(&filler).expect("creates");
    while file.write_all(&[1; 512]).is_ok() {}
    // No content, so that only the journal needs room; and so many new directories that the entries fill a page.
    let path = format!("{}.env", "d/".repeat(40));
    let began = Instant::now();
    lab.write(&path, b"");
    watch.says("(secrets, added, ");
    pause(Duration::from_secs(2));
    watch.answers(b"a", ".env NOT accepted: ");
    drop(file);
    fs::remove_file(filler).expect("removes");
    lab.becomes(&path, &Content::Absent);
    let took = began.elapsed();
    assert!(took < Duration::from_millis(5500), "restored {took:?} after the change, with a deadline of 4 s");
    watch.stop().came_to(3, &[&format!("{path} timed_out")]);
}

#[test]
fn a_file_system_mounted_over_the_file_is_named_until_it_is_gone() {
    let lab = lab();
    lab.write("other", b"A=mounted over\n");
    let mut watch = lab.watch(&["--decision-timeout", "300", "--watch-interval-ms", "100"]);
    let Some(mounted) = Mounted::new(&["--bind", lab.path("other").to_str().expect("is text")], &lab.path(".env"))
    else {
        return skip("mounts");
    };
    watch.says("keep watch: .env changed (secrets, ");
    watch.answers(b"r", "keep watch: .env NOT restored: ");
    assert_eq!(fs::read(lab.path("other")).expect("stays"), b"A=mounted over\n");
    drop(mounted);
    watch.says("keep watch: .env restored (rejected)");
    assert!(lab.has_env());
    watch.stop().came_to(3, &[".env rejected"]);
}

#[test]
fn an_immutable_flag_is_a_change_and_is_taken_off() {
    if !is_root() {
        return skip("root");
    }
    let lab = lab();
    let mut watch = lab.watch(&["--decision-timeout", "300", "--watch-interval-ms", "100"]);
    lab.write(".env", b"A=forced\n");
    let flagged = Command::new("chattr").arg("+i").arg(lab.path(".env")).status();
    if !flagged.is_ok_and(|status| status.success()) {
        return skip("immutable");
    }
    watch.says("keep watch: .env changed (secrets, modified");
    watch.settle();
    watch.types(b"r");
    until("the restore", || lab.has_env());
    watch.says("keep watch: .env restored (rejected)");
    let plain = Command::new("lsattr").arg(lab.path(".env")).output().expect("runs");
    assert!(!String::from_utf8_lossy(&plain.stdout).split(' ').next().expect("flags").contains('i'), "{plain:?}");
    // The flag alone is a change, too, though it raises no event.
    assert!(Command::new("chattr").arg("+i").arg(lab.path(".env")).status().expect("runs").success());
    watch.says("keep watch: .env changed (secrets, mode");
    watch.rejects(".env");
    fs::write(lab.path(".env"), b"can be written\n").expect("the flag is off");
    watch.stop();
}
