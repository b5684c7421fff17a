//! How a desktop is reached.

use crate::notify::Program;

/// What shows notifications here.
pub const NOTIFIER: Program = Program::Osascript;
