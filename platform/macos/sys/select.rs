//! select(2).
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use rustix::event::FdSetIter;
use rustix::event::{FdSetElement, Timespec, fd_set_insert, fd_set_num_elements};

/// What to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Something to read, or the end.
    Read,
    /// Room to write.
    Write,
}

/// Which of the descriptors are ready, after at most that time. Sets are as large as the numbers need.
pub(crate) fn select<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    side: Side,
    within: Option<Duration>,
) -> rustix::io::Result<[bool; N]> {
    let numbers: [RawFd; N] = fds.map(|fd| fd.as_raw_fd());
    let above = numbers.iter().copied().max().map_or(0, |most| most + 1);
    let mut set = vec![FdSetElement::default(); fd_set_num_elements(N, above)];
    numbers.iter().for_each(|&number| fd_set_insert(&mut set, number));
    let timeout = within.map(|within| Timespec {
        tv_sec: i64::try_from(within.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: within.subsec_nanos().into(),
    });
    let (read, write) = match side {
        Side::Read => (Some(&mut set[..]), None),
        Side::Write => (None, Some(&mut set[..])),
    };
    // SAFETY: every descriptor in the set is open for as long as it is borrowed, which is past the call.
    unsafe { rustix::event::select(above, read, write, None, timeout.as_ref()) }?;
    let ready: Vec<RawFd> = FdSetIter::new(&set).collect();
    Ok(numbers.map(|number| ready.contains(&number)))
}
