//! The file with one writer, with several, and under hands that are not ours.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use platform::Root;
use proptest::prelude::*;

use super::*;

pub(in crate::gate::audit) struct Lab {
    _folder: tempfile::TempDir,
    pub control: Control,
}

impl Lab {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("makes a folder");
        fs::create_dir(folder.path().join("root")).expect("makes");
        let root = Root::open(&folder.path().join("root")).expect("opens");
        let owner = root.dir().own_stat().expect("stats").uid;
        let control = Control::open(&folder.path().join("state"), &root, owner).expect("opens");
        Self { _folder: folder, control }
    }

    pub fn open(&self) -> Audit {
        Audit::open(&self.control).expect("opens")
    }

    pub fn path(&self) -> PathBuf {
        self.control.path().join("audit.jsonl")
    }

    pub fn bytes(&self) -> Vec<u8> {
        fs::read(self.path()).expect("reads")
    }

    /// What the events say that the chain holds, `what` of each; a chain that does not hold is a failure.
    pub fn told(&self) -> Vec<String> {
        let bytes = self.bytes();
        let (end, torn) = scan(&mut &bytes[..], End::default()).expect("the chain holds");
        assert_eq!((end.bytes, torn), (bytes.len() as u64, 0));
        let what = |line: &[u8]| {
            let value: serde_json::Value = serde_json::from_slice(line).expect("is JSON");
            value["what"].as_str().expect("is a fault").to_owned()
        };
        bytes.split_inclusive(|byte| *byte == b'\n').map(what).collect()
    }
}

pub(in crate::gate::audit) fn event(what: &str) -> AuditEvent {
    AuditEvent::Fault { what: what.to_owned() }
}

pub(in crate::gate::audit) const AT: SystemTime = SystemTime::UNIX_EPOCH;

fn append(audit: &mut Audit, what: &str) {
    audit.append(&event(what), AT).expect("appends");
}

#[test]
fn one_run_after_the_other_makes_one_chain() {
    let lab = Lab::new();
    for run in ["one", "two", "three"] {
        let mut audit = lab.open();
        append(&mut audit, run);
        append(&mut audit, "again");
    }
    assert_eq!(lab.told(), ["one", "again", "two", "again", "three", "again"]);
    let first = lab.bytes().split(|byte| *byte == b'\n').next().expect("there is one").to_vec();
    let text = String::from_utf8(first).expect("is text");
    assert!(
        text.starts_with(&format!(r#"{{"previous":"{}","at":"1970-01-01T00:00:00.000Z""#, "0".repeat(64))),
        "{text}"
    );
    assert_eq!(fs::metadata(lab.path()).expect("is there").permissions().mode() & 0o7777, 0o600);
}

#[test]
fn two_that_write_in_turns_make_one_chain() {
    let lab = Lab::new();
    let (mut gate, mut client) = (lab.open(), lab.open());
    for turn in 0..3 {
        append(&mut gate, &format!("gate {turn}"));
        append(&mut client, &format!("client {turn}"));
        append(&mut client, &format!("again {turn}"));
    }
    assert_eq!(lab.told().len(), 9);
    assert_eq!(lab.told()[3..6], ["gate 1", "client 1", "again 1"]);
}

#[test]
fn writers_that_come_together_lose_nothing_of_each_other() {
    let lab = Lab::new();
    let start = std::sync::Barrier::new(4);
    std::thread::scope(|scope| {
        // Opened before anybody waits for four.
        for (writer, mut audit) in [(); 4].map(|()| lab.open()).into_iter().enumerate() {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                (0..10).for_each(|number| append(&mut audit, &format!("{writer} {number}")));
            });
        }
    });
    let told = lab.told();
    assert_eq!(told.len(), 40);
    for writer in 0..4 {
        let own: Vec<&String> = told.iter().filter(|what| what.starts_with(&format!("{writer} "))).collect();
        let wanted: Vec<String> = (0..10).map(|number| format!("{writer} {number}")).collect();
        assert_eq!(own, wanted.iter().collect::<Vec<_>>(), "in the order they were written");
    }
}

#[test]
fn what_another_writer_left_unfinished_is_cut_off_and_told() {
    let lab = Lab::new();
    let mut audit = lab.open();
    append(&mut audit, "one");
    let good = lab.bytes();
    fs::write(lab.path(), [&good[..], b"{\"previous\":\"12"].concat()).expect("writes");
    append(&mut audit, "two");
    assert_eq!(lab.told(), ["one", "an unfinished entry of 15 bytes was cut off the audit", "two"]);
}

