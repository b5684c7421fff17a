//! Attacks on what the tool promises, one file a promise.

// A test starts programs and has files and a clock of its own; the policy it tests has none of them.
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::print_stderr)]

#[path = "../support/mod.rs"]
mod support;

mod gate_files;
mod restore;
mod watch;
