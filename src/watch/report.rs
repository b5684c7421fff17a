//! What happened during a watch, as data, and its JSON form `gantry.cage-watch.v1`.
//!
//! Promise: no content of any file is in it. Fields are only ever added; `docs/reports.md` names them all, and a golden
//! test pins them.

use std::time::SystemTime;

use platform::Access;
use serde_json::{Map, Value, json};

use crate::baseline::ChangeKind;
use crate::digest::Digest;
use crate::journal::{HeldOutcome, Writer, rfc3339};
use crate::rules::Rule;
use crate::rules::assemble::ScopeSource;

use super::lock::Locked;

/// Name and version of the JSON form.
pub const SCHEMA: &str = "gantry.cage-watch.v1";

/// A path in a report: its name, and its bytes where the name cannot carry them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportPath {
    bytes: Vec<u8>,
}

impl ReportPath {
    /// A path by its bytes: relative to the tree, or absolute outside it.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// The name: the text itself where it is UTF-8, else with every other byte as `\xNN`.
    pub fn text(&self) -> String {
        match std::str::from_utf8(&self.bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => crate::text::encode(&self.bytes),
        }
    }

    fn put(&self, object: &mut Map<String, Value>) {
        object.insert("path".into(), self.text().into());
        if std::str::from_utf8(&self.bytes).is_err() {
            let hex: String = self.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            object.insert("path_hex".into(), hex.into());
        }
    }
}

/// One decision.
#[derive(Debug, Clone)]
pub struct Decision {
    /// The path.
    pub path: ReportPath,
    /// The rule that named the change.
    pub rule: Rule,
    /// How it differed.
    pub kind: ChangeKind,
    /// `accepted`, `rejected`, `timed_out`, `auto_restored`, `restored_at_exit`, `restore_failed`.
    pub outcome: &'static str,
    /// Digest of what was there; `None` when nothing was, or nothing that has one.
    pub sha256_after: Option<Digest>,
    /// When the change was first seen.
    pub detected_at: SystemTime,
    /// When it was decided, or restored.
    pub decided_at: SystemTime,
    /// Who did it, if anything is known.
    pub writer: Option<Writer>,
    /// Where the rejected bytes lie.
    pub quarantine: Option<String>,
    /// How many tries the restore took, if more than one or if it failed.
    pub restore_attempts: Option<u32>,
    /// How many further restores of the same contested path this row stands for.
    pub repeats: u32,
}

/// A report-mode change that was kept.
#[derive(Debug, Clone)]
pub struct Kept {
    /// The path.
    pub path: ReportPath,
    /// The rule.
    pub rule: Rule,
    /// How it differed.
    pub kind: ChangeKind,
    /// Digest of what is there.
    pub sha256_after: Option<Digest>,
    /// When it was first seen.
    pub detected_at: SystemTime,
    /// Who did it, if anything is known.
    pub writer: Option<Writer>,
}

/// What held opens of one file by one program came to.
#[derive(Debug, Clone)]
pub struct HeldRow {
    /// The path.
    pub path: ReportPath,
    /// The rule.
    pub rule: Rule,
    /// What it was opened for.
    pub access: Access,
    /// What they came to.
    pub decision: HeldOutcome,
    /// How many they were.
    pub opens: u32,
    /// When the one that stands for them was held.
    pub opened_at: SystemTime,
    /// When it was decided.
    pub decided_at: SystemTime,
    /// Who.
    pub writer: Writer,
}

/// An interrupted earlier run that was put right before this one.
#[derive(Debug, Clone, Default)]
pub struct Recovery {
    /// The session whose accepted state was restored.
    pub session: String,
    /// Paths put back.
    pub restored: Vec<ReportPath>,
    /// Report-mode paths that differed and were kept.
    pub kept: Vec<ReportPath>,
    /// Paths that could not be put back.
    pub failed: Vec<ReportPath>,
}

/// All that a watch has to say at its end.
#[derive(Debug, Clone)]
pub struct WatchReport {
    /// The tree, by its path.
    pub root: ReportPath,
    /// The exit code.
    pub exit_code: u8,
    /// How many files were protected at the start.
    pub protected_files: usize,
    /// Name of the backend.
    pub backend: String,
    /// When watching began.
    pub started_at: SystemTime,
    /// When it ended.
    pub ended_at: SystemTime,
    /// Decisions, in order.
    pub decisions: Vec<Decision>,
    /// Report-mode changes.
    pub kept: Vec<Kept>,
    /// Whether dependencies were frozen.
    pub frozen: bool,
    /// The allowed area, if there is one.
    pub scope: Option<Vec<ScopeSource>>,
    /// Paths restored without asking.
    pub contested: Vec<ReportPath>,
    /// Opens that were held, and what they came to.
    pub held: Vec<HeldRow>,
    /// Protected files to which another name was made.
    pub linked: Vec<ReportPath>,
    /// How much was locked at the start; `None` if nothing was to be.
    pub locked: Option<Locked>,
    /// How often everything had to be compared, by cause.
    pub lost: Vec<(String, u64)>,
    /// The signal that ended the watch.
    pub trapped_signal: Option<&'static str>,
    /// The session log, by its path.
    pub session_log: ReportPath,
    /// What was recovered at the start.
    pub recovery: Option<Recovery>,
    /// What this watch cannot see or hold, a sentence each.
    pub limits: Vec<String>,
}

