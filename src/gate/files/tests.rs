//! The changes, from the question to the disk.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use platform::{Root, fault};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

struct Lab {
    temp: tempfile::TempDir,
    files: Files,
}

fn lab() -> Lab {
    let memory = Path::new("/dev/shm");
    let temp = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.expect("a folder");
    fs::create_dir(temp.path().join("root")).expect("makes");
    fs::write(temp.path().join("outside"), "outside").expect("writes");
    let root = Root::open(&temp.path().join("root")).expect("opens");
    Lab { files: Files::new(Arc::new(root)), temp }
}

fn writing(path: &str, content: &str) -> Change {
    Change::Write(FileWrite { path: path.into(), content: content.into() })
}

fn removing(path: &str) -> Change {
    Change::Remove(FileRemove { path: path.into() })
}

fn moving(from: &str, to: &str, overwrite: bool) -> Change {
    Change::Move(FileMove { from: from.into(), to: to.into(), overwrite })
}

impl Lab {
    fn path(&self, path: &str) -> PathBuf {
        self.temp.path().join("root").join(path)
    }

    fn put(&self, path: &str, content: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("has one")).expect("makes");
        fs::write(path, content).expect("writes");
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).expect("reads")
    }

    fn prepared(&self, change: &Change) -> Prepared {
        self.files.prepare(change).expect("can be done")
    }

    fn done(&mut self, change: Change) -> Map<String, Value> {
        let state = self.prepared(&change).state;
        match self.files.run(Job::Act { change, state }) {
            Answer::Done(result) => result,
            other => panic!("{other:?}"),
        }
    }

    fn refused(&mut self, change: &Change) -> FilesError {
        self.files.prepare(change).expect_err("cannot be done")
    }

    /// Every path below the folder, with its type and content.
    fn tree(&self) -> BTreeMap<PathBuf, String> {
        let mut tree = BTreeMap::new();
        let mut left = vec![self.temp.path().to_owned()];
        while let Some(dir) = left.pop() {
            for entry in fs::read_dir(dir).expect("lists") {
                let path = entry.expect("an entry").path();
                let metadata = fs::symlink_metadata(&path).expect("stats");
                let told = if metadata.is_dir() {
                    left.push(path.clone());
                    "directory".to_owned()
                } else if metadata.is_symlink() {
                    format!("link {}", fs::read_link(&path).expect("reads").display())
                } else {
                    format!("file {}", fs::read_to_string(&path).expect("reads"))
                };
                tree.insert(path.strip_prefix(self.temp.path()).expect("below").to_owned(), told);
            }
        }
        tree
    }

    fn unfinished(&self) -> Vec<PathBuf> {
        let is_one = |path: &PathBuf| is_unfinished(path.file_name().expect("has one").as_encoded_bytes());
        self.tree().into_keys().filter(is_one).collect()
    }
}

#[test]
fn a_file_is_created_with_its_directories_and_the_bits_of_the_umask() {
    let mut lab = lab();
    let prepared = lab.prepared(&writing("notes/deep/a.md", "milk\nbread\n"));
    assert_eq!(prepared.paths, ["notes/deep/a.md"]);
    assert_eq!(prepared.facts, ["create, 11 bytes, +2 -0", "makes the directory notes"]);
    assert_eq!(prepared.difference, ["@@ line 1", "+milk", "+bread"]);
    assert!(!lab.path("notes").exists(), "preparing does nothing");
    let result = lab.done(writing("notes/deep/a.md", "milk\nbread\n"));
    assert_eq!(Value::Object(result), json!({"path": "notes/deep/a.md", "bytesWritten": 11, "created": true}));
    assert_eq!(lab.text("notes/deep/a.md"), "milk\nbread\n");
    lab.put("plain", "");
    let bits = |path: &str| fs::metadata(lab.path(path)).expect("stats").mode() & 0o7777;
    assert_eq!(bits("notes/deep/a.md"), bits("plain"));
    fs::create_dir(lab.path("other")).expect("makes");
    assert_eq!(bits("notes/deep"), bits("other"));
}

