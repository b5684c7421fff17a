//! The engine over file systems that a test makes up.

mod corpus;
mod kernel;
mod memory;
mod steps;
mod thread;
