//! Appending: killed at every step, and on a disk that is full for a while.

use platform::fault::Plan;

use super::file::tests::{AT, Lab, event};
use super::file::{Audit, AuditError};

const ENOSPC: i32 = 28;

/// Appends until a step fails; returns how many events were said to be written.
fn run(lab: &Lab) -> usize {
    let Ok(mut audit) = Audit::open(&lab.control) else { return 0 };
    let events = ["one", "two", "three"];
    events.iter().take_while(|what| audit.append(&event(what), AT).is_ok()).count()
}

#[test]
fn killed_at_any_step_what_was_said_to_be_written_is_there() {
    let steps = {
        let plan = Plan::count();
        assert_eq!(run(&Lab::new()), 3);
        plan.passed()
    };
    assert!(steps >= 9, "only {steps} steps");
    for step in 0..=steps {
        let lab = Lab::new();
        let plan = Plan::crash_after(step);
        let written = run(&lab);
        drop(plan);
        lab.open().append(&event("later"), AT).expect("goes on");
        let mut told = lab.told();
        assert_eq!(told.pop().as_deref(), Some("later"));
        told.retain(|what| !what.starts_with("an unfinished entry"));
        // The one that was interrupted may be there or not.
        assert!(told.len() == written || told.len() == written + 1, "killed at step {step}: {told:?}");
        assert_eq!(told[..], ["one", "two", "three"][..told.len()], "killed at step {step}");
    }
}

#[test]
fn a_line_that_was_not_written_or_not_synced_is_gone_and_the_next_one_works() {
    // Two halves of the write, the sync, and what follows a failure.
    for step in 0..3 {
        let lab = Lab::new();
        let mut audit = lab.open();
        audit.append(&event("one"), AT).expect("appends");
        for _ in 0..2 {
            let plan = Plan::fail_after(step, ENOSPC);
            let error = audit.append(&event("lost"), AT).expect_err("fails");
            drop(plan);
            match error {
                AuditError::Write(error) | AuditError::Cut(error) => assert_eq!(error.errno(), Some(ENOSPC)),
                other => panic!("step {step}: {other}"),
            }
        }
        audit.append(&event("two"), AT).expect("appends");
        assert_eq!(lab.told(), ["one", "two"], "step {step}");
    }
}

#[test]
fn a_line_that_failed_and_was_built_upon_by_another_writer_stays() {
    let lab = Lab::new();
    let (mut audit, mut other) = (lab.open(), lab.open());
    let plan = Plan::fail_after(2, ENOSPC);
    audit.append(&event("unsynced"), AT).expect_err("fails");
    drop(plan);
    other.append(&event("after it"), AT).expect("appends");
    audit.append(&event("two"), AT).expect("appends");
    assert_eq!(lab.told(), ["unsynced", "after it", "two"]);
}
