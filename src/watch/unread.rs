//! Protected files that could not be read at the start: what is there now is taken for accepted only if it is still that.
//!
//! Promise: nothing becomes the baseline here but the very file of the start, by its stamps; anything else in its place is
//! asked about. What is rejected there goes to quarantine, and from then on nothing is accepted at the path.
//! Limit: who owns the file can hide a write of the same length, as `docs/limits.md` says. A write to a file that still
//! cannot be read is only named: whoever made it has rights that we have not.

use platform::{Place, RelPath, Stat};

use crate::baseline::{Change, ChangeKind, Content, Row, Snapshot, is_older, is_unwritten, look_and_store};
use crate::cli::exit::causes;
use crate::journal::{Event, Record, Stamps};
use crate::rules::Class;

use super::lines;
use super::session::Session;

/// What has become of a file that could not be read at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Since {
    /// It still cannot be read, and is the same.
    Unread,
    /// It still cannot be read, and may have been written to.
    Written,
    /// It can be read, and is the same.
    Readable,
    /// Nothing is there.
    Gone,
    /// Something else is there, or it was written to.
    Other(ChangeKind),
}

/// What `now` is, after what was known at the start.
fn since(start: Option<&Stat>, now: &Snapshot) -> Since {
    let same = |now: &Stat| start.is_some_and(|start| is_unwritten(start, now));
    let same_object = |now: &Stat| start.is_some_and(|start| start.id == now.id);
    match (&now.content, &now.stat) {
        (Content::Absent, _) => Since::Gone,
        // The way there is closed: nothing is known.
        (Content::Unread { .. }, None) => Since::Unread,
        (Content::Unread { .. }, Some(stat)) if same(stat) => Since::Unread,
        (Content::Unread { .. }, Some(stat)) if same_object(stat) => Since::Written,
        (Content::Regular { .. }, Some(stat)) if same(stat) => Since::Readable,
        (Content::Regular { .. } | Content::Unread { .. }, _) => Since::Other(ChangeKind::Modified),
        _ => Since::Other(ChangeKind::Replaced),
    }
}

impl Session {
    /// What was known at the start of a path that could not be read then; `None` if it is not such a path.
    pub(super) fn unread_at_start(&mut self, place: &Place, now: &Snapshot) -> Option<Option<Stat>> {
        if !self.unreadable.contains_key(place) && self.was_there_all_the_time(place, now) {
            self.note_unread(place, now.stat);
            if let Content::Unread { .. } = now.content {
                let shown = self.parts.roots.shown(place);
                self.say(&lines::unguarded(&shown, "it cannot be read, or is too large"));
            }
        }
        self.unreadable.get(place).copied()
    }

    /// Notes what is known of a path that could not be read at the start.
    pub(super) fn note_unread(&mut self, place: &Place, start: Option<Stat>) {
        self.unreadable.insert(place.clone(), start);
        let path = self.parts.roots.stored(place);
        self.tally.note(Event::Unguarded { path, stamps: start.as_ref().and_then(Stamps::of) });
    }

    /// Whether the path lies in a directory that could not be read at the start, and is older than that: it is the person's,
    /// not something that was added.
    fn was_there_all_the_time(&self, place: &Place, now: &Snapshot) -> bool {
        let Some(stat) = now.stat else { return false };
        let is_new = now.content != Content::Directory && self.baseline.get(place).is_none();
        if self.closed.is_empty() || !is_new || !is_older(&stat, self.begun) {
            return false;
        }
        // Nobody can set a ctime: what is written, or moved in by itself, has a later one. What comes within a directory
        // keeps its own, so that every directory on the way has to be as old, and the one that was closed the same.
        let root = self.parts.roots.get(place.root);
        let mut way: Vec<RelPath> = std::iter::once(RelPath::root()).chain(place.path.ancestors()).collect();
        while let Some(path) = way.pop() {
            let Ok(Some(above)) = root.stat(&path) else { return false };
            let dir = Place { root: place.root, path };
            if let Some(closed) = self.closed.get(&dir) {
                return *closed == Some(above.id);
            }
            if !is_older(&above, self.begun) {
                return false;
            }
        }
        false
    }

