//! What was decided about held opens without us: by the guardian while the watch was stopped, or by the opener's end.
//!
//! Promise: a decision that came too late is not written down as one; each open that the guardian answered is in the journal,
//! the session log and the report, by itself or in a count. Limit: of one that nobody had read, its object and its process's
//! number are known; who that was is at most likely. Reads that went through are told where they would have been asked about.

use platform::{Access, HeldId, Opening};

use crate::watch::lines::counted;
use crate::watch::session::Session;

use super::{Away, Decision, Held, Manner};

/// Answers that found nothing to answer, with what the open had come to.
#[derive(Debug, Default)]
pub(super) struct Late(pub(super) Vec<(Held, Decision, u32)>);

impl Late {
    /// One more.
    pub(super) fn add(&mut self, held: Held, decision: Decision) {
        let stands_for = |known: &&mut (Held, Decision, u32)| known.1 == decision && is_alike(&known.0, &held);
        match self.0.iter_mut().find(stands_for) {
            Some((_, _, opens)) => *opens += 1,
            None => self.0.push((held, decision, 1)),
        }
    }

    /// How many of those that such a decision is said of it came too late for.
    pub(super) fn of(&self, held: &Held, decision: Decision) -> u32 {
        if decision.verdict().is_none() {
            return 0;
        }
        self.0.iter().filter(|(late, ..)| is_alike(late, held)).map(|(_, _, opens)| opens).sum()
    }
}

/// Whether one entry can stand for both.
fn is_alike(one: &Held, other: &Held) -> bool {
    (&one.place, one.access) == (&other.place, other.access)
}

/// Lines about single files; of more, how many there are.
const NAMED: usize = 3;

impl Session {
    /// Writes down and says what the guardian answered while nobody read.
    pub(super) fn take_away(&mut self, away: Away) {
        let Away { rows, refused: mut more, let_through } = away;
        let mut known = Vec::new();
        for row in rows {
            let by = self.parts.account.opener(row.pid, row.at);
            // Whatever is not for reading only is refused: the lease says so, and nothing else is known.
            let (access, decision) = match row.is_let {
                true => (Access::Read, Decision::LetWhileStopped),
                false => (Access::Write, Decision::WhileStopped),
            };
            let opening = Opening { object: row.object, path: None, access, by, at: row.at };
            // It was never held, so that it has no number; nothing is answered by this one.
            match self.protected(HeldId(0), opening) {
                Some(held) => known.push((held, decision, row.opens)),
                // Reads of most files are nobody's question.
                None if row.is_let => {}
                None => more += u64::from(row.opens),
            }
        }
        for (held, decision, opens) in &known {
            self.note_held(held, *decision, *opens);
        }
        if known.len() <= NAMED {
            known.iter().for_each(|(held, decision, opens)| self.say_held(held, *decision, *opens));
        } else {
            let count = |is_let: bool| {
                let of_kind = known.iter().filter(|(held, ..)| (held.access == Access::Read) == is_let);
                opens(of_kind.map(|(.., opens)| u64::from(*opens)).sum())
            };
            self.say(&format!(
                "keep watch: while the watch was stopped {} of protected files refused, {} for reading let through; keep log has them",
                count(false),
                count(true)
            ));
        }
        // Of those for reading it matters only where they would have been asked about.
        let asks_about_reads = self.parts.hold.as_ref().is_some_and(|hold| hold.sight.manner == Manner::ReadsToo);
        let let_through = if asks_about_reads { let_through } else { 0 };
        for (count, what) in [(more, "refused"), (let_through, "for reading let through")] {
            if count > 0 {
                let more = opens(count);
                self.say(&format!("keep watch: {more} more {what} while the watch was stopped; of what is not known"));
                self.options.limits.push(format!(
                    "While the watch was stopped {more} more were {what} than could be remembered, or of files that are not protected any more."
                ));
            }
        }
    }
}

fn opens(count: u64) -> String {
    counted(usize::try_from(count).unwrap_or(usize::MAX), "open")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{held, node};
    use super::*;

    #[test]
    fn what_came_too_late_is_taken_from_the_decision_and_told_as_what_it_is() {
        let mut late = Late::default();
        late.add(held(1, ".env", 7, node(1), 0), Decision::WhileStopped);
        late.add(held(2, ".env", 7, node(1), 0), Decision::WhileStopped);
        late.add(held(3, ".env", 7, node(1), 0), Decision::Gone);
        late.add(held(4, "svc/.env", 8, node(1), 0), Decision::Gone);
        assert_eq!(late.of(&held(1, ".env", 7, node(1), 0), Decision::Allowed), 3);
        assert_eq!(late.of(&held(1, "svc/.env", 8, node(1), 0), Decision::Refused), 1);
        assert_eq!(late.of(&held(1, "other/.env", 9, node(1), 0), Decision::Refused), 0);
        assert_eq!(late.of(&held(1, ".env", 7, node(1), 0), Decision::Gone), 0, "that was no answer");
        let counts: Vec<_> = late.0.iter().map(|(_, decision, opens)| (*decision, *opens)).collect();
        assert_eq!(counts, [(Decision::WhileStopped, 2), (Decision::Gone, 1), (Decision::Gone, 1)]);
    }
}
