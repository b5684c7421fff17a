//! Closing what takes long to close, without waiting for it.
//!
//! The last descriptor of a group of marks is closed when the kernel is sure that nobody looks at one of its marks any more:
//! after a grace period of tens of milliseconds, whatever the machine does meanwhile.
//! Source: `fsnotify_wait_marks_destroyed` in fs/notify/mark.c.

use std::thread;

/// Drops it, on a thread of its own. If there can be none it is waited for.
pub(super) fn close<T: Send + 'static>(things: T) {
    // What is given to a thread that does not start is dropped here.
    let _ = thread::Builder::new().name("closing".to_owned()).spawn(move || drop(things));
}
