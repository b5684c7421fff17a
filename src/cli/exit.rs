//! Exit codes, and why a command did not start: one table for all commands.

use platform::FsError;

use crate::text;

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Nothing was restored; the command did what it was asked.
    Clean,
    /// The command itself broke midway.
    Broke,
    /// It could not start.
    CannotStart,
    /// Something was restored.
    Restored,
}

impl Exit {
    /// The process's exit code.
    pub const fn code(self) -> u8 {
        match self {
            Exit::Clean => 0,
            Exit::Broke => 1,
            Exit::CannotStart => 2,
            Exit::Restored => 3,
        }
    }
}

/// Why a command did not start. Every one exits with [`Exit::CannotStart`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Stable name of the reason.
    pub code: RefusalCode,
    /// One line: what failed on what.
    pub message: String,
    /// What the person can do about it.
    pub hints: Vec<String>,
}

/// Stable names of the reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalCode {
    /// Standard input is not a terminal.
    NoTty,
    /// A watch or a session cage runs in this root.
    Active,
    /// `.cage.yaml` is invalid.
    ConfigInvalid,
    /// A protected file is over its cap, or the whole set is.
    LimitsExceeded,
    /// The backend asked for does not work here.
    BackendUnavailable,
    /// The journal or the state folder cannot be used.
    Journal,
    /// The directory to work on, or its git directory, cannot be used.
    Root,
    /// Privileges could not be given up.
    Privilege,
    /// What was asked for is not in the quarantine, or cannot be put there.
    Quarantine,
    /// The process that touches files, or another part of the gate, cannot be started as it has to be.
    Gate,
    /// The gate cannot listen for agents.
    Socket,
    /// A collector that was named for what happens is not there, or takes nothing.
    Log,
}

impl RefusalCode {
    /// Every code, for the table in the docs.
    pub const ALL: [RefusalCode; 12] = [
        RefusalCode::NoTty,
        RefusalCode::Active,
        RefusalCode::ConfigInvalid,
        RefusalCode::LimitsExceeded,
        RefusalCode::BackendUnavailable,
        RefusalCode::Journal,
        RefusalCode::Root,
        RefusalCode::Privilege,
        RefusalCode::Quarantine,
        RefusalCode::Gate,
        RefusalCode::Socket,
        RefusalCode::Log,
    ];

    /// The name in messages and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            RefusalCode::NoTty => "GXT_CAGE_WATCH_NO_TTY",
            RefusalCode::Active => "GXT_CAGE_ACTIVE",
            RefusalCode::ConfigInvalid => "GXT_CAGE_CONFIG_INVALID",
            RefusalCode::LimitsExceeded => "GXT_CAGE_LIMITS_EXCEEDED",
            RefusalCode::BackendUnavailable => "GXT_CAGE_BACKEND_UNAVAILABLE",
            RefusalCode::Journal => "GXT_CAGE_JOURNAL",
            RefusalCode::Root => "GXT_CAGE_ROOT",
            RefusalCode::Privilege => "GXT_CAGE_PRIVILEGE",
            RefusalCode::Quarantine => "GXT_CAGE_QUARANTINE",
            RefusalCode::Gate => "GXT_CAGE_GATE",
            RefusalCode::Socket => "GXT_CAGE_SOCKET",
            RefusalCode::Log => "GXT_CAGE_LOG",
        }
    }
}

impl Refusal {
    /// A refusal with one hint.
    pub fn new(code: RefusalCode, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code, message: message.into(), hints: vec![hint.into()] }
    }

    /// The object printed with `--json`.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "status": "failed",
            "error_code": self.code.name(),
            "message": self.message,
            "fix_hints": self.hints,
            "exit_code": Exit::CannotStart.code(),
        })
    }

    /// The lines printed on standard error.
    pub fn lines(&self) -> Vec<String> {
        let first = format!("keep: [{}] {}", self.code.name(), self.message);
        std::iter::once(first).chain(self.hints.iter().map(|hint| format!("  hint: {hint}"))).collect()
    }
}

/// An error with its causes, on one line, safe to print.
pub fn causes(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line.push_str(": ");
        line.push_str(&error.to_string());
        cause = error.source();
    }
    text::escaped(line.as_bytes())
}

impl From<&FsError> for Refusal {
    fn from(error: &FsError) -> Self {
        Self::new(RefusalCode::Root, causes(error), "name a directory you can read: keep watch PATH")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../docs/exit-codes.md");

    #[test]
    fn the_page_has_a_row_for_every_code_and_no_other() {
        let codes = [Exit::Clean, Exit::Broke, Exit::CannotStart, Exit::Restored].map(|exit| exit.code().to_string());
        let names = RefusalCode::ALL.map(|code| format!("`{}`", code.name()));
        let first_cells = PAGE.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
        let told: Vec<&str> =
            first_cells.filter(|cell| cell.starts_with("`GXT") || cell.parse::<u8>().is_ok()).collect();
        let ours: Vec<&str> = codes.iter().chain(&names).map(String::as_str).collect();
        assert_eq!(told, ours);
    }

    #[test]
    fn a_refusal_says_the_code_the_reason_and_what_to_do() {
        let refusal = Refusal::new(RefusalCode::Active, "another runs", "end that one");
        assert_eq!(refusal.lines(), ["keep: [GXT_CAGE_ACTIVE] another runs", "  hint: end that one"]);
        assert_eq!(refusal.to_json()["exit_code"], 2);
    }
}
