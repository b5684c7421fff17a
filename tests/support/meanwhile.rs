//! Something that is done over and over while something else goes on.
//!
//! Promise: it ends with the other, and when that panics, too. A test that fails must not wait for a thread that nobody
//! stops any more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Does `act` in a thread of its own, again and again, until `rest` is over.
pub fn meanwhile<T>(mut act: impl FnMut() + Send, rest: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                act();
            }
        });
        let _over = SetOnDrop(&over);
        rest()
    })
}

struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn what_goes_on_meanwhile_ends_when_the_rest_panics() {
    let rest = || panic!("in the middle of it");
    let ended = std::panic::catch_unwind(|| meanwhile(thread::yield_now, rest));
    assert!(ended.is_err());
}
