//! Waiting for a terminal: select(2), since poll(2) says of devices that they are no descriptors, and kqueue(2) takes no
//! `/dev/tty`.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use super::sys::select::{Side, select};

/// Which of the descriptors can be read without waiting, or have ended; after at most that time.
pub(crate) fn readable<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    within: Option<Duration>,
) -> rustix::io::Result<[bool; N]> {
    select(fds, Side::Read, within)
}

/// Whether a byte can be written now.
pub(crate) fn writable(fd: impl AsFd) -> rustix::io::Result<bool> {
    select([fd.as_fd()], Side::Write, Some(Duration::ZERO)).map(|[ready]| ready)
}
