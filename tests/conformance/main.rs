//! The seams of `platform`: one suite for each, run for everything this machine offers.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests arrange files and time themselves, and say what they pass over"
)]

mod events;
#[path = "../support/meanwhile.rs"]
mod meanwhile;
mod root;
