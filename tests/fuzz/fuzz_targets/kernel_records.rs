//! Any bytes as a read of a fanotify or inotify descriptor: nothing panics, and every slice lies in the buffer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use platform::linux::records::{fanotify, inotify};

fuzz_target!(|bytes: &[u8]| {
    let mut events = 0;
    for event in fanotify(bytes) {
        events += 1;
        let Ok(event) = event else { continue };
        let mut objects = 0;
        for object in event.objects().flatten() {
            objects += 1;
            assert!(object.name.len() < bytes.len() && !object.name.contains(&0));
        }
        assert!(objects <= bytes.len());
    }
    assert!(events <= bytes.len());
    assert!(inotify(bytes).count() <= bytes.len() / 16 + 1);
});
