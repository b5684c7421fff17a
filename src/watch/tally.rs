//! What a watch has come to so far: the rows of its report, and the entries still to be written down.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use platform::{LostCause, Place};

use crate::journal::{Event, HeldOutcome};

use super::lock::Locked;
use super::report::{Decision, HeldRow, Kept, Recovery, ReportPath};

/// Restores of one contested path within this time are one row.
const REPEAT: Duration = Duration::from_secs(1);
/// At most one line a path in this time about what is restored without asking.
pub const LINE_INTERVAL: Duration = Duration::from_secs(1);

/// Entries that wait for a journal that cannot be written.
const MOST_NOTES: usize = 1000;

/// Rows, counters and waiting entries.
#[derive(Debug, Default)]
pub struct Tally {
    /// When watching began.
    pub started_at: Option<SystemTime>,
    /// Protected files at the start.
    pub protected_files: usize,
    /// Decisions so far.
    pub decisions: Vec<Decision>,
    /// Report-mode changes so far.
    pub kept: Vec<Kept>,
    /// What held opens have come to so far.
    pub held: Vec<HeldRow>,
    /// Protected files to which another name was made.
    pub linked: Vec<Place>,
    /// How much was locked at the start, if anything was to be.
    pub locked: Option<Locked>,
    /// What was recovered at the start.
    pub recovery: Option<Recovery>,
    lost: BTreeMap<&'static str, u64>,
    /// Entries for the journal that need not be durable before anything else happens.
    notes: Vec<Event>,
}

/// The name of a cause in reports and the journal.
pub const fn cause_name(cause: &LostCause) -> &'static str {
    match cause {
        LostCause::Overflow => "overflow",
        LostCause::Limit(_) => "limit",
        LostCause::Unmounted => "unmounted",
        LostCause::Unreadable(_) => "unreadable",
        LostCause::Stopped => "stopped",
        LostCause::Mounted => "mounted",
        _ => "gap",
    }
}

impl Tally {
    /// Nothing so far, but what was recovered at the start.
    pub fn new(recovery: Option<Recovery>) -> Self {
        Self { recovery, ..Self::default() }
    }

    /// Counts a loss and returns the cause's name.
    pub fn lost(&mut self, cause: &LostCause) -> &'static str {
        let name = cause_name(cause);
        *self.lost.entry(name).or_default() += 1;
        name
    }

    /// The losses by cause.
    pub fn losses(&self) -> Vec<(String, u64)> {
        self.lost.iter().map(|(cause, times)| ((*cause).to_owned(), *times)).collect()
    }

    /// How many held opens went through, and how many were refused; those whose opener went away are neither.
    pub fn opens(&self) -> [usize; 2] {
        let mut opens = [0, 0];
        for row in &self.held {
            let which = match row.decision {
                HeldOutcome::Allowed | HeldOutcome::Trusted | HeldOutcome::AllowedWhileStopped => 0,
                HeldOutcome::Refused
                | HeldOutcome::TimedOut
                | HeldOutcome::AutoRefused
                | HeldOutcome::RefusedAtExit
                | HeldOutcome::RefusedWhileStopped => 1,
                HeldOutcome::Gone => continue,
            };
            opens[which] += row.opens as usize;
        }
        opens
    }

    /// Keeps an entry for the journal until the loop has time.
    pub fn note(&mut self, event: Event) {
        self.notes.push(event);
    }

    /// Takes the entries that wait.
    pub fn take_notes(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.notes)
    }

    /// Puts entries that could not be written back before those that came since. Where the journal fails for good, only so
    /// many wait: the oldest, that lead to the rest.
    pub fn give_back(&mut self, mut notes: Vec<Event>) {
        notes.append(&mut self.notes);
        notes.truncate(MOST_NOTES);
        self.notes = notes;
    }

    /// Adds a decision; one more restore of a contested path within a second only counts up its row.
    pub fn decided(&mut self, decision: Decision) {
        if decision.outcome == "auto_restored"
            && let Some(last) = self.decisions.iter_mut().rev().take(64).find(|row| row.path == decision.path)
            && last.outcome == "auto_restored"
            && decision
                .decided_at
                .duration_since(last.decided_at)
                .is_ok_and(|since| since < REPEAT * (last.repeats + 1))
        {
            last.repeats += 1;
            last.sha256_after = decision.sha256_after;
            last.quarantine = decision.quarantine.or(last.quarantine.take());
            return;
        }
        self.decisions.push(decision);
    }

    /// How many decisions have this outcome, each restore counted.
    pub fn count(&self, outcome: impl Fn(&str) -> bool) -> usize {
        self.decisions.iter().filter(|row| outcome(row.outcome)).map(|row| 1 + row.repeats as usize).sum()
    }

    /// Adds a report-mode change.
    pub fn kept(&mut self, kept: Kept) {
        self.kept.push(kept);
    }

    /// The paths with a name of their own for reports.
    pub fn linked_paths(&self, name: impl Fn(&Place) -> ReportPath) -> Vec<ReportPath> {
        self.linked.iter().map(name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(number: usize) -> Event {
        Event::Lost { cause: number.to_string() }
    }

    #[test]
    fn entries_that_could_not_be_written_wait_in_their_order_and_only_so_many() {
        let mut tally = Tally::default();
        tally.note(lost(2));
        tally.give_back(vec![lost(0), lost(1)]);
        assert_eq!(tally.take_notes(), [lost(0), lost(1), lost(2)]);
        (0..2 * MOST_NOTES).for_each(|number| tally.note(lost(number)));
        let notes = tally.take_notes();
        tally.give_back(notes);
        let kept = tally.take_notes();
        assert_eq!((kept.len(), &kept[0]), (MOST_NOTES, &lost(0)));
    }
}
