//! What the guardian gives up before it keeps watch: everything but a few descriptors and, perhaps, one capability.
//!
//! The order matters: numbers before limits, the user of its file accesses before the capabilities that go with it, tracing
//! after both, since a change of user resets it; Landlock and the filter last.
//! Source: setfsuid(2): the kernel's checks of owners go by it, those of kill(2) and ptrace(2) do not; capabilities(7).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Resource, Rlimit, setrlimit, setsid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, set_capabilities, set_no_new_privs,
};

use super::super::confine::{confine_support, limit};
use super::super::sys::{descriptors, identity};
use super::super::{child, filter, landlock, numbers};
use super::calls;
use crate::clock::{Clock, SystemClock};
use crate::confine::{ConfineError, Plan};
use crate::guardian::Settings;
use crate::privilege::{self, PrivilegeError};
use crate::unix::sys::disposition::{self, Disposition};

/// Descriptors beside those of flagged objects: its own, and those of the events it reads.
const FEW: u64 = 96;
/// Objects that may be immutable at once: of each it keeps a descriptor, to undo it.
const MOST_FLAGGED: u64 = 4096;

const MAX_MEMORY: u64 = 256 << 20;

/// Why the process is no guardian.
#[derive(Debug, thiserror::Error)]
pub(super) enum CageError {
    #[error("cannot {operation}: {source}")]
    Call { operation: &'static str, source: io::Error },
    #[error(transparent)]
    Confine(#[from] ConfineError),
    #[error("{}", cause(.0))]
    Privilege(#[from] PrivilegeError),
    #[error("this kernel has no filter of system calls for this machine")]
    NoFilter,
    #[error("it can still {0}")]
    Possible(&'static str),
    #[error("a capability is left, or missing")]
    Capabilities,
}

fn cause(error: &PrivilegeError) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

fn call<E: Into<io::Error>>(operation: &'static str) -> impl FnOnce(E) -> CageError {
    move |source| CageError::Call { operation, source: source.into() }
}

/// What a guardian has of its parent, or shares with it.
pub(super) struct Inherited<T> {
    /// The group of permission events.
    pub(super) group: T,
    /// Its end of the channel to the watch.
    pub(super) socket: T,
    /// The watch, as a process.
    pub(super) watch: T,
    /// The line of /proc that tells how the watch is.
    pub(super) stat: T,
    /// Its end of the channel for what is no request: what it answered by itself.
    pub(super) notes: T,
    /// The watch's other groups.
    pub(super) others: Vec<T>,
}

/// Numbers of descriptors, by the limits the watch has. To be read before they are changed here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// The first that the watch cannot have.
    pub(super) first: i32,
    /// How many objects may be flagged at once.
    pub(super) most_flagged: usize,
}

impl Bounds {
    pub(super) fn read() -> Self {
        let first = numbers::first_not_ours();
        let hard = rustix::process::getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        let left = hard.saturating_sub(first + FEW).min(MOST_FLAGGED);
        Self { first: i32::try_from(first).unwrap_or(i32::MAX), most_flagged: usize::try_from(left).unwrap_or(0) }
    }
}

/// Takes the descriptors to numbers that are not the watch's, occupies all that are, and closes what else there is.
///
/// First thing in the new process: whatever the original owned by these numbers is gone.
pub(super) fn keep_only(
    inherited: &Inherited<BorrowedFd<'_>>,
    bounds: Bounds,
) -> Result<Inherited<OwnedFd>, CageError> {
    let most = u64::from(bounds.first.unsigned_abs()) + FEW + bounds.most_flagged as u64;
    setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: Some(most) })
        .map_err(call("limit open files"))?;
    let up = |fd: BorrowedFd<'_>| rustix::io::fcntl_dupfd_cloexec(fd, bounds.first).map_err(call("keep a descriptor"));
    let kept = Inherited {
        group: up(inherited.group)?,
        socket: up(inherited.socket)?,
        watch: up(inherited.watch)?,
        stat: up(inherited.stat)?,
        notes: up(inherited.notes)?,
        others: inherited.others.iter().map(|group| up(*group)).collect::<Result<_, _>>()?,
    };
    // The lowest number that is free from the first on: those before it are the ones kept above. The one it was opened with
    // is closed by the end of this statement: later that would make a gap.
    let null = rustix::fs::open(c"/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(call("open the null device"))
        .and_then(|null| up(null.as_fd()))?;
    descriptors::close_from(null.as_raw_fd().unsigned_abs() + 1).map_err(call("close what was inherited"))?;
    for number in 0..bounds.first {
        descriptors::occupy(number, null.as_fd()).map_err(call("occupy a number"))?;
    }
    Ok(kept)
}

/// Leaves the terminal, its groups and its user's files, and confines itself. `watch` is the number of the watch.
pub(super) fn enter(settings: Settings, watch: u32, socket: BorrowedFd<'_>) -> Result<(), CageError> {
    setsid().map_err(call("leave the terminal"))?;
    // Where the clock is, is looked for at the first use, and by calls that are not to be had later.
    SystemClock.now();
    child::name_process(c"keep-guardian");
    for signal in [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGTERM,
        libc::SIGPIPE,
        libc::SIGALRM,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGIO,
        libc::SIGTSTP,
        libc::SIGTTIN,
        libc::SIGTTOU,
    ] {
        disposition::set(signal, Disposition::Ignore).map_err(call("ignore a signal"))?;
    }
    let is_root = privilege::is_root();
    if is_root {
        identity::setgroups(&[]).map_err(call("leave the groups"))?;
        if !identity::setfsuid(settings.user) {
            return Err(CageError::Call { operation: "access files as the user", source: io::ErrorKind::Other.into() });
        }
    }
    privilege::harden()?;
    limit("memory", Resource::Data, MAX_MEMORY)?;
    limit("file sizes", Resource::Fsize, 0)?;
    limit("message queues", Resource::Msgqueue, 0)?;
    set_no_new_privs(true).map_err(call("refuse new privileges"))?;
    keep_capabilities(settings, is_root)?;
    let support = confine_support();
    if !support.filter {
        return Err(CageError::NoFilter);
    }
    if support.landlock.is_some() {
        landlock::restrict_all_but_reading(&Plan::new(support))?;
    }
    filter::restrict_to(&[calls::CALLS]).map_err(ConfineError::Filter)?;
    calls::possible(watch, socket).map_or(Ok(()), |what| Err(CageError::Possible(what)))
}

/// The one capability that flags need; as root that works for itself also those of an owner of everybody's files.
fn keep_capabilities(settings: Settings, is_root: bool) -> Result<(), CageError> {
    let mut wanted = CapabilitySet::empty();
    if settings.may_flag {
        wanted |= CapabilitySet::LINUX_IMMUTABLE;
    }
    if is_root && settings.user == 0 {
        wanted |= CapabilitySet::LEASE;
        if settings.may_flag {
            wanted |= CapabilitySet::FOWNER;
        }
    }
    clear_ambient_capability_set().map_err(call("clear ambient capabilities"))?;
    let had = capabilities(None).map_err(call("read the capabilities"))?.permitted;
    let kept = had & wanted;
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).map_err(call("give up capabilities"))?;
    let left = capabilities(None).map_err(call("read the capabilities"))?;
    let is_right = left.permitted == kept && left.effective == kept && left.inheritable.is_empty();
    if is_right && (!settings.may_flag || kept.contains(CapabilitySet::LINUX_IMMUTABLE)) {
        Ok(())
    } else {
        Err(CageError::Capabilities)
    }
}
