//! What an interrupted run left behind, put back to the last state the person accepted.
//!
//! Promise: only what differs is touched, and what it replaces goes to quarantine; a path that cannot be put back is not
//! taken for accepted, but handed on, so that the person is asked. Limit: it goes by the rules of the interrupted run; it
//! ends no process, since the watch started none.

use std::collections::{BTreeMap, BTreeSet};

use platform::{Clock, FileId, Place, Stat};

use crate::baseline::{Baseline, Caps, ChangeKind, Content, Directory, Restore, Row, Snapshot, clear_leftover, look};
use crate::cli::exit::causes;
use crate::digest::Digest;
use crate::journal::{
    DirectoryState, Event, Journal, JournalError, Object, RecordError, Replayed, RestoreOutcome, Stamps, portions,
    rfc3339,
};
use crate::roots::Roots;
use crate::rules::set::RuleSet;
use crate::rules::{Class, Mode, Rule};
use crate::store::{Objects, Quarantine, Rejection, StoreError, parse_attributes};

use super::expected::is_below_any;
use super::lock::left::Left;
use super::lock::others::Others;
use super::report::{Recovery, ReportPath};
use super::survey::survey;

/// Bytes of a link's text or of a file's attributes, as objects.
const SMALL_OBJECT: u64 = 1 << 20;

/// Everything a recovery works with.
pub struct Recovering<'a> {
    /// The tree and the folders outside it.
    pub roots: &'a Roots,
    /// The rules of the interrupted run.
    pub rules: &'a RuleSet,
    /// Accepted contents.
    pub objects: &'a Objects,
    /// Rejected contents.
    pub quarantine: &'a Quarantine,
    /// The journal, with a session begun.
    pub journal: &'a mut dyn Journal,
    /// Time.
    pub clock: &'a dyn Clock,
    /// What the journal comes to.
    pub replayed: &'a Replayed,
    /// Largest file that is read.
    pub max_file_bytes: u64,
    /// What the interrupted run had made immutable and could not be released: the flag is no change.
    pub left_locked: &'a BTreeSet<FileId>,
    /// The journals of other watches: what they have made immutable is no change either.
    pub others: &'a mut Others,
}

/// What a recovery came to.
#[derive(Debug, Default)]
pub struct Recovered {
    /// For the report.
    pub recovery: Recovery,
    /// Accepted states that could not be restored.
    pub unrestored: BTreeMap<Place, Snapshot>,
    /// What went wrong, a line each.
    pub lines: Vec<String>,
    /// What became of the flags the interrupted run had set.
    pub left: Left,
}

impl Recovered {
    /// Writes down that the earlier run is settled, and by what: one entry, also when nothing differed, and more only where
    /// the paths do not fit.
    pub fn write(&self, journal: &mut dyn Journal, clock: &dyn Clock) -> Result<(), JournalError> {
        let stored = |paths: &[ReportPath]| paths.iter().map(ReportPath::text).collect::<Vec<_>>();
        let (restored, kept) = (stored(&self.recovery.restored), stored(&self.recovery.kept));
        let at = rfc3339(clock.wall());
        let mut restored = portions(&restored);
        let mut kept = portions(&kept);
        let mut written = false;
        loop {
            let (some, more) = (restored.next(), kept.next());
            if written && some.is_none() && more.is_none() {
                break;
            }
            written = true;
            let event = Event::Recovered {
                from_session: self.recovery.session.clone(),
                restored: some.unwrap_or_default().to_vec(),
                kept: more.unwrap_or_default().to_vec(),
            };
            journal.append(&at, &event)?;
        }
        journal.commit()
    }
}

