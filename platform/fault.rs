//! Points at which a test can make the process "die": every change of a file passes one.
//!
//! Promise: without the feature `testing` a point is nothing at all. With it, `Plan::crash_after` lets the n-th point
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

#[cfg(all(test, feature = "testing"))]
mod tests {
    use super::*;
    use crate::dir::Dir;
    use crate::{copy, xattr};
    use std::io::Write;

    fn fixture() -> (tempfile::TempDir, Dir) {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let dir = Dir::open_ambient(temp.path()).expect("it exists");
        (temp, dir)
    }

    #[test]
    fn nothing_happens_after_the_crash_not_even_tidying_up() {
        let (_temp, dir) = fixture();
        let plan = Plan::crash_after(1);
        dir.create_new(b"f", 0o640).expect_err("the bits cannot be set any more");
        assert!(crashed());
        dir.unlink(b"f").expect_err("it is as if we were gone");
        drop(plan);
        assert!(dir.stat(b"f").expect("stats").is_some(), "what was done before stays");
    }

    #[test]
    fn a_plan_can_give_any_error_of_the_system() {
        let (_temp, dir) = fixture();
        let no_space = rustix::io::Errno::NOSPC.raw_os_error();
        let _plan = Plan::fail_after(0, no_space);
        assert_eq!(dir.create_new(b"f", 0o600).expect_err("planned").errno(), Some(no_space));
    }

    #[test]
    fn every_change_passes_a_point() {
        let (_temp, dir) = fixture();
        let mut file = dir.create_new(b"f", 0o600).expect("creates");
        file.write_all(b"content").expect("writes");
        let other = dir.create_new(b"g", 0o600).expect("creates");
        let attributes = xattr::Xattrs::from([(b"user.a".to_vec(), b"1".to_vec())]);
        let changes: [(&str, &dyn Fn() -> bool); 10] = [
            ("chmod", &|| crate::attributes::chmod(&file, 0o640).is_ok()),
            ("chown", &|| crate::attributes::chown(&file, 0, 0).is_ok()),
            ("sync", &|| crate::attributes::sync(&file).is_ok()),
            ("flags", &|| crate::attributes::set_flags(&file, Default::default()).is_ok()),
            ("chown by name", &|| dir.chown(b"f", 0, 0).is_ok()),
            ("attributes", &|| xattr::set_all(&file, &attributes).is_ok()),
            ("copy", &|| copy::copy(&file, &other, 100).is_ok()),
            ("append", &|| dir.open_append(b"new").is_ok()),
            ("rename", &|| dir.rename_new(b"g", &dir, b"h").is_ok()),
            ("remove", &|| dir.remove_all(b"f").is_ok()),
        ];
        for (name, change) in changes {
            let plan = Plan::crash_after(0);
            assert!(!change(), "{name} happened after the crash");
            assert!(crashed(), "{name} passed no point");
            drop(plan);
        }
    }
}
