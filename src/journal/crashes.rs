//! The journal on disk: killed at every step, on a full disk, and under hands that are not ours.

use std::io::Read;

use platform::fault::Plan;
use platform::{Dir, file};

use super::conformance::{AT, Lab, numbered};
use super::{
    Event, FileJournal, Journal, JournalError, MemoryJournal, Opened, Options, Record, RestoreOutcome, verify,
};
use crate::baseline::{ChangeKind, Content, Snapshot};
use crate::digest::Digest;
use crate::rules::{Mode, Rule};

const ENOSPC: i32 = 28;

pub(super) fn session() -> Event {
    Event::Session {
        command: "watch".into(),
        pid: 4242,
        root: "/repo".into(),
        outer_roots: vec!["/elsewhere/hooks".into()],
        options: Options { lock_deps: true, allow_only: vec!["src/**".into()], ..Options::default() },
        rules: Some(Digest::of(b"protect: []\n")),
        backend: "poll".into(),
    }
}

pub(super) fn content(text: &str) -> Record {
    let content = Content::Regular { digest: Digest::of(text.as_bytes()), size: text.len() as u64 };
    Record::of(&Snapshot { content, mode: 0o644, ..Snapshot::absent() })
}

pub(super) fn baseline(path: &str, text: &str) -> Event {
    Event::Baseline { path: path.into(), rule: Rule::Secrets, mode: Mode::Restore, snapshot: content(text) }
}

pub(super) fn accepted(path: &str, text: &str) -> Event {
    Event::Accepted {
        path: path.into(),
        rule: Rule::Secrets,
        kind: ChangeKind::Modified,
        snapshot: content(text),
        asked: None,
        writer: None,
    }
}

pub(super) fn restoring(path: &str) -> Event {
    let temporary = Some(".keep-0123456789ab".into());
    Event::Restoring {
        path: path.into(),
        temporary,
        quarantine: Some("q1".into()),
        outcome: RestoreOutcome::Rejected,
        writer: None,
    }
}

pub(super) fn restored(path: &str) -> Event {
    Event::Restored {
        writer: None,
        path: path.into(),
        rule: Rule::Secrets,
        kind: ChangeKind::Modified,
        outcome: RestoreOutcome::Rejected,
        sha256_after: None,
        quarantine: vec!["q1".into()],
        attempts: 1,
    }
}

/// What one session commits, batch by batch, and the content of `.env` that is accepted after each.
fn script() -> Vec<(Vec<Event>, Option<&'static str>)> {
    vec![
        (vec![session()], None),
        (vec![baseline(".env", "one"), baseline("CLAUDE.md", "text")], None),
        (vec![Event::Sealed { files: 2 }], Some("one")),
        (vec![accepted(".env", "two")], Some("two")),
        (vec![restoring(".env")], Some("two")),
        (vec![restored(".env"), accepted(".env", "three")], Some("three")),
        (vec![Event::Ended { signal: Some("SIGINT".into()), exit_code: 3 }], Some("three")),
    ]
}

/// Runs the script until a step fails; returns how many batches were committed.
fn run(lab: &Lab, rotate_above: u64) -> usize {
    let Ok(opened) = FileJournal::open_rotating(&lab.dir, lab.owner, "s", rotate_above) else { return 0 };
    let mut journal = opened.journal;
    let script = script();
    script
        .iter()
        .take_while(|(events, _)| {
            events.iter().for_each(|event| journal.append(AT, event).expect("fits"));
            journal.commit().is_ok()
        })
        .count()
}

fn reopen(lab: &Lab, rotate_above: u64) -> Opened {
    FileJournal::open_rotating(&lab.dir, lab.owner, "later", rotate_above).expect("opens after a crash")
}

/// The content of `.env` that is accepted, by digest.
fn accepted_env(opened: &Opened) -> Option<Digest> {
    opened.replayed.baseline.get(".env").and_then(|state| state.snapshot.sha256)
}