#[test]
fn an_altered_audit_is_refused_and_left_as_it_is() {
    let lab = Lab::new();
    let mut audit = lab.open();
    ["one", "two", "three"].iter().for_each(|what| append(&mut audit, what));
    let good = String::from_utf8(lab.bytes()).expect("is text");
    let lines: Vec<&str> = good.split_inclusive('\n').collect();
    for (altered, line) in [
        (good.replace("\"one\"", "\"eno\""), 2),
        (good.replace("\"two\"", "\"owt\""), 3),
        (lines[1..].concat(), 1),
        ([lines[0], lines[2]].concat(), 2),
        ([lines[0], lines[0], lines[1], lines[2]].concat(), 2),
        ("not ours\n".to_owned(), 1),
    ] {
        fs::write(lab.path(), &altered).expect("writes");
        let error = Audit::open(&lab.control).expect_err("refused");
        assert!(matches!(error, AuditError::Chain { line: found, .. } if found == line), "{altered}: {error}");
        assert_eq!(lab.bytes(), altered.as_bytes());
    }
    // While it is open, what others add has to continue it, too.
    fs::write(lab.path(), [&good, lines[2]].concat()).expect("writes");
    assert!(matches!(audit.append(&event("four"), AT), Err(AuditError::Chain { line: 4, .. })));
}

#[test]
fn a_file_that_was_replaced_removed_or_cut_is_not_written_to() {
    let lab = Lab::new();
    let mut audit = lab.open();
    append(&mut audit, "one");
    let good = lab.bytes();
    fs::write(lab.path(), &good[..10]).expect("writes");
    assert!(matches!(audit.append(&event("two"), AT), Err(AuditError::Taken)));
    fs::remove_file(lab.path()).expect("removes");
    assert!(matches!(audit.append(&event("two"), AT), Err(AuditError::Taken)));
    fs::write(lab.path(), &good).expect("writes");
    assert!(matches!(audit.append(&event("two"), AT), Err(AuditError::Taken)));
    assert_eq!(lab.bytes(), good);
}

#[test]
fn a_file_that_is_not_ours_alone_is_refused_and_one_others_can_read_is_tightened() {
    let lab = Lab::new();
    append(&mut lab.open(), "one");
    let mode = |mode| fs::set_permissions(lab.path(), fs::Permissions::from_mode(mode)).expect("chmods");
    for loose in [0o622, 0o660, 0o602] {
        mode(loose);
        assert!(matches!(Audit::open(&lab.control), Err(AuditError::NotOurs("can be written by other users"))));
    }
    mode(0o644);
    append(&mut lab.open(), "two");
    assert_eq!(fs::metadata(lab.path()).expect("is there").permissions().mode() & 0o7777, 0o600);
    fs::rename(lab.path(), lab.control.path().join("real")).expect("moves");
    symlink("real", lab.path()).expect("links");
    assert!(matches!(Audit::open(&lab.control), Err(AuditError::NotOurs("is not a regular file"))));
    assert_eq!(fs::read(lab.control.path().join("real")).expect("reads").split(|byte| *byte == b'\n').count(), 3);
}

#[test]
fn an_event_that_is_too_long_leaves_the_audit_as_it_was() {
    let lab = Lab::new();
    let mut audit = lab.open();
    append(&mut audit, "one");
    assert!(matches!(audit.append(&event(&"x".repeat(2 << 20)), AT), Err(AuditError::TooLong(_))));
    append(&mut audit, "two");
    assert_eq!(lab.told(), ["one", "two"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn from_every_prefix_it_goes_on(cut in any::<prop::sample::Index>()) {
        let lab = Lab::new();
        let mut audit = lab.open();
        ["one", "two", "three"].iter().for_each(|what| append(&mut audit, what));
        let whole = lab.bytes();
        let cut = cut.index(whole.len() + 1);
        fs::write(lab.path(), &whole[..cut]).expect("writes");
        append(&mut lab.open(), "later");
        let told = lab.told();
        let kept = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
        let is_torn = whole[..cut].last().is_some_and(|byte| *byte != b'\n');
        prop_assert_eq!(&told[..kept], &["one", "two", "three"][..kept]);
        prop_assert_eq!(told.len(), kept + usize::from(is_torn) + 1);
        prop_assert_eq!(told.last().map(String::as_str), Some("later"));
    }
}