/// The accepted snapshots of a replayed journal, by place. Places in roots that are no more are left out.
pub fn accepted(roots: &Roots, replayed: &Replayed, objects: &Objects) -> (BTreeMap<Place, Row>, Vec<String>) {
    let mut rows = BTreeMap::new();
    let mut lines = Vec::new();
    for (stored, state) in &replayed.baseline {
        let Some(place) = roots.find(stored) else {
            lines.push(format!("keep watch: {stored} lies in no folder of this run; it was not looked at"));
            continue;
        };
        match state.snapshot.snapshot(|digest| objects.read(digest, SMALL_OBJECT)) {
            Ok(snapshot) => {
                rows.insert(place, Row { class: Class { rule: state.rule, mode: state.mode }, snapshot });
            }
            Err(error) => lines.push(format!(
                "keep watch: {}: its accepted state is lost: {}",
                roots.shown(&place),
                causes(&error)
            )),
        }
    }
    (rows, lines)
}

/// A directory's attributes.
fn attributes(
    objects: &Objects,
    stored: Option<Digest>,
) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, RecordError<StoreError>> {
    let Some(digest) = stored else { return Ok(BTreeMap::new()) };
    let bytes = objects.read(digest, SMALL_OBJECT).map_err(|error| RecordError::Object(digest, error))?;
    parse_attributes(&bytes).ok_or(RecordError::Damaged(digest))
}

/// What the interrupted run could not read and did not guard, and what it knew of it.
pub fn unguarded(roots: &Roots, replayed: &Replayed) -> BTreeMap<Place, Option<Stamps>> {
    replayed.unguarded.iter().filter_map(|(stored, stamps)| Some((roots.find(stored)?, *stamps))).collect()
}

