//! Any bytes as `.cage.yaml`, and what comes of it asked about any path: no panic, and no entry that takes away.

#![no_main]

use keepwatch::rules::{Flags, Mode, assemble, file};
use libfuzzer_sys::fuzz_target;
use platform::{Place, RelPath};

fuzz_target!(|input: (&[u8], &[u8])| {
    let (text, path) = input;
    let Ok(file) = file::parse(text) else { return };
    let rules = assemble(file, Flags::default(), None);
    for protected in [&b".env"[..], b"a/.claude/x", b".cage.yaml"] {
        let place = Place::tree(RelPath::parse(protected).expect("a path"));
        assert_eq!(rules.set.classify(&place).expect("covered").mode, Mode::Restore);
    }
    if let Ok(path) = RelPath::parse(path) {
        rules.set.classify(&Place::tree(path));
    }
});
