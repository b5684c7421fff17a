//! What is read from real repositories, made with git: where they are, what they configure, ignore and track.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests arrange files and time themselves, and say what they pass over"
)]

mod configured;
mod discovered;
mod ignored;
mod support;
