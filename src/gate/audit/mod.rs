//! The audit: every question, answer, change of a grant and denial, one line each, in `audit.jsonl`.
//!
//! Promise: no contents; targets, tools, callers and outcomes only. When [`Audit::append`] returns `Ok`, the line survives
//! a power cut. Each line holds the digest of the one before, so that a line altered, taken out or put in is found.
//! Limit: the chain has no key. It finds accidents and edits, not a forger who may write the file, and not the removal of
//! the last lines.

mod chain;
mod file;

#[cfg(test)]
mod crashes;

use serde::{Deserialize, Serialize};

use super::denial::Denial;
use super::wire::GrantInfo;

pub use chain::{MAX_LINE, TooLong};
pub use file::{Audit, AuditError};

/// One thing that happened. Texts that come from a caller are stored as they are and escaped where they are shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub enum AuditEvent {
    /// The gate began to serve.
    Started {
        /// The command: `gate`, `watch` or `mcp`.
        command: String,
        /// Its process.
        pid: u32,
    },
    /// A question was put to the person.
    Asked {
        /// Its number in this run.
        question: u64,
        /// Who asked, in its own words.
        caller: String,
        /// Through which tool.
        tool: String,
        /// The actions of the call.
        actions: Vec<GrantInfo>,
        /// SHA-256 over the tool, its arguments and what they were found to change.
        digest: String,
    },
    /// The person answered: `once`, `session`, `always`, `widen session`, `widen always` or `no`.
    Answered {
        /// The question.
        question: u64,
        /// What it was about.
        actions: Vec<GrantInfo>,
        /// The answer.
        answer: String,
    },
    /// A call that needed no question ran: the policy or a grant allowed it.
    Allowed {
        /// Who called.
        caller: String,
        /// The tool.
        tool: String,
        /// The actions.
        actions: Vec<GrantInfo>,
        /// `policy`, `grant` or `answer` (one that came after the caller had given up waiting).
        by: String,
    },
    /// A call was denied.
    Denied {
        /// Who called.
        caller: String,
        /// The tool.
        tool: String,
        /// The action that was denied.
        action: GrantInfo,
        /// Why.
        reason: Denial,
    },
    /// Something was granted.
    Granted {
        /// What.
        grant: GrantInfo,
        /// `session` or `always`.
        recall: String,
    },
    /// A grant was taken back.
    Revoked {
        /// What.
        grant: GrantInfo,
        /// `session` or `always`.
        recall: String,
    },
    /// A grant could not be stored, or the file of grants cannot be used.
    Fault {
        /// What is wrong.
        what: String,
    },
    /// The gate ended.
    Ended {
        /// Why: `signal`, `hangup`, `interrupt` or `fault`.
        why: String,
    },
}