#[test]
fn what_is_replaced_keeps_its_bits_but_for_set_id_and_its_other_names_keep_the_content() {
    let mut lab = lab();
    lab.put("run", "one\ntwo\nthree\n");
    fs::set_permissions(lab.path("run"), fs::Permissions::from_mode(0o4751)).expect("chmods");
    fs::hard_link(lab.path("run"), lab.temp.path().join("elsewhere")).expect("links");
    let change = writing("run", "one\nTWO\nthree\n");
    let prepared = lab.prepared(&change);
    assert_eq!(
        prepared.facts,
        [
            "overwrite, 14 bytes, +1 -1",
            "the file is executable, and stays so",
            "the file has 2 names; the others keep the old content"
        ]
    );
    assert_eq!(prepared.after[0].digest, Some(crate::digest::Digest::of(b"one\nTWO\nthree\n").to_string()));
    assert_eq!(lab.done(change)["created"], false);
    assert_eq!(fs::metadata(lab.path("run")).expect("stats").mode() & 0o7777, 0o751);
    assert_eq!(fs::read_to_string(lab.temp.path().join("elsewhere")).expect("reads"), "one\ntwo\nthree\n");
    assert_eq!(lab.tree().len(), 4);
}

#[test]
fn attributes_survive_and_capabilities_do_not() {
    let mut lab = lab();
    lab.put("f", "old");
    let dir = platform::Dir::open_ambient(&lab.path("")).expect("opens");
    let attribute = platform::xattr::Xattrs::from([(b"user.origin".to_vec(), b"me".to_vec())]);
    match platform::xattr::set_name(&dir, b"f", &attribute) {
        Err(error) if error.is_unsupported() => return,
        done => done.expect("sets"),
    }
    lab.done(writing("f", "new"));
    assert_eq!(platform::xattr::read_name(&dir, b"f").expect("reads"), attribute);
}

#[test]
fn a_change_through_a_link_is_about_what_it_leads_to() {
    let mut lab = lab();
    lab.put("private/plan", "plan\n");
    symlink("private", lab.path("folder")).expect("links");
    symlink("private/plan", lab.path("link")).expect("links");
    assert_eq!(lab.prepared(&writing("link", "x")).paths, ["private/plan"]);
    assert_eq!(lab.prepared(&writing("folder/new", "x")).paths, ["private/new"]);
    assert_eq!(lab.prepared(&removing("folder/plan")).paths, ["private/plan"]);
    assert_eq!(lab.prepared(&moving("folder/plan", "folder/x", false)).paths, ["private/plan", "private/x"]);
    let link = lab.prepared(&removing("link"));
    assert_eq!((link.paths, link.facts), (vec!["link".into()], vec!["remove a symlink to private/plan".to_owned()]));
    lab.done(removing("link"));
    lab.done(writing("folder/plan", "new\n"));
    assert_eq!(lab.text("private/plan"), "new\n");
    assert!(!lab.path("link").exists() && lab.path("folder").is_symlink());
}

