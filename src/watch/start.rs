//! The first walk: what is found becomes the baseline, is made durable, and only then is anything said.

use platform::Place;

use crate::baseline::{CapsError, Content, Directory, LookError, Row, Snapshot, is_unwritten, look_and_store};
use crate::cli::exit::{Refusal, RefusalCode, causes};
use crate::digest::Digest;
use crate::journal::{Event, Record, Stamps, portions};
use crate::store::serialize_attributes;

use super::lines;
use super::lock::Locked;
use super::previous::Between;
use super::session::{Phase, Session};

impl Session {
    /// A protected path that exists at the start: its state is accepted as it is.
    pub(super) fn adopt(&mut self, place: &Place) {
        let Phase::Walking { expected, .. } = &mut self.phase else {
            // A walk after the first one: what it finds is compared like anything else.
            let now = self.now();
            self.to_look.entry(place.clone()).or_insert(now);
            return;
        };
        if self.baseline.get(place).is_some() {
            return;
        }
        let Some(class) = self.parts.rules.classify(place) else { return };
        if let Some(accepted) = expected.take(place) {
            return self.expect(place.clone(), accepted);
        }
        let earlier = expected.unread(place);
        let root = self.parts.roots.get(place.root);
        let shown = self.parts.roots.shown(place);
        match look_and_store(root, &place.path, self.options.max_file_bytes, &self.parts.objects) {
            Ok(look) if matches!(look.snapshot.content, Content::Absent | Content::Directory) => {}
            // An interrupted run could not read it, and it has changed since.
            Ok(look) if earlier.is_some_and(|earlier| !is_still(&earlier, &look.snapshot)) => {
                let start = look.snapshot.stat.and_then(|now| Some(earlier?.stat(&now)));
                self.note_unread(place, start);
                let now = self.now();
                self.to_look.insert(place.clone(), now);
            }
            Ok(look) => {
                if let (Some(id), Content::Regular { .. }) = (look.snapshot.id(), &look.snapshot.content) {
                    self.already_open.note(id, place, look.is_open);
                }
                let snapshot = self.without_our_flag(place, look.snapshot);
                if let Err(error) = self.baseline.accept(place.clone(), Row { class, snapshot }) {
                    self.refuse(over_the_cap(&shown, &error));
                }
                self.note_parents(place);
            }
            Err(LookError::TooLarge { size, max_bytes, .. }) => {
                let error = CapsError::FileBytes { place: place.clone(), size, max_bytes };
                self.refuse(over_the_cap(&shown, &error));
            }
            Err(LookError::Store { source, .. }) => self.refuse(Refusal::new(
                RefusalCode::Journal,
                format!("the content of {shown} cannot be stored: {}", causes(&source)),
                "make room, or choose another place with KEEP_STATE_DIR",
            )),
            Err(error) => {
                let known = match &error {
                    LookError::Unreadable { stat: Some(stat), .. } => Some(**stat),
                    _ => root.stat(&place.path).ok().flatten(),
                };
                let start = known.map(|now| earlier.map_or(now, |earlier| earlier.stat(&now)));
                self.note_unread(place, start);
                if start != known {
                    // What an interrupted run knew of it counts.
                    let now = self.now();
                    self.to_look.insert(place.clone(), now);
                }
                self.say(&lines::unguarded(&shown, &causes(&error)));
            }
        }
    }

    /// A path that an interrupted run had accepted in this state: if it could not be put back, or has changed again since,
    /// the person is asked at once.
    fn expect(&mut self, place: Place, accepted: Snapshot) {
        let Some(class) = self.parts.rules.classify(&place) else { return };
        if !accepted.is_absent() {
            // It had room in the run that accepted it; if the caps are smaller now, it is asked about as a new file.
            let _ = self.baseline.accept(place.clone(), Row { class, snapshot: accepted });
            self.note_parents(&place);
        }
        let now = self.now();
        self.to_look.insert(place, now);
    }

    /// The start is refused once the walk is over, with everything that stood in its way.
    fn refuse(&mut self, refusal: Refusal) {
        if let Phase::Walking { refused, .. } = &mut self.phase {
            match refused.iter_mut().find(|known| known.code == refusal.code) {
                Some(known) if known.message.len() < 2_000 => known.message.push_str(&format!("; {}", refusal.message)),
                Some(_) => {}
                None => refused.push(refusal),
            }
        }
    }

    /// Remembers the directories above a path, to make them again as they were.
    pub(super) fn note_parents(&mut self, place: &Place) {
        let ancestors: Vec<Place> = place
            .path
            .ancestors()
            .map(|path| Place { root: place.root, path })
            .filter(|dir| self.baseline.directory(dir).is_none())
            .collect();
        for dir in ancestors {
            if let Ok(Some(directory)) = Directory::look(self.parts.roots.get(dir.root), &dir.path) {
                let xattrs = self.keep_attributes(&dir, &directory);
                self.tally.note(Event::Directory {
                    path: self.parts.roots.stored(&dir),
                    mode: directory.mode,
                    uid: directory.uid,
                    gid: directory.gid,
                    xattrs,
                });
                self.baseline.accept_directory(dir, directory);
            }
        }
    }

