//! Carrying out what the machine decided: restore, accept, keep, and what is written down of it.
//!
//! Promise: nothing is done to a file before the journal durably says so, and the baseline moves only after the file is
//! proven. Limit: a decision that cannot be carried out stays open and is tried again at every sweep.

use std::collections::BTreeSet;

use platform::Place;

use crate::ask::{Key, shown_digest};
use crate::baseline::{Restore, RestoreError, Row, Snapshot};
use crate::cli::exit::causes;
use crate::journal::{Asked, Event, Journal, Record, RestoreOutcome, rfc3339};
use crate::store::Rejection;

use super::console::{Asker, OnScreen};
use super::lines;
use super::machine::{Answer, Effect, Input, Outcome, Refused, Seen};
use super::report::{Decision, Kept};
use super::session::Session;
use super::tally::Tally;

impl Session {
    /// Feeds the machine and does what comes out. Called while something is being done, it only adds to what is to do.
    pub(super) fn step(&mut self, input: Input) {
        let effects = self.machine.step(input, self.now());
        self.to_do.extend(effects);
        if self.acting || self.to_do.is_empty() {
            return;
        }
        self.acting = true;
        // The next question, or none, goes on the screen before any file is touched.
        self.draw();
        while let Some(effect) = self.to_do.pop_front() {
            self.act(effect);
        }
        self.acting = false;
    }

    /// A key that counts, for what is on the screen.
    pub(super) fn answer(&mut self, key: Key) {
        let Some(on_screen) = self.parts.console.on_screen() else { return };
        if on_screen.asker == Asker::Hold {
            return self.answer_question(key, on_screen);
        }
        let OnScreen { id: question, version, members, .. } = on_screen;
        let answer = match key {
            Key::Accept => Answer::Accept,
            Key::Reject => Answer::Reject,
            _ => Answer::Each,
        };
        let mut held = BTreeSet::new();
        if answer == Answer::Accept {
            let now = self.now();
            for place in members {
                if let Err(reason) = self.look_to_accept(&place, now) {
                    let shown = self.parts.roots.shown(&place);
                    self.say(&format!("keep watch: {shown} cannot be kept: {reason}"));
                    held.insert(place);
                }
            }
            if let Err(error) = self.parts.objects.sync() {
                return self.say(&format!("keep watch: nothing is kept: {}", causes(&error)));
            }
        }
        self.step(Input::Answer { answer, question, version, held });
        self.draw();
    }

    fn act(&mut self, effect: Effect) {
        match effect {
            Effect::Restore(refused) => self.restore(refused),
            Effect::Accept(seen) => self.accept(seen, None),
            Effect::AcceptApproved(seen, asked) => self.accept(seen, Some(asked)),
            Effect::Keep(seen) => self.keep(seen),
            Effect::Contest(place) => {
                let shown = self.parts.roots.shown(&place);
                self.parts.console.offer_asking_again();
                self.say(&lines::contested(&shown, self.options.contest_limit));
                self.tally.note(Event::Contested { path: self.parts.roots.stored(&place) });
            }
            Effect::Transient(Seen { place, class, change, .. }) => {
                self.after_bytes.remove(&place);
                let writer = self.told_of(&place);
                self.writers.remove(&place);
                self.tally.note(Event::Transient {
                    path: self.parts.roots.stored(&place),
                    rule: class.rule,
                    kind: change.kind,
                    sha256: change.after.digest(),
                    writer,
                });
            }
            Effect::Settled(refused) => self.restored(&refused, Vec::new()),
        }
    }

    fn accept(&mut self, seen: Seen, asked: Option<Asked>) {
        let Seen { place, class, change, .. } = &seen;
        let shown = self.parts.roots.shown(place);
        let before = match self.baseline.accept(place.clone(), Row { class: *class, snapshot: change.after.clone() }) {
            Ok(before) => before,
            Err(error) => return self.not_accepted(place, &shown, &causes(&error)),
        };
        self.note_parents(place);
        let entry = Event::Accepted {
            path: self.parts.roots.stored(place),
            rule: class.rule,
            kind: change.kind,
            snapshot: Record::of(&change.after),
            asked,
            writer: self.told_of(place),
        };
        if let Err(reason) = self.commit_with(Some(entry)) {
            // What is not durable is not accepted: a crash would undo it without a word.
            match before {
                Some(row) => {
                    self.baseline.accept(place.clone(), row).expect("it had room a moment ago");
                }
                None => {
                    self.baseline.remove(place);
                }
            }
            return self.not_accepted(place, &shown, &reason);
        }
        self.after_bytes.remove(place);
        self.unreadable.remove(place);
        if change.after.is_absent() {
            self.baseline.remove(place);
        }
        self.step(Input::Accepted(place.clone()));
        self.lock_around(place);
        self.decided(&seen, Outcome::Accepted.name(), None, None);
        self.forget_accepted(place, change.after.id());
        self.say(&match asked {
            None => lines::decided(&shown, Outcome::Accepted),
            Some(asked) => lines::approved(&shown, asked),
        });
    }

