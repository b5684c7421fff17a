//! Attacks on putting a file back: races, intruders, full disks, flags, and directories that let nobody in.
//!
//! What needs root, mounts or two file systems is left out where those are missing, and fails if `KEEP_EXPECT` names it
//! (`mounts`).

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use keepwatch::baseline::{
    Baseline, Caps, ChangeKind, Directory, Restore, RestoreError, Restored, Snapshot, is_temporary, look,
    look_and_store,
};
use keepwatch::rules::Rule;
use keepwatch::store::{Held, Objects, Quarantine, Rejection};
use platform::attributes::{Flags, set_flags};
use platform::{Dir, Place, RelPath, Root};

use crate::support::{goes_on_as_an_ordinary_user, meanwhile, skip};

const MAX: u64 = 5 << 20;

struct Lab {
    tree: PathBuf,
    state: PathBuf,
    root: Root,
    objects: Objects,
    quarantine: Quarantine,
    baseline: Baseline,
    place: Place,
    accepted: Snapshot,
    _folders: Vec<tempfile::TempDir>,
}

fn rel(path: &str) -> RelPath {
    RelPath::parse(path.as_bytes()).expect("a valid path")
}

/// A folder where syncing costs little, if there is one.
fn fast_folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.expect("a folder")
}

fn lab_in(tree: &Path, state: &Path, path: &str, folders: Vec<tempfile::TempDir>) -> Lab {
    let root = Root::open(tree).expect("opens");
    let state_dir = Dir::open_ambient(state).expect("opens");
    let objects = Objects::open(&state_dir).expect("a store");
    let accepted = look_and_store(&root, &rel(path), MAX, &objects).expect("looks").snapshot;
    let mut baseline = Baseline::new(Caps::default());
    for above in rel(path).ancestors() {
        let directory = Directory::look(&root, &above).expect("looks").expect("is there");
        baseline.accept_directory(Place::tree(above), directory);
    }
    Lab {
        tree: tree.to_owned(),
        state: state.to_owned(),
        root,
        objects,
        quarantine: Quarantine::open(&state_dir, MAX).expect("a quarantine"),
        baseline,
        place: Place::tree(rel(path)),
        accepted,
        _folders: folders,
    }
}

/// A tree with the accepted file `path`, in a folder of its own.
fn lab(path: &str, content: &[u8], folder: tempfile::TempDir) -> Lab {
    let (tree, state) = (folder.path().join("tree"), folder.path().join("state"));
    fs::create_dir(&state).expect("makes");
    fs::create_dir_all(tree.join(path).parent().expect("has one")).expect("makes");
    fs::write(tree.join(path), content).expect("writes");
    lab_in(&tree, &state, path, vec![folder])
}

impl Lab {
    fn path(&self, path: &str) -> PathBuf {
        self.tree.join(path)
    }

    fn run(&self) -> Result<Restored, RestoreError> {
        let why = Rejection {
            shown: ".env".into(),
            stored: ".env".into(),
            rule: Rule::Secrets,
            kind: ChangeKind::Modified,
            outcome: Some("rejected".into()),
            session: "s1".into(),
            rejected_at: "2026-11-30T09:41:07.123Z".into(),
        };
        let restore = Restore {
            root: &self.root,
            place: &self.place,
            accepted: &self.accepted,
            seen: None,
            baseline: &self.baseline,
            objects: &self.objects,
            quarantine: &self.quarantine,
            why: &why,
            is_new_directory: &|_| false,
        };
        restore.run(|_| Ok(()))
    }

    fn is_accepted(&self) -> bool {
        self.accepted.same(&look(&self.root, &self.place.path, MAX).expect("looks").snapshot)
    }

    fn temporary_names(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(directory)).expect("lists");
        let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        names.filter(|name| is_temporary(name.as_bytes())).collect()
    }
}

/// A file system mounted for the time of a test.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn new(arguments: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let done = Command::new("mount").args(arguments).arg(folder.path()).output();
        if done.is_ok_and(|done| done.status.success()) { Some(Self(folder)) } else { None }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

