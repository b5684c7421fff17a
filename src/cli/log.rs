//! `keep log`: reads the journal, whether a watch runs or not, and changes nothing.
//!
//! Promise: an entry is printed only if the chain holds up to it; where it breaks, that is said and the exit code is 1.
//! Limit: what a running watch has not finished writing is not shown yet.

use std::io::{BufWriter, Write};

use platform::environment::Environment;
use platform::notify::{NOTIFIER, find};
use platform::{Clock as _, Notification, Notifier, SystemClock};
use serde_json::{Value, json};

use crate::journal::{self, JournalError, Seen, Verified, time_meant};
use crate::state::StateFolder;
use crate::text::{escaped, json_line};
use crate::watch::lines::counted;

use super::args::{Color, LogArgs};
use super::begin::bad_journal;
use super::exit::{Exit, Refusal, causes};
use super::ground::Ground;
use super::log_line::line;
use super::log_notice::Counts;
use super::paint::{Paint, wants_colour};

/// Name and version of what `--verify --json` prints.
const SCHEMA: &str = "keepwatch.log-verify.v1";

/// Runs the command and returns the exit code.
pub fn run(args: &LogArgs, color: Color, environment: &Environment) -> u8 {
    match log(args, color, environment) {
        Ok(exit) => exit.code(),
        Err(refusal) => super::refuse(&refusal, args.json),
    }
}

fn log(args: &LogArgs, color: Color, environment: &Environment) -> Result<Exit, Refusal> {
    let ground = Ground::find(args.path.as_deref(), environment)?;
    let Some(state) = ground.existing_state()? else {
        super::say(&format!("keep log: no watch has kept a journal of {} yet", ground.shown()));
        if args.verify {
            print_verified(args.json, &Ok(Verified::default()));
        }
        return Ok(Exit::Clean);
    };
    if args.verify {
        return verify(&state, &ground, args.json);
    }
    // That it means a time was seen when it was read.
    let since = args.since.as_deref().and_then(|text| time_meant(text, SystemClock.wall()));
    let paint = Paint { is_on: !args.json && wants_colour(color, environment, super::is_terminal()) };
    let mut output = BufWriter::new(std::io::stdout().lock());
    // A reader that has gone away (`| head`) wants no more; the chain is read to its end all the same.
    let mut is_read = true;
    let mut found = false;
    let mut counts = Counts::default();
    let read = journal::read(state.dir(), ground.owner, |seen| {
        let of_session = args.session.as_deref().is_none_or(|id| is_of(&seen, id));
        found |= of_session;
        // Texts of the same form sort by time; an entry that cannot be read may be of any.
        let at = seen.entry.as_ref().ok().map(|entry| entry.at.as_str());
        let wanted = of_session && since.as_deref().zip(at).is_none_or(|(since, at)| at >= since);
        if let (true, Ok(entry)) = (wanted, &seen.entry) {
            counts.add(&entry.event);
        }
        let shown = if !wanted || !is_read {
            None
        } else if args.json {
            as_json(seen.line)
        } else {
            line(&seen, paint)
        };
        if let Some(shown) = shown {
            is_read = writeln!(output, "{shown}").is_ok();
        }
    });
    // Before anything is said on the other stream, so that the two stay in order on a terminal.
    let _ = output.flush();
    drop(output);
    if let (false, Some(id), Ok(_)) = (found, &args.session, &read) {
        super::say(&format!("keep log: no entry is of session {}", escaped(id.as_bytes())));
    }
    if args.notify
        && let Some(notification) =
            counts.notification(&ground.shown(), read.as_ref().is_err_and(|error| !is_refusal(error)))
    {
        tell(&ground, environment, notification);
    }
    match &read {
        Ok(_) => Ok(Exit::Clean),
        Err(error) if is_refusal(error) => Err(bad_journal(error)),
        Err(error) => {
            super::say(&format!("keep log: {}; nothing after it can be trusted", causes(error)));
            Ok(Exit::Broke)
        }
    }
}

fn verify(state: &StateFolder, ground: &Ground, json: bool) -> Result<Exit, Refusal> {
    let verified = journal::verify(state.dir(), ground.owner);
    if let Err(error) = &verified
        && is_refusal(error)
    {
        return Err(bad_journal(error));
    }
    print_verified(json, &verified);
    Ok(if verified.is_ok() { Exit::Clean } else { Exit::Broke })
}

