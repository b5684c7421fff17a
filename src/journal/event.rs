//! What an entry says.
//!
//! Promise: no event holds content; paths, names, digests and numbers only. Paths are stored names, made by
//! [`crate::roots::Roots::stored`]. A field this version does not know is left out when an entry is read; an event it does
//! not know is an error, since the accepted state may hang on it.

use platform::Access;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::object::Object;
use super::record::{Record, from_octal, octal};
use super::stamps::Stamps;
use crate::baseline::ChangeKind;
use crate::digest::Digest;
use crate::rules::{Mode, Rule};

/// Why a path is put back: the outcome its change has if that succeeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestoreOutcome {
    /// The person refused the change.
    Rejected,
    /// Nobody answered in time.
    TimedOut,
    /// The path was contested.
    AutoRestored,
    /// The watch ended before an answer.
    RestoredAtExit,
    /// An earlier session did not end properly.
    Recovered,
}

/// What a session protects, as far as options decide it: recovery after a crash needs the same.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// Dependencies are frozen.
    pub lock_deps: bool,
    /// Globs of the allowed area; none means no scope.
    pub allow_only: Vec<String>,
    /// Rejections that make a path contested; zero: never.
    pub contest_limit: u32,
    /// Largest protected file in bytes.
    pub max_file_bytes: u64,
}

/// Who changed a path, as far as the backend knew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Writer {
    /// Its process.
    pub pid: u32,
    /// The short name of the process, a stored name as all others here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The program, a stored name.
    pub exe: Option<String>,
    /// The name it gave itself.
    pub argv0: Option<String>,
    /// It lives in another mount namespace, where the path of its program means something else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub other_mounts: bool,
    /// Names of the processes above it, nearest first.
    #[serde(default)]
    pub ancestors: Vec<String>,
    /// Its real user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<u32>,
    /// Its control group: which container or service it is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// `certain`, `likely` or `unknown`.
    pub certainty: String,
}

/// What a held open came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HeldOutcome {
    /// The person let it.
    Allowed,
    /// The person refused it.
    Refused,
    /// Nobody answered in time.
    TimedOut,
    /// The path was contested, or more were held than can be asked about.
    AutoRefused,
    /// The watch ended before an answer.
    RefusedAtExit,
    /// A program the person trusts with it.
    Trusted,
    /// The opener went away before an answer.
    Gone,
    /// The watch was stopped, and the guardian answered in its place.
    RefusedWhileStopped,
}

impl HeldOutcome {
    /// Every one.
    pub const ALL: [HeldOutcome; 8] = [
        HeldOutcome::Allowed,
        HeldOutcome::Refused,
        HeldOutcome::TimedOut,
        HeldOutcome::AutoRefused,
        HeldOutcome::RefusedAtExit,
        HeldOutcome::Trusted,
        HeldOutcome::Gone,
        HeldOutcome::RefusedWhileStopped,
    ];

    /// The name in reports and the journal.
    pub const fn name(self) -> &'static str {
        match self {
            HeldOutcome::Allowed => "allowed",
            HeldOutcome::Refused => "refused",
            HeldOutcome::TimedOut => "timed_out",
            HeldOutcome::AutoRefused => "auto_refused",
            HeldOutcome::RefusedAtExit => "refused_at_exit",
            HeldOutcome::Trusted => "trusted",
            HeldOutcome::Gone => "gone",
            HeldOutcome::RefusedWhileStopped => "refused_while_stopped",
        }
    }

    /// The one with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name)
    }
}

/// Who asked the person about a change, if it was not the watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// The gate in the same terminal, before it was done.
    Gate,
    /// The watch, when the file was opened for it.
    Held,
    /// Nobody: the person trusts the program that wrote.
    Trusted,
}