#[test]
fn a_parent_swapped_for_a_symlink_in_a_loop_never_leads_outside() {
    let lab = lab("a/.env", b"A=1\n", fast_folder());
    let outside = lab.tree.parent().expect("has one").join("outside");
    fs::create_dir(&outside).expect("makes");
    fs::write(outside.join(".env"), b"OUTSIDE=1\n").expect("writes");
    let (a, away) = (lab.path("a"), lab.path("away"));
    let target = outside.clone();
    let swap = move || {
        let _ = fs::rename(&a, &away);
        let _ = symlink(&target, &a);
        let _ = fs::remove_file(&a);
        let _ = fs::rename(&away, &a);
        let _ = fs::remove_dir_all(&away);
    };
    let mut restored = 0;
    meanwhile(swap, || {
        for _ in 0..10_000 {
            match lab.run() {
                Ok(_) => restored += 1,
                Err(RestoreError::Contended { .. } | RestoreError::AnotherObject { .. }) => {}
                // The directory was moved or removed under the handle.
                Err(RestoreError::File { source, .. }) if source.errno() == Some(2) => {}
                Err(RestoreError::Quarantine(error)) if error.errno() == Some(2) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
    });
    let names: Vec<_> = fs::read_dir(&outside).expect("lists").map(|e| e.expect("an entry").file_name()).collect();
    assert_eq!(names, [".env"], "something was made outside");
    assert_eq!(fs::read(outside.join(".env")).expect("reads"), b"OUTSIDE=1\n");
    lab.run().expect("now nobody disturbs");
    assert!(lab.is_accepted());
    assert!(restored > 0, "the race was never won, so it was not raced");
}

#[test]
fn a_reader_sees_one_whole_state_or_the_other_and_never_nothing() {
    let lab = lab(".env", &[b'a'; 10_000], fast_folder());
    let (path, fresh) = (lab.path(".env"), lab.path("fresh"));
    let mut odd = None;
    let read = || match fs::read(&path) {
        Ok(read) if read == [b'a'; 10_000] || read == [b'b'; 5_000] => {}
        other => odd = Some(other.map(|read| read.len())),
    };
    meanwhile(read, || {
        for _ in 0..500 {
            fs::write(&fresh, [b'b'; 5_000]).expect("writes");
            fs::rename(&fresh, lab.path(".env")).expect("renames");
            lab.run().expect("restores");
        }
    });
    assert!(odd.is_none(), "the reader saw {odd:?}");
    assert_eq!(lab.quarantine.list().expect("lists").len(), 500);
}

#[test]
fn a_writer_that_replaces_the_file_during_the_restore_loses_nothing_it_left_there() {
    let lab = lab(".env", b"A=1\n", fast_folder());
    let (path, fresh) = (lab.path(".env"), lab.path("fresh"));
    let mut round = 0u64;
    let mut last = Vec::new();
    let write = || {
        round += 1;
        last = format!("round {round}\n").into_bytes();
        fs::write(&fresh, &last).expect("writes");
        fs::rename(&fresh, &path).expect("renames");
    };
    meanwhile(write, || {
        for _ in 0..1000 {
            match lab.run() {
                Ok(_) | Err(RestoreError::Contended { .. }) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
    });
    lab.run().expect("now nobody disturbs");
    assert!(lab.is_accepted());
    assert_eq!(lab.temporary_names(""), [""; 0]);
    // The last thing written was replaced by nobody but us.
    let kept = lab.quarantine.list().expect("lists");
    let folder = lab.state.join("quarantine");
    let found =
        kept.iter().any(|about| fs::read(folder.join(&about.id).join("content")).is_ok_and(|read| read == last));
    assert!(found, "the last version is lost");
}

#[test]
fn a_huge_sparse_intruder_is_moved_and_neither_read_nor_filled() {
    let lab = lab(".env", b"A=1\n", tempfile::tempdir().expect("a folder"));
    let huge = fs::OpenOptions::new().write(true).open(lab.path(".env")).expect("opens");
    huge.set_len(5 << 30).expect("a sparse file");
    let restored = lab.run().expect("restores");
    assert!(lab.is_accepted());
    let about = lab.quarantine.about(&restored.quarantined[0]).expect("is described");
    assert_eq!((about.held, about.size), (Held::Moved, 5 << 30));
    let kept = fs::metadata(lab.state.join("quarantine").join(&about.id).join("content")).expect("stats");
    assert_eq!(kept.len(), 5 << 30);
    assert!(kept.blocks() * 512 < 1 << 20, "{} blocks", kept.blocks());
}

#[test]
fn what_can_be_neither_copied_nor_moved_stays_aside_under_a_name_that_says_so() {
    let (here, memory) = (tempfile::tempdir().expect("a folder"), fast_folder());
    let device = |path: &Path| fs::metadata(path).expect("stats").dev();
    if device(here.path()) == device(memory.path()) {
        return skip("mounts");
    }
    let (tree, state) = (here.path().to_owned(), memory.path().to_owned());
    fs::write(tree.join(".env"), b"A=1\n").expect("writes");
    let lab = lab_in(&tree, &state, ".env", vec![here, memory]);
    for intruder in ["huge", "directory"] {
        fs::remove_file(lab.path(".env")).expect("removes");
        if intruder == "huge" {
            fs::File::create(lab.path(".env")).expect("creates").set_len(5 << 30).expect("a sparse file");
        } else {
            fs::create_dir(lab.path(".env")).expect("makes");
            fs::write(lab.path(".env/inner"), b"inner").expect("writes");
        }
        let restored = lab.run().unwrap_or_else(|error| panic!("{intruder}: {error}"));
        assert!(lab.is_accepted(), "{intruder}");
        let name = String::from_utf8(restored.aside[0].clone()).expect("text");
        assert!(name.starts_with(".keep-rejected-"), "{name}");
        let about = lab.quarantine.about(&restored.quarantined[0]).expect("is described");
        assert_eq!(about.held, Held::Aside { name: name.clone().into_bytes() });
        let left = lab.path(&name);
        match intruder {
            "huge" => assert_eq!(fs::metadata(left).expect("stats").len(), 5 << 30),
            _ => assert_eq!(fs::read(left.join("inner")).expect("reads"), b"inner"),
        }
    }
    // A file within the cap is copied across.
    fs::write(lab.path(".env"), b"A=evil\n").expect("writes");
    let restored = lab.run().expect("restores");
    assert_eq!(lab.quarantine.about(&restored.quarantined[0]).expect("is described").held, Held::Copied);
}

#[test]
fn a_full_disk_leaves_the_file_whole_and_no_rubbish_and_room_puts_it_right() {
    let Some(mounted) = Mounted::new(&["-t", "tmpfs", "-o", "size=1m", "tmpfs"]) else { return skip("mounts") };
    let state = tempfile::tempdir().expect("a folder");
    let (tree, state_path) = (mounted.0.path().to_owned(), state.path().to_owned());
    fs::write(tree.join(".env"), vec![b'a'; 200_000]).expect("writes");
    let lab = lab_in(&tree, &state_path, ".env", vec![state]);
    fs::write(lab.path(".env"), b"A=evil\n").expect("writes");
    let mut filler = fs::File::create(lab.path("filler")).expect("creates");
    while filler.write_all(&[1; 4096]).is_ok() {}
    for _ in 0..3 {
        let error = lab.run().expect_err("there is no room");
        assert_eq!(error.errno(), Some(28), "{error:?}");
        assert_eq!(fs::read(lab.path(".env")).expect("reads"), b"A=evil\n");
        assert_eq!(lab.temporary_names(""), [""; 0]);
        assert_eq!(lab.quarantine.list().expect("lists").len(), 0, "a copy for every attempt");
    }
    drop(filler);
    fs::remove_file(lab.path("filler")).expect("removes");
    lab.run().expect("now there is room");
    assert!(lab.is_accepted());
}

#[test]
fn a_full_state_folder_loses_no_rejected_bytes() {
    let Some(mounted) = Mounted::new(&["-t", "tmpfs", "-o", "size=512k", "tmpfs"]) else { return skip("mounts") };
    let here = tempfile::tempdir().expect("a folder");
    let (tree, state) = (here.path().to_owned(), mounted.0.path().to_owned());
    fs::write(tree.join(".env"), b"A=1\n").expect("writes");
    let lab = lab_in(&tree, &state, ".env", vec![here]);
    let mut filler = fs::File::create(state.join("filler")).expect("creates");
    while filler.write_all(&[1; 4096]).is_ok() {}
    let rejected = vec![b'e'; 100_000];
    fs::write(lab.path(".env"), &rejected).expect("writes");
    match lab.run() {
        Ok(restored) => {
            assert!(lab.is_accepted());
            let aside = std::str::from_utf8(&restored.aside[0]).expect("text");
            assert_eq!(fs::read(lab.path(aside)).expect("reads"), rejected);
        }
        Err(error) => {
            assert_eq!(error.errno(), Some(28), "{error:?}");
            assert_eq!(fs::read(lab.path(".env")).expect("reads"), rejected);
        }
    }
    assert_eq!(lab.temporary_names(""), [""; 0]);
}

#[test]
fn a_file_system_mounted_over_the_file_is_named_and_left_alone() {
    let lab = lab(".env", b"A=1\n", tempfile::tempdir().expect("a folder"));
    fs::write(lab.path("other"), b"OTHER=1\n").expect("writes");
    let bound = Command::new("mount").arg("--bind").arg(lab.path("other")).arg(lab.path(".env")).output();
    if !bound.is_ok_and(|done| done.status.success()) {
        return skip("mounts");
    }
    let outcome = lab.run();
    let read = fs::read(lab.path("other"));
    let undone = Command::new("umount").arg(lab.path(".env")).status();
    assert!(undone.is_ok_and(|status| status.success()));
    assert!(matches!(outcome, Err(RestoreError::Mounted { .. })), "{outcome:?}");
    assert_eq!(read.expect("reads"), b"OTHER=1\n");
}

#[test]
fn a_flag_that_forbids_changes_is_taken_off_or_named() {
    let lab = lab("a/.env", b"A=1\n", tempfile::tempdir().expect("a folder"));
    fs::write(lab.path("a/.env"), b"A=evil\n").expect("writes");
    let immutable = Flags { immutable: true, append_only: false };
    let file = fs::File::open(lab.path("a/.env")).expect("opens");
    if set_flags(&file, immutable).is_err() {
        return skip("immutable");
    }
    assert!(fs::write(lab.path("a/.env"), b"x").is_err(), "the flag is on");
    lab.run().expect("takes it off");
    assert!(lab.is_accepted());

    // A directory's flag may be the person's own: it is named, and stays.
    fs::write(lab.path("a/.env"), b"A=evil\n").expect("writes");
    let directory = fs::File::open(lab.path("a")).expect("opens");
    set_flags(&directory, immutable).expect("sets");
    let refused = lab.run();
    set_flags(&directory, Flags::default()).expect("takes it off");
    match refused {
        Err(error @ RestoreError::File { immutable: true, .. }) => assert_eq!(error.errno(), Some(1)),
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read(lab.path("a/.env")).expect("reads"), b"A=evil\n");
    lab.run().expect("restores");
    assert!(lab.is_accepted());
}

#[test]
fn a_directory_that_forbids_writing_is_not_loosened_and_the_error_says_so() {
    if !goes_on_as_an_ordinary_user!() {
        return;
    }
    let lab = lab("a/.env", b"A=1\n", tempfile::tempdir().expect("a folder"));
    fs::write(lab.path("a/.env"), b"A=evil\n").expect("writes");
    fs::set_permissions(lab.path("a"), fs::Permissions::from_mode(0o555)).expect("chmods");
    let refused = lab.run();
    let mode = fs::metadata(lab.path("a")).expect("stats").permissions().mode() & 0o7777;
    let kept = lab.quarantine.list().expect("lists").len();
    fs::set_permissions(lab.path("a"), fs::Permissions::from_mode(0o755)).expect("chmods");
    assert_eq!(refused.expect_err("may not").errno(), Some(13));
    assert_eq!((mode, kept), (0o555, 0));
    assert_eq!(fs::read(lab.path("a/.env")).expect("reads"), b"A=evil\n");
    lab.run().expect("now it may");
    assert!(lab.is_accepted());
}

#[test]
fn bits_come_right_even_where_no_file_can_be_made() {
    if !goes_on_as_an_ordinary_user!() {
        return;
    }
    let lab = lab("a/.env", b"A=1\n", tempfile::tempdir().expect("a folder"));
    fs::set_permissions(lab.path("a/.env"), fs::Permissions::from_mode(0o777)).expect("chmods");
    fs::set_permissions(lab.path("a"), fs::Permissions::from_mode(0o555)).expect("chmods");
    let restored = lab.run();
    fs::set_permissions(lab.path("a"), fs::Permissions::from_mode(0o755)).expect("chmods");
    restored.expect("sets the bits of the accepted file itself");
    assert!(lab.is_accepted());
}

#[test]
fn an_intruder_we_may_not_read_is_moved_unread() {
    if !goes_on_as_an_ordinary_user!() {
        return;
    }
    let lab = lab(".env", b"A=1\n", tempfile::tempdir().expect("a folder"));
    fs::write(lab.path(".env"), b"A=evil\n").expect("writes");
    fs::set_permissions(lab.path(".env"), fs::Permissions::from_mode(0o0)).expect("chmods");
    let restored = lab.run().expect("restores");
    assert!(lab.is_accepted());
    let about = lab.quarantine.about(&restored.quarantined[0]).expect("is described");
    assert_eq!((about.held, about.size), (Held::Moved, 7));

    // A directory that lets nobody in cannot change its parent; it stays aside.
    fs::remove_file(lab.path(".env")).expect("removes");
    fs::create_dir(lab.path(".env")).expect("makes");
    fs::set_permissions(lab.path(".env"), fs::Permissions::from_mode(0o0)).expect("chmods");
    let restored = lab.run().expect("restores");
    assert!(lab.is_accepted());
    assert_eq!(restored.quarantined.len(), 1);
}
