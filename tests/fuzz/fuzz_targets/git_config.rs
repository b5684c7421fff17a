//! Any bytes as git's own files: configuration, ignore file and index.

#![no_main]

use keepwatch::git::ignore::{IgnoreFile, IgnoreSet};
use keepwatch::git::index::{self, ObjectFormat};
use keepwatch::git::config;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&[u8], &[u8])| {
    let (bytes, path) = input;
    assert!(config::parse(bytes).settings.len() <= bytes.len());
    let set = IgnoreSet::new(vec![IgnoreFile::parse(bytes)]);
    set.ignores_file(b"a/b", path);
    let _ = index::parse(bytes, ObjectFormat::Sha1, path);
    let _ = index::parse(bytes, ObjectFormat::Sha256, path);
});
