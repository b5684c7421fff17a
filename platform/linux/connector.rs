//! The kernel's connector for what happens to processes: a socket that hears of every fork, exec and exit.
//!
//! Promise: only what the kernel itself sent is taken. Limit: it is there in the first network namespace only, and before
//! Linux 6.6 for `CAP_NET_ADMIN` only; a full queue drops messages, which the next read says.
//! Source: Documentation/driver-api/connector.rst, drivers/connector/cn_proc.c, netlink(7) `ENOBUFS`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::{CONNECTOR, SocketAddrNetlink};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recvfrom, send, socket_with};

use crate::witness::Received;

/// The group, and the part of the connector, that tells of processes (`CN_IDX_PROC`, `CN_VAL_PROC`).
const PROCESSES: u32 = 1;
/// `PROC_CN_MCAST_LISTEN`.
const LISTEN: u32 = 1;
/// Room for some ten thousand messages, so that a build that starts hundreds of programs at once loses none.
const ROOM: usize = 8 << 20;

/// A socket to which the kernel sends what happens to processes. To be opened while there is privilege.
pub(crate) fn process_connector() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(CONNECTOR))?;
    bind(&socket, &SocketAddrNetlink::new(0, PROCESSES))?;
    // Beyond the system's limit, if we may; less room only means that more may be dropped, and that is told.
    if set_socket_recv_buffer_size_force(&socket, ROOM).is_err() {
        set_socket_recv_buffer_size(&socket, ROOM)?;
    }
    listen(socket.as_fd())?;
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

/// The socket, as the thread that reads it has it.
#[derive(Debug)]
pub(crate) struct Connector(OwnedFd);

impl Connector {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self(socket)
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        loop {
            match recvfrom(&self.0, &mut *buffer, RecvFlags::DONTWAIT) {
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
    use rustix::net::getsockname;
    use rustix::net::sendto;

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
        assert_eq!(Connector::new(hears).receive(&mut [0; 256]).expect("reads"), Received::Nothing);
    }
}
