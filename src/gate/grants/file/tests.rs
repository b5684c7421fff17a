//! The file under the hands of the gate, of `keep grants`, of an editor, and of somebody else.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use platform::{Moment, Root};

use super::*;

/// A clock that stands where it was put.
#[derive(Clone)]
struct Wall(Arc<Mutex<SystemTime>>);

impl Wall {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(SystemClock.wall())))
    }

    /// Puts it so far past the present that everything changed until now is settled.
    fn pass(&self) {
        *self.0.lock().expect("not poisoned") = SystemClock.wall() + SETTLED * 2;
    }
}

impl Clock for Wall {
    fn now(&self) -> Moment {
        SystemClock.now()
    }

    fn wall(&self) -> SystemTime {
        *self.0.lock().expect("not poisoned")
    }
}

struct Lab {
    _folder: tempfile::TempDir,
    control: Control,
    wall: Wall,
}

impl Lab {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("makes a folder");
        fs::create_dir(folder.path().join("root")).expect("makes");
        let root = Root::open(&folder.path().join("root")).expect("opens");
        let owner = root.dir().own_stat().expect("stats").uid;
        let control = Control::open(&folder.path().join("state"), &root, owner).expect("opens");
        Self { _folder: folder, control, wall: Wall::new() }
    }

    fn open(&self) -> GrantFile {
        GrantFile::with_clock(&self.control, Box::new(self.wall.clone())).expect("opens")
    }

    fn path(&self) -> PathBuf {
        self.control.path().join("grants.json")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path()).expect("reads")
    }

    /// Puts a file in place as an editor does: beside it, then over it.
    fn put(&self, text: &str, mode: u32) {
        let beside = self.control.path().join("edited");
        fs::write(&beside, text).expect("writes");
        fs::set_permissions(&beside, fs::Permissions::from_mode(mode)).expect("chmods");
        fs::rename(&beside, self.path()).expect("renames");
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.control.path())
            .expect("lists")
            .map(|entry| entry.expect("is one").file_name().into_string().expect("is text"))
            .collect();
        names.sort();
        names
    }
}

fn grant(target: &str) -> Grant {
    Grant::parse("file", target).expect("a grant")
}

fn array(targets: &[&str]) -> String {
    let set: BTreeSet<Grant> = targets.iter().map(|target| grant(target)).collect();
    String::from_utf8(shape::write(&set)).expect("is text")
}

#[test]
fn what_is_remembered_holds_for_every_reader_and_is_private() {
    let lab = Lab::new();
    let (mut gate, mut other) = (lab.open(), lab.open());
    assert_eq!(gate.read(), Reading { grants: vec![], changed: true, fault: None });
    gate.remember(&[grant("b.txt"), grant("notes/*")]).expect("stores");
    other.remember(&[grant("a.txt")]).expect("stores");
    let all = vec![grant("a.txt"), grant("b.txt"), grant("notes/*")];
    for file in [&mut gate, &mut other] {
        assert_eq!(file.read(), Reading { grants: all.clone(), changed: true, fault: None });
        assert!(!file.read().changed && file.read_if_changed().is_none());
    }
    assert_eq!(lab.text(), array(&["a.txt", "b.txt", "notes/*"]));
    assert_eq!(fs::metadata(lab.path()).expect("is there").permissions().mode() & 0o7777, 0o600);
    assert_eq!(lab.names(), ["grants.json", "grants.lock"]);
}

#[test]
fn what_is_there_already_is_not_written_again() {
    let lab = Lab::new();
    let mut file = lab.open();
    file.remember(&[]).expect("there is nothing to do");
    assert_eq!(lab.names(), ["grants.lock"]);
    file.remember(&[grant("a.txt")]).expect("stores");
    let before = fs::metadata(lab.path()).expect("is there").ino();
    file.remember(&[grant("a.txt"), grant("a.txt")]).expect("stores");
    assert_eq!(file.revoke("b.txt", None).expect("looks"), []);
    assert_eq!(fs::metadata(lab.path()).expect("is there").ino(), before);
}

#[test]
fn what_is_revoked_is_told_and_holds_no_longer() {
    let lab = Lab::new();
    let mut file = lab.open();
    let note = Grant::parse("memory", "a.md").expect("a grant");
    file.remember(&[grant("a.md"), grant("notes/*"), note.clone()]).expect("stores");
    assert_eq!(file.revoke("notes/a.md", None).expect("looks"), [], "a pattern is named, not what it covers");
    assert_eq!(file.revoke("a.md", Some(Kind::Memory)).expect("revokes"), [note]);
    assert_eq!(file.revoke("a.md", None).expect("revokes"), [grant("a.md")]);
    assert_eq!(file.read().grants, [grant("notes/*")]);
    assert_eq!(file.revoke("notes/*", None).expect("revokes"), [grant("notes/*")]);
    assert_eq!((lab.text().as_str(), file.read().grants.len()), ("[]\n", 0));
}