fn digest(text: Option<&str>) -> Option<Digest> {
    text.map(|text| Digest::of(text.as_bytes()))
}

#[test]
fn killed_at_any_step_the_next_start_knows_the_accepted_state() {
    let steps = {
        let plan = Plan::count();
        assert_eq!(run(&Lab::new(), u64::MAX), script().len());
        plan.passed()
    };
    assert!(steps > 14, "only {steps} steps");
    for step in 0..=steps {
        let lab = Lab::new();
        let plan = Plan::crash_after(step);
        let committed = run(&lab, u64::MAX);
        drop(plan);
        let opened = reopen(&lab, u64::MAX);
        let state = accepted_env(&opened);
        // The batch whose commit was interrupted may be there or not; an earlier one must be.
        let before = committed.checked_sub(1).and_then(|last| script()[last].1);
        let after = script().get(committed).map_or(before, |(_, text)| *text);
        assert!([digest(before), digest(after)].contains(&state), "killed at step {step}: {state:?}");
        let ended = committed == script().len();
        assert!(!ended || opened.replayed.ended_properly, "killed at step {step}");
        // It can be gone on with.
        let mut journal = opened.journal;
        journal.append(AT, &numbered(1)).expect("fits");
        journal.commit().expect("commits");
        verify(&lab.dir, lab.owner).expect("holds");
    }
}

#[test]
fn killed_at_any_step_of_setting_it_aside_the_accepted_state_stays_known() {
    let prepared = || {
        let lab = Lab::new();
        run(&lab, u64::MAX);
        lab
    };
    let steps = {
        let (lab, plan) = (prepared(), Plan::count());
        assert!(reopen(&lab, 1).rotated.is_some());
        plan.passed()
    };
    for step in 0..=steps {
        let lab = prepared();
        let plan = Plan::crash_after(step);
        let _ = FileJournal::open_rotating(&lab.dir, lab.owner, "killed", 1);
        drop(plan);
        let opened = reopen(&lab, u64::MAX);
        assert_eq!(accepted_env(&opened), digest(Some("three")), "killed at step {step}");
        assert!(opened.replayed.ended_properly, "killed at step {step}");
        let verified = verify(&lab.dir, lab.owner).expect("holds");
        assert_eq!(verified.entries, 9, "killed at step {step}");
    }
}

#[test]
fn a_full_journal_is_set_aside_once_its_session_has_ended_and_the_next_one_continues_it() {
    let lab = Lab::new();
    run(&lab, 1);
    for number in 1..=3 {
        let opened = reopen(&lab, 1);
        assert_eq!(opened.rotated, Some(format!("journal-{number}.jsonl")));
        assert_eq!(accepted_env(&opened), digest(Some("three")));
        drop(opened);
        run(&lab, u64::MAX);
    }
    assert_eq!(verify(&lab.dir, lab.owner).expect("holds").files, 4);
    assert_eq!(lab.entries().iter().map(|entry| entry.seq).collect::<Vec<_>>(), (1..=36).collect::<Vec<_>>());
    // Without the oldest it still holds, without one between it does not.
    lab.dir.unlink(b"journal-1.jsonl").expect("removes");
    assert_eq!(verify(&lab.dir, lab.owner).expect("holds").first, 10);
    reopen(&lab, u64::MAX);
    lab.dir.unlink(b"journal-3.jsonl").expect("removes");
    assert!(matches!(verify(&lab.dir, lab.owner), Err(JournalError::Chain { .. })));
    let error = FileJournal::open(&lab.dir, lab.owner, "s").expect_err("does not continue the one before");
    assert!(matches!(error, JournalError::Chain { .. }), "{error}");
}

#[test]
fn a_journal_whose_session_crashed_is_not_set_aside() {
    let lab = Lab::new();
    let mut journal = lab.open();
    for event in [session(), baseline(".env", "one"), Event::Sealed { files: 1 }] {
        journal.append(AT, &event).expect("fits");
    }
    journal.commit().expect("commits");
    let opened = reopen(&lab, 1);
    assert_eq!((opened.rotated, opened.replayed.ended_properly), (None, false));
}

