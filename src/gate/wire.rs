//! What `keep mcp` and the gate say to each other, in frames ([`super::frame`]).
//!
//! Promise: a client can call tools, withdraw its own calls, and take grants away; no message answers a question or gives
//! anything. An unknown message or field is an error, and ends the connection.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::denial::Denial;

/// Goes up when a message changes its meaning. The two sides come from one program; a running gate may be of an older one.
pub const VERSION: u32 = 1;

/// From the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case", deny_unknown_fields)]
pub enum FromClient {
    /// The first message of every connection.
    Hello {
        /// [`VERSION`] of the client.
        version: u32,
        /// Whether nobody watches this client.
        unattended: bool,
    },
    /// Who the agent says it is; before its first call. Shown escaped, and believed by nobody.
    Name {
        /// Its name.
        name: String,
    },
    /// A call of a tool.
    Call {
        /// The client's number for it; higher than any before on this connection.
        id: u64,
        /// The tool's name, as the agent gave it.
        tool: String,
        /// Its arguments, as the agent gave them.
        arguments: Map<String, Value>,
    },
    /// The agent no longer waits for a call.
    Cancel {
        /// The call.
        id: u64,
        /// Whether it only gave up waiting: the same call may come again and takes the answer then.
        timed_out: bool,
    },
    /// List the grants. For `keep grants`.
    ListGrants,
    /// Forget what was granted for this session. For `keep grants`.
    ForgetSession,
}

/// From the gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case", deny_unknown_fields)]
pub enum FromGate {
    /// The answer to hello: the tools of this client's cage.
    Welcome {
        /// [`VERSION`] of the gate.
        version: u32,
        /// The tools, in the order of the table.
        tools: Vec<ToolInfo>,
    },
    /// The answer to hello if the client is not served; the connection ends.
    Refused {
        /// Why, for people.
        why: String,
    },
    /// What came of a call.
    Done {
        /// The call.
        id: u64,
        /// What came of it.
        outcome: Outcome,
    },
    /// A wake the client asked for is due.
    Wake {
        /// Its note.
        note: String,
    },
    /// The answer to [`FromClient::ListGrants`] and [`FromClient::ForgetSession`]: what holds for this session now.
    SessionGrants {
        /// The grants, sorted.
        grants: Vec<GrantInfo>,
    },
}

/// One tool, as an agent sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolInfo {
    /// Its name.
    pub name: String,
    /// What it does, in a sentence or two.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Map<String, Value>,
    /// It changes nothing.
    pub read_only: bool,
    /// It can destroy something.
    pub destructive: bool,
}

/// One grant, as `grants.json` spells it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantInfo {
    /// The kind's name.
    pub kind: String,
    /// The pattern.
    pub target: String,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Outcome {
    /// It was carried out: the structured result.
    Ok(Map<String, Value>),
    /// It failed; why, for the agent.
    Failed(String),
    /// It was not allowed.
    Denied {
        /// What was denied, as [`super::Action`] shows it.
        action: String,
        /// Why.
        denial: Denial,
    },
    /// There is no such tool in this cage.
    UnknownTool,
}
