//! Attacks on what the tool promises, one file a promise.

mod restore;
