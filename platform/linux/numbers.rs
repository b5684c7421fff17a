//! Which numbers descriptors may have: ours the low ones, the guardian's the high ones.
//!
//! The kernel takes an answer for the event whose descriptor has the number that the answer names, whichever process read
//! it: the first that fits (`process_access_response` in fs/notify/fanotify/fanotify_user.c). Two processes that read one
//! group must never have the same number, or one answers for the other.
//! Source: getrlimit(2), `RLIMIT_NOFILE`: one more than the highest number.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Enough for two thousand held opens; each occupied number costs the guardian eight bytes.
const MOST: u64 = 8192;

/// The first number that is not ours: the same in every process that has our hard limit.
pub(crate) fn first_not_ours() -> u64 {
    getrlimit(Resource::Nofile).maximum.map_or(MOST, |hard| MOST.min(hard / 4 * 3))
}

/// Keeps all further descriptors of this process below that number, and returns it. A lower limit is raised to it.
pub(crate) fn stay_low() -> io::Result<u64> {
    let limit = first_not_ours();
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(limit), maximum })?;
    Ok(limit)
}
