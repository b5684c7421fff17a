//! The watch: from a hint to a decision, and from a decision to the file.

mod acting;
mod already_open;
pub mod approvals;
mod asking;
mod branch;
pub mod choice;
mod choosing;
pub mod console;
mod ending;
pub mod expected;
pub mod guest;
mod hearing;
pub mod hold;
pub mod inbox;
pub mod lines;
pub mod lock;
mod locking;
mod looking;
pub mod machine;
mod moved;
mod new_dirs;
pub mod previous;
pub mod promises;
mod question;
pub mod recovery;
pub mod report;
mod rereading;
pub mod session;
mod start;
pub mod survey;
pub mod sweep;
mod sweeping;
pub mod tally;
mod unread;
pub mod writers;

#[cfg(test)]
mod machine_tests;

pub use question::{Member, Question};
