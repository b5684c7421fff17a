//! A look at the program of a process that is held.
//!
//! Promise: a file is read once for as long as nothing of it changes; times of which a program can set only one, and its
//! number, tell that. Limit: as [`platform::program`].

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd as _;

use platform::program::{self, Influence};
use platform::{Stat, process};

use crate::digest::Digest;

/// A larger program is not trusted: reading it would keep others waiting.
pub(super) const MAX_BYTES: u64 = 512 << 20;
/// Programs whose digests are remembered.
const MOST: usize = 256;

/// What was found out about a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examined {
    /// The digest of the file it runs.
    pub digest: Digest,
    /// What else has a say in it.
    pub influence: Option<Influence>,
}

/// Looks at processes.
#[derive(Debug, Default)]
pub struct Examiner {
    digests: HashMap<Stat, Digest>,
}

impl Examiner {
    /// What the process `pid` runs, which started then; `None` if it is not that process any more.
    pub fn examine(&mut self, pid: u32, started: u64) -> io::Result<Option<Examined>> {
        let file = program::open(pid)?;
        let stat = platform::dir::stat_of(file.as_fd()).map_err(|error| error.source)?;
        let digest = match self.digests.get(&stat) {
            Some(digest) => *digest,
            None => {
                let (digest, length) = Digest::of_reader(&mut &file, MAX_BYTES)?;
                let after = platform::dir::stat_of(file.as_fd()).map_err(|error| error.source)?;
                if length > MAX_BYTES || after != stat {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                if self.digests.len() >= MOST {
                    self.digests.clear();
                }
                self.digests.insert(stat, digest);
                digest
            }
        };
        let influence = program::influence(pid)?;
        // Only now: all that was read was read of the process that had the number then.
        let is_still_it = process::start_time(pid)? == Some(started);
        Ok(is_still_it.then_some(Examined { digest, influence }))
    }
}
