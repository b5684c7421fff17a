//! `keep recover`: does now what the next start would do after a run that did not end properly.
//!
//! Promise: it is a session of its own in the journal. If something could not be put back, that session does not end
//! properly, so that the next start tries again. Limit: it asks nobody; whatever differs from what was accepted goes to
//! quarantine.

use std::sync::Arc;

use platform::environment::Environment;
use platform::{Clock, SystemClock};
use serde_json::json;

use crate::journal::{Event, FileJournal, Journal, rfc3339, session_id};
use crate::text::{escaped, json_line};
use crate::watch::recovery::Recovered;
use crate::watch::report::Recovery;

use super::args::RecoverArgs;
use super::begin;
use super::exit::{Exit, Refusal};
use super::ground::Ground;

/// Name and version of what `--json` prints.
const SCHEMA: &str = "keepwatch.recover.v1";

/// Runs the command and returns the exit code.
pub fn run(args: &RecoverArgs, environment: &Environment) -> u8 {
    match recover(args, environment) {
        Ok(exit) => exit.code(),
        Err(Stop::Refused(refusal)) => super::refuse(&refusal, args.json),
        Err(Stop::Broke(refusal)) => {
            // Something may have been put back before; the journal has it, and the next start goes on from there.
            super::say(&format!("keep recover: broke off: {}; the next start goes on from here", refusal.message));
            Exit::Broke.code()
        }
    }
}

enum Stop {
    /// Before anything was done.
    Refused(Refusal),
    /// Midway.
    Broke(Refusal),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Stop::Refused(refusal)
    }
}

fn recover(args: &RecoverArgs, environment: &Environment) -> Result<Exit, Stop> {
    let (mut ground, guardian) = Ground::find_with(args.path.as_deref(), environment, |_, user| {
        super::guarded::for_flags(user.unwrap_or(environment.euid))
    })?;
    ground.guardian = guardian;
    let nothing = |ground: &Ground, why: &str| {
        super::say(&format!("keep recover: nothing to recover in {}: {why}", ground.shown()));
        print(args.json, ground, Exit::Clean, None);
        Ok(Exit::Clean)
    };
    let Some(state) = ground.existing_state()? else { return nothing(&ground, "no watch has run there") };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let _lock = begin::lock(&state, &ground, "keep recover", &*clock)?;
    let session = session_id(clock.wall(), platform::process::own_pid());
    let opened = FileJournal::open(state.dir(), ground.owner, &session).map_err(|error| begin::bad_journal(&error))?;
    let (mut journal, replayed) = (opened.journal, opened.replayed);
    let Some(last) = &replayed.sealed_session else { return nothing(&ground, "no watch got as far as a baseline") };
    if replayed.ended_properly && replayed.flagged.is_empty() {
        return nothing(&ground, "the last run ended properly");
    }
    let objects = begin::objects(&state)?;
    let quarantine = begin::quarantine(&state)?;
    let earlier = begin::rules_of(&ground, last, &objects)?;
    let (root, outer_roots) = begin::stored_roots(&earlier.roots);
    let first = Event::Session {
        command: "recover".to_owned(),
        pid: platform::process::own_pid(),
        root,
        outer_roots,
        options: last.options.clone(),
        rules: last.rules,
        backend: "none".to_owned(),
    };
    begin::write_first(&mut journal, &*clock, &first)?;
    let done = if replayed.ended_properly {
        // All is as it was accepted; only flags were left.
        let flags = ground.flags();
        begin::unlock(flags.as_deref(), &earlier.roots, &replayed.flagged, &mut journal, &*clock)
            .map(|left| Recovered { left, ..Recovered::default() })
    } else {
        begin::recover(&mut ground, last, &replayed, &mut journal, (&objects, &quarantine), &*clock)
            .map(|(done, _)| done)
    }
    .map_err(Stop::Broke)?;
    let is_clean = done.recovery.restored.is_empty() && done.recovery.failed.is_empty() && done.left.still.is_empty();
    let exit = if is_clean { Exit::Clean } else { Exit::Restored };
    if done.recovery.failed.is_empty() {
        let ended = Event::Ended { signal: None, exit_code: exit.code() };
        let written = journal.append(&rfc3339(clock.wall()), &ended).and_then(|()| journal.commit());
        written.map_err(|error| Stop::Broke(begin::bad_journal(&error)))?;
    }
    say(&done, replayed.ended_properly);
    print(args.json, &ground, exit, Some(&done));
    Ok(exit)
}

fn say(done: &Recovered, ended_properly: bool) {
    done.left.lines("keep recover").iter().for_each(|line| super::say(line));
    for line in &done.lines {
        // The sentences are those of a watch's start.
        super::say(&line.replacen("keep watch: ", "keep recover: ", 1));
    }
    match begin::recovery_line(done, "keep recover") {
        Some(line) => super::say(&line),
        None if done.recovery.failed.is_empty() && !ended_properly => {
            super::say("keep recover: the last run did not end properly; nothing differs from what was accepted");
        }
        None => {}
    }
    if !done.recovery.kept.is_empty() {
        let names: Vec<String> = done.recovery.kept.iter().map(|path| escaped(path.text().as_bytes())).collect();
        super::say(&format!("keep recover: changed and left as they are (report mode): {}", names.join(", ")));
    }
    if !done.recovery.failed.is_empty() {
        super::say("keep recover: what is NOT restored is tried again by the next start");
    }
}

fn print(json: bool, ground: &Ground, exit: Exit, done: Option<&Recovered>) {
    // None of a session that ended properly.
    let recovery = done.map(|done| &done.recovery).filter(|recovery| !recovery.session.is_empty());
    let still: Vec<&String> = done.iter().flat_map(|done| &done.left.still).map(|(stored, _)| stored).collect();
    if json {
        let value = json!({
            "schema": SCHEMA,
            "root": ground.text(),
            "exit_code": exit.code(),
            "recovery": recovery.map(Recovery::to_json),
            "unlocked": done.map(|done| &done.left.off),
            "locked": still,
        });
        super::print_line(&json_line(&value));
    } else {
        for path in recovery.iter().flat_map(|recovery| &recovery.restored) {
            super::print_line(&escaped(path.text().as_bytes()));
        }
    }
}