#[test]
fn a_journal_that_knows_of_something_immutable_is_not_set_aside() {
    let lab = Lab::new();
    run(&lab, u64::MAX);
    let (path, id) = (".env".to_owned(), super::Object { dev: 1, ino: 2, uid: 3 });
    let write = |event: &Event| {
        let mut journal = lab.open();
        journal.append(AT, event).expect("fits");
        journal.commit().expect("commits");
    };
    write(&Event::Flagged { path: path.clone(), id });
    let Opened { replayed, rotated, .. } = reopen(&lab, 1);
    assert_eq!((rotated, replayed.ended_properly), (None, true));
    assert_eq!(replayed.flagged, [(id, path.clone())].into());
    write(&Event::Unflagged { path, id, missing: false });
    assert!(reopen(&lab, 1).rotated.is_some());
}

#[test]
fn on_a_full_disk_a_batch_is_dropped_and_the_next_one_works() {
    for passes in 0..4 {
        let lab = Lab::new();
        let mut journal = lab.open();
        journal.append(AT, &numbered(1)).expect("fits");
        journal.commit().expect("commits");
        let before = lab.bytes("journal.jsonl");
        let plan = Plan::fail_after(passes, ENOSPC);
        journal.append(AT, &numbered(2)).expect("fits");
        let failed = journal.commit();
        drop(plan);
        match failed {
            Ok(()) => assert_eq!(passes, 3, "write, write, sync are the steps"),
            Err(JournalError::Write(error)) => assert_eq!(error.errno(), Some(ENOSPC)),
            Err(other) => panic!("{other}"),
        }
        journal.append(AT, &numbered(3)).expect("fits");
        journal.commit().expect("there is space again");
        let mut wanted = MemoryJournal::new("s");
        for number in [1, 2, 3].into_iter().filter(|&number| passes == 3 || number != 2) {
            wanted.append(AT, &numbered(number)).expect("fits");
            wanted.commit().expect("commits");
        }
        let after = lab.bytes("journal.jsonl");
        assert!(after.starts_with(&before));
        assert_eq!(after.escape_ascii().to_string(), wanted.bytes().escape_ascii().to_string(), "failed at {passes}");
        reopen(&lab, u64::MAX);
    }
}

#[test]
fn a_torn_batch_is_cut_off_and_an_altered_journal_is_left_as_it_is() {
    let lab = Lab::new();
    run(&lab, u64::MAX);
    let good = lab.bytes("journal.jsonl");
    lab.put(&[&good[..], b"{\"torn\": \"li"].concat());
    assert_eq!(reopen(&lab, u64::MAX).cut_bytes, 12);
    assert_eq!(lab.bytes("journal.jsonl"), good);
    let text = String::from_utf8(good).expect("is UTF-8");
    let altered = text.replacen("CLAUDE.md", "CLAUDE.xx", 1).into_bytes();
    lab.put(&altered);
    let error = FileJournal::open(&lab.dir, lab.owner, "s").expect_err("is refused");
    assert!(matches!(error, JournalError::Chain { line: 3, .. }), "{error}");
    assert_eq!(error.code(), "GXT_CAGE_JOURNAL");
    assert_eq!(lab.bytes("journal.jsonl"), altered);
}

#[test]
fn an_event_of_a_newer_version_is_named_and_nothing_is_cut() {
    let mut journal = MemoryJournal::new("s");
    journal.append(AT, &numbered(1)).expect("fits");
    journal.commit().expect("commits");
    // The sum is that of the line as it would have been written.
    let line = String::from_utf8(journal.bytes().to_vec()).expect("is UTF-8").replace("\"lost\"", "\"teleported\"");
    let body = &line[..line.find(",\"sum\"").expect("has a sum")];
    let line = format!("{body},\"sum\":\"{}\"}}\n", &Digest::of(body.as_bytes()).to_string()[..16]);
    let lab = Lab::new();
    let bytes = format!("{line}{{\"torn").into_bytes();
    lab.put(&bytes);
    match FileJournal::open(&lab.dir, lab.owner, "s").expect_err("is refused") {
        JournalError::UnknownEvent { line: 1, event, .. } => assert_eq!(event, "teleported"),
        other => panic!("{other}"),
    }
    assert_eq!(lab.bytes("journal.jsonl"), bytes);
}