/// Shows it, and waits until it is shown. Without a desktop nobody is told, and that is said.
fn tell(ground: &Ground, environment: &Environment, notification: Notification) {
    let search = environment.bytes("PATH").filter(|_| NOTIFIER.has_desktop(&|name| environment.is_set(name)));
    // A program of the repository's must not be run in the notifier's name.
    let program = search.and_then(|search| find(NOTIFIER, search, &[ground.tree.path().to_path_buf()]));
    match program.map(|program| Notifier::start(Some((NOTIFIER, program)))) {
        Some(Ok(notifier)) => {
            notifier.notify(notification);
            notifier.finish();
        }
        Some(Err(_)) | None => super::say("keep log: there is no desktop to be told, or no program for it"),
    }
}

/// Whether an error says that the journal could not be looked at, rather than what is wrong in it.
fn is_refusal(error: &JournalError) -> bool {
    matches!(error, JournalError::Open(_) | JournalError::NotOurs { .. })
}

/// Whether an entry is of the session: by its whole id, or by the process id that ends it.
fn is_of(seen: &Seen<'_>, id: &str) -> bool {
    let Ok(entry) = &seen.entry else { return false };
    entry.session == id || entry.session.rsplit_once('-').is_some_and(|(_, pid)| pid == id)
}

/// The entry as it stands in the journal. A line that is no JSON cannot be shown as such.
fn as_json(line: &[u8]) -> Option<String> {
    serde_json::from_slice::<Value>(line).ok().map(|value| json_line(&value))
}

fn print_verified(json: bool, verified: &Result<Verified, JournalError>) {
    let line = if json { json_line(&verified_json(verified)) } else { verified_line(verified) };
    super::print_line(&line);
}

fn verified_line(verified: &Result<Verified, JournalError>) -> String {
    let verified = match verified {
        Ok(verified) => verified,
        Err(error) => return format!("the chain does not hold: {}", causes(error)),
    };
    let entries = if verified.entries == 1 { "1 entry".to_owned() } else { format!("{} entries", verified.entries) };
    let mut line = format!("{entries} in {}, the chain holds", counted(verified.files, "file"));
    if verified.first > 1 {
        line.push_str(&format!("; it begins with entry {}: older files were taken away", verified.first));
    }
    if verified.torn_bytes > 0 {
        line.push_str(&format!(
            "; {} bytes at the end are not finished: a watch is writing them, or the next start cuts them off",
            verified.torn_bytes
        ));
    }
    line
}

fn verified_json(verified: &Result<Verified, JournalError>) -> Value {
    let (sound, broken) = match verified {
        Ok(verified) => (*verified, None),
        Err(JournalError::Chain { file, line, reason }) => {
            (Verified::default(), Some(json!({"file": file, "line": line, "reason": reason})))
        }
        Err(error) => (Verified::default(), Some(json!({"file": null, "line": null, "reason": causes(error)}))),
    };
    json!({
        "schema": SCHEMA,
        "holds": broken.is_none(),
        "files": sound.files,
        "entries": sound.entries,
        "first": sound.first,
        "torn_bytes": sound.torn_bytes,
        "broken": broken,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_is_counted_and_what_is_missing_is_said() {
        let whole = Verified { files: 1, entries: 7, first: 1, torn_bytes: 0 };
        assert_eq!(verified_line(&Ok(whole)), "7 entries in 1 file, the chain holds");
        let cut = Verified { files: 2, entries: 1, first: 40, torn_bytes: 12 };
        let line = verified_line(&Ok(cut));
        assert!(line.starts_with("1 entry in 2 files, the chain holds"), "{line}");
        assert!(line.contains("begins with entry 40") && line.contains("12 bytes at the end"), "{line}");
    }

    #[test]
    fn what_breaks_is_named_by_file_and_line() {
        let broken = Err(JournalError::Chain { file: "journal.jsonl".into(), line: 5, reason: "it was altered" });
        assert_eq!(verified_line(&broken), "the chain does not hold: journal.jsonl, line 5: it was altered");
        let value = verified_json(&broken);
        assert_eq!((&value["holds"], &value["broken"]["line"]), (&json!(false), &json!(5)));
    }

    #[test]
    fn a_line_that_is_no_json_is_not_passed_on() {
        assert_eq!(as_json(b"\x1b[2J"), None);
        assert_eq!(as_json("{\"a\":\"\u{202e}\",\"b\":1}".as_bytes()).as_deref(), Some("{\"a\":\"\\u202e\",\"b\":1}"));
    }
}