impl WatchReport {
    /// Whether something was restored, or should have been.
    pub fn restored_something(&self) -> bool {
        self.decisions.iter().any(|decision| decision.outcome != "accepted")
            || self
                .recovery
                .as_ref()
                .is_some_and(|recovery| !recovery.restored.is_empty() || !recovery.failed.is_empty())
    }

    /// The JSON form.
    pub fn to_json(&self) -> Value {
        let texts = |paths: &[ReportPath]| paths.iter().map(ReportPath::text).collect::<Vec<_>>();
        json!({
            "schema": SCHEMA,
            "root": self.root.text(),
            "exit_code": self.exit_code,
            "protected_files": self.protected_files,
            "backend": self.backend,
            "started_at": rfc3339(self.started_at),
            "ended_at": rfc3339(self.ended_at),
            "decisions": self.decisions.iter().map(Decision::to_json).collect::<Vec<_>>(),
            "kept": self.kept.iter().map(Kept::to_json).collect::<Vec<_>>(),
            "dependencies": if self.frozen { "revert" } else { "report" },
            "scope": self.scope.as_ref().map(|globs| globs.iter().map(|each| each.glob.clone()).collect::<Vec<_>>()),
            "scope_sources": self.scope.as_ref().map(|globs| {
                globs.iter().map(|each| json!({"glob": each.glob, "source": each.source})).collect::<Vec<_>>()
            }),
            "contested": texts(&self.contested),
            "held": self.held.iter().map(HeldRow::to_json).collect::<Vec<_>>(),
            "linked": texts(&self.linked),
            "locked": self.locked.map(|locked| json!({"files": locked.files, "folders": locked.folders})),
            "lost": self.lost.iter().map(|(cause, times)| (cause.clone(), json!(times))).collect::<Map<_, _>>(),
            "trapped_signal": self.trapped_signal,
            "session_log": self.session_log.text(),
            "recovery": self.recovery.as_ref().map(Recovery::to_json),
            "limits": self.limits,
        })
    }
}

impl Recovery {
    /// The JSON form, the same in every report.
    pub fn to_json(&self) -> Value {
        let texts = |paths: &[ReportPath]| paths.iter().map(ReportPath::text).collect::<Vec<_>>();
        json!({
            "journal_session": self.session,
            "restored": texts(&self.restored),
            "kept": texts(&self.kept),
            "failed": texts(&self.failed),
        })
    }
}

impl Decision {
    fn to_json(&self) -> Value {
        let mut row = Map::new();
        self.path.put(&mut row);
        row.insert("rule".into(), self.rule.name().into());
        row.insert("kind".into(), self.kind.name().into());
        row.insert("outcome".into(), self.outcome.into());
        row.insert("sha256_after".into(), self.sha256_after.map(|digest| digest.to_string()).into());
        row.insert("detected_at".into(), rfc3339(self.detected_at).into());
        row.insert("decided_at".into(), rfc3339(self.decided_at).into());
        row.insert("writer".into(), json!(self.writer));
        row.insert("quarantine".into(), self.quarantine.clone().into());
        if let Some(attempts) = self.restore_attempts {
            row.insert("restore_attempts".into(), attempts.into());
        }
        if self.repeats > 0 {
            row.insert("repeats".into(), self.repeats.into());
        }
        Value::Object(row)
    }
}

impl HeldRow {
    fn to_json(&self) -> Value {
        let mut row = Map::new();
        self.path.put(&mut row);
        row.insert("rule".into(), self.rule.name().into());
        row.insert("access".into(), self.access.name().into());
        row.insert("decision".into(), self.decision.name().into());
        row.insert("opens".into(), self.opens.into());
        row.insert("opened_at".into(), rfc3339(self.opened_at).into());
        row.insert("decided_at".into(), rfc3339(self.decided_at).into());
        row.insert("writer".into(), json!(self.writer));
        Value::Object(row)
    }
}

impl Kept {
    fn to_json(&self) -> Value {
        let mut row = Map::new();
        self.path.put(&mut row);
        row.insert("rule".into(), self.rule.name().into());
        row.insert("kind".into(), self.kind.name().into());
        row.insert("sha256_after".into(), self.sha256_after.map(|digest| digest.to_string()).into());
        row.insert("detected_at".into(), rfc3339(self.detected_at).into());
        row.insert("writer".into(), json!(self.writer));
        Value::Object(row)
    }
}
