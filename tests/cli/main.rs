//! The program itself, on a pseudo-terminal in a home of its own.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests arrange files and time themselves, and say what they pass over"
)]

#[path = "../support/mod.rs"]
mod support;

mod collectors;
mod ending;
mod hold;
mod keys;
mod notifier;
mod obstacles;
mod places;
mod questions;
mod quiet;
mod recovery;
mod report;
mod screen;
mod start;
mod state;
mod unreadable;
mod writer;
