//! What every journal does: one list of checks, run for the one on disk and the one in memory.

use std::io::Read;

use platform::Dir;

use super::{Entry, Event, FailsAt, FileJournal, Journal, JournalError, MAX_LINE_BYTES, MemoryJournal, read};

pub(super) const AT: &str = "2026-11-30T09:41:07.123Z";

/// Some event that is told from others by its number.
pub(super) fn numbered(number: u64) -> Event {
    Event::Lost { cause: format!("number {number}") }
}

/// A state folder for one test.
pub(super) struct Lab {
    _folder: tempfile::TempDir,
    pub dir: Dir,
    pub owner: u32,
}

impl Lab {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("makes a folder");
        let dir = Dir::open_ambient(folder.path()).expect("opens it");
        let owner = dir.own_stat().expect("stats").uid;
        Self { _folder: folder, dir, owner }
    }

    pub fn open(&self) -> FileJournal {
        FileJournal::open(&self.dir, self.owner, "s").expect("opens").journal
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.dir.open_read(name.as_bytes()).expect("opens").read_to_end(&mut bytes).expect("reads");
        bytes
    }

    pub fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        read(&self.dir, self.owner, |seen| entries.push(seen.entry.expect("is known"))).expect("holds");
        entries
    }

    /// Puts these bytes in place of the journal.
    pub fn put(&self, bytes: &[u8]) {
        self.dir.remove_all(b"journal.jsonl").expect("removes");
        let file = self.dir.create_new(b"journal.jsonl", 0o600).expect("makes");
        platform::file::write_all(&file, b"journal.jsonl", bytes).expect("writes");
    }
}

/// Runs the check on both kinds and compares what they hold afterwards.
fn both(check: impl Fn(&mut dyn Journal)) -> Vec<Entry> {
    let lab = Lab::new();
    let mut on_disk = lab.open();
    check(&mut on_disk);
    let mut in_memory = MemoryJournal::new("s");
    check(&mut in_memory);
    assert_eq!(lab.bytes("journal.jsonl"), in_memory.bytes(), "disk and memory hold different bytes");
    assert_eq!(lab.entries(), in_memory.entries().expect("are known"));
    lab.entries()
}

fn texts(entries: &[Entry]) -> Vec<(u64, u64, Event)> {
    entries.iter().map(|entry| (entry.seq, entry.batch, entry.event.clone())).collect()
}

#[test]
fn entries_of_one_commit_are_one_batch_and_numbers_go_on() {
    let entries = both(|journal| {
        journal.append(AT, &numbered(1)).expect("takes");
        journal.append(AT, &numbered(2)).expect("takes");
        journal.commit().expect("commits");
        journal.commit().expect("has nothing to do");
        journal.append(AT, &numbered(3)).expect("takes");
        journal.commit().expect("commits");
    });
    assert_eq!(texts(&entries), [(1, 1, numbered(1)), (2, 1, numbered(2)), (3, 3, numbered(3))]);
    assert!(entries.iter().all(|entry| entry.at == AT && entry.session == "s"));
}

#[test]
fn what_was_not_committed_is_not_there() {
    let entries = both(|journal| {
        journal.append(AT, &numbered(1)).expect("takes");
        journal.commit().expect("commits");
        journal.append(AT, &numbered(2)).expect("takes");
    });
    assert_eq!(texts(&entries), [(1, 1, numbered(1))]);
}

#[test]
fn a_discarded_batch_leaves_no_gap() {
    let entries = both(|journal| {
        journal.append(AT, &numbered(1)).expect("takes");
        journal.discard();
        journal.append(AT, &numbered(2)).expect("takes");
        journal.commit().expect("commits");
    });
    assert_eq!(texts(&entries), [(1, 1, numbered(2))]);
}

#[test]
fn an_entry_too_long_for_a_line_is_refused_and_the_rest_of_the_batch_stays() {
    let entries = both(|journal| {
        journal.append(AT, &numbered(1)).expect("takes");
        let long = Event::Lost { cause: "x".repeat(MAX_LINE_BYTES) };
        assert!(matches!(journal.append(AT, &long), Err(JournalError::TooLong(_))));
        journal.append(AT, &numbered(2)).expect("takes");
        journal.commit().expect("commits");
    });
    assert_eq!(texts(&entries), [(1, 1, numbered(1)), (2, 1, numbered(2))]);
}

#[test]
fn names_that_would_draw_stand_escaped_and_come_back() {
    let hostile = Event::Contested { path: "a\u{1b}[2J\u{202e}\u{7f}\"\\\n{\"seq\":".to_owned() };
    let lab = Lab::new();
    let mut journal = lab.open();
    journal.append(AT, &hostile).expect("takes");
    journal.commit().expect("commits");
    let bytes = lab.bytes("journal.jsonl");
    let text = String::from_utf8(bytes).expect("is UTF-8");
    assert!(!text.trim_end_matches('\n').chars().any(crate::text::is_hidden), "{text}");
    assert_eq!(text.matches("{\"seq\":").count(), 1);
    assert_eq!(lab.entries()[0].event, hostile);
}

#[test]
fn a_failed_commit_drops_its_batch_and_the_next_one_works() {
    let mut journal = FailsAt::new(MemoryJournal::new("s"), 1);
    for number in 1..=3 {
        journal.append(AT, &numbered(number)).expect("takes");
        assert_eq!(journal.commit().is_ok(), number != 2, "commit {number}");
    }
    let entries = journal.inner().entries().expect("are known");
    assert_eq!(texts(&entries), [(1, 1, numbered(1)), (2, 2, numbered(3))]);
}
