//! What FSEvents says, and which hints follow from it.
//!
//! Promise: after any change of a covered path that FSEvents has a row for, and after any row that says rows were lost,
//! a hint names the path, a directory above it as vanished, or a loss. Flags decide only how much is looked at, never what
//! happened: the system merges those of half a minute into one row, keeps no order, and names one side of a rename at a
//! time. What was written by this program itself is known by comparing, like everything else, and never by when it came.
//! Limit: what FSEvents has no row for is for kqueue ([`vnodes`]) and for the caller's sweep: a hard link made in the tree, a
//! symlink that leads nowhere, a store into a mapping. Names are compared as the volume does where both are ASCII; where
//! one is not, they may be the same, and both are looked at.
//! Source: FSEvents.h of macOS 10.15 and later (CoreServices), Apple's File System Events Programming Guide, and the public
//! reports that each sequence of the corpus names.
//!
//! Everything here is free of system calls of its own and runs on every system; what talks to macOS is `macos/fsevents.rs`.

mod engine;
mod inbox;
mod index;
mod looks;
mod names;
mod pace;
mod row;
mod spelling;
mod state;
#[cfg(test)]
mod tests;
pub mod vnodes;
pub mod work;

pub use engine::Engine;
pub use inbox::{Batch, Inbox};
pub use names::{Likeness, Names};
pub use row::{Flags, Row};
pub use spelling::{Spelling, Where};