#[test]
fn what_cannot_be_done_is_refused_before_anybody_is_asked() {
    let mut lab = lab();
    lab.put("full/f", "x");
    lab.put("f", "x");
    symlink("/etc", lab.path("away")).expect("links");
    let made = std::process::Command::new("mkfifo").arg(lab.path("fifo")).status();
    assert!(made.is_ok_and(|status| status.success()));
    fs::hard_link(lab.path("f"), lab.path("same")).expect("links");
    let before = lab.files.run(Job::List(FileList { path: None }));
    type Is = fn(&FilesError) -> bool;
    let table: [(Change, Is); 15] = [
        (writing("full", "x"), |e| matches!(e, FilesError::IsDirectory { .. })),
        (writing("fifo", "x"), |e| matches!(e, FilesError::Special { .. })),
        (writing("away/passwd", "x"), |e| matches!(e, FilesError::Outside { .. })),
        (writing("../x", "x"), |e| matches!(e, FilesError::Path(_))),
        (writing("f/below", "x"), |e| matches!(e, FilesError::NotDirectory { .. })),
        (writing(".keep-write-0123456789ab", "x"), |e| matches!(e, FilesError::Reserved { .. })),
        (removing("fifo"), |e| matches!(e, FilesError::Special { .. })),
        (removing("nothing"), |e| matches!(e, FilesError::Absent { .. })),
        (moving("f", "full/f", false), |e| matches!(e, FilesError::Exists { .. })),
        (moving("f", "full", true), |e| matches!(e, FilesError::NotOverwritten { .. })),
        (moving("full", "f", true), |e| matches!(e, FilesError::NotOverwritten { .. })),
        (moving("f", "same", true), |e| matches!(e, FilesError::SameFile { .. })),
        (moving("full", "full/deeper/x", false), |e| matches!(e, FilesError::IntoItself { .. })),
        (moving("f", "fifo", true), |e| matches!(e, FilesError::Special { .. })),
        (moving("nothing", "x", false), |e| matches!(e, FilesError::Absent { .. })),
    ];
    for (change, is) in table {
        let error = lab.refused(&change);
        assert!(is(&error), "{change:?}: {error:?}");
        assert!(!error.to_string().is_empty());
    }
    let full = removing("full");
    let asked = lab.prepared(&full);
    assert_eq!(asked.facts, ["remove a directory that is not empty: it stays, unless it is emptied before"]);
    let error = lab.files.act(&full, &asked.state).expect_err("it is not empty");
    assert!(matches!(error, FilesError::NotEmpty { .. }), "{error:?}");
    assert_eq!(lab.files.run(Job::List(FileList { path: None })), before);
}

#[test]
fn what_has_changed_since_the_question_is_not_touched() {
    for (change, meddle) in [
        (writing("f", "agent"), "f"),
        (removing("f"), "f"),
        (moving("f", "g", false), "f"),
        (moving("f", "g", false), "g"),
        (moving("f", "taken", true), "taken"),
        (writing("new", "agent"), "new"),
    ] {
        let mut lab = lab();
        lab.put("f", "before");
        lab.put("taken", "before");
        let state = lab.prepared(&change).state;
        lab.put("fresh", "somebody else's");
        fs::rename(lab.path("fresh"), lab.path(meddle)).expect("renames");
        let before = lab.tree();
        match lab.files.run(Job::Act { change: change.clone(), state }) {
            Answer::Stale => {}
            Answer::Failed(why) => assert!(why.contains("exists already"), "{why}"),
            other => panic!("{change:?}: {other:?}"),
        }
        assert_eq!(lab.tree(), before, "{change:?}");
    }
}

#[test]
fn a_write_whose_content_is_there_already_is_done_whatever_the_state() {
    let mut lab = lab();
    let change = writing("a/f", "same");
    let state = lab.prepared(&change).state;
    for _ in 0..2 {
        let answer = lab.files.run(Job::Act { change: change.clone(), state: state.clone() });
        assert!(matches!(answer, Answer::Done(_)), "{answer:?}");
    }
    let inode = fs::metadata(lab.path("a/f")).expect("stats").ino();
    lab.done(change);
    assert_eq!(fs::metadata(lab.path("a/f")).expect("stats").ino(), inode, "nothing was done");
}

#[test]
fn removing_and_moving_tell_what_they_do() {
    let mut lab = lab();
    lab.put("inbox/a", "one\ntwo\n");
    lab.put("old", "12345");
    fs::create_dir(lab.path("empty")).expect("makes");
    assert_eq!(lab.prepared(&removing("empty")).facts, ["remove an empty directory"]);
    let gone = lab.prepared(&removing("old"));
    assert_eq!(gone.facts, ["remove a file, 5 bytes"]);
    assert_eq!(gone.difference[1], "-12345 (no newline at the end)");
    let over = lab.prepared(&moving("inbox/a", "old", true));
    assert_eq!(over.facts, ["move a file, 8 bytes", "from inbox/a", "to old", "overwrites a file, 5 bytes"]);
    assert_eq!(over.after[0], After { path: "inbox/a".into(), digest: None });
    assert_eq!(over.after[1].digest, Some(crate::digest::Digest::of(b"one\ntwo\n").to_string()));
    let result = lab.done(moving("inbox/a", "old", true));
    assert_eq!(Value::Object(result), json!({"from": "inbox/a", "to": "old", "overwritten": true}));
    assert_eq!(lab.text("old"), "one\ntwo\n");
    lab.done(moving("inbox", "new/place", false));
    assert!(lab.path("new/place").is_dir() && !lab.path("inbox").exists());
    assert_eq!(lab.done(removing("empty"))["removed"], true);
    lab.done(removing("old"));
    assert_eq!(lab.tree().into_keys().collect::<Vec<_>>().len(), 4, "outside, root, new, new/place");
}

