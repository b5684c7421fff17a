use super::*;
use crate::baseline::{Caps, ChangeKind, Directory, look_and_store};
use crate::digest::Digest;
use crate::rules::Rule;
use platform::fault::{Plan, crashed};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

struct Lab {
    folder: tempfile::TempDir,
    root: Root,
    objects: Objects,
    quarantine: Quarantine,
    baseline: Baseline,
    place: Place,
    accepted: Snapshot,
    why: Rejection,
    temporary: std::cell::RefCell<Option<Intent>>,
}

fn rel(path: &str) -> RelPath {
    RelPath::parse(path.as_bytes()).expect("a valid path")
}

/// A tree in which `prepare` made what is accepted at `path`, and a state folder beside it.
fn lab(path: &str, prepare: impl FnOnce(&Path)) -> Lab {
    let folder = tempfile::tempdir().expect("a folder");
    let (tree, state) = (folder.path().join("tree"), folder.path().join("state"));
    fs::create_dir_all(&tree).expect("makes");
    fs::create_dir_all(&state).expect("makes");
    prepare(&tree);
    let root = Root::open(&tree).expect("opens");
    let state = Dir::open_ambient(&state).expect("opens");
    let objects = Objects::open(&state).expect("a store");
    let accepted = look_and_store(&root, &rel(path), 5 << 20, &objects).expect("looks").snapshot;
    let mut baseline = Baseline::new(Caps::default());
    for above in rel(path).ancestors() {
        if let Some(directory) = Directory::look(&root, &above).expect("looks") {
            baseline.accept_directory(Place::tree(above), directory);
        }
    }
    Lab {
        root,
        objects,
        quarantine: Quarantine::open(&state, 5 << 20).expect("a quarantine"),
        baseline,
        place: Place::tree(rel(path)),
        accepted,
        why: Rejection {
            shown: path.into(),
            stored: path.into(),
            rule: Rule::Secrets,
            kind: ChangeKind::Modified,
            outcome: Some("rejected".into()),
            session: "s1".into(),
            rejected_at: "2026-11-30T09:41:07.123Z".into(),
        },
        folder,
        temporary: None.into(),
    }
}

impl Lab {
    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join("tree").join(path)
    }

    fn run(&self) -> Result<Restored, RestoreError> {
        let seen = self.root.stat(&self.place.path).expect("stats").map(|stat| stat.id);
        self.run_seen(seen)
    }

    fn run_seen(&self, seen: Option<FileId>) -> Result<Restored, RestoreError> {
        let restore = Restore {
            root: &self.root,
            place: &self.place,
            accepted: &self.accepted,
            seen,
            baseline: &self.baseline,
            objects: &self.objects,
            quarantine: &self.quarantine,
            why: &self.why,
            is_new_directory: &|path| self.baseline.directory(&Place::tree(path.clone())).is_none(),
        };
        restore.run(|intent| {
            *self.temporary.borrow_mut() = Some(intent.clone());
            Ok(())
        })
    }

    fn is_accepted(&self) -> bool {
        self.accepted.same(&look(&self.root, &self.place.path, 5 << 20).expect("looks").snapshot)
    }

    /// The content of everything in quarantine, and names of what lies in directories there.
    fn kept(&self) -> Vec<Vec<u8>> {
        let mut kept = Vec::new();
        for about in self.quarantine.list().expect("lists") {
            let content = self.folder.path().join("state/quarantine").join(&about.id).join("content");
            match fs::symlink_metadata(&content) {
                Ok(metadata) if metadata.is_file() => kept.push(fs::read(content).expect("reads")),
                Ok(metadata) if metadata.is_dir() => {
                    for entry in fs::read_dir(content).expect("lists") {
                        kept.push(fs::read(entry.expect("an entry").path()).expect("reads"));
                    }
                }
                _ => {}
            }
        }
        kept
    }

    fn names(&self, directory: &str) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.path(directory))
            .expect("lists")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

fn env(tree: &Path) {
    fs::write(tree.join(".env"), b"A=1\n").expect("writes");
    fs::set_permissions(tree.join(".env"), fs::Permissions::from_mode(0o640)).expect("chmods");
}

