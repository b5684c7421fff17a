//! Keepwatch: the policy. What is protected, what a change means, who decides, and what is written down.
//!
//! No module here knows an operating system: files, events, terminals and clocks come from the crate `platform`, as
//! values or handles that `cli` puts together once. Nothing here reads a clock, the environment or a file by path.

#![forbid(unsafe_code)]
// Unit tests arrange files and time themselves; what they test may not.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod ask;
pub mod baseline;
pub mod cli;
pub mod difference;
pub mod digest;
pub mod gate;
pub mod git;
pub mod journal;
pub mod roots;
pub mod rules;
pub mod state;
pub mod store;
pub mod text;
pub mod trust;
pub mod watch;