    /// How such a path differs from the start; `None` if there is nothing to be asked.
    pub(super) fn compare_unread(
        &mut self,
        place: &Place,
        class: Class,
        start: Option<Stat>,
        now: &Snapshot,
    ) -> Option<Change> {
        let shown = self.parts.roots.shown(place);
        let moment = self.now();
        match since(start.as_ref(), now) {
            Since::Unread => None,
            Since::Written => {
                self.parts.console.line_if_new(&shown, &lines::written_unread(&shown), moment);
                None
            }
            Since::Gone => {
                self.parts.console.line_if_new(&shown, &lines::gone_unread(&shown), moment);
                None
            }
            Since::Readable => {
                self.adopt_at_last(place, class, start);
                None
            }
            Since::Other(kind) => {
                if self.machine.last_seen(place).is_none() {
                    self.say(&lines::nothing_to_put_back(&shown));
                }
                Some(Change { kind, after: now.clone() })
            }
        }
    }

    /// The file of the start can be read: it is accepted as it is.
    fn adopt_at_last(&mut self, place: &Place, class: Class, start: Option<Stat>) {
        let shown = self.parts.roots.shown(place);
        let root = self.parts.roots.get(place.root);
        let stored = look_and_store(root, &place.path, self.options.max_file_bytes, &self.parts.objects);
        let accepted = match stored {
            // Another one by now: the look that this very change brings about finds it.
            Ok(look) if since(start.as_ref(), &look.snapshot) != Since::Readable => {
                let now = self.now();
                self.to_look.insert(place.clone(), now);
                return;
            }
            Ok(look) => {
                let snapshot = Record::of(&look.snapshot);
                let row = Row { class, snapshot: look.snapshot };
                let accepted = self.baseline.accept(place.clone(), row).map_err(|error| causes(&error));
                accepted.and_then(|_| self.parts.objects.sync().map_err(|error| causes(&error))).map(|()| snapshot)
            }
            Err(error) => Err(causes(&error)),
        };
        match accepted {
            Ok(snapshot) => {
                self.unreadable.remove(place);
                self.note_parents(place);
                let (path, rule, mode) = (self.parts.roots.stored(place), class.rule, class.mode);
                self.tally.note(Event::Baseline { path, rule, mode, snapshot });
                self.say(&lines::guarded_at_last(&shown));
            }
            Err(reason) => {
                self.baseline.remove(place);
                let now = self.now();
                self.parts.console.line_if_new(&shown, &lines::unguarded(&shown, &reason), now);
            }
        }
    }

    /// What came in the place of an unread file was taken away: from here on the path is accepted as empty. `false` if it
    /// is not such a path.
    pub(super) fn nothing_is_accepted_any_more(&mut self, place: &Place, class: Class) -> bool {
        if self.unreadable.remove(place).is_none() {
            return false;
        }
        let (path, rule, mode) = (self.parts.roots.stored(place), class.rule, class.mode);
        // A crash from here on ends in this state, too.
        self.tally.note(Event::Baseline { path, rule, mode, snapshot: Record::of(&Snapshot::absent()) });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;
    use platform::FileId;

    fn start() -> Stat {
        Stat { mode: 0, size: 3, ..Stat::sample() }
    }

    fn read(stat: Stat) -> Snapshot {
        let content = Content::Regular { digest: Digest::of(b"one"), size: stat.size };
        Snapshot { content, mode: stat.mode, stat: Some(stat), ..Snapshot::absent() }
    }

    fn unread(stat: Stat) -> Snapshot {
        Snapshot { content: Content::Unread { size: stat.size }, ..read(stat) }
    }

    #[test]
    fn only_the_file_of_the_start_is_adopted() {
        let (start, chmodded) = (start(), Stat { mode: 0o600, ctime: (200, 0), ..start() });
        let written = Stat { mtime: (150, 0), ..chmodded };
        let another = Stat { id: FileId { dev: 1, ino: 8 }, ..chmodded };
        let other = Since::Other(ChangeKind::Modified);
        for (now, wanted) in [
            (read(chmodded), Since::Readable),
            (read(start), Since::Readable),
            (read(written), other),
            (read(another), other),
            (read(Stat { ctime: (200, 0), ..start }), other),
            (unread(chmodded), Since::Unread),
            (unread(written), Since::Written),
            (unread(another), other),
            (Snapshot { content: Content::Fifo, ..read(chmodded) }, Since::Other(ChangeKind::Replaced)),
            (Snapshot { stat: None, ..unread(start) }, Since::Unread),
            (Snapshot::absent(), Since::Gone),
        ] {
            assert_eq!(since(Some(&start), &now), wanted, "{now:?}");
        }
    }

    #[test]
    fn without_any_stamps_nothing_is_proven() {
        assert_eq!(since(None, &read(start())), Since::Other(ChangeKind::Modified));
        assert_eq!(since(None, &unread(start())), Since::Other(ChangeKind::Modified));
    }
}
