//! What `keep doctor` says of what was measured: which promise is kept here, and what would raise it.
//!
//! Promise: pure; a yes stands only where something was tried and looked at, and where nothing can be tried there is
//! neither yes nor no.

mod finding;
mod privilege;
mod promises;
mod trusted;
mod worker;

use platform::confine::Support;
use platform::machine::{FileSystem, Kind, Limit, Setting};
use platform::powers::{Power, Standing};
use platform::trial::{Facility, Trial};
use serde_json::{Value, json};

use crate::gate::worker::Confinement;
use crate::text::escaped;
use crate::trust::{Fit, Trusted};

use finding::{Area, Finding, finding};
use promises::{limit_finding, trials};

use super::paint::Paint;

/// Name and version of the JSON form.
const SCHEMA: &str = "keepwatch.doctor.v1";

/// All that was measured.
pub struct Measured {
    /// Name and release of the kernel.
    pub kernel: String,
    /// Each backend's name, strongest first, and why it does not work.
    pub backends: Vec<(&'static str, Result<(), String>)>,
    /// Limits, by the backend they concern.
    pub limits: Vec<(&'static str, Limit)>,
    /// Settings of the kernel, by what they keep a program from; `None` where this kernel lacks one.
    pub settings: Vec<(Setting, Option<u64>)>,
    /// Where the privilege is from that this was started with.
    pub standing: Standing,
    /// What was tried with it.
    pub powers: Vec<(Power, Trial)>,
    /// Whether opens in the tree were held as `--hold` does it.
    pub hold: Result<(), String>,
    /// Whether a guardian was made and was confined.
    pub guardian: Result<(), String>,
    /// What there is to confine it with.
    pub means: Support,
    /// The programs the person trusts, and how each entry fits, or why they cannot be read.
    pub trusted: Result<Vec<(Trusted, Fit)>, String>,
    /// The tree.
    pub tree: Ground,
    /// The state folder, or the one it would be made in.
    pub state: Ground,
    /// Whether the state folder can be used: what there is, or why not.
    pub state_folder: Result<&'static str, String>,
    /// Whether things can be moved from the one to the other.
    pub on_one_file_system: bool,
    /// What a process can confine itself by.
    pub confinement: OwnConfinement,
    /// What is in force for a files worker that was started for this, or why it did not start.
    pub worker: Result<Confinement, String>,
    /// The notifier's program, or why there is none.
    pub notifier: Result<String, String>,
    /// Whether standard input is a terminal.
    pub has_terminal: bool,
    /// The terminal's name if programs can type into it.
    pub scriptable: Option<&'static str>,
}

/// The name of what a process can confine itself by, and what was found of it, or why it cannot be had.
pub type OwnConfinement = (&'static str, Result<String, String>);

/// What was measured of one folder.
pub struct Ground {
    /// Its path: for people, and for JSON.
    pub path: (String, String),
    /// Its file system, or why that is not known.
    pub file_system: Result<FileSystem, String>,
    /// What was tried there, or why nothing could be.
    pub trials: Result<Vec<(Facility, Trial)>, String>,
}

impl Measured {
    /// The backend that a watch takes without being told.
    fn chosen(&self) -> Option<&'static str> {
        self.backends.iter().find(|(_, probe)| probe.is_ok()).map(|(name, _)| *name)
    }

    /// The JSON form, described in `docs/reports.md`.
    pub fn to_json(&self) -> Value {
        let file_system = |ground: &Ground| ground.file_system.as_ref().ok().map(|found| found.name.clone());
        json!({
            "schema": SCHEMA,
            "root": self.tree.path.1,
            "root_file_system": file_system(&self.tree),
            "state": self.state.path.1,
            "state_file_system": file_system(&self.state),
            "kernel": self.kernel,
            "backend": self.chosen(),
            "findings": self.findings().iter().map(Finding::to_json).collect::<Vec<_>>(),
        })
    }

    /// The lines for people.
    pub fn lines(&self, paint: Paint) -> Vec<String> {
        let findings = self.findings();
        let mut lines = vec![format!("keep doctor: {} on {}", self.tree.path.0, escaped(self.kernel.as_bytes()))];
        for area in Area::ALL {
            let of_area: Vec<&Finding> = findings.iter().filter(|finding| finding.area == area).collect();
            if of_area.is_empty() {
                continue;
            }
            lines.push(String::new());
            lines.push(paint.bold(&self.heading(area)));
            lines.extend(of_area.iter().flat_map(|finding| finding.lines(paint)));
        }
        lines
    }

    fn heading(&self, area: Area) -> String {
        let on = |ground: &Ground| match &ground.file_system {
            Ok(found) => format!("{} ({})", ground.path.0, escaped(found.name.as_bytes())),
            Err(_) => ground.path.0.clone(),
        };
        match area {
            Area::Backends => "How changes are learnt of, strongest first".to_owned(),
            Area::Limits => "Limits that can stop that".to_owned(),
            Area::Tree => format!("In the tree: {}", on(&self.tree)),
            Area::State => format!("In the state folder: {}", on(&self.state)),
            Area::Privilege => "What privilege adds: sudo keep watch".to_owned(),
            Area::Trust => "Programs you trust with held opens".to_owned(),
            Area::Worker => "What a files worker of the gate is kept from".to_owned(),
            Area::System => "Around it".to_owned(),
        }
    }

    fn findings(&self) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self.backends.iter().map(|backend| self.backend(backend)).collect();
        findings.extend(self.limits.iter().map(|(backend, limit)| limit_finding(backend, limit)));
        findings.push(self.events());
        findings.extend(trials(&self.tree, Area::Tree));
        findings.push(self.state_folder());
        findings.extend(trials(&self.state, Area::State));
        findings.push(self.one_file_system());
        findings.extend(privilege::findings(self));
        findings.extend(trusted::findings(&self.trusted));
        findings.extend(worker::findings(&self.worker, self.confinement.0));
        findings.extend(self.system());
        findings
    }

    fn backend(&self, (name, probe): &(&'static str, Result<(), String>)) -> Finding {
        let (promise, raise) = match *name {
            "fanotify" => (
                "the kernel tells of each change; a storm of writes to one file is merged",
                "Linux 5.13 or later; in a container, a filter that allows fanotify_init(2) and fanotify_mark(2)",
            ),
            "inotify" => (
                "the kernel tells of each change; a storm of new names can fill its queue, then everything is compared",
                "Linux with inotify, and instances and watches left (limits below)",
            ),
            "fsevents" => (
                "the system tells of changes, and when it has lost some; then everything is compared",
                "a volume that the system keeps events of; polling needs none",
            ),
            "poll" => ("every protected path is compared once an interval; what is undone between two is not seen", ""),
            _ => ("the system tells of each change", ""),
        };
        let taken = (self.chosen() == Some(*name)).then(|| "keep watch takes this one".to_owned());
        Finding {
            works: Some(probe.is_ok()),
            detail: probe.clone().err().or(taken),
            raise: (probe.is_err() && !raise.is_empty()).then(|| raise.to_owned()),
            ..finding(Area::Backends, name, promise)
        }
    }

    fn events(&self) -> Finding {
        let (works, detail) = match &self.tree.file_system {
            Err(reason) => (None, Some(reason.as_str())),
            Ok(found) => match found.kind {
                Kind::Local => (Some(true), None),
                Kind::Layered => (Some(false), Some("a change made underneath raises none; the sweep finds it")),
                Kind::Network => (Some(false), Some("a change of another machine raises none; the sweep finds it")),
                Kind::UserSpace => (Some(false), Some("a change on its other side raises none; the sweep finds it")),
                Kind::Unknown => (None, Some("this file system is not known; the sweep finds what raises none")),
            },
        };
        let detail = detail.map(str::to_owned);
        let raise = (works == Some(false)).then(|| "work in a clone on a file system of this machine's own".to_owned());
        Finding { works, detail, raise, ..finding(Area::Tree, "events", "every change of a file raises an event") }
    }

    fn state_folder(&self) -> Finding {
        let promise = "what was accepted is kept where nobody but this user can write";
        let (works, detail, raise) = match &self.state_folder {
            Ok(there) => (true, (*there).to_owned(), None),
            Err(reason) => (false, reason.clone(), Some("KEEP_STATE_DIR names another place".to_owned())),
        };
        Finding { works: Some(works), detail: Some(detail), raise, ..finding(Area::State, "state_folder", promise) }
    }

    fn one_file_system(&self) -> Finding {
        let promise = "what is too large to copy is moved into quarantine";
        let (detail, raise) = match self.on_one_file_system {
            true => (None, None),
            false => (
                Some("it lies on another file system; such a file stays aside in its own directory".to_owned()),
                Some("KEEP_STATE_DIR names a folder on the tree's file system, outside the tree".to_owned()),
            ),
        };
        Finding { works: Some(self.on_one_file_system), detail, raise, ..finding(Area::State, "moves", promise) }
    }

    fn system(&self) -> Vec<Finding> {
        let scriptable = Finding {
            works: self.scriptable.map(|_| false),
            detail: Some(match self.scriptable {
                Some(name) => format!("a program can type into {name}"),
                None => "no sign of a program that types into it, which proves nothing".to_owned(),
            }),
            raise: self.scriptable.map(|_| "start the watch in a plain terminal window of its own".to_owned()),
            ..finding(Area::System, "typing", "only the person types into this terminal")
        };
        let terminal = Finding {
            works: Some(self.has_terminal),
            raise: (!self.has_terminal).then(|| "do not redirect standard input".to_owned()),
            ..finding(Area::System, "terminal", "questions can be asked here")
        };
        let notifier = Finding {
            works: Some(self.notifier.is_ok()),
            detail: Some(self.notifier.clone().unwrap_or_else(|reason| reason)),
            raise: self.notifier.is_err().then(|| "a desktop, and its notification program in PATH".to_owned()),
            ..finding(Area::System, "notifier", "a question is announced on the desktop, path and rule only")
        };
        let (name, found) = &self.confinement;
        let confinement = Finding {
            works: Some(found.is_ok()),
            detail: Some(found.clone().unwrap_or_else(|reason| reason)),
            raise: found.is_err().then(|| worker::raise(*name == "seatbelt").to_owned()),
            ..finding(Area::System, name, "a process can confine itself to the root; only the gate's workers do")
        };
        let mut all = vec![terminal];
        all.extend(self.has_terminal.then_some(scriptable));
        all.extend(self.settings.iter().map(|(setting, value)| privilege::setting(*setting, *value)));
        all.extend([notifier, confinement]);
        all
    }
}

#[cfg(test)]
mod tests;
