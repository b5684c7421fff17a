//! Changes of which the kernel tells nothing, or not in time: the sweep finds them.

use std::fs::{self, File};
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::watched;
use crate::support::{Mounted, Sandbox, has_python, is_root, pause, python, sha, skip, until};

/// Two rounds of the sweep at its default, and what a busy machine takes.
const SOON: Duration = Duration::from_secs(12);

#[test]
fn a_store_through_a_mapping_made_before_the_start_and_held_is_found_by_the_sweep() {
    if !has_python() {
        return skip("python3");
    }
    let lab = Sandbox::new();
    let script = "import mmap, os, sys\n\
                  fd = os.open(sys.argv[1], os.O_RDWR)\n\
                  held = mmap.mmap(fd, 0)\n\
                  print('mapped', flush=True)\n\
                  sys.stdin.readline()\n\
                  held[10:18] = b'tampered'\n\
                  print('stored', flush=True)\n\
                  sys.stdin.readline()\n";
    let env = lab.path(".env");
    let mut holder =
        python(script, &[env.as_path()]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
    let (mut to, from) = (holder.stdin.take().expect("a pipe"), holder.stdout.take().expect("a pipe"));
    let mut said = std::io::BufRead::lines(std::io::BufReader::new(from));
    assert_eq!(said.next().expect("says").expect("is text"), "mapped");
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    to.write_all(b"\n").expect("writes");
    assert_eq!(said.next().expect("says").expect("is text"), "stored");
    let stored = Instant::now();
    watch.asks(".env", "secrets", "modified", &sha(b"API_TOKEN=tampered\nMODE=dev\n"));
    assert!(stored.elapsed() < SOON, "{:?}", stored.elapsed());
    watch.rejects(".env");
    assert!(lab.has_env());
    // What is stored from now on goes into a file without a name.
    drop(to);
    assert!(holder.wait().expect("ends").success());
    assert!(lab.has_env());
    watch.stop().came_to(3, &[".env rejected"]);
}

#[test]
fn a_descriptor_opened_before_the_start_writes_in_sight_and_after_the_restore_into_nothing() {
    let lab = Sandbox::new();
    let mut held = File::options().append(true).open(lab.path(".env")).expect("opens");
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    held.write_all(b"EVIL=1\n").expect("writes");
    watch.says("keep watch: .env changed (secrets, modified");
    watch.rejects(".env");
    held.write_all(b"EVIL=2\n").expect("writes");
    held.sync_all().expect("syncs");
    assert!(lab.has_env());
    watch.stop().came_to(3, &[".env rejected"]);
}

#[test]
fn what_is_mounted_over_the_file_is_found_by_the_sweep() {
    let (lab, mut watch) = watched();
    lab.write("other", b"A=mounted over\n");
    let mounted = Instant::now();
    let Some(mount) = Mounted::new(&["--bind", lab.path("other").to_str().expect("is text")], &lab.path(".env")) else {
        return skip("mounts");
    };
    watch.says("keep watch: .env changed (secrets, ");
    assert!(mounted.elapsed() < SOON, "{:?}", mounted.elapsed());
    drop(mount);
    let ended = watch.stop();
    assert!(lab.has_env(), "{}", ended.text);
}

#[test]
fn what_is_mounted_over_its_folder_is_found_and_not_entered() {
    let lab = Sandbox::new();
    lab.write("svc/.env", b"A=1\n");
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    let Some(mount) = Mounted::new(&["-t", "tmpfs", "tmpfs"], &lab.path("svc")) else { return skip("mounts") };
    fs::write(lab.path("svc/.env"), b"A=mounted\n").expect("writes");
    watch.says("keep watch: svc/.env changed (secrets, ");
    watch.answers(b"r", "keep watch: svc/.env NOT restored: ");
    assert_eq!(fs::read(lab.path("svc/.env")).expect("stays"), b"A=mounted\n");
    drop(mount);
    watch.says("keep watch: svc/.env restored (rejected)");
    assert_eq!(fs::read(lab.path("svc/.env")).expect("reads"), b"A=1\n");
    watch.stop().came_to(3, &["svc/.env rejected"]);
}

#[test]
fn an_immutable_flag_that_raises_no_event_is_found_by_the_sweep() {
    if !is_root() {
        return skip("root");
    }
    let (lab, mut watch) = watched();
    let flagged = Command::new("chattr").arg("+i").arg(lab.path(".env")).status();
    if !flagged.is_ok_and(|status| status.success()) {
        return skip("immutable");
    }
    watch.says("keep watch: .env changed (secrets, mode");
    watch.rejects(".env");
    fs::set_permissions(lab.path(".env"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("no flag");
    watch.stop().came_to(3, &[".env rejected"]);
}

#[test]
fn the_times_can_be_set_back_and_the_content_is_seen_all_the_same() {
    let (lab, mut watch) = watched();
    let before = fs::metadata(lab.path(".env")).expect("stats");
    let other = b"API_TOKEN=baselinf\nMODE=dev\n";
    lab.overwrite(".env", other);
    let times = fs::FileTimes::new()
        .set_accessed(before.accessed().expect("a time"))
        .set_modified(before.modified().expect("a time"));
    File::options().write(true).open(lab.path(".env")).expect("opens").set_times(times).expect("sets");
    watch.asks(".env", "secrets", "modified", &sha(other));
    watch.rejects(".env");
    watch.stop().came_to(3, &[".env rejected"]);
}

#[test]
fn truncating_by_path_is_seen() {
    let (lab, mut watch) = watched();
    let cut = Command::new("truncate").args(["-s", "0"]).arg(lab.path(".env")).status();
    assert!(cut.expect("runs").success());
    watch.asks(".env", "secrets", "modified", &sha(b""));
    watch.rejects(".env");
    assert!(lab.has_env());
    watch.stop().came_to(3, &[".env rejected"]);
}

#[test]
fn written_and_put_back_at_once_it_is_still_in_the_journal_or_was_never_seen_by_anybody() {
    let (lab, watch) = watched();
    lab.overwrite(".env", b"A=seen for a moment\n");
    until("the look", || {
        lab.overwrite(".env", crate::support::ENV);
        lab.overwrite(".env", b"A=seen for a moment\n");
        let seen = watch.has_said("keep watch: .env changed");
        lab.overwrite(".env", crate::support::ENV);
        seen
    });
    until("the entry", || lab.journal().contains("\"transient\""));
    watch.stop().came_to(0, &[]);
}

#[test]
fn gone_for_a_moment_and_back_it_is_not_asked_about_but_told() {
    // A machine too busy to put it back in time makes a question of it: that is another test's matter.
    let told = (0..10).any(|_| {
        let (lab, watch) = watched();
        let aside = lab.path("aside");
        fs::rename(lab.path(".env"), &aside).expect("moves");
        pause(Duration::from_millis(6));
        fs::rename(&aside, lab.path(".env")).expect("moves back");
        pause(Duration::from_millis(500));
        let asked = watch.has_said("keep watch: .env changed");
        let told = lab.journal().contains("\"transient\"");
        assert!(told || !asked, "{}", lab.journal());
        watch.stop().came_to(0, &[]);
        told && !asked
    });
    assert!(told, "ten times gone for 6 ms, and never told");
}

#[test]
fn the_same_content_put_in_place_by_rename_is_no_change_at_all() {
    let (lab, watch) = watched();
    for _ in 0..20 {
        let beside = lab.base.join("saving");
        fs::copy(lab.path(".env"), &beside).expect("copies, with its bits");
        fs::rename(beside, lab.path(".env")).expect("renames");
        pause(Duration::from_millis(20));
    }
    assert!(!watch.has_said("keep watch: .env changed"));
    assert!(!lab.journal().contains("\"transient\""), "{}", lab.journal());
    watch.stop().came_to(0, &[]);
}

#[test]
fn a_write_through_another_mount_or_the_processs_own_descriptors_is_seen() {
    let (lab, mut watch) = watched();
    let held = File::open(lab.path(".env")).expect("opens");
    let own = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&held));
    if fs::write(&own, b"A=by descriptor\n").is_ok() {
        watch.asks(".env", "secrets", "modified", &sha(b"A=by descriptor\n"));
        watch.rejects(".env");
    }
    let twin = lab.base.join("twin");
    fs::create_dir(&twin).expect("makes");
    let Some(_mount) = Mounted::new(&["--bind", lab.repo.to_str().expect("is text")], &twin) else {
        return skip("mounts");
    };
    fs::write(twin.join(".env"), b"A=by mount\n").expect("writes");
    watch.asks(".env", "secrets", "modified", &sha(b"A=by mount\n"));
    watch.rejects(".env");
    assert!(lab.has_env());
    assert_eq!(watch.stop().code, 3);
}

#[test]
fn a_file_without_a_name_linked_into_place_is_seen() {
    if !has_python() {
        return skip("python3");
    }
    let (lab, mut watch) = watched();
    let script = "import os, sys\n\
                  fd = os.open(sys.argv[1], os.O_TMPFILE | os.O_RDWR, 0o600)\n\
                  os.write(fd, b'A=without a name\\n')\n\
                  os.link('/proc/self/fd/%d' % fd, sys.argv[1] + '/.env.new',\n\
                  \x20       src_dir_fd=os.open('/', os.O_RDONLY), follow_symlinks=True)\n";
    let linked = python(script, &[lab.repo.as_path()]).output().expect("runs");
    if !linked.status.success() {
        return skip("unnamed files");
    }
    watch.asks(".env.new", "secrets", "added", &sha(b"A=without a name\n"));
    watch.rejects(".env.new");
    assert!(!lab.path(".env.new").exists());
    watch.stop().came_to(3, &[".env.new rejected"]);
}

#[test]
fn taking_a_file_out_of_the_rules_while_watched_takes_nothing_out() {
    let lab = Sandbox::new();
    lab.write("vendor/.env", b"A=1\n");
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    lab.write(".gitignore", b"vendor/\n");
    lab.write("vendor/.env", b"A=2\n");
    watch.asks("vendor/.env", "secrets", "modified", &sha(b"A=2\n"));
    watch.rejects("vendor/.env");
    lab.write(".cage.yaml", b"mode: report\n");
    watch.asks(".cage.yaml", "cage_config", "added", &sha(b"mode: report\n"));
    watch.rejects(".cage.yaml");
    assert!(!lab.path(".cage.yaml").exists());
    watch.stop().came_to(3, &["vendor/.env rejected", ".cage.yaml rejected"]);
}

#[test]
fn an_ignored_folder_of_packages_is_left_out_but_for_what_is_named() {
    let lab = Sandbox::new();
    lab.write("node_modules/a/.env", b"A=1\n");
    lab.write("node_modules/b/.env", b"B=1\n");
    lab.write(".cage.yaml", b"protect:\n  - path: node_modules/b/.env\n");
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    lab.write("node_modules/a/.env", b"A=2\n");
    lab.write("node_modules/b/.env", b"B=2\n");
    watch.says("keep watch: node_modules/b/.env changed (");
    watch.rejects("node_modules/b/.env");
    watch.stop().came_to(3, &["node_modules/b/.env rejected"]);
    assert_eq!(fs::read(lab.path("node_modules/a/.env")).expect("reads"), b"A=2\n");
}
