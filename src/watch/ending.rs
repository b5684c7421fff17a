//! The end: everything pending is refused, the protected set is put right once more, and it is said what came of it.
//!
//! Promise: whatever ended the watch, nothing undecided stays; what could not be put back is named, and then the journal
//! does not say that the run ended properly, so that the next start tries again.

use std::collections::BTreeSet;
use std::time::Duration;

use platform::signals::Signal;

use crate::digest::Digest;
use crate::journal::Event;
use crate::store::serialize_attributes;

use super::inbox::Message;
use super::lines::counted;
use super::machine::{Input, Outcome, Refused};
use super::report::WatchReport;
use super::session::{End, Phase, Session};
use super::survey::survey;

/// How often the set is compared again while somebody goes on writing.
const ROUNDS: usize = 3;

impl Session {
    /// Ends the watch in order.
    pub(super) fn finish(mut self) -> WatchReport {
        let end = self.end.clone().unwrap_or(End::Signal("SIGTERM"));
        self.refuse_held();
        self.step(Input::Stop);
        self.end_guest(&end);
        // Before the first walk is over, a path that is not known is not one that was added.
        let rounds = if matches!(self.phase, Phase::Watching) { ROUNDS } else { 0 };
        for _ in 0..rounds {
            self.compare_everything();
            if self.machine.question().is_none() && self.machine.open().is_empty() {
                break;
            }
            self.refuse_held();
            self.step(Input::Stop);
        }
        self.end_hold();
        self.unlock_everything();
        let failed: Vec<_> = self.machine.unrestored().cloned().collect();
        let in_order = failed.is_empty();
        for Refused { seen, failures, .. } in &failed {
            self.decided(seen, "restore_failed", None, Some(*failures));
        }
        let mut report = self.report(&end);
        let exit = match end {
            End::Broke(_) => crate::cli::exit::Exit::Broke,
            // What is restored is said by the report; that a promise was lost only by this.
            End::Signal(_) if self.is_short => crate::cli::exit::Exit::Broke,
            End::Signal(_) if report.restored_something() => crate::cli::exit::Exit::Restored,
            End::Signal(_) => crate::cli::exit::Exit::Clean,
        };
        report.exit_code = exit.code();
        if in_order {
            let signal = match &end {
                End::Signal(signal) => Some((*signal).to_owned()),
                End::Broke(_) => None,
            };
            self.tally.note(Event::Ended { signal, exit_code: exit.code() });
        }
        self.write_down();
        if in_order {
            self.forget_objects();
        }
        self.parts.console.clear();
        for line in self.parts.couriers.finish() {
            self.say(&line);
        }
        let summary = self.summary(&end);
        self.say(&summary);
        self.parts.console.finish();
        report
    }

    /// Ends the gate in this terminal: from here on it changes nothing any more.
    fn end_guest(&mut self, end: &End) {
        let Some(guest) = self.guest.take() else { return };
        guest.end(match end {
            End::Signal("SIGHUP") => Signal::HangUp,
            End::Signal("SIGINT") => Signal::Interrupt,
            End::Signal(_) | End::Broke(_) => Signal::Terminate,
        });
        for message in self.parts.messages.wait(Duration::ZERO, 0) {
            match message {
                Message::Gate(slate) => self.parts.console.gate_says(*slate),
                Message::Held(news) => self.take_held(news),
                _ => {}
            }
        }
    }

    /// Removes contents that no accepted path has any more.
    fn forget_objects(&mut self) {
        let mut wanted = BTreeSet::new();
        for (_, row) in self.baseline.rows() {
            wanted.extend(row.snapshot.digest());
            if !row.snapshot.xattrs.is_empty() {
                wanted.insert(Digest::of(&serialize_attributes(&row.snapshot.xattrs)));
            }
        }
        // By it the next start tells what this run has covered.
        wanted.extend(self.options.rule_file);
        let directories = self.baseline.directories().filter(|(_, directory)| !directory.xattrs.is_empty());
        wanted.extend(directories.map(|(_, directory)| Digest::of(&serialize_attributes(&directory.xattrs))));
        // What cannot be removed is a little space, no fault of the watch.
        let _removed_or_not = self.parts.objects.retain(&wanted);
    }

    /// Looks at every path that is known or exists.
    fn compare_everything(&mut self) {
        let now = self.now();
        let known = self.known_places();
        self.compare_stamps(&known, now);
        for place in survey(&self.parts.roots, &*self.parts.rules).found {
            if self.baseline.get(&place).is_none() {
                self.to_look.entry(place).or_insert(now);
            }
        }
        self.look_around();
    }

    fn report(&self, end: &End) -> WatchReport {
        let wall = self.parts.clock.wall();
        let tree = self.parts.roots.tree().path().as_os_str();
        WatchReport {
            root: super::report::ReportPath::new(std::os::unix::ffi::OsStrExt::as_bytes(tree).to_vec()),
            exit_code: 0,
            protected_files: self.tally.protected_files,
            backend: self.options.backend.to_owned(),
            started_at: self.tally.started_at.unwrap_or(wall),
            ended_at: wall,
            decisions: self.tally.decisions.clone(),
            kept: self.tally.kept.clone(),
            frozen: self.options.frozen,
            scope: self.options.scope.clone(),
            contested: self.contested().into_iter().map(|place| self.report_path(place)).collect(),
            held: self.tally.held.clone(),
            linked: self.tally.linked_paths(|place| self.report_path(place)),
            locked: self.tally.locked,
            lost: self.tally.losses(),
            trapped_signal: match end {
                End::Signal(signal) => Some(signal),
                End::Broke(_) => None,
            },
            session_log: self.options.session_log.clone(),
            recovery: self.tally.recovery.clone(),
            limits: self.options.limits.clone(),
        }
    }

    fn summary(&self, end: &End) -> String {
        let why = match end {
            End::Signal(signal) => format!("ended by {signal}"),
            End::Broke(reason) => format!("broke off: {reason}"),
        };
        let accepted = self.tally.count(|outcome| outcome == Outcome::Accepted.name());
        let failed = self.tally.count(|outcome| outcome == "restore_failed");
        let restored = self.tally.count(|outcome| outcome != Outcome::Accepted.name() && outcome != "restore_failed");
        let mut line = format!("keep watch: {why}; {} restored, {accepted} accepted", counted(restored, "change"));
        if !self.tally.kept.is_empty() {
            line.push_str(&format!(", {} reported and kept", self.tally.kept.len()));
        }
        let [allowed, refused] = self.tally.opens();
        if allowed + refused > 0 {
            line.push_str(&format!("; {} allowed, {refused} refused", counted(allowed, "open")));
        }
        if failed > 0 {
            line.push_str(&format!(", {failed} NOT restored"));
        }
        if self.tally.decisions.iter().any(|row| row.quarantine.is_some()) {
            line.push_str("; rejected content: keep quarantine list");
        }
        line
    }
}