#[test]
fn a_field_of_a_newer_version_is_left_out() {
    let mut journal = MemoryJournal::new("s");
    journal.append(AT, &numbered(1)).expect("fits");
    journal.commit().expect("commits");
    let line = String::from_utf8(journal.bytes().to_vec()).expect("is UTF-8");
    let with_field = line.trim_end().replace("\"cause\"", "\"mood\":[\"calm\",{}],\"cause\"");
    assert_eq!(super::Entry::parse(with_field.as_bytes()).expect("is read").event, numbered(1));
}

#[test]
fn a_journal_that_is_not_ours_alone_is_refused() {
    let refusal = |prepare: &dyn Fn(&Dir)| {
        let lab = Lab::new();
        prepare(&lab.dir);
        match FileJournal::open(&lab.dir, lab.owner, "s").map(|_| ()).expect_err("is refused") {
            JournalError::NotOurs { reason, .. } => reason,
            other => panic!("{other}"),
        }
    };
    let make = |dir: &Dir, mode: u32| dir.create_new(b"journal.jsonl", mode).expect("makes");
    assert_eq!(refusal(&|dir| dir.symlink(b"other", b"journal.jsonl").expect("links")), "is not a regular file");
    assert_eq!(refusal(&|dir| drop(dir.make_dir(b"journal.jsonl", 0o700))), "is not a regular file");
    assert_eq!(refusal(&|dir| drop(make(dir, 0o620))), "can be written by other users");
    assert_eq!(refusal(&|dir| drop(make(dir, 0o602))), "can be written by other users");
    let lab = Lab::new();
    make(&lab.dir, 0o600);
    let error = FileJournal::open(&lab.dir, lab.owner + 1, "s").expect_err("is refused");
    assert!(error.to_string().ends_with("belongs to another user"), "{error}");
}

#[test]
fn a_journal_others_could_read_is_tightened() {
    let lab = Lab::new();
    let open = lab.dir.create_new(b"journal.jsonl", 0o644).expect("makes");
    lab.open();
    assert_eq!(
        open.metadata().map(|data| std::os::unix::fs::PermissionsExt::mode(&data.permissions())).expect("stats")
            & 0o7777,
        0o600
    );
}

#[test]
fn a_journal_taken_away_while_it_is_open_is_noticed() {
    let lab = Lab::new();
    let mut journal = lab.open();
    let mut commit = |number| {
        journal.append(AT, &numbered(number)).expect("fits");
        journal.commit()
    };
    commit(1).expect("commits");
    // Bytes that somebody adds are cut off, not built upon.
    file::write_all(&lab.dir.open_append(b"journal.jsonl").expect("opens"), b"", b"noise\n").expect("writes");
    commit(2).expect("commits");
    assert_eq!(lab.entries().len(), 2);
    lab.dir.rename(b"journal.jsonl", &lab.dir, b"elsewhere").expect("moves");
    assert!(matches!(commit(3), Err(JournalError::Taken)));
    lab.dir.create_new(b"journal.jsonl", 0o600).expect("makes");
    assert!(matches!(commit(4), Err(JournalError::Taken)));
    lab.dir.rename(b"elsewhere", &lab.dir, b"journal.jsonl").expect("moves back");
    commit(5).expect("commits");
    let mut text = String::new();
    lab.dir.open_read(b"journal.jsonl").expect("opens").read_to_string(&mut text).expect("reads");
    assert_eq!(text.lines().count(), 3);
}
