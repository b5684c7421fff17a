//! The seams of `platform`: one suite for each, run for everything this machine offers.

#![allow(clippy::disallowed_methods)]

mod events;
mod root;
