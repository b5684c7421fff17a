//! What the entries come to: the last accepted state, and what was being done when they stop.
//!
//! A session's baseline counts from its [`Event::Sealed`] on; until then the baseline of the session before stands. Every
//! change kept moves it. A session ended properly if it says so, and if it had a baseline of its own or had recovered the
//! one before: a start that was refused ends no crashed session.
//!
//! What was made immutable and not released stands whatever sessions came after it: it is a fact about the files.
//!
//! Promise: pure; any sequence of entries gives an answer. Limit: objects are not looked at.

use std::collections::{BTreeMap, BTreeSet};

use super::event::{Event, Options, RestoreOutcome};
use super::line::Entry;
use super::object::Object;
use super::record::Record;
use super::stamps::Stamps;
use crate::digest::Digest;
use crate::rules::{Mode, Rule};

/// A path's accepted state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedState {
    /// The rule that named its changes.
    pub rule: Rule,
    /// What a change led to.
    pub mode: Mode,
    /// The state.
    pub snapshot: Record,
}

/// A directory above protected paths, as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectoryState {
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Digest of its extended attributes.
    pub xattrs: Option<Digest>,
}

/// A restore that began and was not finished: its temporary name may still be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    /// The path that was put back.
    pub path: String,
    /// The name beside it.
    pub temporary: Option<String>,
    /// Where the rejected content went.
    pub quarantine: Option<String>,
    /// Why it was put back.
    pub outcome: RestoreOutcome,
}

/// What a session said of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// Its name.
    pub id: String,
    /// When it began, in RFC 3339.
    pub started_at: String,
    /// What ran.
    pub command: String,
    /// Its process.
    pub pid: u32,
    /// The root's path.
    pub root: String,
    /// The folders outside the root.
    pub outer_roots: Vec<String>,
    /// What options protected.
    pub options: Options,
    /// Digest of `.cage.yaml`.
    pub rules: Option<Digest>,
}

/// What the entries come to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Replayed {
    /// The last session that began, whatever became of it.
    pub last_session: Option<SessionInfo>,
    /// The session whose baseline stands; `None` if none was ever complete. Its options, rules and outer roots are the
    /// ones to recover with.
    pub sealed_session: Option<SessionInfo>,
    /// Whether there is nothing to recover.
    pub ended_properly: bool,
    /// The accepted states, by stored name.
    pub baseline: BTreeMap<String, AcceptedState>,
    /// Directories above them, by stored name.
    pub directories: BTreeMap<String, DirectoryState>,
    /// Paths that existed and could not be read, by stored name, and what was known of them; all that lies below them
    /// counts, too.
    pub unguarded: BTreeMap<String, Option<Stamps>>,
    /// Restores that were under way.
    pub unfinished: Vec<Unfinished>,
    /// Paths that were contested in the session whose baseline stands.
    pub contested: BTreeSet<String>,
    /// Objects that some session may have left immutable, and where they lay, by stored name.
    pub flagged: BTreeMap<Object, String>,
}

/// One session's part.
#[derive(Debug, Default)]
struct Part {
    info: Option<SessionInfo>,
    baseline: BTreeMap<String, AcceptedState>,
    directories: BTreeMap<String, DirectoryState>,
    unguarded: BTreeMap<String, Option<Stamps>>,
    contested: BTreeSet<String>,
    has_ended: bool,
}

/// Takes entries one by one.
#[derive(Debug, Default)]
pub struct Replay {
    /// The last session with a baseline.
    sealed: Option<Part>,
    /// The session that began last and has no baseline yet.
    open: Option<Part>,
    last_session: Option<SessionInfo>,
    /// Whether the open session has recovered the sealed one.
    has_recovered: bool,
    unfinished: Vec<Unfinished>,
    flagged: BTreeMap<Object, String>,
}

impl Replay {
    /// Whether some session had a complete baseline.
    pub fn has_sealed(&self) -> bool {
        self.sealed.is_some()
    }

