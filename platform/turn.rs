//! Turns at a file: a lock held for a moment by whoever is about to read it and write it.
//!
//! Promise: while a [`Turn`] lives, no other one of the same file does, in this process or another; the turn of a process
//! that was killed ends with it. Nobody waits longer than asked. Limit: it keeps out only those who ask for a turn, any process
//! that may open the file can hold it up, and on a file system without flock(2) nobody is kept out. A child has the turn, too, from fork until its program runs.
//! Source: flock(2): the lock belongs to the open file, and there is no call that waits for it until a given time; hence
//! trying again and again.

use std::fs::File;
use std::io;
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};

use crate::clock::{Clock, SystemClock};
use crate::dir::{Dir, FsError, means_unsupported};
use crate::lock::is_named;

/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_millis(16);

/// How often the file may be replaced under us before we call it an attack.
const MAX_ROUNDS: u32 = 16;

/// Why there was no turn.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TurnError {
    /// Another process had it all the time.
    #[error("another process has held the file for more than {} ms", .waited.as_millis())]
    Busy {
        /// How long we waited.
        waited: Duration,
    },
    /// The file whose turn it is could not be opened or looked at.
    #[error(transparent)]
    File(#[from] FsError),
    /// flock(2) failed.
    #[error("cannot lock the file")]
    Flock(#[source] io::Error),
    /// The file was removed or replaced again and again while we tried.
    #[error("another process keeps replacing the file")]
    Unstable,
}

/// A turn, until it is dropped or the process ends.
#[derive(Debug)]
#[must_use]
pub struct Turn {
    file: File,
}

impl Turn {
    /// Waits for a turn at this open file, at most so long.
    pub fn at(file: &File, wait: Duration) -> Result<Self, TurnError> {
        let file = file.try_clone().map_err(TurnError::Flock)?;
        let clock = SystemClock;
        let start = clock.now();
        let mut pause = Duration::from_millis(1);
        loop {
            match retry_on_intr(|| flock(&file, FlockOperation::NonBlockingLockExclusive)) {
                Ok(()) => return Ok(Self { file }),
                Err(Errno::WOULDBLOCK) => {}
                // A file system without it keeps nobody out.
                Err(errno) if errno == Errno::NOLCK || means_unsupported(errno) => return Ok(Self { file }),
                Err(errno) => return Err(TurnError::Flock(errno.into())),
            }
            let left = wait.saturating_sub(clock.now().since(start));
            if left.is_zero() {
                return Err(TurnError::Busy { waited: wait });
            }
            thread::sleep(pause.min(left));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Waits for a turn at the file `name` of a directory, which is made if there is none: for turns at something that is
    /// itself replaced.
    pub fn named(dir: &Dir, name: &[u8], wait: Duration) -> Result<Self, TurnError> {
        for _ in 0..MAX_ROUNDS {
            let file = dir.open_update(name)?;
            let turn = Self::at(&file, wait)?;
            // Whoever had it may have been cleaned away together with the file; then nobody else will ever open this one.
            if is_named(dir, name, &file)? {
                return Ok(turn);
            }
        }
        Err(TurnError::Unstable)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // The caller's handle is of the same open file: closing ours would not end the turn.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::Barrier;

    const SOON: Duration = Duration::from_millis(30);
    const LONG: Duration = Duration::from_secs(60);

    fn fixture() -> (tempfile::TempDir, Dir) {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let dir = Dir::open_ambient(temp.path()).expect("it exists");
        (temp, dir)
    }

    #[test]
    fn the_second_one_waits_as_long_as_it_says_and_gets_it_afterwards() {
        let (_temp, dir) = fixture();
        let (one, other) = (dir.open_append(b"f").expect("opens"), dir.open_append(b"f").expect("opens"));
        let turn = Turn::at(&one, LONG).expect("is free");
        let started = SystemClock.now();
        assert!(matches!(Turn::at(&other, SOON), Err(TurnError::Busy { .. })));
        assert!(SystemClock.now().since(started) >= SOON);
        assert!(matches!(Turn::named(&dir, b"f", SOON), Err(TurnError::Busy { .. })));
        drop(turn);
        drop(Turn::at(&other, SOON).expect("is free again, though the first handle is still open"));
        drop(Turn::named(&dir, b"f", SOON).expect("is free again"));
    }

    #[test]
    fn turns_do_not_overlap() {
        let (_temp, dir) = fixture();
        let start = Barrier::new(4);
        std::thread::scope(|scope| {
            for letter in b"abcd" {
                let (dir, start) = (&dir, &start);
                scope.spawn(move || {
                    start.wait();
                    for _ in 0..20 {
                        let _turn = Turn::named(dir, b"turn", LONG).expect("comes round");
                        let mut file = dir.open_append(b"f").expect("opens");
                        (0..4).for_each(|_| file.write_all(&[*letter]).expect("writes"));
                    }
                });
            }
        });
        let mut text = Vec::new();
        io::Read::read_to_end(&mut dir.open_read(b"f").expect("opens"), &mut text).expect("reads");
        assert_eq!(text.len(), 4 * 4 * 20);
        assert!(text.chunks(4).all(|four| four.iter().all(|letter| *letter == four[0])));
    }

    #[test]
    fn a_file_that_was_replaced_is_not_the_one_to_wait_at() {
        let (_temp, dir) = fixture();
        let old = dir.open_update(b"turn").expect("opens");
        let held = Turn::at(&old, LONG).expect("is free");
        dir.unlink(b"turn").expect("removes");
        let _ours = Turn::named(&dir, b"turn", SOON).expect("nobody holds the new one");
        drop(held);
        assert!(matches!(Turn::named(&dir, b"turn", SOON), Err(TurnError::Busy { .. })));
    }
}
