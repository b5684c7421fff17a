//! The system calls of a confined process: an allow-list, everything else is `EPERM`. Here what every such process needs, and
//! what one needs besides that works on files below a handle; what the guardian needs besides is told by itself.
//!
//! Promise: no program is run, no process made, no socket, no memory that can be written and run; no call takes a path but
//! those Landlock looks at, and those that only tell (statx, readlinkat). Threads can be started.
//! Limit: a filter sees numbers and not what pointers lead to, so that paths are Landlock's; a path outside can be looked
//! at by statx(2). Source: seccomp(2), clone(2), clone3(2) (whose flags lie in memory, so that the C library is told
//! that there is none); the crate `seccompiler`, whose programs end the process for calls of a foreign architecture.

use std::collections::BTreeMap;
use std::error::Error;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

/// With which arguments a call may be made.
#[derive(Clone, Copy)]
pub(super) enum With {
    /// With any.
    Any,
    /// Argument number `.0` is one of these numbers of 32 bits.
    OneOf(u8, &'static [u32]),
    /// Of the argument number `.0`, the bits `.1` are these: `.2`.
    Bits(u8, u32, u32),
    /// These arguments are null.
    Null(&'static [u8]),
    /// Argument number `.0` is the number of this process.
    Own(u8),
}

use With::{Any, Bits, Null, OneOf, Own};

/// What pthread_create(3) asks of clone(2): all that makes it a thread.
const THREAD: u32 =
    (libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_FILES | libc::CLONE_SIGHAND | libc::CLONE_THREAD) as u32;
/// What it may ask besides: where to write its number, semaphores, and a flag without meaning.
const THREAD_MAY: u32 = (libc::CLONE_SYSVSEM
    | libc::CLONE_SETTLS
    | libc::CLONE_PARENT_SETTID
    | libc::CLONE_CHILD_SETTID
    | libc::CLONE_CHILD_CLEARTID
    | libc::CLONE_DETACHED) as u32;
/// Descriptors: how they are inherited, how they wait, another of the same. No owner of signals, no lease, no notice.
const FCNTL: &[u32] = &[
    libc::F_GETFD as u32,
    libc::F_SETFD as u32,
    libc::F_GETFL as u32,
    libc::F_SETFL as u32,
    libc::F_DUPFD_CLOEXEC as u32,
];
const PROT_EXEC: u32 = libc::PROT_EXEC as u32;

/// Calls that may be made.
pub(super) type Calls = &'static [(c_long, With)];

/// What the language and the C library need to go on and to end, whatever the process is for. In every filter.
const NEEDED: Calls = &[
    (libc::SYS_read, Any),
    (libc::SYS_write, Any),
    (libc::SYS_close, Any),
    (libc::SYS_fstat, Any),
    // Memory.
    (libc::SYS_brk, Any),
    (libc::SYS_mmap, Bits(2, PROT_EXEC, 0)),
    (libc::SYS_mprotect, Bits(2, PROT_EXEC, 0)),
    (libc::SYS_munmap, Any),
    (libc::SYS_mremap, Any),
    (libc::SYS_madvise, Any),
    // Signals to itself, as abort(3) sends them.
    (libc::SYS_tgkill, Own(0)),
    (libc::SYS_rt_sigaction, Any),
    (libc::SYS_rt_sigprocmask, Any),
    (libc::SYS_rt_sigreturn, Any),
    (libc::SYS_sigaltstack, Any),
    // Waiting, time, who it is, the end.
    (libc::SYS_futex, Any),
    (libc::SYS_ppoll, Any),
    (libc::SYS_restart_syscall, Any),
    (libc::SYS_clock_gettime, Any),
    (libc::SYS_getpid, Any),
    (libc::SYS_gettid, Any),
    (libc::SYS_exit, Any),
    (libc::SYS_exit_group, Any),
];

/// The call that only this architecture has in the place of ppoll.
#[cfg(target_arch = "x86_64")]
const OLD_NEEDED: Calls = &[(libc::SYS_poll, Any)];
#[cfg(not(target_arch = "x86_64"))]
const OLD_NEEDED: Calls = &[];

const CALLS: Calls = &[
    // Open files.
    (libc::SYS_readv, Any),
    (libc::SYS_writev, Any),
    (libc::SYS_pread64, Any),
    (libc::SYS_pwrite64, Any),
    (libc::SYS_lseek, Any),
    (libc::SYS_dup, Any),
    (libc::SYS_fcntl, OneOf(1, FCNTL)),
    (libc::SYS_fstatfs, Any),
    (libc::SYS_ftruncate, Any),
    (libc::SYS_fallocate, Any),
    (libc::SYS_fadvise64, Any),
    (libc::SYS_fsync, Any),
    (libc::SYS_fdatasync, Any),
    (libc::SYS_copy_file_range, Any),
    (libc::SYS_getdents64, Any),
    // Attributes of open files; their likes that take a path are not here, for Landlock does not look at those.
    (libc::SYS_fchmod, Any),
    (libc::SYS_fchown, Any),
    (libc::SYS_fgetxattr, Any),
    (libc::SYS_flistxattr, Any),
    (libc::SYS_fsetxattr, Any),
    (libc::SYS_fremovexattr, Any),
    (libc::SYS_utimensat, Null(&[1])),
    // Names below a handle.
    (libc::SYS_openat, Any),
    (libc::SYS_openat2, Any),
    (libc::SYS_newfstatat, Any),
    (libc::SYS_statx, Any),
    (libc::SYS_readlinkat, Any),
    (libc::SYS_mkdirat, Any),
    (libc::SYS_unlinkat, Any),
    (libc::SYS_renameat, Any),
    (libc::SYS_renameat2, Any),
    (libc::SYS_linkat, Any),
    // Threads. clone3 is let through here and refused by the second filter, which has the other answer.
    (libc::SYS_clone, Bits(0, !THREAD_MAY, THREAD)),
    (libc::SYS_clone3, Any),
    (libc::SYS_rseq, Any),
    (libc::SYS_set_robust_list, Any),
    (libc::SYS_sched_yield, Any),
    (libc::SYS_sched_getaffinity, Any),
    (libc::SYS_prctl, OneOf(0, &[libc::PR_SET_NAME as u32])),
    (libc::SYS_prlimit64, Null(&[0, 2])),
    // Waiting, chance, who it is.
    (libc::SYS_clock_nanosleep, Any),
    (libc::SYS_nanosleep, Any),
    (libc::SYS_getrandom, Any),
    (libc::SYS_getppid, Any),
    (libc::SYS_getuid, Any),
    (libc::SYS_geteuid, Any),
    (libc::SYS_getgid, Any),
    (libc::SYS_getegid, Any),
];

/// The call that only this architecture has in the place of openat.
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: Calls = &[(libc::SYS_open, Any)];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: Calls = &[];

/// Whether there is a list for this architecture.
pub(crate) fn is_known_machine() -> bool {
    machine().is_ok()
}

fn machine() -> Result<TargetArch, seccompiler::BackendError> {
    match std::env::consts::ARCH {
        // What nobody has tried is not claimed, though the crate may know it.
        known @ ("x86_64" | "aarch64") => TargetArch::try_from(known),
        other => Err(seccompiler::BackendError::InvalidTargetArch(other.to_owned())),
    }
}

pub(super) type Failure = Box<dyn Error + Send + Sync>;

/// The conditions of one entry: one of them is enough, none means that there is none.
fn conditions(with: With, process: u32) -> Result<Vec<SeccompRule>, Failure> {
    let one = |conditions: Vec<SeccompCondition>| SeccompRule::new(conditions);
    let is = |argument, value: u32| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, u64::from(value))
    };
    Ok(match with {
        Any => Vec::new(),
        OneOf(argument, values) => {
            let mut any = Vec::new();
            for &value in values {
                any.push(one(vec![is(argument, value)?])?);
            }
            any
        }
        Bits(argument, mask, value) => {
            let operator = SeccompCmpOp::MaskedEq(u64::from(mask));
            vec![one(vec![SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, u64::from(value))?])?]
        }
        Null(arguments) => {
            let mut conditions = Vec::new();
            for &argument in arguments {
                conditions.push(SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)?);
            }
            vec![one(conditions)?]
        }
        Own(argument) => vec![one(vec![is(argument, process)?])?],
    })
}

/// The two programs, in the order in which they are to be put in force: of two answers the stricter counts.
fn programs(lists: &[Calls], process: u32) -> Result<[BpfProgram; 2], Failure> {
    let refuse = |errno: i32| SeccompAction::Errno(errno.unsigned_abs());
    let absent = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let absent = SeccompFilter::new(absent, SeccompAction::Allow, refuse(libc::ENOSYS), machine()?)?;
    let mut allowed = BTreeMap::new();
    for (call, with) in [NEEDED, OLD_NEEDED].iter().chain(lists).copied().flatten() {
        allowed.insert(*call, conditions(*with, process)?);
    }
    let allowed = SeccompFilter::new(allowed, refuse(libc::EPERM), SeccompAction::Allow, machine()?)?;
    Ok([absent.try_into()?, allowed.try_into()?])
}

/// Puts the filter in force for the calling thread and all it starts.
pub(crate) fn restrict() -> Result<(), Failure> {
    restrict_to(&[CALLS, OLD_CALLS])
}

/// The same, with other lists beside what every process needs.
pub(super) fn restrict_to(lists: &[Calls]) -> Result<(), Failure> {
    for program in programs(lists, crate::process::own_pid())? {
        apply_filter(&program)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