    /// Takes the next entry.
    pub fn feed(&mut self, entry: Entry) {
        match entry.event {
            Event::Session { command, pid, root, outer_roots, options, rules, backend: _ } => {
                let (id, started_at) = (entry.session, entry.at);
                let info = SessionInfo { id, started_at, command, pid, root, outer_roots, options, rules };
                self.last_session = Some(info.clone());
                self.open = Some(Part { info: Some(info), ..Part::default() });
                self.has_recovered = false;
            }
            Event::Baseline { path, rule, mode, snapshot } => {
                if let Some(part) = self.current() {
                    part.baseline.insert(path, AcceptedState { rule, mode, snapshot });
                }
            }
            Event::Directory { path, mode, uid, gid, xattrs } => {
                if let Some(part) = self.current() {
                    part.directories.insert(path, DirectoryState { mode, uid, gid, xattrs });
                }
            }
            Event::Unguarded { path, stamps } => {
                if let Some(part) = self.current() {
                    part.unguarded.insert(path, stamps);
                }
            }
            Event::Sealed { .. } => {
                if let Some(part) = self.open.take() {
                    self.sealed = Some(part);
                }
            }
            Event::Accepted { path, rule, snapshot, .. } => self.move_baseline(path, rule, Mode::Restore, snapshot),
            Event::Kept { path, rule, snapshot, .. } => self.move_baseline(path, rule, Mode::Report, snapshot),
            Event::Restoring { path, temporary, quarantine, outcome, .. } => {
                self.unfinished.push(Unfinished { path, temporary, quarantine, outcome });
            }
            Event::Restored { path, .. } | Event::RestoreFailed { path, .. } => {
                self.unfinished.retain(|unfinished| unfinished.path != path);
            }
            Event::Contested { path } => {
                if let Some(part) = self.current() {
                    part.contested.insert(path);
                }
            }
            Event::Uncontested { path } => {
                if let Some(part) = self.current() {
                    part.contested.remove(&path);
                }
            }
            Event::Recovered { .. } => {
                self.unfinished.clear();
                self.has_recovered = true;
            }
            Event::Flagged { path, id } => {
                self.flagged.insert(id, path);
            }
            Event::Unflagged { id, .. } => {
                self.flagged.remove(&id);
            }
            Event::Ended { .. } => {
                let settles = self.open.is_none() || self.has_recovered;
                if let (true, Some(sealed)) = (settles, &mut self.sealed) {
                    sealed.has_ended = true;
                }
                self.open = None;
            }
            Event::Transient { .. }
            | Event::Held { .. }
            | Event::Linked { .. }
            | Event::Lost { .. }
            | Event::Changed { .. } => {}
        }
    }

    /// What the entries taken so far come to.
    pub fn finish(self) -> Replayed {
        let ended_properly = self.sealed.as_ref().is_none_or(|sealed| sealed.has_ended);
        let sealed = self.sealed.unwrap_or_default();
        Replayed {
            last_session: self.last_session,
            sealed_session: sealed.info,
            ended_properly,
            baseline: sealed.baseline,
            directories: sealed.directories,
            unguarded: sealed.unguarded,
            unfinished: self.unfinished,
            contested: sealed.contested,
            flagged: self.flagged,
        }
    }

    /// The session that began last; `None` before the first.
    fn current(&mut self) -> Option<&mut Part> {
        self.open.as_mut().or(self.sealed.as_mut())
    }

    fn move_baseline(&mut self, path: String, rule: Rule, mode: Mode, snapshot: Record) {
        let Some(part) = self.current() else { return };
        // A path that is known keeps its mode: only a path that appeared is in the mode in which it was kept.
        let mode = part.baseline.get(&path).map_or(mode, |state| state.mode);
        part.baseline.insert(path, AcceptedState { rule, mode, snapshot });
    }
}

/// What these entries come to.
pub fn replay(entries: impl IntoIterator<Item = Entry>) -> Replayed {
    let mut replay = Replay::default();
    entries.into_iter().for_each(|entry| replay.feed(entry));
    replay.finish()
}

#[cfg(test)]
mod tests {
    use super::super::crashes::{accepted, baseline, content, restored, restoring, session};
    use super::*;
    use crate::baseline::ChangeKind;

    /// Replays events; a session's name is its number.
    fn come_to(events: &[Event]) -> Replayed {
        let mut sessions = 0;
        replay(events.iter().enumerate().map(|(index, event)| {
            sessions += u32::from(matches!(event, Event::Session { .. }));
            let (seq, session) = (index as u64 + 1, sessions.to_string());
            Entry { seq, batch: seq, at: "then".into(), session, event: event.clone() }
        }))
    }

    fn sealed() -> Event {
        Event::Sealed { files: 1 }
    }

    fn ended() -> Event {
        Event::Ended { signal: None, exit_code: 0 }
    }

    fn recovered() -> Event {
        Event::Recovered { from_session: "1".into(), restored: vec![], kept: vec![] }
    }

    fn env(replayed: &Replayed) -> Option<&Record> {
        replayed.baseline.get(".env").map(|state| &state.snapshot)
    }

    #[test]
    fn nothing_comes_to_nothing_to_recover() {
        assert_eq!(come_to(&[]), Replayed { ended_properly: true, ..Replayed::default() });
    }

