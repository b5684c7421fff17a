//! The program itself, on a pseudo-terminal in a home of its own.

// A test starts programs and has files and a clock of its own; the policy it tests has none of them.
#![allow(clippy::disallowed_methods)]

#[path = "../support/mod.rs"]
mod support;

mod ending;
mod keys;
mod notifier;
mod obstacles;
mod places;
mod questions;
mod recovery;
mod report;
mod screen;
mod start;
mod state;
