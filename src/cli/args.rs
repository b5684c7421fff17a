//! The command line. The doc of each argument is its help text.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::SystemTime;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::collectors::Collector;
use crate::gate::kind::Kind;
use crate::journal::time_meant;

/// Guards a developer's files against coding agents on the same machine.
#[derive(Debug, Parser)]
#[command(name = "keep", version, propagate_version = true, after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,

    /// Colour in what people read.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

const EXIT_CODES: &str = "Example: keep watch\n\nExit codes: 0 nothing was restored, 1 the command itself broke, 2 could not start, 3 something was restored or could not be.\n\
                          All of them: docs/exit-codes.md";

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Watch the repository around the current directory and ask about every change of a protected file.
    #[command(after_help = "Example: keep watch --lock-deps --allow-only 'src/**'\n\
         With the gate of the same tree: keep watch --gate\n\n\
        Start it in a terminal of its own before the agent: what was changed earlier is part of the baseline.")]
    Watch(WatchArgs),
    /// Hold the gate of a directory in this terminal: serve tools to agents, and ask about what they would change.
    #[command(after_help = "Example: keep gate --manifest tools.json\n\n\
        Start it in a terminal of its own; agents reach it through `keep mcp`, and without it they are denied what is asked about.")]
    Gate(GateArgs),
    /// Serve tools to an agent over its standard input and output: what an agent's configuration names.
    #[command(after_help = "Example: keep mcp --root /home/me/project\n\n\
        It passes calls on to the `keep gate` of that directory; where none runs, what would be asked about is denied.")]
    Mcp(McpArgs),
    /// List what the gate was told to remember, and take it back.
    #[command(after_help = "Example: keep grants revoke 'notes/*'\n\n\
        Exit codes: 0 done, 1 nothing of that name is granted, or the grants cannot be used.")]
    Grants(GrantsArgs),
    /// Show the journal: what changed, what was decided.
    #[command(after_help = "Example: keep log --verify\n\n\
        Exit codes: 0 read to the end, 1 the chain does not hold, 2 there is a journal and it cannot be used.")]
    Log(LogArgs),
    /// List, show and put back rejected content.
    #[command(after_help = "Example: keep quarantine list")]
    Quarantine(QuarantineArgs),
    /// Do now what the next start would do after a crash: restore the last accepted state.
    #[command(
        after_help = "Example: keep recover --json\n\nExit codes: 0 nothing to restore, 3 something was restored or could not be."
    )]
    Recover(RecoverArgs),
    /// Say what this machine offers, each proven by a live probe, and what would raise it.
    #[command(after_help = "Example: keep doctor --json")]
    Doctor(DoctorArgs),
    /// Print shell completions.
    #[command(after_help = "Example: keep completions bash > ~/.local/share/bash-completion/completions/keep")]
    Completions(CompletionsArgs),
    /// Print the manual page of keep, or of one of its commands.
    #[command(after_help = "Example: keep man watch | man -l -")]
    Man(ManArgs),
}

/// Options of `keep watch`.
#[derive(Debug, Clone, Args)]
pub struct WatchArgs {
    /// A directory in the tree to watch; the current one if left out.
    pub path: Option<PathBuf>,

    /// Seconds before an unanswered change is restored.
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub decision_timeout: u32,

    /// Polling interval, and interval of the verifying sweep with an event backend.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(10..=3_600_000))]
    pub watch_interval_ms: u32,

    /// Largest protected file; a larger one refuses the start.
    #[arg(long, value_name = "N", default_value_t = 5 * 1024 * 1024)]
    pub max_file_bytes: u64,

    /// No desktop notifications; the bell and the question still alert.
    #[arg(long)]
    pub no_notify: bool,

    /// Freeze dependencies: ask about lockfiles and dependency manifests like any protected file.
    #[arg(long)]
    pub lock_deps: bool,

    /// Scope: ask about every change git would track outside this glob (repeatable).
    #[arg(long, value_name = "GLOB")]
    pub allow_only: Vec<String>,

    /// Lock protected files while the watch runs: nobody can change them, not even root, until `u` unlocks one for a minute.
    /// Needs privilege.
    #[arg(long)]
    pub lock: bool,

    /// Print the report as JSON on standard output when the watch ends.
    #[arg(long)]
    pub json: bool,

    /// Tell a collector of what happens, too: journald, syslog, or file (a JSON object a line, in the state folder); =PATH names
    /// another socket or file (repeatable, or a list with commas).
    #[arg(long, value_name = "WHERE", value_delimiter = ',', value_parser = super::collectors::parse)]
    pub log: Vec<Collector>,

