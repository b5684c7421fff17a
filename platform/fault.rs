//! Points at which a test can make the process "die": every change of a file passes one.
//!
//! Promise: without the feature `testing` a point is nothing at all. With it, [`Plan::crash_after`] lets the n-th point
//! of this thread and all later ones fail, as if the process had been killed there: nothing after it happens.

use std::io;

/// Asks whether the operation named may still happen.
#[cfg(not(feature = "testing"))]
#[inline(always)]
pub(crate) fn point(_operation: &'static str) -> io::Result<()> {
    Ok(())
}

#[cfg(feature = "testing")]
pub(crate) use injected::point;
#[cfg(feature = "testing")]
pub use injected::{Plan, crashed};

#[cfg(feature = "testing")]
mod injected {
    use super::io;
    use std::cell::Cell;

    thread_local! {
        static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
        static PASSED: Cell<u64> = const { Cell::new(0) };
        static CRASHED: Cell<bool> = const { Cell::new(false) };
        static ERROR: Cell<Option<i32>> = const { Cell::new(None) };
    }

    /// A plan for the current thread; ends when dropped.
    #[must_use]
    pub struct Plan(());

    impl Plan {
        /// Lets `passes` points pass; every later one fails.
        pub fn crash_after(passes: u64) -> Self {
            LEFT.set(Some(passes));
            PASSED.set(0);
            CRASHED.set(false);
            Self(())
        }

        /// Counts points and fails none.
        pub fn count() -> Self {
            Self::crash_after(u64::MAX)
        }

        /// Lets `passes` points pass; every later one fails with the OS error `errno` (say `ENOSPC`).
        pub fn fail_after(passes: u64, errno: i32) -> Self {
            let plan = Self::crash_after(passes);
            ERROR.set(Some(errno));
            plan
        }

        /// How many points were passed so far.
        pub fn passed(&self) -> u64 {
            PASSED.get()
        }
    }

    impl Drop for Plan {
        fn drop(&mut self) {
            LEFT.set(None);
            CRASHED.set(false);
            ERROR.set(None);
        }
    }

    /// Whether the plan of this thread has struck.
    pub fn crashed() -> bool {
        CRASHED.get()
    }

    /// Asks whether the operation named may still happen.
    pub(crate) fn point(operation: &'static str) -> io::Result<()> {
        let Some(left) = LEFT.get() else { return Ok(()) };
        if left == 0 {
            CRASHED.set(true);
            return Err(match ERROR.get() {
                Some(errno) => io::Error::from_raw_os_error(errno),
                None => io::Error::other(format!("crash injected before {operation}")),
            });
        }
        LEFT.set(Some(left - 1));
        PASSED.set(PASSED.get() + 1);
        Ok(())
    }
}
