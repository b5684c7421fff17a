//! A home of its own with a repository in it, and the program itself on a pseudo-terminal of its own.
//!
//! Promise: nothing of the machine's settings reaches the program, and nothing it does reaches the machine; what was
//! started or mounted is gone when the test ends, however it ends. Nothing here sleeps: everything waits for a condition
//! with a deadline.

// Two test programs share this, and neither uses all of it.
#![allow(dead_code, unused_imports, unused_macros)]

mod meanwhile;
mod needs;
mod sandbox;
mod transcript;
mod watch;

use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

pub use meanwhile::meanwhile;
pub(crate) use needs::goes_on_as_an_ordinary_user;
pub use needs::{Mounted, goes_on, has_python, is_root, python, skip};
pub use sandbox::{Content, ENV, Sandbox, fresh, keep, sha};
pub use transcript::squeezed;
pub use watch::{Ended, Watch};

/// How long anything may take, on a machine that has more to do.
pub const PATIENCE: Duration = Duration::from_secs(40);

/// Waits until there is something, looking again and again.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not happen within {PATIENCE:?}");
        pause(Duration::from_millis(5));
    }
}

/// Waits until it is true.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    eventually(what, || is_so().then_some(()));
}

/// Lets time pass: for what the product measures itself, as the time a question has to have been on screen.
pub fn pause(time: Duration) {
    let (lock, never) = (Mutex::new(()), Condvar::new());
    let guard = lock.lock().expect("nobody else has it");
    let _ = never.wait_timeout_while(guard, time, |()| true).expect("nobody else has it");
}
