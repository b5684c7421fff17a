//! The gate: which tools an agent has at all (the cage), and whether this call may do this thing (the gate).
//!
//! Promise: a call of a gated tool is carried out only if the policy allows it, a grant covers it, or the person at the
//! terminal said yes to this very call; everything else is a denial with its reason. Decisions are pure ([`machine`]);
//! files are touched by a confined process of their own ([`files`]); everything a person reads is computed by us.
//! Limit: an agent that has other ways to the files than these tools is none of the gate's business; `keep watch` sees it.

pub mod action;
pub mod audit;
pub mod denial;
pub mod files;
pub mod frame;
pub mod host;
pub mod kind;
pub mod machine;
pub mod mcp;
pub mod offer;
pub mod path;
pub mod pattern;
pub mod policy;
pub mod policy_file;
pub mod recall;
pub mod screen;
pub mod serve;
pub mod tools;
pub mod wire;
pub mod worker;

pub use action::{Action, Target};
pub use denial::Denial;
pub use kind::Kind;
pub use pattern::Grant;
pub use policy::Policy;
pub use recall::{Recall, Ruling};
pub use tools::Tool;