#[test]
fn a_change_by_hand_is_read_in_place_or_renamed_and_removing_the_file_removes_its_grants() {
    let lab = Lab::new();
    let mut file = lab.open();
    file.remember(&[grant("a.txt")]).expect("stores");
    assert_eq!(file.read().grants, [grant("a.txt")]);
    lab.put(&array(&["b.txt"]), 0o600);
    assert_eq!(file.read().grants, [grant("b.txt")]);
    // In place, of the same size, at once: nothing but the content may tell.
    for target in ["c.txt", "d.txt", "e.txt"] {
        fs::write(lab.path(), array(&[target])).expect("writes");
        assert_eq!(file.read().grants, [grant(target)]);
    }
    fs::write(lab.path(), "[]").expect("writes");
    assert_eq!(file.read(), Reading { grants: vec![], changed: true, fault: None });
    file.remember(&[grant("f.txt")]).expect("stores");
    fs::remove_file(lab.path()).expect("removes");
    assert_eq!(file.read(), Reading { grants: vec![], changed: false, fault: None });
}

#[test]
fn the_file_is_read_again_only_if_its_stamps_or_its_youth_say_so() {
    let lab = Lab::new();
    let mut file = lab.open();
    file.remember(&[grant("a.txt")]).expect("stores");
    file.read();
    assert!(!file.is_current(), "it has just been written");
    lab.wall.pass();
    assert!(!file.read().changed);
    assert!(file.is_current(), "it was read a good while after it was written");
    let before = fs::metadata(lab.path()).expect("is there");
    fs::write(lab.path(), array(&["b.txt"])).expect("writes");
    let times = fs::FileTimes::new().set_modified(before.modified().expect("has one"));
    fs::File::options().write(true).open(lab.path()).and_then(|file| file.set_times(times)).expect("sets them back");
    assert!(!file.is_current(), "the time of change cannot be set");
    assert_eq!(file.read().grants, [grant("b.txt")]);
    lab.wall.pass();
    file.read();
    fs::remove_file(lab.path()).expect("removes");
    assert!(!file.is_current());
    file.read();
    assert!(file.is_current(), "a file that is not there cannot change");
}

#[test]
fn a_broken_file_holds_nothing_says_so_once_and_is_left_alone_until_it_is_mended() {
    let lab = Lab::new();
    let mut file = lab.open();
    lab.put(&array(&["a.txt"]), 0o600);
    assert_eq!(file.read().grants, [grant("a.txt")]);
    for text in ["{", "", r#"[{"kind":"file","target":"a.txt"},7]"#, r#"[{"kind":"file","target":"*"}]"#] {
        lab.put(text, 0o600);
        let reading = file.read();
        assert_eq!(reading.grants, []);
        assert!(reading.changed);
        let fault = reading.fault.expect("says why");
        assert!(fault.starts_with("grants.json: ") && fault.ends_with("until it is mended"), "{fault}");
        assert!(!file.read().changed);
        let error = file.remember(&[grant("b.txt")]).expect_err("not stored");
        assert!(matches!(error, GrantsError::Unusable(Unusable::Shape(_))), "{error}");
        assert!(matches!(file.revoke("a.txt", None), Err(GrantsError::Unusable(_))));
        assert_eq!(lab.text(), text);
    }
    lab.put(&array(&["c.txt"]), 0o600);
    assert_eq!(file.read(), Reading { grants: vec![grant("c.txt")], changed: true, fault: None });
    file.remember(&[grant("b.txt")]).expect("stores again");
}

