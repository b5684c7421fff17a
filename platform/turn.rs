//! Turns: short pieces of work on one directory that several processes of ours do one after the other.
//!
//! Promise: while a [`Turn`] lives no other [`Turn::take`] of the same name succeeds, in no process, and it ends with its
//! process. Whoever wants it waits, but no longer than it said: a stopped holder holds nobody up for good.
//! Limit: on a file system without flock(2) nobody is kept out. For a lock that is held as long as a program runs, and that
//! says who has it, there is [`crate::lock`].
//! Source: flock(2). It cannot wait for a given time, so it is tried again and again.

use std::fs::File;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};

use crate::dir::{Dir, FsError, means_unsupported};

/// From one try to the next.
const PAUSE: Duration = Duration::from_millis(5);

/// Why it is not our turn.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TurnError {
    /// Another process did not end its turn in time.
    #[error("another process has been at work here for too long")]
    Busy,
    /// The lock's file could not be opened.
    #[error(transparent)]
    File(#[from] FsError),
    /// flock(2) failed.
    #[error("cannot lock the file")]
    Flock(#[source] io::Error),
}

/// Ends when dropped. The file stays, empty: who removes a file that others may wait for lets two of them in.
#[derive(Debug)]
#[must_use]
pub struct Turn(#[expect(dead_code, reason = "closing it frees the lock")] File);

impl Turn {
    /// Waits for a turn at `name` in `dir`, at most as long as `patience`.
    pub fn take(dir: &Dir, name: &[u8], patience: Duration) -> Result<Self, TurnError> {
        let file = dir.open_update(name)?;
        let started = Instant::now();
        loop {
            match retry_on_intr(|| flock(&file, FlockOperation::NonBlockingLockExclusive)) {
                Ok(()) => return Ok(Self(file)),
                Err(Errno::WOULDBLOCK) if started.elapsed() < patience => thread::sleep(PAUSE),
                Err(Errno::WOULDBLOCK) => return Err(TurnError::Busy),
                Err(errno) if errno == Errno::NOLCK || means_unsupported(errno) => return Ok(Self(file)),
                Err(errno) => return Err(TurnError::Flock(errno.into())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_come_one_after_the_other_and_impatience_is_an_error() {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let dir = Dir::open_ambient(temp.path()).expect("it exists");
        let first = Turn::take(&dir, b"turn", Duration::ZERO).expect("nobody has it");
        assert!(matches!(Turn::take(&dir, b"turn", Duration::from_millis(20)), Err(TurnError::Busy)));
        drop(first);
        drop(Turn::take(&dir, b"turn", Duration::ZERO).expect("it was given back"));
        dir.unlink(b"turn").expect("it is there");
        dir.symlink(b"elsewhere", b"turn").expect("links");
        assert!(matches!(Turn::take(&dir, b"turn", Duration::ZERO), Err(TurnError::File(_))));
    }

    #[test]
    fn of_many_that_wait_each_works_alone() {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let dir = Dir::open_ambient(temp.path()).expect("it exists");
        let inside = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let turn = Turn::take(&dir, b"turn", Duration::from_secs(60)).expect("it comes");
                        assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                        inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                        drop(turn);
                    }
                });
            }
        });
    }
}
