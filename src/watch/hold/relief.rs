//! What was decided about held opens without us: by the guardian while the watch was stopped, or by the opener's end.
//!
//! Promise: a decision that came too late is not written down as one; each open that the guardian refused is in the journal,
//! the session log and the report, by itself or in a count. Limit: of one that nobody had read, its object and its process's
//! number are known; who that was is at most likely. What the guardian let through, reads, is not told.

use platform::{Access, HeldId, Opening};

use crate::watch::lines::counted;
use crate::watch::session::Session;

use super::{Away, Decision, Held};

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
    /// Writes down and says what the guardian refused while nobody read.
    pub(super) fn take_away(&mut self, away: Away) {
        let Away { rows, mut more } = away;
        let mut known = Vec::new();
        for row in rows {
            let by = self.parts.account.opener(row.pid, row.at);
            // Whatever is not for reading only is refused: the lease says so, and nothing else is known.
            let opening = Opening { object: row.object, path: None, access: Access::Write, by, at: row.at };
            // It was never held, so that it has no number; nothing is answered by this one.
            match self.protected(HeldId(0), opening) {
                Some(held) => known.push((held, row.opens)),
                None => more += u64::from(row.opens),
            }
        }
        let opens: u64 = known.iter().map(|(_, opens)| u64::from(*opens)).sum();
        let is_long = known.len() > NAMED;
        for (held, opens) in &known {
            self.note_held(held, Decision::WhileStopped, *opens);
            if !is_long {
                self.say_held(held, Decision::WhileStopped, *opens);
            }
        }
        if is_long {
            self.say(&format!(
                "keep watch: {} of protected files for writing refused while the watch was stopped; keep log has them",
                counted(usize::try_from(opens).unwrap_or(usize::MAX), "open")
            ));
        }
        if more > 0 {
            let opens = counted(usize::try_from(more).unwrap_or(usize::MAX), "open");
            self.say(&format!("keep watch: {opens} more refused while the watch was stopped; of what is not known"));
            self.options.limits.push(format!(
                "While the watch was stopped {opens} more were refused than could be remembered, or of files that are not protected any more."
            ));
        }
    }
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
