//! What a process that was taken over would try here, by call.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;
use std::process::Command;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Timespec, Timestamps, XattrFlags};
use rustix::process::{Gid, Pid, Signal, Uid, kill_process, test_kill_process};

use super::sys::{probe, process};
use crate::probe::{Outcome, Target};

fn made<T>(name: &'static str, done: rustix::io::Result<T>) -> Outcome {
    (name, done.map(drop).map_err(io::Error::from))
}

fn text(path: &CStr) -> &OsStr {
    OsStr::from_bytes(path.to_bytes())
}

pub(crate) fn probe_files(target: Target<'_>) -> Vec<Outcome> {
    let open = |flags: OFlags| rustix::fs::open(target.outside, flags | OFlags::CLOEXEC, Mode::empty());
    let events_only = OFlags::from_bits_retain(libc::O_EVTONLY as u32);
    let itself = OFlags::from_bits_retain(libc::O_SYMLINK as u32);
    vec![
        made("open to read", open(OFlags::RDONLY)),
        made("open for events", open(events_only)),
        made("open itself", open(itself)),
        made("open and cut", open(OFlags::WRONLY | OFlags::TRUNC)),
        ("truncate", probe::truncate(target.outside)),
        made("link in", rustix::fs::linkat(CWD, target.outside, CWD, target.free, AtFlags::empty())),
        made("rename in", rustix::fs::renameat(CWD, target.outside, CWD, target.free)),
        made(
            "clone out",
            rustix::fs::fclonefileat(target.program, CWD, target.outside, rustix::fs::CloneFlags::empty()),
        ),
    ]
}

pub(crate) fn probe_attributes(target: Target<'_>) -> Vec<Outcome> {
    let path = target.outside;
    let at = |seconds| Timespec { tv_sec: seconds, tv_nsec: 0 };
    let times = Timestamps { last_access: at(1), last_modification: at(1) };
    let own = (Some(Uid::from_raw(rustix::process::getuid().as_raw())), None::<Gid>);
    vec![
        made("chmod", rustix::fs::chmodat(CWD, path, Mode::RWXU, AtFlags::empty())),
        made("chown", rustix::fs::chownat(CWD, path, own.0, own.1, AtFlags::empty())),
        made("set times", rustix::fs::utimensat(CWD, path, &times, AtFlags::empty())),
        made("set an attribute", rustix::fs::setxattr(path, c"keep.trial", b"1", XattrFlags::empty())),
        made("remove an attribute", rustix::fs::removexattr(path, c"keep.trial")),
    ]
}

pub(crate) fn probe_programs(_: Target<'_>) -> Vec<Outcome> {
    let start = || Command::new("/usr/bin/true").env_clear().spawn()?.wait().map(drop);
    vec![("start a program", start())]
}

pub(crate) fn probe_processes(target: Target<'_>) -> Vec<Outcome> {
    let Some(pid) = i32::try_from(target.process).ok().and_then(Pid::from_raw) else { return Vec::new() };
    vec![
        made("look for", test_kill_process(pid)),
        // It runs, so that it goes on running.
        made("let go on", kill_process(pid, Signal::CONT)),
        ("look at", process::bsd_info(target.process).map(drop)),
    ]
}

/// There is nothing that Seatbelt would refuse to a socket that is open.
pub(crate) fn probe_sockets(_: BorrowedFd<'_>) -> Vec<Outcome> {
    Vec::new()
}

pub(crate) fn probe_special(target: Target<'_>) -> Vec<Outcome> {
    vec![
        ("make a FIFO", probe::mkfifo(target.free)),
        (
            "make a socket",
            UnixListener::bind(text(target.free)).map(|socket| drop(socket.as_fd().try_clone_to_owned())),
        ),
    ]
}

/// Of the doors that Linux has none is here.
pub(crate) fn probe_kernel() -> Vec<Outcome> {
    Vec::new()
}
