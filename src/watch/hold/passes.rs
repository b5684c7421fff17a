//! What openers that were let may write without another question.
//!
//! Promise: a change counts as theirs only if it is one of content, in the very object that was opened, by the very process
//! that was let, of which it is certain that nobody else wrote; only once the file is closed, or has been quiet for a while,
//! so that states half-way are not taken; and only within the decision timeout after the open was let. Anything else is
//! asked about.
//! Limit: a program that keeps the file open and pauses for longer than [`QUIET`] between two writes has the state in between
//! accepted, and then the next one.

use std::collections::BTreeMap;
use std::time::Duration;

use platform::{Access, Certainty, FileId, Moment, Place, Writer};

use crate::baseline::{Change, ChangeKind, Content, Snapshot};

use super::Held;
use super::group::is_same_process;

/// A file that is still open is taken as it is when nothing more came for this long.
pub const QUIET: Duration = Duration::from_millis(250);
/// Openers that are remembered for one path.
const MOST: usize = 8;

/// Why an opener was let.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The person said so.
    Answered,
    /// The person trusts the program.
    Trusted,
}

/// What to do about a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passing {
    /// Nothing was let that would explain it.
    Ask,
    /// It may not be over yet: look again at [`Passes::due`].
    Wait,
    /// Take it.
    Take(Why),
}

#[derive(Debug)]
struct Pass {
    by: Writer,
    object: FileId,
    access: Access,
    why: Why,
    until: Moment,
}

/// A change that is waited for.
#[derive(Debug)]
struct Resting {
    seen: Snapshot,
    /// When it became so.
    since: Moment,
    /// When to look again.
    due: Moment,
    /// It was tried to take it.
    was_tried: bool,
}

/// The openers that were let, and what they are at.
#[derive(Debug, Default)]
pub struct Passes {
    passes: BTreeMap<Place, Vec<Pass>>,
    resting: BTreeMap<Place, Resting>,
}

impl Passes {
    /// The open was let at this moment, and what it writes is expected until then.
    pub fn add(&mut self, held: &Held, why: Why, now: Moment, until: Moment) {
        self.passes.retain(|_, passes| {
            passes.retain(|pass| pass.until > now);
            !passes.is_empty()
        });
        let passes = self.passes.entry(held.place.clone()).or_default();
        passes.retain(|pass| !(pass.access == held.access && is_same_process(&pass.by, &held.by)));
        if passes.len() == MOST {
            passes.remove(0);
        }
        let (by, object, access) = (held.by.clone(), held.object, held.access);
        passes.push(Pass { by, object, access, why, until });
    }

    /// Whether this very process was let open this very object for the same a moment ago: it had all that this would give.
    pub fn covers(&self, held: &Held, now: Moment) -> bool {
        self.passes.get(&held.place).into_iter().flatten().any(|pass| {
            (pass.object, pass.access) == (held.object, held.access)
                && pass.until > now
                && is_same_process(&pass.by, &held.by)
        })
    }

    /// Whether a change of the path may be one of an opener that was let.
    pub fn has(&self, place: &Place) -> bool {
        self.passes.get(place).into_iter().flatten().any(|pass| pass.access == Access::Write)
    }

    /// What to do about a change of a path that was accepted as `before`, made by `writer` as far as is known. Nobody had it
    /// open for writing if it `is_closed`, since before it was looked at.
    pub fn judge(
        &mut self,
        place: &Place,
        before: &Snapshot,
        change: &Change,
        writer: Option<&Writer>,
        (now, is_closed): (Moment, bool),
    ) -> Passing {
        let Some((why, until)) = self.find(place, before, change, writer, now) else {
            self.resting.remove(place);
            return Passing::Ask;
        };
        let after = &change.after;
        let (since, was_tried) = match self.resting.get(place) {
            Some(resting) if resting.seen == *after => (resting.since, resting.was_tried),
            _ => (now, false),
        };
        let due = (since + QUIET).min(until);
        self.resting.insert(place.clone(), Resting { seen: after.clone(), since, due, was_tried });
        if is_closed || now >= since + QUIET { Passing::Take(why) } else { Passing::Wait }
    }