/// What an entry says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A session began.
    Session {
        /// `watch`, `run`, `recover`.
        command: String,
        /// Its process.
        pid: u32,
        /// The root's path.
        root: String,
        /// The folders outside the root that hold control files.
        outer_roots: Vec<String>,
        /// What options protect.
        options: Options,
        /// Digest of `.cage.yaml`; `None` if there is none.
        rules: Option<Digest>,
        /// The backend's name.
        backend: String,
    },
    /// A protected path's state when the session began.
    Baseline {
        /// Which path.
        path: String,
        /// The rule that names its changes.
        rule: Rule,
        /// What a change leads to.
        mode: Mode,
        /// Its state.
        snapshot: Record,
    },
    /// A directory above protected paths, for making it again.
    Directory {
        /// Which directory; empty for the root itself.
        path: String,
        /// Permission bits.
        #[serde(serialize_with = "octal", deserialize_with = "from_octal")]
        mode: u32,
        /// Owner.
        uid: u32,
        /// Group.
        gid: u32,
        /// Digest of its extended attributes, default ACLs among them, as a [`Record`] has them; `None` if there are none.
        #[serde(default)]
        xattrs: Option<Digest>,
    },
    /// A path that exists and could not be read when the session began, or a directory with all in it: it has no accepted
    /// state, and recovery must not take it for one that was added.
    Unguarded {
        /// Which path.
        path: String,
        /// What was known of the file; `None` for a directory, or if nothing was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stamps: Option<Stamps>,
    },
    /// The baseline is complete and its objects are durable: from here on this session's state is the accepted one.
    Sealed {
        /// How many paths it has.
        files: u64,
    },
    /// The person kept a change; the baseline moves.
    Accepted {
        /// Which path.
        path: String,
        /// The rule that named the change.
        rule: Rule,
        /// What kind of change it was.
        kind: ChangeKind,
        /// The accepted state.
        snapshot: Record,
        /// Where the person was asked, if not by the watch about the change.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<Asked>,
        /// Who did it, if anything is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        writer: Option<Writer>,
    },
    /// A change of a path in report mode was kept; the baseline moves.
    Kept {
        /// Which path.
        path: String,
        /// The rule that named the change.
        rule: Rule,
        /// What kind of change it was.
        kind: ChangeKind,
        /// The state kept.
        snapshot: Record,
        /// Who did it, if anything is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        writer: Option<Writer>,
    },
    /// A path is about to be put back. Durable before anything is touched.
    Restoring {
        /// Which path.
        path: String,
        /// The name beside it that holds the accepted content meanwhile; `None` if none is needed.
        temporary: Option<String>,
        /// Where the rejected content goes; `None` if nothing is there.
        quarantine: Option<String>,
        /// Why.
        outcome: RestoreOutcome,
        /// Who did what is undone, if anything is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        writer: Option<Writer>,
    },
    /// A path was put back and read again.
    Restored {
        /// Which path.
        path: String,
        /// The rule that named the change.
        rule: Rule,
        /// What kind of change was undone.
        kind: ChangeKind,
        /// Why.
        outcome: RestoreOutcome,
        /// Digest of what was undone; `None` if nothing was there.
        sha256_after: Option<Digest>,
        /// What was quarantined.
        quarantine: Vec<String>,
        /// How often it was tried.
        attempts: u32,
        /// Who did what was undone, if anything is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        writer: Option<Writer>,
    },
    /// A path could not be put back; nothing was left beside it.
    RestoreFailed {
        /// Which path.
        path: String,
        /// The system's error number, if it gave one.
        errno: Option<i32>,
        /// What failed.
        reason: String,
    },
    /// A change was gone again before it could be decided.
    Transient {
        /// Which path.
        path: String,
        /// The rule that names it.
        rule: Rule,
        /// What kind of change it was, as far as it was seen.
        kind: ChangeKind,
        /// Digest of what was there, if it could be read in time.
        sha256: Option<Digest>,
        /// Who did it.
        writer: Option<Writer>,
    },
    /// Opens of a protected file were held by the kernel until they were decided.
    Held {
        /// Which path.
        path: String,
        /// The rule that names it.
        rule: Rule,
        /// What it was opened for.
        #[serde(serialize_with = "write_access", deserialize_with = "read_access")]
        access: Access,
        /// What they came to.
        decision: HeldOutcome,
        /// How many the entry stands for.
        opens: u32,
        /// Who opened it.
        writer: Writer,
    },
    /// A protected file has more names than before.
    Linked {
        /// Which path.
        path: String,
        /// The rule that names it.
        rule: Rule,
        /// How many names its file has now.
        links: u64,
    },
    /// The backend could not say what changed, so everything was compared.
    Lost {
        /// Why.
        cause: String,
    },
    /// Changes of a path are restored, or opens of it refused, without asking from now on.
    Contested {
        /// Which path.
        path: String,
    },
    /// The person took back that a path is contested.
    Uncontested {
        /// Which path.
        path: String,
    },
    /// The state an earlier session had accepted is restored.
    Recovered {
        /// That session.
        from_session: String,
        /// Paths put back.
        restored: Vec<String>,
        /// Paths in report mode that were left as they are.
        kept: Vec<String>,
    },
    /// What changed in the protected set while nobody watched.
    Changed {
        /// Those paths.
        paths: Vec<String>,
    },
    /// A protected file or folder is about to be made immutable. Durable before that happens.
    Flagged {
        /// Where it lies.
        path: String,
        /// Which object it is.
        id: Object,
    },
    /// It is not immutable any more, as far as that was our doing.
    Unflagged {
        /// Where it lay when it was made so.
        path: String,
        /// Which object it is.
        id: Object,
        /// Whether it was not found any more: deleted, or moved out of the root.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        missing: bool,
    },
    /// The session ended properly.
    Ended {
        /// The signal that ended it.
        signal: Option<String>,
        /// Its exit code.
        exit_code: u8,
    },
}