#[test]
fn a_modified_file_comes_back_as_a_new_inode_and_its_bytes_are_kept() {
    let lab = lab(".env", env);
    fs::write(lab.path(".env"), b"A=evil\n").expect("writes");
    let rejected = fs::metadata(lab.path(".env")).expect("stats").ino();
    let restored = lab.run().expect("restores");
    assert!(lab.is_accepted());
    assert_eq!((restored.attempts, restored.quarantined.len()), (1, 1));
    assert_eq!(
        lab.temporary.borrow().as_ref().and_then(|i| i.quarantine.clone()),
        Some(restored.quarantined[0].clone())
    );
    assert_eq!(lab.kept(), [b"A=evil\n"]);
    assert_eq!(lab.names(""), [".env"]);
    assert_ne!(fs::metadata(lab.path(".env")).expect("stats").ino(), rejected);
    let about = lab.quarantine.about(&restored.quarantined[0]).expect("is described");
    assert_eq!((about.sha256, about.size, about.mode), (Some(Digest::of(b"A=evil\n")), 7, 0o640));
}

#[test]
fn a_writer_that_holds_the_rejected_file_open_cannot_reach_what_came_back() {
    use std::io::Write as _;
    let lab = lab(".env", env);
    let mut held = fs::OpenOptions::new().append(true).open(lab.path(".env")).expect("opens");
    held.write_all(b"B=evil\n").expect("writes");
    lab.run().expect("restores");
    held.write_all(b"C=evil\n").expect("writes");
    assert!(lab.is_accepted());
}

#[test]
fn a_deleted_file_comes_back_and_needs_no_quarantine() {
    let lab = lab(".env", env);
    fs::remove_file(lab.path(".env")).expect("removes");
    let restored = lab.run().expect("restores");
    assert!(lab.is_accepted() && restored.quarantined.is_empty());
    assert_eq!(fs::read_dir(lab.folder.path().join("state/quarantine")).expect("lists").count(), 0);
}

#[test]
fn wrong_bits_and_attributes_come_right_and_keep_nothing_since_the_content_is_the_accepted_one() {
    let lab = lab(".env", |tree| {
        env(tree);
        let attributes = [(b"user.note".to_vec(), b"kept".to_vec())].into();
        platform::xattr::set_all(&fs::File::open(tree.join(".env")).expect("opens"), &attributes).expect("sets");
    });
    fs::set_permissions(lab.path(".env"), fs::Permissions::from_mode(0o4777)).expect("chmods");
    platform::xattr::set_all(&fs::File::open(lab.path(".env")).expect("opens"), &Default::default()).expect("sets");
    let restored = lab.run().expect("restores");
    assert!(lab.is_accepted() && restored.quarantined.is_empty());
    assert_eq!(lab.names(""), [".env"]);
}

#[test]
fn set_id_bits_come_back_with_their_owner() {
    let lab = lab("tool", |tree| {
        fs::write(tree.join("tool"), b"#!/bin/sh\n").expect("writes");
        fs::set_permissions(tree.join("tool"), fs::Permissions::from_mode(0o6755)).expect("chmods");
    });
    fs::write(lab.path("tool"), b"#!/bin/evil\n").expect("writes");
    lab.run().expect("restores");
    assert_eq!(fs::metadata(lab.path("tool")).expect("stats").permissions().mode() & 0o7777, 0o6755);
}

#[test]
fn an_added_file_goes_and_with_it_the_empty_directories_that_came() {
    let lab = lab("a/b/.env", |tree| fs::create_dir(tree.join("a")).expect("makes"));
    fs::create_dir(lab.path("a/b")).expect("makes");
    fs::write(lab.path("a/b/.env"), b"evil").expect("writes");
    let restored = lab.run().expect("restores");
    assert_eq!(restored.removed, [rel("a/b")]);
    assert_eq!((lab.names(""), lab.names("a")), (vec!["a".to_owned()], vec![]));
    assert_eq!(lab.kept(), [b"evil"]);
}

#[test]
fn a_directory_that_came_and_holds_more_stays() {
    let lab = lab("a/.env", |_| {});
    fs::create_dir(lab.path("a")).expect("makes");
    fs::write(lab.path("a/.env"), b"evil").expect("writes");
    fs::write(lab.path("a/mine"), b"mine").expect("writes");
    assert_eq!(lab.run().expect("restores").removed, []);
    assert_eq!(lab.names("a"), ["mine"]);
}

#[test]
fn only_the_very_object_that_appeared_is_removed() {
    let lab = lab(".env", |_| {});
    fs::write(lab.path("first"), b"first").expect("writes");
    let seen = lab.root.stat(&rel("first")).expect("stats").map(|stat| stat.id);
    fs::write(lab.path(".env"), b"second").expect("writes");
    assert!(matches!(lab.run_seen(seen), Err(RestoreError::AnotherObject { .. })));
    assert_eq!(fs::read(lab.path(".env")).expect("reads"), b"second");
    assert_eq!(lab.names(""), [".env", "first"]);
    assert_eq!(lab.kept(), Vec::<Vec<u8>>::new());
}