impl Recovering<'_> {
    /// Restores the last accepted state. That the earlier run is settled by it is for [`Recovered::write`] to say.
    pub fn run(self) -> Result<Recovered, JournalError> {
        let session = self.replayed.sealed_session.as_ref().map_or(String::new(), |session| session.id.clone());
        let (rows, lines) = accepted(self.roots, self.replayed, self.objects);
        let mut done = Recovered {
            recovery: Recovery { session: session.clone(), ..Recovery::default() },
            lines,
            ..Recovered::default()
        };
        let mut baseline = Baseline::new(Caps { file_bytes: u64::MAX, files: usize::MAX, all_bytes: u64::MAX });
        for (place, row) in rows {
            baseline.accept(place, row).expect("there is no cap here");
        }
        for (stored, state) in &self.replayed.directories {
            if let Some(place) = self.roots.find(stored) {
                let xattrs = attributes(self.objects, state.xattrs).unwrap_or_else(|error| {
                    done.lines.push(format!(
                        "keep watch: {}: its accepted attributes are lost: {}",
                        self.roots.shown(&place),
                        causes(&error)
                    ));
                    BTreeMap::new()
                });
                let DirectoryState { mode, uid, gid, .. } = *state;
                baseline.accept_directory(place, Directory { mode, uid, gid, xattrs });
            }
        }
        let mut this = self;
        this.clear_leftovers(&session, &mut done);
        let mut places: BTreeSet<Place> = baseline.rows().map(|(place, _)| place.clone()).collect();
        let unguarded = unguarded(this.roots, this.replayed);
        places
            .extend(survey(this.roots, this.rules).found.into_iter().filter(|place| !is_below_any(&unguarded, place)));
        for place in places {
            let class = baseline.get(&place).map(|row| row.class).or_else(|| this.rules.classify(&place));
            if let Some(class) = class {
                this.put_right(&place, class, &baseline, &session, &mut done)?;
            }
        }
        this.journal.commit()?;
        Ok(done)
    }

    fn clear_leftovers(&mut self, session: &str, done: &mut Recovered) {
        for unfinished in &self.replayed.unfinished {
            let (Some(place), Some(temporary)) = (self.roots.find(&unfinished.path), &unfinished.temporary) else {
                continue;
            };
            let class = Class { rule: Rule::CageProtect, mode: Mode::Restore };
            let class = self
                .replayed
                .baseline
                .get(&unfinished.path)
                .map_or(class, |state| Class { rule: state.rule, mode: state.mode });
            let why = self.why(&place, class, ChangeKind::Modified, session);
            let root = self.roots.get(place.root);
            if let Err(error) = clear_leftover(root, &place, temporary.as_bytes(), self.objects, self.quarantine, &why)
            {
                done.lines.push(format!("keep watch: {}: {}", self.roots.shown(&place), causes(&error)));
            }
        }
    }

    fn why(&self, place: &Place, class: Class, kind: ChangeKind, session: &str) -> Rejection {
        Rejection {
            shown: self.roots.shown(place),
            stored: self.roots.stored(place),
            rule: class.rule,
            kind,
            outcome: Some("recovered".to_owned()),
            session: session.to_owned(),
            rejected_at: rfc3339(self.clock.wall()),
        }
    }

    /// Whether what was found immutable is so by a watch: the interrupted one, or another.
    fn is_a_watchs(&mut self, found: &Stat) -> bool {
        found.immutable && (self.left_locked.contains(&found.id) || self.others.have_flagged(Object::of(found)))
    }

    fn put_right(
        &mut self,
        place: &Place,
        class: Class,
        baseline: &Baseline,
        session: &str,
        done: &mut Recovered,
    ) -> Result<(), JournalError> {
        let absent = Snapshot::absent();
        let accepted = baseline.get(place).map_or(&absent, |row| &row.snapshot);
        let root = self.roots.get(place.root);
        let (kind, digest) = match look(root, &place.path, self.max_file_bytes) {
            Ok(mut look) => match accepted.compare({
                look.snapshot.immutable &= !look.snapshot.stat.is_some_and(|stat| self.is_a_watchs(&stat));
                &look.snapshot
            }) {
                None => return Ok(()),
                Some(ChangeKind::Added) if look.snapshot.content == Content::Directory => return Ok(()),
                Some(kind) => (kind, look.snapshot.digest()),
            },
            // Too large or unreadable: it is not what was accepted.
            Err(_) => (ChangeKind::Modified, None),
        };
        let path = ReportPath::new(self.roots.bytes(place));
        if class.mode == Mode::Report {
            done.recovery.kept.push(path);
            return Ok(());
        }
        let why = self.why(place, class, kind, session);
        let stored = self.roots.stored(place);
        let at = why.rejected_at.clone();
        let restore = Restore {
            root,
            place,
            accepted,
            seen: None,
            baseline,
            objects: self.objects,
            quarantine: self.quarantine,
            why: &why,
            is_new_directory: &|_| false,
        };
        let journal = &mut *self.journal;
        let result = restore.run(|intent| {
            let event = Event::Restoring {
                writer: None,
                path: stored.clone(),
                temporary: Some(intent.temporary.clone()),
                quarantine: intent.quarantine.as_ref().map(|id| id.as_str().to_owned()),
                outcome: RestoreOutcome::Recovered,
            };
            journal.append(&at, &event).and_then(|()| journal.commit()).map_err(std::io::Error::other)
        });
        match result {
            Ok(restored) => {
                done.recovery.restored.push(path);
                if restored.snapshot.is_none() {
                    // Changed again already: that must not become the new baseline.
                    done.unrestored.insert(place.clone(), accepted.clone());
                }
                let event = Event::Restored {
                    writer: None,
                    path: stored,
                    rule: class.rule,
                    kind,
                    outcome: RestoreOutcome::Recovered,
                    sha256_after: digest,
                    quarantine: restored.quarantined.iter().map(|id| id.as_str().to_owned()).collect(),
                    attempts: restored.attempts,
                };
                self.journal.append(&at, &event)?;
                self.journal.commit()
            }
            Err(error) => {
                done.lines.push(super::lines::not_restored(&why.shown, &causes(&error)));
                done.recovery.failed.push(path);
                done.unrestored.insert(place.clone(), accepted.clone());
                let event = Event::RestoreFailed { path: stored, errno: error.errno(), reason: causes(&error) };
                self.journal.append(&at, &event)?;
                self.journal.commit()
            }
        }
    }
}
