//! What Linux and macOS have in common beyond what safe crates offer.

pub(crate) mod sys;