    /// Whether what was let explains the change, without waiting for its end.
    pub fn explains(
        &self,
        place: &Place,
        before: &Snapshot,
        change: &Change,
        writer: Option<&Writer>,
        now: Moment,
    ) -> Option<Why> {
        self.find(place, before, change, writer, now).map(|(why, _)| why)
    }

    fn find(
        &self,
        place: &Place,
        before: &Snapshot,
        change: &Change,
        writer: Option<&Writer>,
        now: Moment,
    ) -> Option<(Why, Moment)> {
        let writer = writer.filter(|writer| writer.certainty == Certainty::Certain)?;
        let is_of_content = change.kind == ChangeKind::Modified
            && matches!(change.after.content, Content::Regular { .. })
            && before.same_attributes(&change.after);
        let pass = self.passes.get(place)?.iter().find(|pass| {
            pass.access == Access::Write
                && pass.until > now
                && change.after.id() == Some(pass.object)
                && is_same_process(&pass.by, writer)
        })?;
        is_of_content.then_some((pass.why, pass.until))
    }

    /// What may be taken was not stored: it is looked at once more at once, and then a little later.
    pub fn put_off(&mut self, place: &Place, now: Moment) {
        if let Some(resting) = self.resting.get_mut(place) {
            resting.due = if resting.was_tried { now + QUIET } else { now };
            resting.was_tried = true;
        }
    }

    /// The path is as accepted, or was asked about: nothing of it is waited for.
    pub fn forget(&mut self, place: &Place) {
        self.resting.remove(place);
    }

    /// Whether it is time to look at the path again.
    pub fn is_due(&self, place: &Place, now: Moment) -> bool {
        self.resting.get(place).is_some_and(|resting| resting.due <= now)
    }

    /// The paths that are to be looked at again by now.
    pub fn due(&self, now: Moment) -> Vec<Place> {
        self.resting.iter().filter(|(_, resting)| resting.due <= now).map(|(place, _)| place.clone()).collect()
    }

