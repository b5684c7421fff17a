//! `keep grants`: what was answered for good and for the session, listed and taken back.
//!
//! Promise: nothing here grants anything. Taking back works without a gate, and a gate that runs heeds it at its next
//! question. Limit: what is granted for the session is known to the gate only; without one there is no session.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use platform::environment::Environment;
use platform::{Clock, Root, SystemClock, local_socket};
use serde_json::{Map, Value, json};

use crate::gate::audit::{Audit, AuditEvent};
use crate::gate::control::{Control, ControlError, SOCKET};
use crate::gate::grants::{self, GrantFile, GrantsError};
use crate::gate::kind::Kind;
use crate::gate::pattern::Grant;
use crate::gate::recall::Recall;
use crate::gate::wire::{FromClient, GrantInfo};
use crate::text::{escaped, json_line};
use crate::watch::report::ReportPath;

use super::args::{GrantsArgs, GrantsCommand};
use super::exit::{Exit, Refusal, RefusalCode, causes};
use super::ground::Ground;

/// Name and version of what `--json` prints.
const SCHEMA: &str = "keepwatch.grants.v1";

/// How long a gate may take to answer; it answers whatever it is doing, unless it is stopped.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs the command and returns the exit code.
pub fn run(args: &GrantsArgs, environment: &Environment) -> u8 {
    let done = Site::find(args.root.as_deref(), environment).and_then(|site| match &args.command {
        None | Some(GrantsCommand::List) => list(&site, args.json),
        Some(GrantsCommand::Revoke { pattern, kind }) => revoke(&site, pattern, *kind, args.json),
        Some(GrantsCommand::ForgetSession) => forget_session(&site, args.json),
    });
    match done {
        Ok(exit) => exit.code(),
        Err(refusal) => super::refuse(&refusal, args.json),
    }
}

/// The root the command is about, and its control folder, if a gate was ever held for it.
struct Site {
    root: Vec<u8>,
    control: Option<Control>,
}

impl Site {
    /// The named directory; else the nearest at or above the current one that has a control folder, or the current one.
    fn find(root: Option<&Path>, environment: &Environment) -> Result<Self, Refusal> {
        let ground = Ground::plain(root, environment)?;
        let existing =
            |root: &Root| Control::existing(&ground.state_top, root, ground.owner).map_err(|error| bad_control(&error));
        let bytes = |root: &Root| root.path().as_os_str().as_bytes().to_vec();
        let control = existing(&ground.tree)?;
        if control.is_none() && root.is_none() {
            for above in ground.tree.path().ancestors().skip(1) {
                // One that may not be opened is nobody's root.
                let Ok(above) = Root::open(above) else { continue };
                if let Some(found) = existing(&above)? {
                    return Ok(Self { root: bytes(&above), control: Some(found) });
                }
            }
        }
        Ok(Self { root: bytes(&ground.tree), control })
    }

    fn shown(&self) -> String {
        escaped(&self.root)
    }

    fn json(&self, fields: Value) -> String {
        let mut object = Map::new();
        object.insert("schema".into(), SCHEMA.into());
        object.insert("root".into(), ReportPath::new(self.root.clone()).text().into());
        if let Value::Object(fields) = fields {
            object.extend(fields);
        }
        json_line(&Value::Object(object))
    }

    /// What is granted for the session, after the request was heeded; `None` if no gate runs.
    fn session(&self, request: &FromClient) -> Result<Option<Vec<GrantInfo>>, Refusal> {
        let Some(control) = &self.control else { return Ok(None) };
        let failed = |error: &dyn std::error::Error| bad_gate(&causes(error));
        let connected = local_socket::connect(control.dir(), control.path(), SOCKET).map_err(|error| failed(&error))?;
        let Some(gate) = connected else { return Ok(None) };
        gate.limit_reads(PATIENCE).and_then(|()| gate.limit_writes(PATIENCE)).map_err(|error| failed(&error))?;
        grants::ask(&mut &gate, &mut &gate, request).map(Some).map_err(|error| failed(&error))
    }
}

fn list(site: &Site, json: bool) -> Result<Exit, Refusal> {
    let (remembered, fault) = match &site.control {
        Some(control) => {
            let reading = open(control)?.read();
            (reading.grants.iter().map(Grant::info).collect(), reading.fault)
        }
        None => (Vec::new(), None),
    };
    let session = site.session(&FromClient::ListGrants)?;
    let mut remembered: Vec<GrantInfo> = remembered;
    remembered.sort_unstable();
    if let Some(fault) = &fault {
        super::say(&format!("keep grants: {fault}"));
    }
    let exit = if fault.is_some() { Exit::Broke } else { Exit::Clean };
    if json {
        super::print_line(&site.json(json!({"remembered": remembered, "session": session, "fault": fault})));
        return Ok(exit);
    }
    if fault.is_none() && remembered.is_empty() && session.iter().flatten().next().is_none() {
        super::say(&format!("keep grants: nothing is granted in {}", site.shown()));
    }
    remembered.iter().for_each(|grant| super::print_line(&row(grant, Recall::Always)));
    session.iter().flatten().for_each(|grant| super::print_line(&row(grant, Recall::Session)));
    Ok(exit)
}

