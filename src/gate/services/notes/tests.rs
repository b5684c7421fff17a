//! Notes, with hostile folders and crashes.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use platform::fault::Plan;
use serde_json::json;

use super::*;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    fn notes(&self) -> Notes {
        Notes::of(Dir::open_ambient(self.0.path()).expect("it exists"))
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().join("memory").join(below)
    }

    fn put(&self, below: &str, content: &[u8]) {
        std::fs::create_dir_all(self.path(below).parent().expect("a parent")).expect("made");
        std::fs::write(self.path(below), content).expect("written");
    }
}

fn content(notes: &Notes, path: &str) -> String {
    notes.read(path).expect(path)["content"].as_str().expect("a text").to_owned()
}

#[test]
fn a_note_is_read_as_it_was_written() {
    let folder = Folder::new();
    let notes = folder.notes();
    assert!(notes.read("plans/next.md").is_err_and(|why| why == "there is no note plans/next.md"));
    for text in ["buy milk\n", "", "<!-- summary: mine -->\nx", "\u{0}\u{202e}\r\n"] {
        let written = notes.write("plans/next.md", " what is next ", text).expect("written");
        let wanted = json!({"path": "plans/next.md", "summary": "what is next", "bytesWritten": text.len()});
        assert_eq!(Value::Object(written), wanted);
        let read = notes.read("plans/next.md").expect("read");
        let wanted = json!({"path": "plans/next.md", "summary": "what is next", "content": text, "size": text.len(),
            "truncated": false});
        assert_eq!(Value::Object(read), wanted);
    }
    let mode = |path: PathBuf| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o7777;
    assert_eq!(
        (mode(folder.path("")), mode(folder.path("plans")), mode(folder.path("plans/next.md"))),
        (0o700, 0o700, 0o600)
    );
}

#[test]
fn a_note_is_bounded_and_has_a_summary() {
    let folder = Folder::new();
    let notes = folder.notes();
    notes.write("full.md", "s", &"x".repeat(MAX_NOTE)).expect("as much as there may be");
    assert_eq!(content(&notes, "full.md").len(), MAX_NOTE);
    assert!(notes.write("big.md", "s", &"x".repeat(MAX_NOTE + 1)).is_err());
    for summary in ["", "  ", "two\nlines", "a\u{202e}b"] {
        assert!(notes.write("a.md", summary, "x").is_err_and(|why| why.contains("summary")), "{summary:?}");
    }
    let written = notes.write("a.md", &"é".repeat(200), "x").expect("cut");
    assert_eq!(written["summary"], json!("é".repeat(MAX_SUMMARY)));
    assert!(notes.write(&format!("{}a.md", "d/".repeat(MAX_SEGMENTS)), "s", "x").is_err());
    for path in ["../a.md", "/a.md", "a/../b.md", "a.txt", "", "a\n.md"] {
        assert!(notes.write(path, "s", "x").is_err() && notes.read(path).is_err(), "{path:?}");
    }
}

#[test]
fn there_is_an_end_to_notes() {
    let folder = Folder::new();
    let notes = folder.notes();
    for number in 0..MOST {
        folder.put(&format!("{number}.md"), b"x");
    }
    assert!(notes.write("more.md", "s", "x").is_err_and(|why| why.contains("500 notes already")));
    notes.write("7.md", "s", "those that are there can change").expect("written");
    std::fs::remove_file(folder.path("8.md")).expect("removed");
    notes.write("more.md", "s", "room again").expect("written");
}

