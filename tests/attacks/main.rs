//! Attacks on what the tool promises, one file a promise.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests arrange files and time themselves, and say what they pass over"
)]

#[path = "../support/mod.rs"]
mod support;

mod restore;
mod watch;
