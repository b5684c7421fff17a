//! The kernel's connector for what happens to processes: a socket that hears of every fork, exec and exit of a process, and
//! one that rings for those execs which somebody should look at now.
//!
//! Promise: only what the kernel itself sent is taken. Whoever asks reads all that was sent until then, so that nobody needs
//! to be woken for a fork or an exit; the bell rings for every exec, and often enough for the others that the queue of the
//! first does not fill unread. Threads, users, sessions and names are dropped in the kernel.
//! Limit: it is there in the first network namespace only, and before Linux 6.6 for `CAP_NET_ADMIN` only; a full queue drops
//! messages, which the next read says.
//! Source: Documentation/driver-api/connector.rst, drivers/connector/cn_proc.c, netlink(7) `ENOBUFS`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::{CONNECTOR, SocketAddrNetlink};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recvfrom, send, socket_with};

use super::event_filter;
use super::sys::socket_filter;
use crate::witness::Received;

/// The group, and the part of the connector, that tells of processes (`CN_IDX_PROC`, `CN_VAL_PROC`).
const PROCESSES: u32 = 1;
/// `PROC_CN_MCAST_LISTEN`.
const LISTEN: u32 = 1;
/// Room for some ten thousand messages, so that a build that starts hundreds of programs at once loses none.
const ROOM: usize = 8 << 20;
/// Of forks and exits, one in so many rings.
const RINGS: u32 = 64;

/// A socket to which the kernel sends of forks and exits one in so many, and every exec.
fn hear(one_in: u32) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(CONNECTOR))?;
    // Before it is in the group: nothing else is ever queued.
    socket_filter::attach(socket.as_fd(), &event_filter::one_in(one_in))?;
    bind(&socket, &SocketAddrNetlink::new(0, PROCESSES))?;
    Ok(socket)
}

/// Asks the kernel to send messages.
fn listen(socket: BorrowedFd<'_>) -> io::Result<()> {
    let mut message = Vec::with_capacity(40);
    let short =
        |number: u16| u32::from_ne_bytes(std::array::from_fn(|at| if at < 2 { number.to_ne_bytes()[at] } else { 0 }));
    /// The message is a whole one (`NLMSG_DONE`).
    const DONE: u16 = 3;
    // Length; type, no flags; number and sender, which the kernel does not ask for. Then which part of the connector; number
    // and answer; the length of what follows, no flags; what is asked.
    for number in [40, short(DONE), 0, 0, PROCESSES, PROCESSES, 0, 0, short(4), LISTEN] {
        message.extend(u32::to_ne_bytes(number));
    }
    send(socket, &message, SendFlags::empty())?;
    Ok(())
}

/// Both sockets.
#[derive(Debug)]
pub(crate) struct Connector {
    messages: OwnedFd,
    bell: OwnedFd,
}

impl Connector {
    /// To be opened while there is privilege.
    pub(crate) fn open() -> io::Result<Self> {
        // The socket that was bound last gets a message first (`sk_add_bind_node` in include/net/sock.h): what is rung for is
        // in the queue by then.
        let bell = hear(RINGS)?;
        let messages = hear(1)?;
        // Beyond the system's limit, if we may; less room only means that more may be dropped, and that is told.
        if set_socket_recv_buffer_size_force(&messages, ROOM).is_err() {
            set_socket_recv_buffer_size(&messages, ROOM)?;
        }
        // Each asks for itself (Linux 6.6).
        listen(bell.as_fd())?;
        listen(messages.as_fd())?;
        Ok(Self { messages, bell })
    }

    /// Becomes readable when messages are to be taken.
    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Lets it ring again. To be called before the messages are taken, so that whatever comes later is heard.
    pub(crate) fn answer_bell(&self) {
        let mut bytes = [0; 8];
        // What it rings for is in the other queue; that it rang too often to be counted is no loss.
        while matches!(
            recvfrom(&self.bell, &mut bytes[..], RecvFlags::DONTWAIT),
            Ok(_) | Err(Errno::INTR | Errno::NOBUFS)
        ) {}
    }