fn row(grant: &GrantInfo, recall: Recall) -> String {
    let (kind, target) = (escaped(grant.kind.as_bytes()), escaped(grant.target.as_bytes()));
    format!("{:<7}  {kind:<6}  {target}", recall.name())
}

fn revoke(site: &Site, pattern: &str, kind: Option<Kind>, json: bool) -> Result<Exit, Refusal> {
    // From here on a gate that runs knows what is granted, and writes down what is no longer.
    let before = site.session(&FromClient::ListGrants);
    let revoked = match &site.control {
        Some(control) => match open(control)?.revoke(pattern, kind) {
            Ok(revoked) => revoked,
            Err(error) => {
                super::say(&format!("keep grants: nothing was revoked: {}", causes(&error)));
                return Ok(Exit::Broke);
            }
        },
        None => Vec::new(),
    };
    let infos: Vec<GrantInfo> = revoked.iter().map(Grant::info).collect();
    if json {
        super::print_line(&site.json(json!({"revoked": infos})));
    }
    let Some(control) = site.control.as_ref().filter(|_| !infos.is_empty()) else {
        super::say(&missing(site, before.ok().flatten(), pattern, kind));
        return Ok(Exit::Broke);
    };
    for grant in &infos {
        let (kind, target) = (escaped(grant.kind.as_bytes()), escaped(grant.target.as_bytes()));
        super::say(&format!("keep grants: {kind} {target} is no longer granted"));
    }
    // It is taken back by now, and stays so whatever comes of this.
    let has_gate = matches!(before, Ok(Some(_)));
    if has_gate && matches!(site.session(&FromClient::ListGrants), Ok(Some(_))) {
        return Ok(Exit::Clean);
    }
    match write_down(control, infos) {
        Ok(()) => Ok(Exit::Clean),
        Err(why) => {
            super::say(&format!("keep grants: that is not in the audit: {why}"));
            Ok(Exit::Broke)
        }
    }
}

/// Why nothing was revoked; `session` is what is granted for the session of a gate that runs.
fn missing(site: &Site, session: Option<Vec<GrantInfo>>, pattern: &str, kind: Option<Kind>) -> String {
    let shown = escaped(pattern.as_bytes());
    let is_meant =
        |grant: &GrantInfo| grant.target == pattern && kind.is_none_or(|kind| kind.name() == grant.kind.as_str());
    // A gate that does not answer leaves it at the shorter sentence.
    if session.iter().flatten().any(is_meant) {
        return format!(
            "keep grants: {shown} is granted for the session only; keep grants forget-session takes that back"
        );
    }
    format!("keep grants: {shown} is not among what is granted for good in {}", site.shown())
}

fn write_down(control: &Control, revoked: Vec<GrantInfo>) -> Result<(), String> {
    let mut audit = Audit::open(control).map_err(|error| causes(&error))?;
    for grant in revoked {
        let event = AuditEvent::Revoked { grant, recall: Recall::Always.name().to_owned() };
        audit.append(&event, SystemClock.wall()).map_err(|error| causes(&error))?;
    }
    Ok(())
}

fn forget_session(site: &Site, json: bool) -> Result<Exit, Refusal> {
    let left = site.session(&FromClient::ForgetSession)?;
    match &left {
        None => {
            super::say(&format!("keep grants: no gate runs in {}, so nothing is granted for a session", site.shown()))
        }
        Some(_) => super::say("keep grants: nothing is granted for the session any more"),
    }
    if json {
        super::print_line(&site.json(json!({"session": left})));
    }
    Ok(Exit::Clean)
}

fn open(control: &Control) -> Result<GrantFile, Refusal> {
    GrantFile::open(control).map_err(|error: GrantsError| {
        Refusal::new(RefusalCode::Journal, causes(&error), "look at the control folder that keep gate names")
    })
}

fn bad_control(error: &ControlError) -> Refusal {
    let (code, hint) = match error {
        ControlError::Folder(_) => (
            RefusalCode::Journal,
            "the control folder must be a directory of your own that nobody else can write; KEEP_STATE_DIR chooses another place",
        ),
        _ => (RefusalCode::Root, "name the directory that the gate was started for: keep grants --root DIR"),
    };
    Refusal::new(code, causes(error), hint)
}

fn bad_gate(reason: &str) -> Refusal {
    Refusal::new(RefusalCode::Active, reason, "look at the terminal of keep gate, or end it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_its_words_in_columns_and_draws_nothing() {
        let grant = |kind: &str, target: &str| GrantInfo { kind: kind.into(), target: target.into() };
        assert_eq!(row(&grant("file", "notes/*"), Recall::Always), "always   file    notes/*");
        assert_eq!(row(&grant("memory", "a.md"), Recall::Session), "session  memory  a.md");
        // What a gate says is not what we have checked.
        let forged = row(&grant("\u{1b}[2J", "a\n\u{202e}"), Recall::Session);
        assert!(!forged.chars().any(crate::text::is_hidden), "{forged}");
    }
}
