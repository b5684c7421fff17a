//! Any bytes as a journal: reading ends with an answer, and what was good stays good.
//!
//! `cargo fuzz run --fuzz-dir tests/fuzz journal`

#![no_main]

use keepwatch::journal::{Entry, Replay, read_from};
use libfuzzer_sys::fuzz_target;

/// The entries, and how many bytes their lines take.
fn entries(mut bytes: &[u8]) -> Option<(Vec<Entry>, usize)> {
    let mut entries = Vec::new();
    let mut good = 0;
    let read = read_from(&mut bytes, "journal", |seen| {
        good += seen.line.len() + 1;
        entries.extend(seen.entry.ok());
    });
    read.ok().map(|_| (entries, good))
}

fuzz_target!(|bytes: &[u8]| {
    let Some((found, good)) = entries(bytes) else { return };
    let mut replay = Replay::default();
    found.iter().cloned().for_each(|entry| replay.feed(entry));
    let _ = replay.finish();
    let (again, length) = entries(&bytes[..good]).expect("the good part is whole");
    assert_eq!((again, length), (found, good), "cutting off the torn part changed the rest");
});
