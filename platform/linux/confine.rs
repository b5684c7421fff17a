//! Confining this process: limits, capabilities, Landlock, the filter of system calls, in this order.
//!
//! The order matters: Landlock and the filter need no_new_privs first, and behind the filter none of the other calls is
//! to be had. Source: landlock_restrict_self(2), seccomp(2), capabilities(7), PR_SET_NO_NEW_PRIVS(2const).

use std::fs;
use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, MemfdFlags, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getppid, setrlimit, test_kill_process};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, set_capabilities, set_no_new_privs,
};

use super::sys::{doors, landlock as version, seccomp};
use super::{filter, landlock};
use crate::confine::{Attempt, Axis, ConfineError, Means, Plan, Support};
use crate::dir::Dir;
use crate::privilege;

pub(crate) fn confine_support() -> Support {
    let filter = filter::is_known_machine() && seccomp::can_refuse();
    Support { landlock: version::version().ok(), filter, seatbelt: false, is_expected: true }
}

/// What is needed of root to work on other users' files as root does. All else of root is given up.
const FILE_CAPABILITIES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID);

/// Enough for a message of the greatest length, read, parsed and answered; memory beyond it is an error of ours.
const MAX_MEMORY: u64 = 1 << 30;
/// Address space: the C library reserves some for each thread without using it.
const MAX_ADDRESSES: u64 = 8 << 30;
/// A walk holds a descriptor for each directory above the one it is in, and there may be several walks.
const MAX_FILES: u64 = 1024;

pub(crate) fn confine(plan: &Plan, folder: &Dir) -> Result<(), ConfineError> {
    let count = fs::read_dir("/proc/self/task").map_err(ConfineError::Count)?.count();
    // Landlock and the filter bind the calling thread and those it starts.
    if count != 1 {
        return Err(ConfineError::Threads { count });
    }
    privilege::harden().map_err(ConfineError::Harden)?;
    limit("memory", Resource::Data, MAX_MEMORY)?;
    limit("addresses", Resource::As, MAX_ADDRESSES)?;
    limit("open files", Resource::Nofile, MAX_FILES)?;
    limit("message queues", Resource::Msgqueue, 0)?;
    set_no_new_privs(true).map_err(|errno| ConfineError::NewPrivileges(errno.into()))?;
    give_up_capabilities().map_err(|errno| ConfineError::Capabilities(errno.into()))?;
    if plan.support().landlock.is_some() {
        landlock::restrict(plan, folder)?;
    }
    if plan.support().filter {
        filter::restrict().map_err(ConfineError::Filter)?;
    }
    Ok(())
}

/// Sets a limit, or leaves a lower one as it is: it could not be raised without a privilege.
pub(super) fn limit(what: &'static str, resource: Resource, most: u64) -> Result<(), ConfineError> {
    let now = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let most = Some(most.min(now));
    setrlimit(resource, Rlimit { current: most, maximum: most })
        .map_err(|errno| ConfineError::Limit { what, source: errno.into() })
}

fn give_up_capabilities() -> rustix::io::Result<()> {
    clear_ambient_capability_set()?;
    let kept = capabilities(None)?.permitted & FILE_CAPABILITIES;
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() })?;
    let left = capabilities(None)?;
    if left.permitted == kept && left.effective == kept && left.inheritable.is_empty() {
        Ok(())
    } else {
        Err(Errno::PERM)
    }
}

pub(crate) fn forbidden_attempts(folder: &Dir, outside: &[PathBuf]) -> Vec<Attempt> {
    let list = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let read = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let open = |path: &Path, flags| rustix::fs::open(path, flags, Mode::empty()).map(drop);
    // Landlock's answer is EACCES and the filter's EPERM: another answer is another reason, and no proof.
    let by_landlock = |axis, what: String, done: rustix::io::Result<()>| match done {
        Err(Errno::NOENT | Errno::NOTDIR) => None,
        done => Some(Attempt { axis, means: Means::Landlock, what, was_refused: done == Err(Errno::ACCESS) }),
    };
    let by_filter = |axis, what: &str, done: rustix::io::Result<()>| {
        Some(Attempt { axis, means: Means::Filter, what: what.to_owned(), was_refused: done == Err(Errno::PERM) })
    };
    let net = |done: std::io::Result<()>| done.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
    let parent = getppid().map_or(Err(Errno::SRCH), test_kill_process);
    let same = Timestamps { last_access: unchanged(), last_modification: unchanged() };

    let mut all = vec![
        by_landlock(Axis::Read, "list /".into(), open(Path::new("/"), list)),
        by_landlock(Axis::Read, "list ..".into(), rustix::fs::openat(folder, c"..", list, Mode::empty()).map(drop)),
    ];
    all.extend(outside.iter().map(|path| {
        let shown = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        by_landlock(Axis::Read, format!("read {shown}"), open(path, read))
    }));
    let null = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
    all.extend([
        by_landlock(Axis::Write, "write /dev/null".into(), open(Path::new("/dev/null"), null)),
        // Neither is done where nothing forbids it: times that are to stay, a directory as a program, a parent that is only
        // looked for, a ring without a description.
        by_filter(Axis::Attributes, "set times of /", rustix::fs::utimensat(CWD, c"/", &same, AtFlags::empty())),
        by_filter(Axis::Execute, "execute", doors::execute(c"/")),
        by_filter(Axis::Tcp, "open a TCP socket", net(TcpListener::bind("127.0.0.1:0").map(drop))),
        by_filter(Axis::NamedSockets, "open a local socket", net(UnixDatagram::unbound().map(drop))),
        by_filter(Axis::Signals, "signal its parent", parent),
        by_filter(Axis::Code, "make a file in memory", rustix::fs::memfd_create(c"", MemfdFlags::CLOEXEC).map(drop)),
        by_filter(Axis::Kernel, "set up io_uring", doors::set_up_ring()),
    ]);
    all.into_iter().flatten().collect()
}

/// `UTIME_OMIT`: with both times so, utimensat(2) does nothing and needs no permission.
fn unchanged() -> Timespec {
    Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT }
}