#[test]
fn every_kind_of_intruder_gives_way_to_the_file() {
    for kind in ["directory", "fifo", "socket", "link", "unreadable"] {
        let lab = lab(".env", env);
        fs::remove_file(lab.path(".env")).expect("removes");
        fs::write(lab.folder.path().join("outside"), b"OUTSIDE=1\n").expect("writes");
        match kind {
            "directory" => {
                fs::create_dir(lab.path(".env")).expect("makes");
                fs::write(lab.path(".env/inner"), b"inner").expect("writes");
            }
            "fifo" => {
                let made = std::process::Command::new("mkfifo").arg(lab.path(".env")).status().expect("runs");
                assert!(made.success());
            }
            "socket" => drop(std::os::unix::net::UnixListener::bind(lab.path(".env")).expect("binds")),
            "link" => symlink("../outside", lab.path(".env")).expect("links"),
            _ => {
                fs::write(lab.path(".env"), b"inner").expect("writes");
                fs::set_permissions(lab.path(".env"), fs::Permissions::from_mode(0o0)).expect("chmods");
            }
        }
        let restored = lab.run().unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert!(lab.is_accepted(), "{kind}");
        assert_eq!(restored.quarantined.len(), 1, "{kind}");
        assert_eq!(lab.names(""), [".env"], "{kind}");
        assert_eq!(fs::read(lab.folder.path().join("outside")).expect("reads"), b"OUTSIDE=1\n");
        match kind {
            "directory" => assert_eq!(lab.kept(), [b"inner"]),
            // Root reads it all the same and copies it; anybody else moves it unread.
            "unreadable" => assert_eq!(lab.quarantine.list().expect("lists")[0].size, 5),
            "link" => assert_eq!(lab.kept(), [b"../outside"]),
            _ => assert_eq!(lab.quarantine.list().expect("lists")[0].file_type, kind),
        }
    }
}

#[test]
fn an_accepted_link_comes_back_with_its_text() {
    let lab = lab("link", |tree| symlink("../outside/one", tree.join("link")).expect("links"));
    fs::remove_file(lab.path("link")).expect("removes");
    symlink("../outside/two", lab.path("link")).expect("links");
    lab.run().expect("restores");
    assert_eq!(fs::read_link(lab.path("link")).expect("reads"), Path::new("../outside/one"));
    assert_eq!(lab.kept(), [b"../outside/two"]);
}

#[test]
fn an_accepted_directory_keeps_what_it_holds_when_its_bits_come_right() {
    let lab = lab(".env", |tree| fs::create_dir(tree.join(".env")).expect("makes"));
    fs::write(lab.path(".env/inner"), b"inner").expect("writes");
    fs::set_permissions(lab.path(".env"), fs::Permissions::from_mode(0o777)).expect("chmods");
    let restored = lab.run().expect("restores");
    assert!(lab.is_accepted() && restored.quarantined.is_empty());
    assert_eq!(fs::read(lab.path(".env/inner")).expect("reads"), b"inner");
}

#[test]
fn parents_that_vanished_or_were_replaced_are_made_again_with_their_bits() {
    for kind in ["gone", "link", "file"] {
        let lab = lab("a/b/.env", |tree| {
            fs::create_dir_all(tree.join("a/b")).expect("makes");
            fs::set_permissions(tree.join("a"), fs::Permissions::from_mode(0o2751)).expect("chmods");
            fs::set_permissions(tree.join("a/b"), fs::Permissions::from_mode(0o700)).expect("chmods");
            env(&tree.join("a/b"));
        });
        let outside = lab.folder.path().join("outside");
        fs::rename(lab.path("a"), &outside).expect("moves");
        match kind {
            "link" => symlink(&outside, lab.path("a")).expect("links"),
            "file" => fs::write(lab.path("a"), b"in the way").expect("writes"),
            _ => {}
        }
        fs::write(outside.join("b/.env"), b"OUTSIDE=1\n").expect("writes");
        let restored = lab.run().unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert!(lab.is_accepted(), "{kind}");
        assert_eq!(restored.remade, [rel("a"), rel("a/b")], "{kind}");
        let mode = |path| fs::metadata(lab.path(path)).expect("stats").permissions().mode() & 0o7777;
        assert_eq!((mode("a"), mode("a/b")), (0o2751, 0o700), "{kind}");
        assert_eq!(fs::read(outside.join("b/.env")).expect("reads"), b"OUTSIDE=1\n", "{kind}");
        assert_eq!(restored.quarantined.len(), usize::from(kind != "gone"), "{kind}");
    }
}