    #[test]
    fn a_kept_change_moves_the_baseline_and_a_restored_one_does_not() {
        let kept = Event::Kept {
            writer: None,
            path: "Cargo.lock".into(),
            rule: Rule::Lockfile,
            kind: ChangeKind::Added,
            snapshot: content("locked"),
        };
        let events = [session(), baseline(".env", "one"), sealed(), restored(".env"), accepted(".env", "two"), kept];
        let replayed = come_to(&events);
        assert_eq!(env(&replayed), Some(&content("two")));
        assert_eq!(replayed.baseline["Cargo.lock"].mode, Mode::Report);
        assert!(!replayed.ended_properly);
        let session = replayed.sealed_session.expect("sealed");
        assert_eq!((session.pid, session.options.lock_deps, session.outer_roots.len()), (4242, true, 1));
    }

    #[test]
    fn a_session_that_never_sealed_leaves_the_one_before_standing() {
        let crashed = [session(), baseline(".env", "one"), sealed(), session(), baseline(".env", "tampered")];
        let replayed = come_to(&crashed);
        assert_eq!(env(&replayed), Some(&content("one")));
        assert!(!replayed.ended_properly);
        assert_eq!(replayed.sealed_session.map(|session| session.id), Some("1".into()));
        assert_eq!(replayed.last_session.map(|session| session.id), Some("2".into()));
    }

    #[test]
    fn a_start_that_was_refused_ends_no_crashed_session() {
        let refused = [session(), baseline(".env", "one"), sealed(), session(), ended()];
        assert!(!come_to(&refused).ended_properly);
        let recovered = [session(), baseline(".env", "one"), sealed(), session(), recovered(), ended()];
        assert!(come_to(&recovered).ended_properly);
        let killed = [session(), baseline(".env", "one"), sealed(), ended(), session(), baseline(".env", "two")];
        assert!(come_to(&killed).ended_properly);
        assert_eq!(env(&come_to(&killed)), Some(&content("one")));
    }

    #[test]
    fn restores_under_way_are_named_until_they_are_done() {
        let events = [session(), baseline(".env", "one"), sealed(), restoring(".env"), restoring("a"), restored("a")];
        let unfinished = come_to(&events).unfinished;
        assert_eq!(unfinished.len(), 1);
        assert_eq!(unfinished[0].temporary.as_deref(), Some(".keep-0123456789ab"));
        let later = [&events[..], &[session(), restoring("b")]].concat();
        assert_eq!(come_to(&later).unfinished.len(), 2);
        assert_eq!(come_to(&[&later[..], &[recovered()]].concat()).unfinished, []);
    }

    #[test]
    fn what_was_made_immutable_stands_across_sessions_until_it_is_released() {
        let id = Object { dev: 1, ino: 2, uid: 3 };
        let other = Object { ino: 4, ..id };
        let flagged = |id| Event::Flagged { path: ".env".into(), id };
        let released = |id| Event::Unflagged { path: ".env".into(), id, missing: false };
        let events = [session(), baseline(".env", "one"), sealed(), flagged(id), ended()];
        assert_eq!(come_to(&events).flagged, [(id, ".env".to_owned())].into());
        let later = [&events[..], &[session(), baseline(".env", "two"), sealed(), flagged(other)]].concat();
        assert_eq!(come_to(&later).flagged.len(), 2);
        assert_eq!(come_to(&[&later[..], &[released(id)]].concat()).flagged, [(other, ".env".to_owned())].into());
        let again = [&later[..], &[released(id), released(other), flagged(id)]].concat();
        assert_eq!(come_to(&again).flagged, [(id, ".env".to_owned())].into());
    }

    #[test]
    fn contested_paths_and_directories_are_those_of_the_standing_session() {
        let directory =
            Event::Directory { path: ".github".into(), mode: 0o755, uid: 1, gid: 2, xattrs: Some(Digest::of(b"acl")) };
        let contested = Event::Contested { path: ".env".into() };
        let events = [session(), directory, baseline(".env", "one"), sealed(), contested, session()];
        let replayed = come_to(&events);
        assert!(replayed.contested.contains(".env"));
        let taken_back = Event::Uncontested { path: ".env".into() };
        assert_eq!(come_to(&[&events[..5], &[taken_back]].concat()).contested, BTreeSet::new());
        assert_eq!(
            replayed.directories[".github"],
            DirectoryState { mode: 0o755, uid: 1, gid: 2, xattrs: Some(Digest::of(b"acl")) }
        );
        assert!(come_to(&[&events[..], &[sealed()]].concat()).contested.is_empty());
    }

    #[test]
    fn a_directory_of_a_journal_that_knew_no_attributes_has_none() {
        let line = r#"{"directory":{"path":".github","mode":"0755","uid":1,"gid":2}}"#;
        let event: Event = serde_json::from_str(line).expect("is read");
        let directory = DirectoryState { mode: 0o755, uid: 1, gid: 2, xattrs: None };
        assert_eq!(come_to(&[session(), event, sealed()]).directories[".github"], directory);
    }
}
