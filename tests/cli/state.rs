//! The state folder, altered by somebody else.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

use crate::support::{Content, Sandbox, fresh, is_root, sha, skip};

/// A home in which one watch has run and ended.
fn used() -> Sandbox {
    let lab = Sandbox::new();
    lab.watch(&[]).stop().came_to(0, &[]);
    lab
}

#[test]
fn everything_in_the_state_folder_is_the_persons_alone() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&[]);
    lab.write(".env", b"A=1\n");
    watch.says("keep watch: .env changed");
    watch.rejects(".env");
    watch.stop();
    let mut open = vec![lab.state.clone()];
    let mut files = 0;
    while let Some(path) = open.pop() {
        let mode = fs::symlink_metadata(&path).expect("stats").permissions().mode() & 0o7777;
        if path.is_dir() {
            assert_eq!(mode, 0o700, "{}", path.display());
            open.extend(fs::read_dir(path).expect("lists").map(|entry| entry.expect("an entry").path()));
        } else {
            files += 1;
            assert_eq!(mode & 0o077, 0, "{}", path.display());
        }
    }
    assert!(files >= 4, "{files} files");
}

#[test]
fn a_symlink_in_place_of_the_state_folder_is_refused() {
    let lab = used();
    let elsewhere = lab.base.join("elsewhere");
    fs::rename(&lab.state, &elsewhere).expect("moves");
    symlink(&elsewhere, &lab.state).expect("links");
    assert!(lab.refuses("GXT_CAGE_JOURNAL", &[]).contains("is a symlink"));
}

#[test]
fn a_state_folder_others_can_write_is_refused() {
    let lab = used();
    fs::set_permissions(lab.state_folder(), fs::Permissions::from_mode(0o720)).expect("chmods");
    assert!(lab.refuses("GXT_CAGE_JOURNAL", &[]).contains("can be written by other users"));
}

#[test]
fn a_state_folder_of_another_user_is_refused() {
    if !is_root() {
        return skip("root");
    }
    let lab = used();
    chown(lab.state_folder(), Some(65_534), Some(65_534)).expect("chowns");
    assert!(lab.refuses("GXT_CAGE_JOURNAL", &[]).contains("belongs to another user"));
}

#[test]
fn an_altered_journal_is_refused_and_left_as_it_is() {
    let lab = used();
    let path = lab.state_folder().join("journal.jsonl");
    let altered = lab.journal().replacen("secrets", "lockfile", 1);
    fs::write(&path, &altered).expect("writes");
    lab.refuses("GXT_CAGE_JOURNAL", &[]);
    assert_eq!(lab.journal(), altered);
}

#[test]
fn a_journal_with_a_line_taken_out_is_refused() {
    let lab = used();
    let mut lines: Vec<String> = lab.journal().lines().map(str::to_owned).collect();
    lines.remove(2);
    fs::write(lab.state_folder().join("journal.jsonl"), lines.join("\n") + "\n").expect("writes");
    lab.refuses("GXT_CAGE_JOURNAL", &[]);
}

#[test]
fn a_torn_last_line_is_cut_and_the_accepted_state_restored() {
    let lab = Sandbox::new();
    lab.watch(&[]).killed();
    let mut journal = lab.journal();
    journal.push_str("{\"seq\": 99, \"at");
    fs::write(lab.state_folder().join("journal.jsonl"), journal).expect("writes");
    lab.write(".env", b"A=1\n");
    lab.watch(&[]).stop();
    assert!(lab.has_env());
}

#[test]
fn a_symlink_or_a_pipe_where_a_file_of_ours_belongs_is_refused() {
    for name in ["journal.jsonl", "lock"] {
        let lab = used();
        let path = lab.state_folder().join(name);
        let target = lab.base.join("target");
        fs::rename(&path, &target).expect("moves");
        symlink(&target, &path).expect("links");
        lab.refuses("GXT_CAGE_JOURNAL", &[]);
        fs::remove_file(&path).expect("removes");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().expect("runs").success());
        lab.refuses("GXT_CAGE_JOURNAL", &[]);
    }
}

#[test]
fn content_that_was_altered_in_the_store_is_not_put_into_the_file() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&[]);
    let mut folders = vec![lab.state_folder().join("objects")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("lists") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("chmods");
                fs::write(&path, b"A=from the attacker\n").expect("writes");
            }
        }
    }
    let content = fresh();
    lab.write(".env", &content);
    watch.says("keep watch: .env changed");
    watch.answers(b"r", "keep watch: .env NOT restored");
    assert_eq!(lab.content(".env"), Content::File(0o600, content));
    let ended = watch.stop();
    ended.came_to(3, &[".env restore_failed"]);
    assert!(ended.report()["decisions"][0]["restore_attempts"].as_u64() >= Some(1));
}

#[test]
fn a_lock_file_that_is_deleted_lets_nobody_in_and_the_watch_goes_on() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&[]);
    let lock = lab.state_folder().join("lock");
    fs::remove_file(&lock).expect("removes");
    lab.write(".env", b"A=1\n");
    watch.asks(".env", "secrets", "modified", &sha(b"A=1\n"));
    watch.rejects(".env");
    watch.stop().came_to(3, &[".env rejected"]);
}

#[test]
fn a_stale_lock_with_the_number_of_a_living_process_is_not_believed() {
    let lab = Sandbox::new();
    lab.watch(&[]).killed();
    let path = lab.state_folder().join("lock");
    let text = fs::read_to_string(&path).expect("is text");
    let ours = std::process::id().to_string();
    fs::write(&path, text.replace("\"pid\":", &format!("\"pid\":{ours},\"was\":"))).expect("writes");
    lab.watch(&[]).stop().came_to(0, &[]);
}

#[test]
fn a_state_folder_that_is_a_device_is_refused() {
    let mut lab = Sandbox::new();
    lab.set("KEEP_STATE_DIR", "/dev/full");
    assert!(lab.refuses("GXT_CAGE_JOURNAL", &[]).contains("is not a directory"));
    lab.set("KEEP_STATE_DIR", "relative");
    assert!(lab.refuses("GXT_CAGE_JOURNAL", &[]).contains("not an absolute path"));
}