    /// When the first of them is.
    pub fn wake_at(&self) -> Option<Moment> {
        self.resting.values().map(|resting| resting.due).min()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{at, held, node};
    use super::*;
    use crate::digest::Digest;
    use platform::Stat;

    fn file(content: &str, ino: u64, second: i64) -> Snapshot {
        let stat = Stat { id: FileId { dev: 1, ino }, mtime: (second, 0), ..Stat::sample() };
        let content = Content::Regular { digest: Digest::of(content.as_bytes()), size: content.len() as u64 };
        Snapshot { content, mode: 0o600, stat: Some(stat), ..Snapshot::absent() }
    }

    fn modified(after: Snapshot) -> Change {
        Change { kind: ChangeKind::Modified, after }
    }

    struct Lab {
        passes: Passes,
        place: Place,
        before: Snapshot,
    }

    impl Lab {
        /// Process 1 was let write `.env`, which is object 7, until 20 s.
        fn new(why: Why) -> Self {
            let held = held(1, ".env", 7, node(1), 0);
            let mut passes = Passes::default();
            passes.add(&held, why, at(0), at(20_000));
            Self { passes, place: held.place, before: file("old", 7, 0) }
        }

        fn judge(&mut self, change: &Change, writer: Option<Writer>, millis: u64) -> Passing {
            self.passes.judge(&self.place, &self.before, change, writer.as_ref(), (at(millis), false))
        }
    }

    #[test]
    fn what_the_opener_wrote_is_taken_once_it_is_quiet() {
        for why in [Why::Answered, Why::Trusted] {
            let mut lab = Lab::new(why);
            let (empty, part, all) = (file("", 7, 1), file("half", 7, 2), file("whole", 7, 3));
            assert_eq!(lab.judge(&modified(empty), Some(node(1)), 0), Passing::Wait);
            assert_eq!(lab.judge(&modified(part), Some(node(1)), 100), Passing::Wait);
            assert_eq!(lab.judge(&modified(all.clone()), Some(node(1)), 349), Passing::Wait, "it is another state");
            assert_eq!(lab.passes.wake_at(), Some(at(599)));
            assert!(lab.passes.due(at(598)).is_empty() && lab.passes.is_due(&lab.place, at(599)));
            assert_eq!(lab.judge(&modified(all), Some(node(1)), 599), Passing::Take(why));
            lab.passes.forget(&lab.place);
            assert_eq!(lab.passes.wake_at(), None);
        }
    }

    #[test]
    fn a_closed_file_is_taken_at_once_and_stored_with_another_look() {
        let mut lab = Lab::new(Why::Answered);
        let (change, writer) = (modified(file("new", 7, 1)), node(1));
        let closed = |lab: &mut Lab, millis| {
            lab.passes.judge(&lab.place, &lab.before, &change, Some(&writer), (at(millis), true))
        };
        assert_eq!(closed(&mut lab, 10), Passing::Take(Why::Answered));
        lab.passes.put_off(&lab.place, at(10));
        assert!(lab.passes.is_due(&lab.place, at(10)));
        assert_eq!(closed(&mut lab, 11), Passing::Take(Why::Answered));
        lab.passes.put_off(&lab.place, at(11));
        assert!(!lab.passes.is_due(&lab.place, at(11)), "what cannot be stored does not keep us busy");
        assert!(lab.passes.is_due(&lab.place, at(261)));
    }

    #[test]
    fn the_same_content_written_again_is_not_quiet() {
        let mut lab = Lab::new(Why::Answered);
        for second in 0..20 {
            let passing = lab.judge(&modified(file("same", 7, second)), Some(node(1)), 240 * second.unsigned_abs());
            assert_eq!(passing, Passing::Wait);
        }
    }

    #[test]
    fn anything_else_is_asked_about() {
        let now = file("new", 7, 1);
        let likely = Writer { certainty: Certainty::Likely, ..node(1) };
        let mut exec = node(1);
        exec.program.exe = Some(b"/usr/bin/other".to_vec());
        let mut reused = node(1);
        reused.program.started = Some(99);
        for (what, change, writer) in [
            ("nobody is known", modified(now.clone()), None),
            ("another may have written", modified(now.clone()), Some(likely)),
            ("another process", modified(now.clone()), Some(node(2))),
            ("another process of that number", modified(now.clone()), Some(reused)),
            ("the process runs another program", modified(now.clone()), Some(exec)),
            ("another object", modified(file("new", 8, 1)), Some(node(1))),
            ("bits", modified(Snapshot { mode: 0o644, ..now.clone() }), Some(node(1))),
            ("gone", Change { kind: ChangeKind::Deleted, after: Snapshot::absent() }, Some(node(1))),
        ] {
            let mut lab = Lab::new(Why::Answered);
            assert_eq!(lab.judge(&change, writer.clone(), 0), Passing::Ask, "{what}");
            assert_eq!(lab.judge(&change, writer, 5_000), Passing::Ask, "{what}");
        }
    }

    #[test]
    fn it_ends_with_the_decision_timeout_even_if_writing_goes_on() {
        let mut lab = Lab::new(Why::Answered);
        assert_eq!(lab.judge(&modified(file("new", 7, 1)), Some(node(1)), 19_900), Passing::Wait);
        assert_eq!(lab.passes.wake_at(), Some(at(20_000)));
        assert_eq!(lab.judge(&modified(file("new", 7, 1)), Some(node(1)), 20_000), Passing::Ask);
        assert_eq!(lab.passes.wake_at(), None);
    }

    #[test]
    fn only_that_process_may_open_it_again_and_only_for_the_same() {
        let lab = Lab::new(Why::Answered);
        let covers = |held: Held, millis| lab.passes.covers(&held, at(millis));
        assert!(covers(held(2, ".env", 7, node(1), 0), 100));
        assert!(!covers(held(2, ".env", 7, node(1), 0), 20_000), "its time is over");
        assert!(!covers(held(2, ".env", 8, node(1), 0), 100), "another object");
        assert!(!covers(held(2, ".env", 7, node(2), 0), 100), "another process");
        assert!(!covers(Held { access: Access::Read, ..held(2, ".env", 7, node(1), 0) }, 100), "for reading");
    }

    #[test]
    fn openers_without_end_are_not_all_remembered() {
        let mut lab = Lab::new(Why::Trusted);
        (0..10_000).for_each(|pid| lab.passes.add(&held(1, ".env", 7, node(pid), 0), Why::Trusted, at(0), at(20_000)));
        assert_eq!(lab.passes.passes[&lab.place].len(), MOST);
    }
}
