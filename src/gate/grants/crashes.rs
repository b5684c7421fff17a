//! Storing grants: killed at every step, and on a full disk.

use platform::fault::Plan;
use platform::{Dir, Root};

use super::{GrantFile, GrantsError};
use crate::gate::control::Control;
use crate::gate::pattern::Grant;

const ENOSPC: i32 = 28;
const EIO: i32 = 5;

struct Lab {
    _folder: tempfile::TempDir,
    control: Control,
}

fn grant(target: &str) -> Grant {
    Grant::parse("file", target).expect("a grant")
}

/// A control folder in which `old.txt` is granted.
fn lab() -> Lab {
    let folder = tempfile::tempdir().expect("makes a folder");
    Dir::open_ambient(folder.path()).and_then(|dir| dir.make_dir(b"root", 0o700)).expect("makes");
    let root = Root::open(&folder.path().join("root")).expect("opens");
    let owner = root.dir().own_stat().expect("stats").uid;
    let control = Control::open(&folder.path().join("state"), &root, owner).expect("opens");
    let lab = Lab { _folder: folder, control };
    lab.open().remember(&[grant("old.txt")]).expect("stores");
    lab
}

impl Lab {
    fn open(&self) -> GrantFile {
        GrantFile::open(&self.control).expect("opens")
    }

    fn grants(&self) -> Vec<Grant> {
        let reading = self.open().read();
        assert_eq!(reading.fault, None);
        reading.grants
    }

    fn names(&self) -> Vec<String> {
        let list = self.control.dir().reopen().and_then(|dir| dir.list()).expect("lists");
        let mut names: Vec<String> =
            list.into_iter().map(|entry| String::from_utf8(entry.name).expect("is text")).collect();
        names.sort();
        names
    }
}

fn steps() -> u64 {
    let lab = lab();
    let plan = Plan::count();
    lab.open().remember(&[grant("new.txt")]).expect("stores");
    plan.passed()
}

#[test]
fn killed_at_any_step_the_old_file_is_there_or_the_new_one() {
    let (old, new) = (vec![grant("old.txt")], vec![grant("new.txt"), grant("old.txt")]);
    let steps = steps();
    assert!(steps >= 7, "only {steps} steps");
    for step in 0..=steps {
        let lab = lab();
        let plan = Plan::crash_after(step);
        let stored = lab.open().remember(&[grant("new.txt")]);
        drop(plan);
        assert_eq!(stored.is_ok(), step == steps, "step {step}");
        let found = lab.grants();
        assert!(found == old || found == new, "killed at step {step}: {found:?}");
        assert!(stored.is_err() || found == new);
        // Whatever was left is no obstacle, and goes away.
        lab.open().remember(&[grant("new.txt")]).expect("stores");
        assert_eq!(lab.open().revoke("old.txt", None).expect("revokes"), [grant("old.txt")], "step {step}");
        assert_eq!(lab.names(), ["grants.json", "grants.lock"], "killed at step {step}");
    }
}

#[test]
fn on_a_full_or_failing_disk_it_is_an_error_and_the_old_grants_hold() {
    for errno in [ENOSPC, EIO] {
        for step in 0..steps() {
            let lab = lab();
            let plan = Plan::fail_after(step, errno);
            let error = lab.open().remember(&[grant("new.txt")]).expect_err("fails");
            drop(plan);
            let GrantsError::Write(error) = error else { panic!("step {step}: {error}") };
            assert_eq!(error.errno(), Some(errno));
            assert!(lab.grants().contains(&grant("old.txt")), "step {step}");
        }
    }
}