    /// How to learn of changes: the strongest that works here, or the one named.
    #[arg(long, value_name = "X", default_value = "auto")]
    pub backend: BackendChoice,

    /// Have the kernel hold every open of a protected file for writing until you answer; with =read also those of secrets
    /// for reading. Needs root (sudo keep watch --hold) or CAP_SYS_ADMIN.
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "write")]
    pub hold: Option<HoldChoice>,

    /// Go on where something that was asked for cannot be had (--hold, --lock, the confinement of --gate); the start line and the
    /// report say what is missing.
    #[arg(long)]
    pub best_effort: bool,

    /// Hold the gate of this tree, too: agents' calls are asked about in this terminal, and what is allowed here is not asked
    /// about a second time when the file changes.
    #[arg(long)]
    pub gate: bool,

    /// As for keep gate.
    #[arg(long, value_name = "FILE", requires = "gate", help_heading = GATE_OPTIONS)]
    pub manifest: Option<PathBuf>,

    /// As for keep gate.
    #[arg(long, value_name = "PATH", requires = "gate", help_heading = GATE_OPTIONS)]
    pub listen: Option<PathBuf>,

    /// As for keep gate: seconds before an unanswered question of the gate is a no.
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..=86_400), requires = "gate", help_heading = GATE_OPTIONS)]
    pub ask_timeout: u32,

    /// As for keep gate.
    #[arg(long, value_name = "PROGRAM", requires = "gate", help_heading = GATE_OPTIONS)]
    pub on_wake: Option<PathBuf>,
}

/// Over the options of the gate in a watch.
const GATE_OPTIONS: &str = "Options of --gate";

impl WatchArgs {
    /// The gate that is to be held in the same terminal.
    pub fn gate(&self) -> Option<GateArgs> {
        let Self { manifest, listen, ask_timeout, best_effort, on_wake, no_notify, .. } = self.clone();
        self.gate.then_some(GateArgs { root: None, manifest, listen, ask_timeout, best_effort, on_wake, no_notify })
    }
}

/// Which opens are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HoldChoice {
    /// Those for writing.
    Write,
    /// Those for writing, and those of secrets for reading.
    Read,
}

/// A backend by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BackendChoice {
    /// The strongest that works here.
    Auto,
    /// The kernel's events, merged; Linux 5.13 and later.
    Fanotify,
    /// The kernel's events; Linux.
    Inotify,
    /// The system's events, with kqueue beside them; macOS.
    Fsevents,
    /// Comparing once an interval; everywhere.
    Poll,
}

impl BackendChoice {
    /// The backend's own name; `None` for `auto`.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            BackendChoice::Auto => None,
            BackendChoice::Fanotify => Some("fanotify"),
            BackendChoice::Inotify => Some("inotify"),
            BackendChoice::Fsevents => Some("fsevents"),
            BackendChoice::Poll => Some("poll"),
        }
    }
}

/// Options of `keep gate`.
#[derive(Debug, Clone, Args)]
pub struct GateArgs {
    /// The directory the file tools work in; the current one if left out.
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,

    /// The tools there are, as JSON: {"name": "...", "uses": ["file_read", ...]}; every tool if left out.
    #[arg(long, value_name = "FILE")]
    pub manifest: Option<PathBuf>,

    /// Listen at this socket, too.
    #[arg(long, value_name = "PATH")]
    pub listen: Option<PathBuf>,

    /// Seconds before an unanswered question is a no.
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub ask_timeout: u32,

    /// Go on if this system cannot confine the process that touches files; the start line then says what is missing.
    #[arg(long)]
    pub best_effort: bool,

    /// Start this program when a wake is due; the note goes to its standard input.
    #[arg(long, value_name = "PROGRAM")]
    pub on_wake: Option<PathBuf>,

    /// No desktop notifications: neither of questions nor of what agents want told.
    #[arg(long)]
    pub no_notify: bool,
}

/// Options of `keep mcp`.
#[derive(Debug, Clone, Args)]
pub struct McpArgs {
    /// The directory whose gate is meant; the current one if left out.
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,

    /// Nobody watches this agent: the stricter policy holds, and `autonomy` in policy.toml says whether anybody is asked.
    #[arg(long)]
    pub unattended: bool,
}

/// Options of `keep grants`.
#[derive(Debug, Args)]
pub struct GrantsArgs {
    /// What to do; they are listed if left out.
    #[command(subcommand)]
    pub command: Option<GrantsCommand>,

