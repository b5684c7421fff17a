//! From a hint to a change: look at the path, compare it with the baseline, tell the machine.

use std::time::Duration;

use platform::{FileType, Moment, Place, RelPath};
use serde_json::{Value, json};

use crate::baseline::{Change, ChangeKind, Content, Look, LookError, Snapshot, look, look_and_store};
use crate::journal::{Asked, Event};
use crate::rules::{Class, Mode};

use super::machine::{Input, Seen};
use super::session::Session;
use super::writers::Before;

/// Whether what was looked at is in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    Yes,
    No,
}

/// Paths that could not be looked at and are not known, at most.
const MOST_DEFERRED: usize = 8192;

/// How long a path that is gone or empty is given to be filled again before it is asked about.
const SETTLE: Duration = Duration::from_millis(15);

/// A path that looks half-way through being replaced.
pub(super) struct Settling {
    /// When it is looked at again at the latest.
    pub(super) due: Moment,
    /// What was seen, and when first.
    seen: Seen,
}

/// A path is given that time once within this; one that goes and comes all the time is asked about, and its deadline runs.
const SETTLE_AGAIN: Duration = Duration::from_secs(1);

impl Session {
    /// Looks at every path that was hinted at.
    pub(super) fn look_around(&mut self) {
        let now = self.now();
        let due = self.settling.iter().filter(|(_, settling)| settling.due <= now);
        let due = due.map(|(place, settling)| (place.clone(), settling.seen.detected));
        for (place, at) in due.collect::<Vec<_>>() {
            // Stays in the list until the look, so that it is not put off again.
            self.to_look.insert(place, at);
        }
        for place in self.passes.due(now) {
            self.to_look.entry(place).or_insert(now);
        }
        while let Some((place, at)) = self.to_look.pop_first() {
            self.look_at(&place, at);
        }
    }