    fn not_accepted(&mut self, place: &Place, shown: &str, reason: &str) {
        self.say(&format!("keep watch: {shown} NOT accepted: {reason}"));
        self.step(Input::NotAccepted(place.clone()));
        let now = self.now();
        self.to_look.insert(place.clone(), now);
    }

    fn keep(&mut self, seen: Seen) {
        let Seen { place, class, change, detected } = seen;
        let shown = self.parts.roots.shown(&place);
        self.after_bytes.remove(&place);
        self.unreadable.remove(&place);
        if change.after.is_absent() {
            self.baseline.remove(&place);
        } else if self.baseline.accept(place.clone(), Row { class, snapshot: change.after.clone() }).is_err() {
            // Over the caps: it is named every time, and not remembered.
            self.baseline.remove(&place);
        }
        let writer = self.told_of(&place);
        self.forget_accepted(&place, change.after.id());
        self.tally.kept(Kept {
            writer: writer.clone(),
            path: self.report_path(&place),
            rule: class.rule,
            kind: change.kind,
            sha256_after: change.after.digest(),
            detected_at: self.wall(detected),
        });
        self.tally.note(Event::Kept {
            path: self.parts.roots.stored(&place),
            rule: class.rule,
            kind: change.kind,
            snapshot: Record::of(&change.after),
            writer,
        });
        self.say(&lines::kept(&shown, class.rule, change.kind.name(), &shown_digest(&change)));
    }

    fn restore(&mut self, refused: Refused) {
        let place = &refused.seen.place;
        let loosened = self.loosen(place);
        let missing = self.missing_above(place);
        let absent = Snapshot::absent();
        let accepted = self.baseline.get(place).map_or(&absent, |row| &row.snapshot).clone();
        let at = rfc3339(self.parts.clock.wall());
        let stored = self.parts.roots.stored(place);
        let why = Rejection {
            shown: self.parts.roots.shown(place),
            stored: stored.clone(),
            rule: refused.seen.class.rule,
            kind: refused.seen.change.kind,
            outcome: Some(refused.outcome.name().to_owned()),
            session: self.options.session.clone(),
            rejected_at: at.clone(),
        };
        let new_dirs = &self.new_dirs;
        let writer = self.told_of(place);
        let restore = Restore {
            root: self.parts.roots.get(place.root),
            place,
            accepted: &accepted,
            // What replaced it since was never accepted either; but what came only now is told apart by its identity.
            seen: if refused.failures == 0 { refused.seen.change.after.id() } else { None },
            baseline: &self.baseline,
            objects: &self.parts.objects,
            quarantine: &self.parts.quarantine,
            why: &why,
            is_new_directory: &|path| new_dirs.contains(&Place { root: place.root, path: path.clone() }),
        };
        let journal = &mut self.parts.journal;
        let outcome = restore_outcome(refused.outcome);
        let done = restore.run(|intent| {
            let event = Event::Restoring {
                path: stored.clone(),
                temporary: Some(intent.temporary.clone()),
                quarantine: intent.quarantine.as_ref().map(|id| id.as_str().to_owned()),
                outcome,
                writer: writer.clone(),
            };
            journal.append(&at, &event).and_then(|()| journal.commit()).map_err(std::io::Error::other)
        });
        match done {
            Ok(done) => {
                match done.snapshot.and_then(|snapshot| snapshot.stat) {
                    Some(stat) => self.baseline.looked_again(place, stat),
                    // Changed again already.
                    None => {
                        let now = self.parts.clock.now();
                        self.to_look.insert(place.clone(), now);
                    }
                }
                for dir in &done.removed {
                    self.new_dirs.gone(&Place { root: place.root, path: dir.clone() });
                }
                for name in &done.aside {
                    let name = crate::text::escaped(name);
                    let shown = self.parts.roots.shown(place);
                    self.say(&format!("keep watch: what was rejected at {shown} lies beside it as {name}"));
                }
                let ids = done.quarantined.iter().map(|id| id.as_str().to_owned()).collect();
                self.step(Input::Restored(place.clone()));
                self.restored(&refused, ids);
                if let Some(missing) = missing {
                    self.say_where_the_rest_is(missing);
                }
                self.lock_around(place);
            }
            Err(error) => {
                self.not_restored(&refused, &error);
                self.lock_again(&loosened);
            }
        }
    }