#[test]
fn the_other_link_of_a_hard_linked_file_is_not_written_through() {
    let lab = lab(".env", env);
    fs::hard_link(lab.path(".env"), lab.path("other")).expect("links");
    fs::write(lab.path("other"), b"A=evil\n").expect("writes");
    lab.run().expect("restores");
    assert!(lab.is_accepted());
    assert_eq!(fs::read(lab.path("other")).expect("reads"), b"A=evil\n");
}

#[test]
fn damaged_accepted_content_is_never_put_in_place() {
    let lab = lab(".env", env);
    fs::write(lab.path(".env"), b"A=evil\n").expect("writes");
    let hex = Digest::of(b"A=1\n").to_string();
    let object = lab.folder.path().join("state/objects").join(&hex[..2]).join(&hex[2..]);
    fs::write(object, b"A=2\n").expect("damages");
    assert!(matches!(lab.run(), Err(RestoreError::Content { .. })));
    assert_eq!(fs::read(lab.path(".env")).expect("reads"), b"A=evil\n");
    assert_eq!(lab.names(""), [".env"]);
    assert_eq!(lab.kept(), Vec::<Vec<u8>>::new(), "what is still in place is not kept twice");
}

#[test]
fn nothing_changes_when_the_journal_does_not_take_the_intent() {
    let lab = lab(".env", env);
    fs::write(lab.path(".env"), b"A=evil\n").expect("writes");
    let restore = Restore {
        root: &lab.root,
        place: &lab.place,
        accepted: &lab.accepted,
        seen: None,
        baseline: &lab.baseline,
        objects: &lab.objects,
        quarantine: &lab.quarantine,
        why: &lab.why,
        is_new_directory: &|_| false,
    };
    let full = restore.run(|_| Err(io::Error::from(io::ErrorKind::StorageFull)));
    assert!(matches!(full, Err(RestoreError::Intent(_))));
    assert_eq!(fs::read(lab.path(".env")).expect("reads"), b"A=evil\n");
    assert_eq!(lab.names(""), [".env"]);
}

/// Makes what is accepted.
type Prepare = fn(&Path);

fn a_with_env(tree: &Path) {
    fs::create_dir(tree.join("a")).expect("makes");
    env(&tree.join("a"));
}

/// What an attack made of the accepted state; returns bytes that must not be lost.
type Attack = fn(&Lab) -> &'static [u8];

fn rewritten(lab: &Lab) -> &'static [u8] {
    fs::write(lab.path("a/.env"), b"A=evil\n").expect("writes");
    b"A=evil\n"
}

fn a_directory(lab: &Lab) -> &'static [u8] {
    fs::remove_file(lab.path("a/.env")).expect("removes");
    fs::create_dir(lab.path("a/.env")).expect("makes");
    fs::write(lab.path("a/.env/inner"), b"inner").expect("writes");
    b"inner"
}

fn a_file_for_a_parent(lab: &Lab) -> &'static [u8] {
    fs::remove_dir_all(lab.path("a")).expect("removes");
    fs::write(lab.path("a"), b"in the way").expect("writes");
    b"in the way"
}

fn added(lab: &Lab) -> &'static [u8] {
    fs::create_dir_all(lab.path("a")).expect("makes");
    rewritten(lab)
}

#[test]
fn a_crash_at_any_step_loses_nothing_and_the_next_start_puts_it_right() {
    let cases: [(Prepare, Attack); 4] =
        [(a_with_env, rewritten), (a_with_env, a_directory), (a_with_env, a_file_for_a_parent), (|_| {}, added)];
    for (case, (prepare, attack)) in cases.into_iter().enumerate() {
        for passes in 0.. {
            let lab = lab("a/.env", prepare);
            let rejected = attack(&lab);
            let plan = Plan::crash_after(passes);
            let done = lab.run();
            let crash = crashed();
            drop(plan);
            let at = format!("case {case}, after {passes} steps");
            let whole = look(&lab.root, &lab.place.path, 5 << 20).expect("looks").snapshot;
            assert!(
                lab.accepted.content == whole.content
                    || whole.is_absent()
                    || whole.digest() == Some(Digest::of(rejected))
                    || whole.content == Content::Directory,
                "{at}: half of something: {whole:?}"
            );
            if let Some(intent) = lab.temporary.take() {
                let name = intent.temporary.as_bytes();
                clear_leftover(&lab.root, &lab.place, name, &lab.objects, &lab.quarantine, &lab.why).expect("clears");
            }
            lab.quarantine.tidy().expect("tidies");
            lab.run().unwrap_or_else(|error| panic!("{at}: {error}"));
            assert!(lab.is_accepted(), "{at}");
            assert!(lab.kept().iter().any(|kept| kept == rejected), "{at}: lost");
            assert!(lab.names("").iter().all(|name| !is_temporary(name.as_bytes())), "{at}: {:?}", lab.names(""));
            if !crash {
                assert!(done.is_ok(), "{at}: {done:?}");
                assert!(passes > 5, "the points are there");
                break;
            }
        }
    }
}