#[test]
fn nothing_but_a_regular_file_in_the_folder_is_read_or_replaced() {
    let folder = Folder::new();
    let outside = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(outside.path().join("secret.md"), "secret").expect("written");
    let notes = folder.notes();
    folder.put("real.md", b"x");
    symlink(outside.path().join("secret.md"), folder.path("link.md")).expect("linked");
    symlink(outside.path(), folder.path("linked")).expect("linked");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        folder.path("pipe.md"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .expect("a FIFO");
    std::fs::create_dir(folder.path("folder.md")).expect("made");
    for path in ["link.md", "linked/secret.md", "pipe.md", "folder.md"] {
        let why = notes.read(path).expect_err(path);
        assert!(!why.contains("secret\n"), "{why}");
        assert!(notes.write(path, "s", "x").is_err(), "{path}");
    }
    assert_eq!(std::fs::read_to_string(outside.path().join("secret.md")).expect("readable"), "secret");
    assert_eq!(content(&notes, INDEX), "- real.md — x\n");
    // The folder itself is somebody else's.
    std::fs::rename(folder.path(""), folder.0.path().join("moved")).expect("moved");
    symlink(outside.path(), folder.0.path().join("memory")).expect("linked");
    assert!(notes.read("secret.md").is_err());
    assert!(notes.write("new.md", "s", "x").is_err());
    assert!(!outside.path().join("new.md").exists());
}

#[test]
fn a_note_written_by_hand_is_read_too() {
    let folder = Folder::new();
    let notes = folder.notes();
    folder.put("hand.md", b"# By hand\n");
    let read = notes.read("hand.md").expect("read");
    assert_eq!((&read["summary"], &read["content"]), (&Value::Null, &json!("# By hand\n")));
    folder.put("long.md", "ž".repeat(MAX_NOTE).as_bytes());
    let read = notes.read("long.md").expect("read");
    assert_eq!((&read["size"], &read["truncated"]), (&json!(2 * MAX_NOTE), &json!(true)));
    assert_eq!(read["content"].as_str().map(str::len), Some(MAX_NOTE));
    folder.put("binary.md", b"\xff\xfe");
    assert!(notes.read("binary.md").is_err_and(|why| why.contains("not UTF-8")));
}

#[test]
fn the_index_tells_of_every_note_and_cannot_be_written() {
    let folder = Folder::new();
    let notes = folder.notes();
    let read = notes.read(INDEX).expect("an index of nothing");
    assert_eq!((&read["content"], &read["truncated"]), (&json!(""), &json!(false)));
    notes.write("b.md", "second", "x").expect("written");
    notes.write("a/deep.md", "first", "x").expect("written");
    folder.put("hand.md", b"\n## By hand\n");
    folder.put("no-note.txt", b"x");
    folder.put("bad\u{202e}.md", b"x");
    folder.put(INDEX, b"a lie");
    assert_eq!(content(&notes, INDEX), "- a/deep.md — first\n- b.md — second\n- hand.md — By hand\n");
    assert!(notes.write(INDEX, "s", "x").is_err_and(|why| why.contains("made by itself")));
    for number in 0..300 {
        let name = format!("{number}-{}.md", "n".repeat(200));
        folder.put(&name, page::join(&"é".repeat(MAX_SUMMARY), "x").as_bytes());
    }
    let read = notes.read(INDEX).expect("an index");
    assert_eq!(read["truncated"], json!(true));
    let shown = read["content"].as_str().expect("a text");
    assert!(shown.len() <= MAX_NOTE && shown.ends_with('é') && read["size"].as_u64() > Some(MAX_NOTE as u64));
}

#[test]
fn after_a_crash_at_any_point_a_note_is_the_old_or_the_new_with_its_own_summary() {
    for point in 0..40 {
        let folder = Folder::new();
        let notes = folder.notes();
        notes.write("a/b.md", "old", "old").expect("written");
        let plan = Plan::crash_after(point);
        let _died = notes.write("a/b.md", "new", "new");
        let _died = notes.write("c/d.md", "new", "new");
        drop(plan);
        let read = folder.notes().read("a/b.md").expect("read");
        assert_eq!(read["summary"], read["content"], "at {point}");
        folder.notes().write("c/d.md", "last", "last").expect("the next one writes");
        let names: Vec<String> = std::fs::read_dir(folder.0.path())
            .expect("lists")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
            .collect();
        assert!(!names.contains(&"note.new".to_owned()), "at {point}: {names:?}");
    }
}