    /// Stores a directory's attributes, so that they outlive us. Without room for them they are not kept, which is said: a
    /// directory made again without its ACL lets in nobody more.
    fn keep_attributes(&mut self, dir: &Place, directory: &Directory) -> Option<Digest> {
        if directory.xattrs.is_empty() {
            return None;
        }
        let objects = &self.parts.objects;
        let stored = objects.put(&serialize_attributes(&directory.xattrs)).and_then(|digest| {
            // During the first walk everything is synced at its end.
            if matches!(self.phase, Phase::Watching) {
                objects.sync()?;
            }
            Ok(digest)
        });
        stored
            .inspect_err(|error| {
                let shown = self.parts.roots.shown(dir);
                let line =
                    format!("keep watch: warning: the attributes of {shown} cannot be stored: {}", causes(error));
                self.parts.console.line(&line);
            })
            .ok()
    }

    /// The first walk is over.
    pub(super) fn walked(&mut self) {
        let Phase::Walking { expected, refused } = &mut self.phase else { return };
        if let Some(refusal) = refused.pop() {
            self.failed_start = Some(refusal);
            return;
        }
        for (place, accepted) in expected.take_rest() {
            self.expect(place, accepted);
        }
        if let Err(refusal) = self.seal() {
            self.failed_start = Some(refusal);
            return;
        }
        self.phase = Phase::Watching;
        self.parts.rules.freeze();
        self.to_look.append(&mut self.deferred);
        let locked = match self.lock_everything() {
            Ok(locked) => locked,
            Err(refusal) => {
                self.failed_start = Some(refusal);
                return;
            }
        };
        self.tally.started_at = Some(self.parts.clock.wall());
        self.tally.protected_files = self.baseline.len();
        let Between { changed, newly_covered } = self.differs_from_before();
        if !newly_covered.is_empty() {
            let shown: Vec<String> = newly_covered.iter().map(|place| self.parts.roots.shown(place)).collect();
            self.say(&lines::newly_covered(&shown));
        }
        if !changed.is_empty() {
            let stored: Vec<String> = changed.iter().map(|place| self.parts.roots.stored(place)).collect();
            for paths in portions(&stored) {
                self.tally.note(Event::Changed { paths: paths.to_vec() });
            }
            let shown: Vec<String> = changed.iter().map(|place| self.parts.roots.shown(place)).collect();
            self.say(&lines::changed_between(&shown));
        }
        self.name_holders();
        let scope = self.options.scope.as_ref().map(|globs| {
            globs.iter().map(|each| crate::text::escaped(each.glob.as_bytes())).collect::<Vec<_>>().join(", ")
        });
        let tree =
            crate::text::escaped(std::os::unix::ffi::OsStrExt::as_bytes(self.parts.roots.tree().path().as_os_str()));
        self.tally.locked = locked;
        self.say(&lines::started(
            self.baseline.len(),
            &tree,
            &lines::backend(self.options.backend, self.options.powers),
            self.options.decision_timeout,
            self.options.frozen,
            scope.as_deref(),
        ));
        for promise in self.options.promises.sentences() {
            self.say(&format!("keep watch: {promise}"));
        }
        if let Some(locked) = locked {
            if locked != Locked::default() {
                self.parts.console.offer_unlocking();
            }
            self.say(&lines::locked(locked));
        }
        // Before, what a client changes would be taken for what was there.
        match self.parts.gate.take().map(|open| open()) {
            Some(Ok(guest)) => self.guest = Some(guest),
            Some(Err(refusal)) => self.failed_start = Some(refusal),
            None => {}
        }
    }

    /// Makes contents and baseline durable: from here on a crash ends in this state.
    fn seal(&mut self) -> Result<(), Refusal> {
        let broken = |reason: String| {
            Refusal::new(
                RefusalCode::Journal,
                format!("the baseline cannot be written down: {reason}"),
                "make room, or choose another place with KEEP_STATE_DIR",
            )
        };
        self.parts.objects.sync().map_err(|error| broken(causes(&error)))?;
        for (place, row) in self.baseline.rows() {
            self.tally.note(Event::Baseline {
                path: self.parts.roots.stored(place),
                rule: row.class.rule,
                mode: row.class.mode,
                snapshot: Record::of(&row.snapshot),
            });
        }
        self.tally.note(Event::Sealed { files: self.baseline.len() as u64 });
        self.commit().map_err(broken)
    }

    /// What differs from the end of the last run, that ended properly: the person's own work, named once.
    fn differs_from_before(&mut self) -> Between {
        let previous = std::mem::take(&mut self.previous);
        previous.compare(&self.baseline, &self.parts.roots, |place| {
            let is_known = self.baseline.get(place).is_some() || self.unreadable.contains_key(place);
            !is_known && self.parts.rules.classify(place).is_some()
        })
    }
}

/// Whether this is by all stamps the file of which an earlier run knew no more than these.
fn is_still(earlier: &Stamps, now: &Snapshot) -> bool {
    now.stat.is_some_and(|now| is_unwritten(&earlier.stat(&now), &now))
}

fn over_the_cap(shown: &str, error: &CapsError) -> Refusal {
    let message = match error {
        CapsError::FileBytes { size, max_bytes, .. } => {
            format!("{shown} has {size} bytes; a protected file may have {max_bytes}")
        }
        CapsError::Files { max_files, .. } => {
            format!("more than {max_files} protected files, the first too many is {shown}")
        }
        CapsError::AllBytes { max_bytes, .. } => {
            format!("the protected files have more than {max_bytes} bytes in all, with {shown}")
        }
    };
    Refusal::new(
        RefusalCode::LimitsExceeded,
        message,
        "raise the cap with --max-file-bytes N, or take the path out of the protected set if .cage.yaml put it there",
    )
}
