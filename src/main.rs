//! The command `keep`.

#![forbid(unsafe_code)]

fn main() {}
