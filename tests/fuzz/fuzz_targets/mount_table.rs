//! Any bytes as a mount table.
#![no_main]

use libfuzzer_sys::fuzz_target;
use platform::linux::mounts::{concerns, parse};

fuzz_target!(|bytes: &[u8]| {
    for mount in parse(bytes) {
        assert!(mount.point.len() <= bytes.len());
        assert!(concerns(&mount.point, &mount.point));
    }
});
