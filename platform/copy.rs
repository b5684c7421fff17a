//! The content of one open file copied into another.

use std::fs::File;
use std::io::{self, Read as _};

use crate::fault;

/// Copies from the start of `from` to the start of the empty file `to`, at most `max_bytes`; says how many it copied.
pub fn copy(mut from: &File, mut to: &File, max_bytes: u64) -> io::Result<u64> {
    use std::io::Seek as _;
    fault::point("copy")?;
    from.rewind()?;
    to.rewind()?;
    io::copy(&mut from.take(max_bytes), &mut to)
}