    /// Where messages are read.
    pub(crate) fn messages(&self) -> BorrowedFd<'_> {
        self.messages.as_fd()
    }

    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        loop {
            match recvfrom(&self.messages, &mut *buffer, RecvFlags::DONTWAIT) {
                // Number 0 is the kernel; others may be allowed to send to us, and are not believed.
                Ok((length, whole, Some(from))) => match SocketAddrNetlink::try_from(from) {
                    Ok(from) if from.pid() == 0 && whole <= length => return Ok(Received::Messages(length)),
                    _ => {}
                },
                Ok((_, _, None)) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(Received::Nothing),
                Err(Errno::NOBUFS) => return Ok(Received::Dropped),
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::process_events::{ProcessEvent, process_events};
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::net::getsockname;
    use rustix::net::sendto;
    use std::time::{Duration, Instant};

    #[test]
    fn a_message_that_is_not_the_kernels_is_not_taken() {
        if !crate::privilege::is_root() {
            return;
        }
        let socket = |groups| {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(CONNECTOR)).expect("opens");
            bind(&socket, &SocketAddrNetlink::new(0, groups)).expect("binds");
            socket
        };
        // Nobody else's messages: it is in no group.
        let (hears, forges) = (socket(0), socket(0));
        let address = SocketAddrNetlink::try_from(getsockname(&hears).expect("has one")).expect("is one");
        let sent = sendto(&forges, &[0; 64], SendFlags::empty(), &SocketAddrNetlink::new(address.pid(), 0));
        assert_eq!(sent, Ok(64));
        let connector = Connector { messages: hears, bell: socket(0) };
        assert_eq!(connector.receive(&mut [0; 256]).expect("reads"), Received::Nothing);
    }

    /// Every event until `is_last`.
    fn events_until(connector: &Connector, mut is_last: impl FnMut(ProcessEvent) -> bool) -> Vec<ProcessEvent> {
        let (mut seen, mut buffer) = (Vec::new(), [0; 1024]);
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            assert!(Instant::now() < deadline, "waited in vain; seen: {seen:?}");
            match connector.receive(&mut buffer).expect("reads") {
                Received::Messages(length) => {
                    for event in process_events(&buffer[..length]) {
                        let event = event.expect("well formed");
                        seen.push(event);
                        if is_last(event) {
                            return seen;
                        }
                    }
                }
                Received::Dropped => panic!("some were dropped"),
                Received::Nothing => std::thread::yield_now(),
            }
        }
    }

    #[test]
    fn the_kernel_runs_the_filter_a_program_is_told_and_rings_and_a_thread_is_not() {
        if !crate::privilege::is_root() || !crate::process::all_are_seen() {
            return;
        }
        let connector = Connector::open().expect("root may");
        events_until(&connector, |event| matches!(event, ProcessEvent::Answer(0)));
        connector.answer_bell();
        let thread = std::thread::spawn(|| rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs());
        let thread = thread.join().expect("ends");
        let mut child = std::process::Command::new("true").spawn().expect("starts");
        let pid = child.id();
        let mut ready = [PollFd::from_borrowed_fd(connector.bell(), PollFlags::IN)];
        assert_eq!(poll(&mut ready, Some(&Timespec { tv_sec: 20, tv_nsec: 0 })), Ok(1), "it rings for the exec");
        child.wait().expect("ends");
        let seen = events_until(&connector, |event| event == ProcessEvent::Exit(pid));
        let of_child = |event: &&ProcessEvent| match event {
            ProcessEvent::Fork { child, .. } => *child == pid,
            ProcessEvent::Exec(of) | ProcessEvent::Exit(of) => *of == pid,
            ProcessEvent::Answer(_) => false,
        };
        let of_child: Vec<_> = seen.iter().filter(of_child).collect();
        assert!(
            matches!(of_child[..], [ProcessEvent::Fork { .. }, ProcessEvent::Exec(_), ProcessEvent::Exit(_)]),
            "{of_child:?}"
        );
        let of_thread = |event: &ProcessEvent| {
            matches!(event, ProcessEvent::Fork { child, .. } if *child == thread)
                || *event == ProcessEvent::Exit(thread)
        };
        assert!(!seen.iter().any(of_thread));
    }
}
