//! Any bytes as a read of the process connector: nothing panics, nothing loops.
#![no_main]

use libfuzzer_sys::fuzz_target;
use platform::linux::process_events::process_events;

fuzz_target!(|bytes: &[u8]| {
    assert!(process_events(bytes).count() <= bytes.len() / 16 + 1);
});
