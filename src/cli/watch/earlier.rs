//! How a session begins in the journal, and what it takes over from the one before.
//!
//! Promise: what an interrupted run left is put right by the rules that run had, and settled by no other baseline than one
//! of our own.

use platform::Clock;

use crate::cli::args::WatchArgs;
use crate::cli::begin;
use crate::cli::exit::{Refusal, causes};
use crate::cli::ground::Ground;
use crate::cli::rules::{Asked, Assembled};
use crate::digest::Digest;
use crate::journal::{self, Event, Journal, Replayed, SessionInfo};
use crate::roots::Roots;
use crate::store::{Objects, Quarantine};
use crate::watch::previous::Covered;
use crate::watch::recovery::Recovered;

/// What the beginning of a session works with.
pub(super) struct Started<'a> {
    pub(super) asked: &'a Asked,
    pub(super) args: &'a WatchArgs,
    pub(super) roots: &'a Roots,
    pub(super) rule_file: Option<&'a [u8]>,
    pub(super) backend: &'static str,
    pub(super) objects: &'a Objects,
    pub(super) clock: &'a dyn Clock,
    pub(super) contest_limit: u32,
}

impl Started<'_> {
    /// Writes the session's first entry.
    pub(super) fn write_first(&self, journal: &mut dyn Journal) -> Result<(), Refusal> {
        let rules = match self.rule_file {
            // Recovery after a crash goes by these very rules, so their text is kept.
            Some(bytes) => Some(self.objects.put(bytes).map_err(|error| begin::bad_store(&causes(&error)))?),
            None => None,
        };
        let (root, outer_roots) = begin::stored_roots(self.roots);
        let event = Event::Session {
            command: "watch".to_owned(),
            pid: platform::process::own_pid(),
            root,
            outer_roots,
            options: journal::Options {
                lock_deps: self.asked.lock_deps,
                allow_only: self.asked.allow_only.clone(),
                contest_limit: self.contest_limit,
                max_file_bytes: self.args.max_file_bytes,
            },
            rules,
            backend: self.backend.to_owned(),
        };
        begin::write_first(journal, self.clock, &event)
    }
}

/// Puts right what the interrupted run `last` left, in the name of a session that goes by its rules and never ends: only
/// a baseline of our own settles it.
pub(super) fn put_right(
    ground: &mut Ground,
    last: &SessionInfo,
    replayed: &Replayed,
    journal: &mut dyn Journal,
    (objects, quarantine): (&Objects, &Quarantine),
    backend: &str,
    clock: &dyn Clock,
) -> Result<(Recovered, Assembled), Refusal> {
    let event = Event::Session {
        command: "watch".to_owned(),
        pid: platform::process::own_pid(),
        root: last.root.clone(),
        outer_roots: last.outer_roots.clone(),
        options: last.options.clone(),
        rules: last.rules,
        backend: backend.to_owned(),
    };
    begin::write_first(journal, clock, &event)?;
    begin::recover(ground, last, replayed, journal, (objects, quarantine), clock)
}

/// What the last run covered, if it ended properly, beside what this one does by `asked` and its rule file.
pub(super) fn covered(
    ground: &Ground,
    replayed: &Replayed,
    objects: &Objects,
    (asked, rules): (&Asked, Option<&[u8]>),
) -> Covered {
    let Some(last) = &replayed.sealed_session else { return Covered::Same };
    let options = &last.options;
    let same_options = options.lock_deps == asked.lock_deps && options.allow_only == asked.allow_only;
    if same_options && last.rules == rules.map(Digest::of) {
        return Covered::Same;
    }
    // Its rule file may be none by now, or lost: then whatever it did not know counts as changed.
    begin::rules_of(ground, last, objects)
        .map_or(Covered::Unknown, |Assembled { rules, roots, .. }| Covered::By(Box::new(rules), roots))
}
