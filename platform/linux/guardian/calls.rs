//! The system calls of a guardian: what it does with descriptors it has, and nothing by name.

use std::io::Result as IoResult;
use std::net::TcpListener;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixDatagram;

use rustix::fs::{CWD, MemfdFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::super::filter::Calls;
use super::super::filter::With::{Any, OneOf};
use super::super::sys::{doors, fork, identity};

/// `FS_IOC_GETFLAGS` and `FS_IOC_SETFLAGS` (ioctl_iflags(2)) where a `long` has 64 bits.
const FLAGS: &[u32] = &[0x8008_6601, 0x4008_6602];

/// What it needs beside what every process does. Sending takes a descriptor with an address or none: of these sockets none
/// has one.
pub(in crate::linux) const CALLS: Calls = &[
    // The state of the watch.
    (libc::SYS_pread64, Any),
    // Who has a file open, and what is immutable.
    (libc::SYS_fcntl, OneOf(1, &[libc::F_SETLEASE as u32, libc::F_GETFD as u32])),
    (libc::SYS_ioctl, OneOf(1, FLAGS)),
    // What the watch says, and what comes with it.
    (libc::SYS_recvmsg, Any),
    (libc::SYS_sendto, Any),
];

/// Tries what it may not do, without any effect if it could: the first that was not refused in the way the filter refuses.
pub(super) fn possible(watch: u32, socket: BorrowedFd<'_>) -> Option<&'static str> {
    let io = |done: IoResult<()>| done.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
    let open = |flags| rustix::fs::openat(CWD, c"/dev/null", flags | OFlags::CLOEXEC, Mode::empty()).map(drop);
    let watch = i32::try_from(watch).ok().and_then(Pid::from_raw).map_or(Err(Errno::SRCH), test_kill_process);
    let copy = match fork::fork() {
        Ok(None) => fork::end(0),
        done => io(done.map(drop)),
    };
    [
        ("open a file to read", open(OFlags::RDONLY)),
        ("open a file to write", open(OFlags::WRONLY)),
        ("look at a file by name", rustix::fs::stat(c"/").map(drop)),
        ("run a program", doors::execute(c"/")),
        ("make a process", copy),
        ("open a TCP socket", io(TcpListener::bind("127.0.0.1:0").map(drop))),
        ("open a local socket", io(UnixDatagram::unbound().map(drop))),
        ("signal the watch", watch),
        ("make a file in memory", rustix::fs::memfd_create(c"", MemfdFlags::CLOEXEC).map(drop)),
        ("set up io_uring", doors::set_up_ring()),
        ("become another user", io(identity::setresuid(0))),
        ("control a device", rustix::io::ioctl_fionread(socket).map(drop)),
        ("change a limit", rustix::process::setrlimit(rustix::process::Resource::Core, NONE)),
    ]
    .into_iter()
    .find_map(|(what, done)| (done != Err(Errno::PERM)).then_some(what))
}

const NONE: rustix::process::Rlimit = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
