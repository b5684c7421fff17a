//! `keep gate` on a pseudo-terminal and `keep mcp` as an agent starts it, in a home of their own.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests arrange files and time themselves, and say what they pass over"
)]

#[path = "../support/mod.rs"]
mod support;

mod agent;
mod refusals;
mod serving;
mod together;
