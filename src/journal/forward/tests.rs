//! What collectors get: parsed back by readers that know the formats and nothing of us.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use platform::datagram::Outlet;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::baseline::ChangeKind;
use crate::cli::log_line::sentence as log_sentence;
use crate::digest::Digest;
use crate::journal::{Event, FailsAt, Head, HeldOutcome, Journal, MemoryJournal, RestoreOutcome, Writer};
use crate::rules::{Mode, Rule};
use crate::text::{decode, encode, is_hidden};

const AT: &str = "2026-11-30T09:41:07.123Z";

fn restored(path: &[u8]) -> Event {
    Event::Restored {
        path: encode(path),
        rule: Rule::Secrets,
        kind: ChangeKind::Modified,
        outcome: RestoreOutcome::TimedOut,
        sha256_after: Some(Digest::of(b"")),
        quarantine: vec!["20261130T094107123Z-00000".into()],
        attempts: 1,
        writer: None,
    }
}

fn notice(event: &Event) -> Notice {
    let message = log_sentence(event).expect("is told");
    let head = Head { seq: 7, digest: Digest::of(b"line") };
    Notice::of(event, &message, (AT, "s-42"), (42, "/home/me/app"), head)
}

/// A reader of the native protocol: names and values in their order; `None` if it is not in that form.
fn journald_fields(mut record: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
    let mut fields = Vec::new();
    while !record.is_empty() {
        let end = record.iter().position(|byte| *byte == b'\n')?;
        let (line, rest) = (&record[..end], &record[end + 1..]);
        let (name, value, rest) = match line.iter().position(|byte| *byte == b'=') {
            Some(at) => (&line[..at], line[at + 1..].to_vec(), rest),
            None => {
                let length = usize::try_from(u64::from_le_bytes(rest.get(..8)?.try_into().ok()?)).ok()?;
                let value = rest.get(8..8 + length)?.to_vec();
                (line, value, rest.get(8 + length..)?.strip_prefix(b"\n")?)
            }
        };
        let is_name = !name.is_empty() && name.iter().all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_'));
        if !is_name || name[0] == b'_' || name.len() > 64 {
            return None;
        }
        fields.push((String::from_utf8(name.to_vec()).ok()?, value));
        record = rest;
    }
    Some(fields)
}

/// A reader of our line: priority, sentence, and the pairs after it.
fn syslog_parts(line: &str) -> Option<(u8, String, BTreeMap<String, String>)> {
    let (priority, rest) = line.strip_prefix('<')?.split_once('>')?;
    let rest = rest.strip_prefix("keep[42]: ")?;
    let at = rest.find(" | event=\"")?;
    let (sentence, mut pairs) = (&rest[..at], &rest[at + 2..]);
    let mut found = BTreeMap::new();
    while let Some(rest) = pairs.strip_prefix(' ') {
        let (name, value) = rest.split_once('=')?;
        let mut values = serde_json::Deserializer::from_str(value).into_iter::<String>();
        let text = values.next()?.ok()?;
        pairs = &value[values.byte_offset()..];
        found.insert(name.to_owned(), text);
    }
    pairs.is_empty().then(|| (priority.parse().expect("a number"), sentence.to_owned(), found))
}