#[test]
fn a_file_that_is_not_ours_alone_holds_nothing() {
    let lab = Lab::new();
    let mut file = lab.open();
    let good = array(&["a.txt"]);
    for mode in [0o644, 0o622, 0o660, 0o640, 0o606, 0o700, 0o400, 0o4600] {
        lab.put(&good, mode);
        let reading = file.read();
        assert_eq!(reading.grants, [], "{mode:o}");
        assert!(reading.fault.is_some_and(|fault| fault.starts_with("grants.json ")), "{mode:o}");
        assert!(matches!(file.remember(&[grant("b.txt")]), Err(GrantsError::Unusable(_))), "{mode:o}");
        assert_eq!(lab.text(), good);
    }
    // Taken to the owner's bits again without another write.
    fs::set_permissions(lab.path(), fs::Permissions::from_mode(0o600)).expect("chmods");
    assert_eq!(file.read().grants, [grant("a.txt")]);
    fs::hard_link(lab.path(), lab.control.path().join("second")).expect("links");
    assert!(file.read().fault.is_some_and(|fault| fault.contains("has a second name elsewhere")));
    fs::remove_file(lab.control.path().join("second")).expect("removes");
    let mut stranger = lab.open();
    stranger.owner += 1;
    assert!(stranger.read().fault.is_some_and(|fault| fault.contains("belongs to another user")));
    assert_eq!(lab.open().read().grants, [grant("a.txt")]);
}

#[test]
fn a_link_a_folder_or_a_pipe_in_its_place_is_not_followed_and_not_waited_for() {
    let lab = Lab::new();
    let mut file = lab.open();
    lab.put(&array(&["a.txt"]), 0o600);
    fs::rename(lab.path(), lab.control.path().join("real")).expect("moves");
    symlink("real", lab.path()).expect("links");
    assert!(file.read().fault.is_some_and(|fault| fault.contains("is not a regular file")));
    assert!(file.remember(&[grant("b.txt")]).is_err());
    fs::remove_file(lab.path()).expect("removes");
    fs::create_dir(lab.path()).expect("makes");
    assert!(file.read().fault.is_some());
    fs::remove_dir(lab.path()).expect("removes");
    let made = std::process::Command::new("mkfifo").args(["-m", "600"]).arg(lab.path()).status();
    assert!(made.is_ok_and(|status| status.success()));
    assert!(file.read().fault.is_some() && file.remember(&[grant("b.txt")]).is_err());
}

#[test]
fn too_many_bytes_are_neither_read_nor_written() {
    let lab = Lab::new();
    let mut file = lab.open();
    let long = "d".repeat(4000);
    let per_entry = array(&[&long]).len() - array(&[]).len();
    let count = MAX_BYTES as usize / per_entry + 1;
    let many: Vec<Grant> = (0..count).map(|number| grant(&format!("{number:04}{}", &long[4..]))).collect();
    assert!(matches!(file.remember(&many), Err(GrantsError::TooLarge)));
    assert_eq!(file.read().grants, []);
    file.remember(&many[..count - 2]).expect("fits");
    assert_eq!(file.read().grants.len(), count - 2);
    let spaces = " ".repeat(MAX_BYTES as usize);
    lab.put(&format!("[]{spaces}"), 0o600);
    assert!(file.read().fault.is_some_and(|fault| fault.contains("more than")));
}

#[test]
fn writers_that_come_together_lose_nothing_of_each_other() {
    let lab = Lab::new();
    let start = std::sync::Barrier::new(4);
    std::thread::scope(|scope| {
        // Opened before anybody waits for four.
        for (writer, mut file) in [(); 4].map(|()| lab.open()).into_iter().enumerate() {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                for number in 0..8 {
                    file.remember(&[grant(&format!("{writer}-{number}"))]).expect("stores");
                }
                for number in 0..4 {
                    assert_eq!(file.revoke(&format!("{writer}-{number}"), None).expect("revokes").len(), 1);
                }
            });
        }
    });
    assert_eq!(lab.open().read().grants.len(), 16);
    assert_eq!(lab.names(), ["grants.json", "grants.lock"]);
}

#[test]
fn a_turn_that_is_held_by_another_process_is_an_error_that_says_so() {
    let lab = Lab::new();
    let mut file = lab.open();
    let held = Turn::named(lab.control.dir(), TURN, WAIT).expect("is free");
    let error = file.remember(&[grant("a.txt")]).expect_err("not stored");
    assert!(matches!(error, GrantsError::Turn(TurnError::Busy { .. })), "{error}");
    drop(held);
    file.remember(&[grant("a.txt")]).expect("stores");
}

#[test]
fn ten_thousand_grants_are_read_once_and_not_again_until_they_change() {
    let lab = Lab::new();
    let mut file = lab.open();
    let many: Vec<Grant> = (0..10_000).map(|number| grant(&format!("folder/{number}/file.txt"))).collect();
    file.remember(&many).expect("stores");
    lab.wall.pass();
    assert_eq!(file.read().grants.len(), 10_000);
    (0..1000).for_each(|_| assert!(file.read_if_changed().is_none()));
    lab.put("[]", 0o600);
    assert!(file.read_if_changed().is_some_and(|reading| reading.grants.is_empty()));
}