    /// Compares the stamps of these paths with the last look, and looks at those that differ.
    pub(super) fn compare_stamps<'p>(&mut self, places: impl IntoIterator<Item = &'p Place>, at: Moment) {
        let mut parent: Option<(Place, Option<platform::Dir>)> = None;
        for place in places {
            let Some(dir_path) = place.path.parent() else { continue };
            let dir = Place { root: place.root, path: dir_path };
            if parent.as_ref().is_none_or(|(known, _)| *known != dir) {
                // Paths come in order, so that one handle serves all that lie in a directory.
                // Onto whatever mount: the stamps name it, and one that does not belong here differs by it.
                let handle = self.parts.roots.get(dir.root).open_any_dir(&dir.path).ok();
                parent = Some((dir, handle));
            }
            let handle = parent.as_ref().and_then(|(_, handle)| handle.as_ref());
            let name = place.path.name().expect("it has a parent");
            let stat = handle.and_then(|handle| handle.stat(name).ok().flatten());
            let last = self.machine.last_seen(place).map(|change| &change.after);
            let last = last.or_else(|| self.baseline.get(place).map(|row| &row.snapshot));
            let same = match (last, &stat) {
                (Some(snapshot), Some(stat)) => snapshot.stat.as_ref() == Some(stat),
                (Some(snapshot), None) => snapshot.is_absent(),
                (None, stat) => stat.is_none(),
            };
            if !same {
                self.to_look.entry(place.clone()).or_insert(at);
            }
        }
    }

    /// Looks at one path and tells the machine what came of it.
    pub(super) fn look_at(&mut self, place: &Place, at: Moment) {
        // What is accepted without another question is stored before.
        let is_expected = self.parts.approvals.has(place)
            || self.passes.is_due(place, self.now())
            || (self.end.is_some() && self.passes.has(place));
        if is_expected && self.look_to_accept(place, at).is_ok() {
            return;
        }
        let Some(class) = self.class_of(place) else { return };
        let max_bytes = self.options.max_file_bytes;
        let before = self.mark(place);
        let looked = look(self.parts.roots.get(place.root), &place.path, max_bytes);
        self.judge(place, class, looked, (at, before), Stored::No);
    }

    /// Looks at one path, puts its content into the store, and tells the machine. `false` if the content could not be
    /// read or stored, so that the path cannot be accepted now.
    pub(super) fn look_to_accept(&mut self, place: &Place, at: Moment) -> Result<(), String> {
        let Some(class) = self.class_of(place) else { return Ok(()) };
        let max_bytes = self.options.max_file_bytes;
        let before = self.mark(place);
        let looked = look_and_store(self.parts.roots.get(place.root), &place.path, max_bytes, &self.parts.objects);
        let refused = match &looked {
            Ok(_) => Ok(()),
            Err(error) => Err(crate::cli::exit::causes(error)),
        };
        if !matches!(looked, Err(LookError::Store { .. })) {
            self.judge(place, class, looked, (at, before), Stored::Yes);
        }
        refused
    }

    /// The rule a path is under: that of its row, or of the table.
    pub(super) fn class_of(&self, place: &Place) -> Option<Class> {
        self.baseline.get(place).map(|row| row.class).or_else(|| self.parts.rules.classify(place))
    }

    fn judge(
        &mut self,
        place: &Place,
        class: Class,
        looked: Result<Look, LookError>,
        (at, before): (Moment, Before),
        stored: Stored,
    ) {
        let now = match looked {
            Ok(look) => {
                self.remember_bytes(place, look.bytes);
                look.snapshot
            }
            Err(LookError::TooLarge { size, stat, .. }) => unread(&stat, size),
            Err(LookError::Unreadable { stat: Some(stat), .. }) => unread(&stat, stat.size),
            // Nothing of ours can be reached there: for the path it is as if it were gone.
            Err(LookError::Mounted { .. }) => Snapshot::absent(),
            Err(error) => {
                let shown = self.parts.roots.shown(place);
                let line = format!("keep watch: {shown}: {}", crate::cli::exit::causes(&error));
                let now = self.now();
                self.parts.console.line_if_new(&shown, &line, now);
                // The way to an accepted file is closed. What is behind it is not what was accepted, as far as we can tell.
                if self.baseline.get(place).is_none() {
                    // Nor is it known to be absent: the next sweep looks again.
                    if self.deferred.len() < MOST_DEFERRED {
                        self.deferred.entry(place.clone()).or_insert(at);
                    }
                    return;
                }
                Snapshot { content: Content::Unread { size: 0 }, ..Snapshot::absent() }
            }
        };
        let now = self.without_our_flag(place, now);
        let change = if self.lies_aside(place, &now) {
            None
        } else if let Some(start) = self.unread_at_start(place, &now) {
            self.compare_unread(place, class, start, &now)
        } else {
            self.compare(place, &now)
        };
        let is_new = change.as_ref().is_some_and(|change| self.machine.last_seen(place) != Some(change));
        if let Some(change) = &change {
            self.ask_who(place, change, is_new, before);
        }
        if let Some(change) = &change
            && class.mode == Mode::Restore
            && stored == Stored::Yes
            && self.is_approved(place, change)
        {
            self.settling.remove(place);
            let seen = Seen { place: place.clone(), class, change: change.clone(), detected: at };
            return self.step(Input::Approved(seen, Asked::Gate));
        }
        if let Some(change) = &change {
            let seen = Seen { place: place.clone(), class, change: change.clone(), detected: at };
            if self.is_let(&seen, before, stored == Stored::Yes) {
                self.settling.remove(place);
                return;
            }
        }
        self.passes.forget(place);
        let Some(at) = self.settle(place, class, change.as_ref(), at) else { return };
        if change.is_none() {
            self.after_bytes.remove(place);
            self.notice_the_same(place, class, &now);
            // What was done to a folder is remembered until what lies in it has been looked at, too.
            let is_folder = self.baseline.get(place).is_none() && self.baseline.below(place).next().is_some();
            if !is_folder {
                self.settled(place, now.id(), before);
            }
        }
        if let Some(change) = &change
            && is_new
        {
            let digest = change.after.digest().map(|digest| digest.to_string());
            let writer = self.told_of(place).map_or(Value::Null, |writer| json!(writer));
            self.log(
                "changed",
                place,
                &[
                    ("rule", class.rule.name().into()),
                    ("kind", change.kind.name().into()),
                    ("sha256", digest.into()),
                    ("writer", writer),
                ],
            );
        }
        let by = change.as_ref().and_then(|_| self.is_by(place));
        self.step(Input::Looked { place: place.clone(), class, change, detected: at, by });
    }

    /// Whether the person has allowed this at the gate's question, and what was stored of it is durable.
    fn is_approved(&self, place: &Place, change: &Change) -> bool {
        let absent = Snapshot::absent();
        let accepted = self.baseline.get(place).map_or(&absent, |row| &row.snapshot);
        let (new, now) = (self.options.new_file, self.now());
        self.parts.approvals.take(place, accepted, &change.after, new, now) && self.parts.objects.sync().is_ok()
    }

    /// Whether this is what a restore had to leave in its directory, or lies in that, untouched since: it was rejected
    /// already.
    fn lies_aside(&self, place: &Place, now: &Snapshot) -> bool {
        let (Some(stat), None) = (now.stat, self.baseline.get(place)) else { return false };
        let left_as = |path: &RelPath| path.name().and_then(|name| self.parts.quarantine.left_as(name));
        if let Some(left) = left_as(&place.path) {
            return left == stat;
        }
        // What is in a directory has kept its time, if it came with it, and so has every directory in between.
        let mut latest = stat.ctime;
        let mut above: Vec<RelPath> = place.path.ancestors().collect();
        while let Some(dir) = above.pop() {
            let left = left_as(&dir);
            if left.is_none() && !above.iter().any(|dir| left_as(dir).is_some()) {
                return false;
            }
            let Ok(Some(found)) = self.parts.roots.get(place.root).stat(&dir) else { return false };
            match left {
                Some(left) => return left == found && latest < left.ctime,
                None => latest = latest.max(found.ctime),
            }
        }
        false
    }

    /// When the path was first seen to be as it is; `None` if it looks as it does in the middle of a save: gone, or emptied,
    /// a moment ago. Editors, git and shells put the new content there within microseconds; a question about the moment in
    /// between would help nobody. But it was seen: if the path comes back as it was, that is told.
    fn settle(&mut self, place: &Place, class: Class, change: Option<&Change>, at: Moment) -> Option<Moment> {
        let started = self.settling.remove(place);
        let Some(change) = change else {
            if let Some(Settling { seen, .. }) = started {
                self.step(Input::Passed(seen));
            }
            return Some(at);
        };
        let detected = started.as_ref().map_or(at, |started| started.seen.detected.min(at));
        let emptied = matches!(change.after.content, Content::Regular { size: 0, .. });
        // A file that a gate in this terminal is about to give its name.
        let passes = self.parts.approvals.may_pass_by(place);
        if !emptied && !passes && !change.after.is_absent() || self.machine.is_open(place) || self.end.is_some() {
            return Some(detected);
        }
        let now = self.now();
        if started.is_none() {
            self.settled.retain(|_, given| now.since(*given) < SETTLE_AGAIN);
            if self.settled.contains_key(place) {
                return Some(detected);
            }
            self.settled.insert(place.clone(), now);
        }
        let due = started.map_or(at.max(now) + SETTLE, |started| started.due);
        if due <= now {
            return Some(detected);
        }
        let seen = Seen { place: place.clone(), class, change: change.clone(), detected };
        self.settling.insert(place.clone(), Settling { due, seen });
        None
    }

    /// How the path differs from the baseline.
    fn compare(&self, place: &Place, now: &Snapshot) -> Option<Change> {
        let absent = Snapshot::absent();
        let accepted = self.baseline.get(place).map_or(&absent, |row| &row.snapshot);
        let kind = accepted.compare(now)?;
        // A directory where there was nothing holds no content of its own: what is in it has paths of its own.
        if kind == ChangeKind::Added && now.content == Content::Directory {
            return None;
        }
        Some(Change { kind, after: now.clone() })
    }

    /// A path is as accepted: only its stamps may be others, and the number of its names.
    fn notice_the_same(&mut self, place: &Place, class: Class, now: &Snapshot) {
        let (Some(row), Some(stat)) = (self.baseline.get(place), now.stat) else { return };
        let before = row.snapshot.stat;
        let links = before.map_or(1, |before| before.nlink);
        if stat.file_type == FileType::Regular && stat.nlink > links && class.mode == Mode::Restore {
            let shown = self.parts.roots.shown(place);
            self.say(&super::lines::linked(&shown, class.rule, stat.nlink));
            self.tally.linked.push(place.clone());
            let path = self.parts.roots.stored(place);
            self.tally.note(Event::Linked { path, rule: class.rule, links: stat.nlink });
        }
        if before != Some(stat) {
            self.baseline.looked_again(place, stat);
        }
    }

    fn remember_bytes(&mut self, place: &Place, bytes: Option<Vec<u8>>) {
        const MOST: usize = 64;
        match bytes {
            Some(bytes) if self.after_bytes.len() < MOST || self.after_bytes.contains_key(place) => {
                self.after_bytes.insert(place.clone(), bytes);
            }
            _ => {
                self.after_bytes.remove(place);
            }
        }
    }
}

/// A regular file whose content was not read.
fn unread(stat: &platform::Stat, size: u64) -> Snapshot {
    Snapshot {
        content: Content::Unread { size },
        mode: stat.mode,
        uid: stat.uid,
        gid: stat.gid,
        immutable: stat.immutable,
        append_only: stat.append_only,
        stat: Some(*stat),
        ..Snapshot::absent()
    }
}