impl Event {
    /// Every event's name.
    pub const NAMES: [&'static str; 20] = [
        "session",
        "baseline",
        "directory",
        "unguarded",
        "sealed",
        "accepted",
        "kept",
        "restoring",
        "restored",
        "restore_failed",
        "transient",
        "held",
        "linked",
        "lost",
        "contested",
        "recovered",
        "changed",
        "flagged",
        "unflagged",
        "ended",
    ];

    /// The name in the journal.
    pub const fn name(&self) -> &'static str {
        match self {
            Event::Session { .. } => "session",
            Event::Baseline { .. } => "baseline",
            Event::Directory { .. } => "directory",
            Event::Unguarded { .. } => "unguarded",
            Event::Sealed { .. } => "sealed",
            Event::Accepted { .. } => "accepted",
            Event::Kept { .. } => "kept",
            Event::Restoring { .. } => "restoring",
            Event::Restored { .. } => "restored",
            Event::RestoreFailed { .. } => "restore_failed",
            Event::Transient { .. } => "transient",
            Event::Held { .. } => "held",
            Event::Linked { .. } => "linked",
            Event::Lost { .. } => "lost",
            Event::Contested { .. } => "contested",
            Event::Uncontested { .. } => "uncontested",
            Event::Recovered { .. } => "recovered",
            Event::Changed { .. } => "changed",
            Event::Flagged { .. } => "flagged",
            Event::Unflagged { .. } => "unflagged",
            Event::Ended { .. } => "ended",
        }
    }
}

fn write_access<S: Serializer>(access: &Access, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(access.name())
}

fn read_access<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Access, D::Error> {
    let name = String::deserialize(deserializer)?;
    Access::from_name(&name).ok_or_else(|| serde::de::Error::custom(format_args!("{name:?} is no kind of access")))
}

/// The paths in portions that each fit in one entry, for events that list paths: hundreds of thousands would not.
pub fn portions(paths: &[String]) -> impl Iterator<Item = &[String]> {
    // A character takes at most six bytes for each of its own in JSON: `\u001b`.
    const LARGEST: usize = super::line::MAX_LINE_BYTES / 8;
    let mut rest = paths;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fitting = rest.iter().take_while(|path| {
            bytes += path.len() + 3;
            bytes <= LARGEST
        });
        let count = fitting.count().max(1).min(rest.len());
        let (portion, left) = rest.split_at(count);
        rest = left;
        (!portion.is_empty()).then_some(portion)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portions_are_all_paths_in_order_and_each_fits() {
        let paths: Vec<String> = (0..40_000).map(|number| format!("some/where/deep/{number}")).collect();
        let portions: Vec<&[String]> = portions(&paths).collect();
        assert_eq!(portions.concat(), paths);
        assert!(portions.len() > 1, "one portion holds everything");
        for portion in portions {
            assert!(portion.iter().map(|path| path.len() + 3).sum::<usize>() <= crate::journal::MAX_LINE_BYTES / 8);
        }
        assert_eq!(super::portions(&[]).count(), 0);
    }

    #[test]
    fn a_path_too_long_for_any_portion_does_not_stop_the_others() {
        let paths = ["a".to_owned(), "b".repeat(1 << 20), "c".to_owned()];
        assert_eq!(portions(&paths).collect::<Vec<_>>().concat(), paths);
    }
}