#[test]
fn the_same_lines_in_another_order_are_not_the_same_content() {
    let lab = lab();
    let lines: Vec<String> = (0..3000).map(|n| format!("{n}\n")).collect();
    lab.put("f", &lines.concat());
    let turned: String = lines.iter().rev().map(String::as_str).collect();
    let size = turned.len();
    let facts = |content: &str| lab.prepared(&writing("f", content)).facts;
    assert_eq!(facts(&turned), [format!("overwrite, {size} bytes, +0 -0, the same lines in another order")]);
    assert_eq!(facts(&lines.concat()), [format!("overwrite, {size} bytes, the same content")]);
}

#[test]
fn of_a_secret_only_keys_are_shown() {
    let lab = lab();
    lab.put("app/.env", "TOKEN=hunter2\nKEPT=1\n");
    let change = writing("app/.env", "TOKEN=letmein\nKEPT=1\nNEW=opensesame\n");
    let shown = lab.prepared(&change).difference.join(" ");
    assert!(shown.contains("TOKEN") && shown.contains("NEW"), "{shown}");
    for change in [change, removing("app/.env"), moving("app/.env", "x", false)] {
        let all = format!("{:?}", lab.prepared(&change));
        for value in ["hunter2", "letmein", "opensesame"] {
            assert!(!all.contains(value), "{all}");
        }
    }
    assert_eq!(lab.prepared(&writing("app/.env", "TOKEN=letmein\nKEPT=1\n")).facts, ["overwrite, 21 bytes, +1 -1"]);
}

/// Lets the process "die" before every single step of a change, one after the other.
fn crashes(arrange: impl Fn(&Lab), change: &Change, check: impl Fn(&Lab, bool)) {
    for passes in 0.. {
        let mut lab = lab();
        arrange(&lab);
        let state = lab.prepared(change).state;
        let plan = fault::Plan::crash_after(passes);
        let done = lab.files.act(change, &state).is_ok();
        let crashed = fault::crashed();
        drop(plan);
        check(&lab, done);
        // The next process writes beside it, and whatever was left is gone.
        let mut files = Files::new(Arc::new(Root::open(&lab.path("")).expect("opens")));
        let beside = match change {
            Change::Write(write) => format!("{}-next", write.path),
            Change::Remove(remove) => format!("{}-next", remove.path),
            Change::Move(_) => "next".into(),
        };
        let next = writing(&beside, "next");
        let state = files.prepare(&next).expect("can be done").state;
        files.act(&next, &state).expect("is done");
        assert_eq!(lab.unfinished(), [""; 0].map(PathBuf::from), "after {passes} steps");
        if !crashed {
            return assert!(done && passes > 2, "{passes} steps");
        }
    }
}

#[test]
fn a_process_killed_at_any_step_of_a_write_leaves_the_old_content_or_the_new() {
    let change = writing("d/f", "new content");
    crashes(
        |lab| lab.put("d/f", "old content"),
        &change,
        |lab, done| {
            let now = lab.text("d/f");
            assert!(now == "new content" || (!done && now == "old content"), "{now}");
        },
    );
    crashes(
        |lab| lab.put("d/other", ""),
        &change,
        |lab, done| match fs::read_to_string(lab.path("d/f")) {
            Ok(now) => assert_eq!(now, "new content"),
            Err(_) => assert!(!done),
        },
    );
}