    /// The directory the gate was started for; if left out, the nearest at or above the current one.
    #[arg(long, value_name = "DIR", global = true)]
    pub root: Option<PathBuf>,

    /// One JSON object.
    #[arg(long, global = true)]
    pub json: bool,
}

/// What can be done with grants.
#[derive(Debug, Subcommand)]
pub enum GrantsCommand {
    /// List what is granted for good and, if a gate runs, for its session.
    #[command(after_help = "Example: keep grants list --json")]
    List,
    /// Take back what was granted for good; the gate asks again.
    #[command(after_help = "Example: keep grants revoke 'notes/*'")]
    Revoke {
        /// What was granted, as `list` shows it.
        pattern: String,
        /// Only of this kind: net, file, notify, remind or memory.
        #[arg(long, value_parser = kind)]
        kind: Option<Kind>,
    },
    /// Take back all that was granted for the session of the gate that runs.
    #[command(after_help = "Example: keep grants forget-session")]
    ForgetSession,
}

fn kind(name: &str) -> Result<Kind, String> {
    Kind::parse(name).ok_or_else(|| "the kinds are net, file, notify, remind and memory".to_owned())
}

/// Options of `keep log`.
#[derive(Debug, Args)]
pub struct LogArgs {
    /// A directory in the tree; the current one if left out.
    pub path: Option<PathBuf>,

    /// Check the hash chain of the whole journal, and say where it breaks.
    #[arg(long)]
    pub verify: bool,

    /// Only entries of this session, or of all whose process had this number.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,

    /// Only entries from this time on: in RFC 3339, or so long ago (90s, 15m, 25h, 7d).
    #[arg(long, value_name = "WHEN", value_parser = when, conflicts_with = "verify")]
    pub since: Option<String>,

    /// Tell the desktop, too, how many of the changes shown ended how, if there were any. It asks nothing.
    #[arg(long, conflicts_with = "verify")]
    pub notify: bool,

    /// One JSON object a line.
    #[arg(long)]
    pub json: bool,
}

fn when(text: &str) -> Result<String, String> {
    let is_time = time_meant(text, SystemTime::UNIX_EPOCH).is_some();
    is_time
        .then(|| text.to_owned())
        .ok_or_else(|| "a time is 2026-11-30T09:00:00Z, or so long ago: 90s, 15m, 25h, 7d".to_owned())
}

/// Options of `keep quarantine`.
#[derive(Debug, Args)]
pub struct QuarantineArgs {
    /// What to do with it.
    #[command(subcommand)]
    pub command: QuarantineCommand,
}

/// What can be done with the quarantine.
#[derive(Debug, Subcommand)]
pub enum QuarantineCommand {
    /// List what is kept, newest last.
    #[command(after_help = "Example: keep quarantine list --json")]
    List {
        /// A directory in the tree; the current one if left out.
        path: Option<PathBuf>,
        /// One JSON object with all of it.
        #[arg(long)]
        json: bool,
    },
    /// Say what is known of one thing that was rejected; with --content, print its bytes.
    #[command(after_help = "Example: keep quarantine show 20261130T094107123Z-00000 --content > rejected.env")]
    Show {
        /// Its id, as `list` gives it.
        id: String,
        /// A directory in the tree; the current one if left out.
        #[arg(long, value_name = "DIR")]
        path: Option<PathBuf>,
        /// Print the rejected bytes themselves on standard output; on a terminal, with control characters escaped.
        #[arg(long, conflicts_with = "json")]
        content: bool,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Put rejected content back, at its old place or at --to. A running watch asks about it.
    #[command(after_help = "Example: keep quarantine restore 20261130T094107123Z-00000 --to rejected.env")]
    Restore {
        /// Its id, as `list` gives it.
        id: String,
        /// A directory in the tree; the current one if left out.
        #[arg(long, value_name = "DIR")]
        path: Option<PathBuf>,
        /// Where to put it, relative to the top of the tree.
        #[arg(long, value_name = "PATH")]
        to: Option<PathBuf>,
        /// Replace what is there.
        #[arg(long)]
        force: bool,
    },
}

/// Options of `keep recover`.
#[derive(Debug, Args)]
pub struct RecoverArgs {
    /// A directory in the tree; the current one if left out.
    pub path: Option<PathBuf>,

    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `keep doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// A directory in the tree; the current one if left out.
    pub path: Option<PathBuf>,

    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `keep completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell.
    pub shell: clap_complete::Shell,
}

/// Options of `keep man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// A command, as `watch` or `quarantine list`; without one, the page of `keep` itself.
    pub command: Vec<OsString>,
}
