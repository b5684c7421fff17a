//! The watch: from a hint to a decision, and from a decision to the file.

pub mod machine;
mod question;

#[cfg(test)]
mod machine_tests;

pub use question::{Member, Question};
