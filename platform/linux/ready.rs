//! Waiting for a terminal: poll(2), which takes any descriptor.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

fn timeout(within: Option<Duration>) -> Option<Timespec> {
    within.map(|within| Timespec {
        tv_sec: i64::try_from(within.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: within.subsec_nanos().into(),
    })
}

/// Which of the descriptors can be read without waiting, or have ended; after at most that time.
pub(crate) fn readable<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    within: Option<Duration>,
) -> rustix::io::Result<[bool; N]> {
    let mut all = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    poll(&mut all, timeout(within).as_ref())?;
    Ok(all.each_ref().map(|one| !one.revents().is_empty()))
}

/// Whether a byte can be written now.
pub(crate) fn writable(fd: impl AsFd) -> rustix::io::Result<bool> {
    Ok(poll(&mut [PollFd::new(&fd, PollFlags::OUT)], Some(&Timespec::default()))? > 0)
}