#[test]
fn a_notice_says_what_happened_where_and_how_it_ended() {
    let notice = notice(&restored(b".env"));
    assert_eq!(
        notice.message,
        "restored: .env (secrets, modified, sha256 e3b0c44298fc), no answer; in quarantine: 20261130T094107123Z-00000"
    );
    let digest = Digest::of(b"line");
    let record = String::from_utf8(Format::Journald.bytes(&notice, 0)).expect("is text");
    for wanted in [
        "PRIORITY=4",
        "SYSLOG_IDENTIFIER=keep",
        "SYSLOG_FACILITY=10",
        "KEEPWATCH_EVENT=restored",
        "KEEPWATCH_PATH=.env",
        "KEEPWATCH_RULE=secrets",
        "KEEPWATCH_OUTCOME=timed_out",
        "KEEPWATCH_SESSION=s-42",
        "KEEPWATCH_SEQ=7",
        "KEEPWATCH_ROOT=/home/me/app",
        &format!("KEEPWATCH_CHAIN={digest}"),
    ] {
        assert!(record.lines().any(|line| line == wanted), "no {wanted} in {record}");
    }
    let line = String::from_utf8(Format::Syslog.bytes(&notice, 0)).expect("is text");
    assert!(line.starts_with("<84>keep[42]: restored: .env (secrets, modified"), "{line}");
    assert!(line.contains(r#" | event="restored" session="s-42" seq="7" "#), "{line}");
    let object: Value = serde_json::from_slice(&Format::Lines.bytes(&notice, 0)).expect("is JSON");
    assert_eq!((&object["severity"], &object["outcome"]), (&"warning".into(), &"timed_out".into()));
    assert_eq!((&object["seq"], &object["pid"]), (&7.into(), &42.into()));
}

#[test]
fn the_writer_is_told_by_its_members() {
    let writer = Writer {
        pid: 4711,
        name: Some("node".into()),
        exe: Some("/usr/bin/node".into()),
        argv0: Some("claude\nKEEPWATCH_OUTCOME=accepted".into()),
        ancestors: vec!["zsh".into(), "tmux".into()],
        user: Some(1000),
        cgroup: None,
        other_mounts: false,
        certainty: "certain".into(),
    };
    let event = Event::Transient {
        path: ".env".into(),
        rule: Rule::Secrets,
        kind: ChangeKind::Modified,
        sha256: None,
        writer: Some(writer),
    };
    let fields = journald_fields(&Format::Journald.bytes(&notice(&event), 0)).expect("is in the form");
    let of = |name: &str| -> Vec<&[u8]> {
        fields.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_slice()).collect()
    };
    assert_eq!(of("KEEPWATCH_WRITER_PID"), [b"4711"]);
    assert_eq!((of("KEEPWATCH_WRITER_NAME"), of("KEEPWATCH_WRITER_USER")), (vec![&b"node"[..]], vec![&b"1000"[..]]));
    assert_eq!(of("KEEPWATCH_WRITER_EXE"), [b"/usr/bin/node"]);
    assert_eq!(of("KEEPWATCH_WRITER_ARGV0"), [b"claude\nKEEPWATCH_OUTCOME=accepted"]);
    assert_eq!(of("KEEPWATCH_WRITER_CERTAINTY"), [b"certain"]);
    assert_eq!(of("KEEPWATCH_WRITER_ANCESTORS"), [&b"zsh"[..], b"tmux"]);
    assert!(of("KEEPWATCH_OUTCOME").is_empty());
}

#[test]
fn what_became_of_a_held_open_is_its_outcome_and_a_refusal_is_worse_than_a_yes() {
    let told = |decision| {
        let writer = Writer {
            pid: 7,
            name: None,
            user: None,
            cgroup: None,
            other_mounts: false,
            exe: None,
            argv0: None,
            ancestors: vec![],
            certainty: "certain".into(),
        };
        let (path, rule, access) = (".env".into(), Rule::Secrets, platform::Access::Write);
        let notice = notice(&Event::Held { path, rule, access, decision, opens: 1, writer });
        (notice.severity, notice.field("outcome").cloned())
    };
    assert_eq!(told(HeldOutcome::Allowed), (Severity::Notice, Some("allowed".into())));
    assert_eq!(told(HeldOutcome::TimedOut), (Severity::Warning, Some("timed_out".into())));
}

#[test]
fn long_lists_and_long_texts_are_cut_and_a_line_for_syslog_stays_short() {
    let paths: Vec<String> = (0..40_000).map(|number| format!("{number}/{}", "x".repeat(300))).collect();
    let notice = notice(&Event::Changed { paths });
    assert_eq!(notice.field("paths_count"), Some(&40_000.into()));
    assert_eq!(notice.field("paths").and_then(Value::as_array).map(Vec::len), Some(10));
    assert!(Format::Syslog.bytes(&notice, 9).len() <= 8192);
    // What a socket takes unless the system was told otherwise (net.core.wmem_default).
    assert!(Format::Journald.bytes(&notice, 9).len() < 200_000);
    let reason = "é".repeat(100_000);
    let failed = self::notice(&Event::RestoreFailed { path: ".env".into(), errno: None, reason });
    assert!(failed.message.ends_with('…') && failed.message.len() <= 16 << 10);
    assert!(syslog_parts(&String::from_utf8(Format::Syslog.bytes(&failed, 0)).expect("is text")).is_some());
}

#[test]
fn what_was_missed_is_told_in_every_format() {
    let notice = notice(&restored(b".env"));
    let words = "(12 notices before this one could not be sent)";
    for format in [Format::Journald, Format::Syslog, Format::Lines] {
        let text = String::from_utf8(format.bytes(&notice, 12)).expect("is text");
        assert!(text.contains(words), "{format:?}: {text}");
        assert!(!String::from_utf8(format.bytes(&notice, 0)).expect("is text").contains("could not be sent"));
    }
    let object: Value = serde_json::from_slice(&Format::Lines.bytes(&notice, 12)).expect("is JSON");
    assert_eq!(object["missed"], 12);
}

#[test]
fn no_value_of_a_setting_is_in_a_notice() {
    let event = Event::Session {
        command: "watch".into(),
        pid: 42,
        root: "/home/me/app".into(),
        outer_roots: vec![],
        options: crate::journal::Options { allow_only: vec!["src/**".into()], ..Default::default() },
        rules: None,
        backend: "fanotify".into(),
    };
    assert_eq!(notice(&event).field("options"), None);
    assert_eq!(notice(&event).severity, Severity::Info);
}

fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop_oneof![
        Just(b"\n".to_vec()),
        Just(b"\nKEEPWATCH_OUTCOME=accepted\n".to_vec()),
        Just(b" | event=\"accepted\" path=\"x\"".to_vec()),
        Just(b"\" outcome=\"accepted".to_vec()),
        Just(b"<0>root[1]: ".to_vec()),
        Just(b"\",\"outcome\":\"accepted\"}\n{".to_vec()),
        Just("\u{202e}\u{2028}".as_bytes().to_vec()),
        proptest::collection::vec(any::<u8>(), 0..12),
    ];
    proptest::collection::vec(pieces, 1..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_name_can_make_a_field_of_its_own_for_journald(path in hostile(), missed in 0u64..3) {
        let fields = journald_fields(&Format::Journald.bytes(&notice(&restored(&path)), missed));
        let fields = fields.expect("is in the form");
        let of = |name: &str| -> Vec<&Vec<u8>> {
            fields.iter().filter(|(known, _)| known == name).map(|(_, value)| value).collect()
        };
        prop_assert_eq!(of("KEEPWATCH_OUTCOME"), [&b"timed_out".to_vec()]);
        prop_assert_eq!(of("MESSAGE").len(), 1);
        let stored = String::from_utf8(of("KEEPWATCH_PATH")[0].clone()).expect("is text");
        prop_assert_eq!(decode(&stored), Some(path));
        let message = String::from_utf8(of("MESSAGE")[0].clone()).expect("is text");
        prop_assert!(!message.chars().any(is_hidden), "{}", message);
        prop_assert_eq!(of("KEEPWATCH_MISSED").len(), usize::from(missed > 0));
    }

    #[test]
    fn no_name_can_make_a_line_or_a_pair_of_its_own_for_syslog(path in hostile()) {
        let line = String::from_utf8(Format::Syslog.bytes(&notice(&restored(&path)), 0)).expect("is text");
        prop_assert!(!line.chars().any(is_hidden), "{}", line);
        let (priority, _, pairs) = syslog_parts(&line).expect("is in the form");
        prop_assert_eq!(priority, 84);
        prop_assert_eq!(&pairs["outcome"], "timed_out");
        prop_assert_eq!(&pairs["event"], "restored");
        prop_assert_eq!(decode(&pairs["path"]), Some(path));
    }

    #[test]
    fn no_name_can_make_a_line_of_its_own_in_a_file(path in hostile()) {
        let text = String::from_utf8(Format::Lines.bytes(&notice(&restored(&path)), 0)).expect("is text");
        prop_assert_eq!(text.lines().count(), 1);
        prop_assert!(text.ends_with('\n') && !text.trim_end().chars().any(is_hidden), "{}", text);
        let object: Value = serde_json::from_str(&text).expect("is JSON");
        prop_assert_eq!(&object["outcome"], "timed_out");
        prop_assert_eq!(object["path"].as_str().and_then(decode), Some(path));
    }
}

/// A collector that takes a record when it is told to, and refuses it when told that.
struct Told {
    answers: Receiver<bool>,
    taken: Sender<Vec<u8>>,
}

impl Outlet for Told {
    fn send(&mut self, record: &[u8]) -> io::Result<()> {
        match self.answers.recv() {
            Ok(true) => {
                self.taken.send(record.to_vec()).expect("the test listens");
                Ok(())
            }
            _ => Err(io::ErrorKind::ConnectionRefused.into()),
        }
    }
}

fn told() -> (Couriers, Sender<bool>, Receiver<Vec<u8>>) {
    let (answer, answers) = channel();
    let (taken, takes) = channel();
    let outlet = Box::new(Told { answers, taken });
    let destination = Destination { name: "syslog".into(), format: Format::Lines, outlet };
    (Couriers::start(vec![destination]).expect("starts"), answer, takes)
}

fn next(takes: &Receiver<Vec<u8>>) -> Value {
    let record = takes.recv_timeout(Duration::from_secs(5)).expect("is handed over within 5 s");
    serde_json::from_slice(&record).expect("is JSON")
}

#[test]
fn what_could_not_be_sent_is_counted_told_once_and_told_with_the_next() {
    let (couriers, answer, takes) = told();
    for taken in [false, false, true, true, false] {
        couriers.send(notice(&restored(b".env")));
        answer.send(taken).expect("it listens");
    }
    let (after, later) = (next(&takes), next(&takes));
    assert_eq!((&after["missed"], &later["missed"]), (&2.into(), &Value::Null));
    let lines = couriers.finish();
    let begun = "keep watch: syslog takes no notice: connection refused; what it misses is counted";
    assert_eq!(lines, [begun, "keep watch: 1 notice did not reach syslog; the journal has it all"]);
    assert!(couriers.finish().is_empty() && couriers.news().is_empty(), "it is told once");
}

#[test]
fn a_collector_that_stands_still_holds_up_nobody() {
    let (couriers, answer, takes) = told();
    let many = courier::MOST_WAITING + 100;
    (0..many).for_each(|_| couriers.send(notice(&restored(b".env"))));
    (0..=courier::MOST_WAITING).for_each(|_| answer.send(true).expect("it listens"));
    // One may have been on its way when the queue was full.
    let missed = next(&takes)["missed"].as_u64().unwrap_or(0) + next(&takes)["missed"].as_u64().unwrap_or(0);
    assert!((98..=100).contains(&missed), "{missed}");
}

/// A collector that never comes back.
struct Stuck(Arc<(Mutex<bool>, Condvar)>);

impl Outlet for Stuck {
    fn send(&mut self, _record: &[u8]) -> io::Result<()> {
        let free = self.0.0.lock().expect("nobody panics");
        drop(self.0.1.wait_while(free, |free| !*free).expect("nobody panics"));
        Ok(())
    }
}

#[test]
fn the_end_waits_a_bounded_time_and_says_what_is_still_on_its_way() {
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let outlet = Box::new(Stuck(Arc::clone(&gate)));
    let destination = Destination { name: "file".into(), format: Format::Lines, outlet };
    let couriers = Couriers::start(vec![destination]).expect("starts");
    couriers.send(notice(&restored(b".env")));
    assert_eq!(couriers.finish(), ["keep watch: file has not taken everything yet; the journal has it all"]);
    *gate.0.lock().expect("nobody panics") = true;
    gate.1.notify_all();
}

#[test]
fn only_what_is_durable_is_told_and_what_a_session_begins_with_is_not() {
    let (couriers, answer, takes) = told();
    let couriers = Arc::new(couriers);
    let about = About { pid: 42, root: "/r".into(), describe: log_sentence };
    let inner = FailsAt::new(MemoryJournal::new("s-42"), 1);
    let mut journal = Forwarding::new(inner, about, Arc::clone(&couriers));
    (0..3).for_each(|_| answer.send(true).expect("it listens"));
    let snapshot = crate::journal::Record::of(&crate::baseline::Snapshot::absent());
    let baseline = Event::Baseline { path: "a".into(), rule: Rule::Secrets, mode: Mode::Restore, snapshot };
    journal.append(AT, &baseline).expect("fits");
    journal.append(AT, &Event::Sealed { files: 1 }).expect("fits");
    assert!(takes.try_recv().is_err(), "it is not durable yet");
    journal.commit().expect("commits");
    let sealed = next(&takes);
    assert_eq!((&sealed["event"], &sealed["seq"]), (&"sealed".into(), &2.into()));
    journal.append(AT, &restored(b"lost")).expect("fits");
    journal.commit().expect_err("the disk is full");
    journal.append(AT, &restored(b"forgotten")).expect("fits");
    journal.discard();
    journal.append(AT, &restored(b"kept")).expect("fits");
    journal.commit().expect("commits");
    let kept = next(&takes);
    assert_eq!((&kept["path"], &kept["seq"]), (&"kept".into(), &3.into()));
    assert_eq!(kept["chain"], journal.head().digest.to_string());
}
