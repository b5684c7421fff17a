//! kevent(2).
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use rustix::event::kqueue::{Event, EventFilter, EventFlags, UserDefinedFlags, UserFlags, VnodeEvents, kevent};
use rustix::io::Errno;

/// The one event of our own: somebody wakes the one who waits.
const WAKE: isize = 1;

/// Everything that can happen to an object.
const ALL: VnodeEvents = VnodeEvents::DELETE
    .union(VnodeEvents::WRITE)
    .union(VnodeEvents::EXTEND)
    .union(VnodeEvents::ATTRIBUTES)
    .union(VnodeEvents::LINK)
    .union(VnodeEvents::RENAME)
    .union(VnodeEvents::REVOKE);

/// After these an object has no more to tell.
const LAST: VnodeEvents = VnodeEvents::DELETE.union(VnodeEvents::REVOKE);

fn change(queue: BorrowedFd<'_>, event: Event) -> io::Result<()> {
    let mut none: [Event; 0] = [];
    // SAFETY: a descriptor that is closed leaves the queue by itself (kqueue(2)), so that none needs to outlive this call.
    unsafe { kevent(queue, &[event], &mut none, Some(Duration::ZERO)) }?;
    Ok(())
}

fn user(flags: UserFlags, action: EventFlags) -> Event {
    let filter = EventFilter::User { ident: WAKE, flags, user_flags: UserDefinedFlags::new(0) };
    Event::new(filter, action, std::ptr::null_mut())
}

/// Lets the queue be woken.
pub(crate) fn allow_waking(queue: impl AsFd) -> io::Result<()> {
    change(queue.as_fd(), user(UserFlags::empty(), EventFlags::ADD | EventFlags::CLEAR))
}

/// Wakes who waits for the queue, now or next.
pub(crate) fn wake(queue: impl AsFd) -> io::Result<()> {
    change(queue.as_fd(), user(UserFlags::TRIGGER, EventFlags::empty()))
}

/// Asks to be told of everything that happens to the open object, under this number, until it is closed.
pub(crate) fn watch_object(queue: impl AsFd, object: impl AsFd, number: usize) -> io::Result<()> {
    let filter = EventFilter::Vnode { vnode: object.as_fd().as_raw_fd(), flags: ALL };
    // The pointer is never followed: it is a number for us.
    let data = std::ptr::without_provenance_mut(number);
    change(queue.as_fd(), Event::new(filter, EventFlags::ADD | EventFlags::CLEAR, data))
}

/// Waits. Returns the numbers of the objects that something happened to, with whether it was the last.
pub(crate) fn wait(queue: impl AsFd, timeout: Option<Duration>) -> io::Result<Vec<(usize, bool)>> {
    let mut events = Vec::with_capacity(64);
    // SAFETY: nothing is added.
    match unsafe { kevent(queue, &[], rustix::buffer::spare_capacity(&mut events), timeout) } {
        Ok(_) | Err(Errno::INTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    let object = |event: &Event| match event.filter() {
        EventFilter::Vnode { flags, .. } => Some((event.udata().addr(), flags.intersects(LAST))),
        _ => None,
    };
    Ok(events.iter().filter_map(object).collect())
}