#[test]
fn an_error_at_any_step_leaves_no_rubbish_and_loses_nothing() {
    for passes in 0.. {
        let lab = lab("a/.env", a_with_env);
        let rejected = rewritten(&lab);
        let plan = Plan::fail_after(passes, 28);
        let done = lab.run();
        let crash = crashed();
        drop(plan);
        let there = fs::read(lab.path("a/.env")).expect("is there");
        assert!(there == b"A=1\n" || there == rejected, "after {passes} steps");
        if let Err(error) = &done {
            assert_eq!(error.errno(), Some(28), "after {passes} steps: {error}");
        }
        if !crash {
            assert!(done.is_ok());
            break;
        }
    }
}

#[test]
fn only_our_own_names_are_cleared_away() {
    assert!(is_temporary(b".keep-0123456789ab") && is_temporary(b".keep-0123456789ab.old"));
    for name in [
        &b".keep-0123456789"[..],
        b".keep-0123456789AB",
        b".env",
        b".keep-rejected-20261130T0941",
        b"x.keep-0123456789ab",
    ] {
        assert!(!is_temporary(name), "{}", name.escape_ascii());
    }
    let lab = lab(".env", env);
    let kept =
        clear_leftover(&lab.root, &lab.place, b".env", &lab.objects, &lab.quarantine, &lab.why).expect("refuses");
    assert!(kept.is_empty() && lab.is_accepted());
}

mod property {
    use super::*;
    use proptest::prelude::*;

    /// One thing another process does to the tree. `n` makes contents differ.
    fn disturb(lab: &Lab, what: u8, n: u8) {
        let at = |path: &str| lab.path(path);
        let content = format!("evil {n}");
        // Each may fail, as an attacker's call may: then nothing happened.
        let _ = match what {
            0 => fs::write(at("a/b/.env"), content),
            1 => fs::remove_file(at("a/b/.env")),
            2 => fs::create_dir_all(at("a/b/.env/deep")),
            3 => symlink("../../../outside/.env", at("a/b/.env")),
            4 => fs::rename(at("a/b"), at(&format!("moved-{n}"))),
            5 => symlink("../../outside", at("a/b")),
            6 => fs::write(at("a"), content),
            7 => fs::rename(at("a"), at(&format!("away-{n}"))),
            8 => fs::set_permissions(at("a/b/.env"), fs::Permissions::from_mode(0o700 + u32::from(n % 64))),
            9 => fs::hard_link(at("a/b/.env"), at(&format!("link-{n}"))),
            _ => fs::write(at("fresh"), content).and_then(|()| fs::rename(at("fresh"), at("a/b/.env"))),
        };
    }

    /// Names and contents of a directory that the disturbances themselves may have reached.
    fn all(directory: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
        let entries = fs::read_dir(directory).expect("lists").map(|entry| entry.expect("an entry").path());
        let mut found: Vec<_> = entries.map(|path| (path.clone(), fs::read(path).ok())).collect();
        found.sort();
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn whatever_was_done_one_restore_gives_the_accepted_state_and_touches_nothing_outside(
            absent in any::<bool>(), steps in proptest::collection::vec((0..11u8, any::<u8>()), 0..12),
        ) {
            let lab = lab("a/b/.env", |tree| {
                fs::create_dir_all(tree.join("a/b")).expect("makes");
                if !absent {
                    env(&tree.join("a/b"));
                }
            });
            let outside = lab.folder.path().join("outside");
            fs::create_dir(&outside).expect("makes");
            fs::write(outside.join(".env"), b"OUTSIDE=1\n").expect("writes");
            for (what, n) in steps {
                disturb(&lab, what, n);
            }
            let (before, left) = (look(&lab.root, &lab.place.path, 5 << 20).expect("looks").snapshot, all(&outside));
            lab.run().expect("restores");
            prop_assert!(lab.is_accepted());
            prop_assert!(lab.names("").iter().all(|name| !is_temporary(name.as_bytes())));
            prop_assert_eq!(all(&outside), left);
            if let Content::Regular { digest, .. } = before.content
                && Some(digest) != lab.accepted.digest()
            {
                prop_assert!(lab.kept().iter().any(|kept| Digest::of(kept) == digest), "lost");
            }
        }
    }
}