#[test]
fn a_process_killed_at_any_step_of_a_removal_or_a_move_loses_nothing_it_was_to_keep() {
    crashes(|lab| lab.put("d/f", "content"), &removing("d/f"), |lab, done| assert!(!done || !lab.path("d/f").exists()));
    crashes(
        |lab| {
            lab.put("a/f", "moved");
            lab.put("b/g", "replaced");
        },
        &moving("a/f", "b/g", true),
        |lab, done| {
            let both = [lab.path("a/f"), lab.path("b/g")].map(|path| fs::read_to_string(path).unwrap_or_default());
            assert!(both.contains(&"moved".to_owned()), "{both:?}");
            assert!(!done || both == [String::new(), "moved".to_owned()]);
        },
    );
}

#[test]
fn a_write_that_fails_takes_the_directories_it_made_away_again() {
    let mut lab = lab();
    let change = writing("a/b/c/f", "x");
    let state = lab.prepared(&change).state;
    // Three directories pass; there is no room for the file, nor for anything after it.
    let plan = fault::Plan::fail_after(3, 28);
    let error = lab.files.act(&change, &state).expect_err("no room").to_string();
    drop(plan);
    assert!(error.contains("No space"), "{error}");
    // Within the plan even removing failed, as after a kill; without one the next try starts from there.
    lab.done(change);
    assert_eq!(lab.text("a/b/c/f"), "x");
}

fn any_path() -> impl Strategy<Value = String> {
    let name =
        prop_oneof![4 => "[ab]", 1 => Just("link".to_owned()), 1 => Just("out".to_owned()), 1 => Just("..".to_owned())];
    proptest::collection::vec(name, 1..4).prop_map(|names| names.join("/"))
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (any_path(), "[xy\n]{0,6}").prop_map(|(path, content)| writing(&path, &content)),
        2 => any_path().prop_map(|path| removing(&path)),
        3 => (any_path(), any_path(), any::<bool>()).prop_map(|(from, to, over)| moving(&from, &to, over)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_asked_nothing_outside_changes_and_no_name_is_left(
        changes in proptest::collection::vec(any_change(), 1..12),
    ) {
        let mut lab = lab();
        fs::create_dir(lab.temp.path().join("beyond")).expect("makes");
        symlink("../beyond", lab.path("out")).expect("links");
        symlink("a", lab.path("link")).expect("links");
        for change in changes {
            let before = lab.tree();
            let Answer::Prepared(prepared) = lab.files.run(Job::Prepare(change.clone())) else {
                prop_assert_eq!(lab.tree(), before);
                continue;
            };
            prop_assert_eq!(&lab.tree(), &before, "preparing does nothing");
            let answer = lab.files.run(Job::Act { change: change.clone(), state: prepared.state });
            if prepared.facts.iter().any(|fact| fact.contains("not empty: it stays")) {
                prop_assert!(matches!(answer, Answer::Failed(_)), "{:?}: {:?}", change, answer);
                prop_assert_eq!(&lab.tree(), &before);
                continue;
            }
            prop_assert!(matches!(answer, Answer::Done(_)), "{:?}: {:?}", change, answer);
            let after = lab.tree();
            prop_assert_eq!(&after[Path::new("outside")], "file outside");
            prop_assert!(!after.keys().any(|path| path.starts_with("beyond") && path != Path::new("beyond")), "{:?}", after);
            // Nothing but the paths told, what lies below them and directories made for them is other than before.
            let told: Vec<PathBuf> = prepared.paths.iter().map(|path| Path::new("root").join(path)).collect();
            for path in before.keys().chain(after.keys()).filter(|path| before.get(*path) != after.get(*path)) {
                prop_assert!(
                    told.iter().any(|told| path.starts_with(told) || told.starts_with(path)),
                    "{:?} changed {:?}", change, path
                );
            }
            prop_assert_eq!(lab.unfinished(), Vec::<PathBuf>::new());
        }
    }
}
