//! The commands beside `keep watch`, as programs: what they print where, and how they end.

// Tests arrange files and start the program.
#![allow(clippy::disallowed_methods)]

mod doctor;
mod grants;
mod lab;
mod log;
mod pages;
mod quarantine;
mod recover;