    fn restored(&mut self, refused: &Refused, quarantine: Vec<String>) {
        let Refused { seen, outcome, failures } = refused;
        let Seen { place, class, change, .. } = seen;
        let shown = self.parts.roots.shown(place);
        self.after_bytes.remove(place);
        let attempts = if *failures > 0 { Some(failures + 1) } else { None };
        self.decided(seen, outcome.name(), quarantine.first().cloned(), attempts);
        self.tally.note(Event::Restored {
            path: self.parts.roots.stored(place),
            rule: class.rule,
            kind: change.kind,
            outcome: restore_outcome(*outcome),
            sha256_after: change.after.digest(),
            quarantine,
            attempts: failures + 1,
            writer: self.told_of(place),
        });
        self.writers.remove(place);
        let line = if self.nothing_is_accepted_any_more(place, *class) {
            lines::taken_away(&shown, *outcome)
        } else {
            lines::decided(&shown, *outcome)
        };
        if *outcome == Outcome::AutoRestored {
            let now = self.now();
            self.parts.console.line_now_and_then(&shown, &line, now);
        } else {
            self.say(&line);
        }
    }

    fn not_restored(&mut self, refused: &Refused, error: &RestoreError) {
        let place = &refused.seen.place;
        let shown = self.parts.roots.shown(place);
        let reason = causes(error);
        let now = self.now();
        self.parts.console.line_if_new(&shown, &lines::not_restored(&shown, &reason), now);
        if refused.failures == 0 {
            self.tally.note(Event::RestoreFailed {
                path: self.parts.roots.stored(place),
                errno: error.errno(),
                reason,
            });
        }
        self.step(Input::NotRestored(place.clone()));
        if matches!(error, RestoreError::AnotherObject { .. }) {
            // Something else came in between. It is refused as well; what it is goes to quarantine with the next try.
            self.to_look.insert(place.clone(), now);
            self.sweep_at = now;
        }
    }

    /// Adds a row to the report.
    pub(super) fn decided(
        &mut self,
        seen: &Seen,
        outcome: &'static str,
        quarantine: Option<String>,
        restore_attempts: Option<u32>,
    ) {
        self.tally.decided(Decision {
            path: self.report_path(&seen.place),
            rule: seen.class.rule,
            kind: seen.change.kind,
            outcome,
            sha256_after: seen.change.after.digest(),
            detected_at: self.wall(seen.detected),
            decided_at: self.parts.clock.wall(),
            writer: self.told_of(&seen.place),
            quarantine,
            restore_attempts,
            repeats: 0,
        });
    }

    /// Makes the waiting entries durable. Those that could not be written wait on.
    pub(super) fn commit(&mut self) -> Result<(), String> {
        self.commit_with(None)
    }

    /// Makes the waiting entries durable, and this one with them: it is in the journal then, or nowhere.
    fn commit_with(&mut self, last: Option<Event>) -> Result<(), String> {
        let at = rfc3339(self.parts.clock.wall());
        write(&mut self.tally, &mut *self.parts.journal, &at, last.as_slice())
    }

    /// Writes down what waits, once the questions are drawn and the files are in order.
    pub(super) fn write_down(&mut self) {
        for line in self.parts.couriers.news() {
            self.say(&line);
        }
        if let Err(reason) = self.commit() {
            let now = self.now();
            self.parts.console.line_if_new(
                "journal",
                &format!("keep watch: the journal cannot be written: {reason}"),
                now,
            );
        }
    }
}

/// Makes the waiting entries durable, and these with them: they are in the journal then, or nowhere. Those that waited
/// wait on.
pub(super) fn write(tally: &mut Tally, journal: &mut dyn Journal, at: &str, last: &[Event]) -> Result<(), String> {
    let notes = tally.take_notes();
    if notes.is_empty() && last.is_empty() {
        return Ok(());
    }
    let mut events = notes.iter().chain(last);
    let appended = events.try_for_each(|event| journal.append(at, event)).and_then(|()| journal.commit());
    appended.map_err(|error| {
        journal.discard();
        tally.give_back(notes);
        causes(&error)
    })
}

const fn restore_outcome(outcome: Outcome) -> RestoreOutcome {
    match outcome {
        // An accepted change is not put back; nothing asks for it.
        Outcome::Rejected | Outcome::Accepted => RestoreOutcome::Rejected,
        Outcome::TimedOut => RestoreOutcome::TimedOut,
        Outcome::AutoRestored => RestoreOutcome::AutoRestored,
        Outcome::RestoredAtExit => RestoreOutcome::RestoredAtExit,
    }
}
