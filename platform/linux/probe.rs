//! What a process that was taken over would try, on Linux.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::{c_int, c_long};
use rustix::fs::{Mode, OFlags};

use super::sys::probe::call;
use crate::probe::{Outcome, Target};

const HERE: usize = libc::AT_FDCWD as usize;

fn made(name: &'static str, number: c_long, arguments: [usize; 6]) -> Outcome {
    (name, call(number, arguments).map(drop))
}

fn opened(path: &std::ffi::CStr, flags: OFlags) -> io::Result<()> {
    Ok(rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::RUSR).map(drop)?)
}

pub(crate) fn probe_files(target: Target<'_>) -> Vec<Outcome> {
    let path = target.outside.as_ptr() as usize;
    // A handle that opens nothing is to be had of anything; it must lead nowhere.
    let pinned = rustix::fs::open(target.outside, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    let reopened = pinned
        .map_err(io::Error::from)
        .and_then(|pinned| File::open(format!("/proc/self/fd/{}", pinned.as_raw_fd())).map(drop));
    vec![
        ("open a pinned file", reopened),
        ("a file without a name", opened(c"/tmp", OFlags::WRONLY | OFlags::TMPFILE)),
        ("the null device", opened(c"/dev/null", OFlags::WRONLY)),
        ("the zero device", opened(c"/dev/zero", OFlags::RDONLY)),
        ("the terminal", opened(c"/dev/tty", OFlags::RDWR)),
        made("truncate", libc::SYS_truncate, [path, 0, 0, 0, 0, 0]),
        made("swapon", libc::SYS_swapon, [path, 0, 0, 0, 0, 0]),
        made("acct", libc::SYS_acct, [path, 0, 0, 0, 0, 0]),
        made("statfs", libc::SYS_statfs, [path, 0, 0, 0, 0, 0]),
    ]
}

pub(crate) fn probe_attributes(target: Target<'_>) -> Vec<Outcome> {
    // fchmodat2 (Linux 6.6), file_setattr (6.17), setxattrat and its like (6.13): not in the C library's list yet.
    const FCHMODAT2: c_long = 452;
    const SETXATTRAT: c_long = 463;
    const FILE_SETATTR: c_long = 469;
    let path = target.outside.as_ptr() as usize;
    let (name, value) = (c"user.x".as_ptr() as usize, c"x".as_ptr() as usize);
    vec![
        made("fchmodat", libc::SYS_fchmodat, [HERE, path, 0o777, 0, 0, 0]),
        made("fchmodat2", FCHMODAT2, [HERE, path, 0o777, 0, 0, 0]),
        made("fchownat", libc::SYS_fchownat, [HERE, path, 1, 1, 0, 0]),
        made("utimensat", libc::SYS_utimensat, [HERE, path, 0, 0, 0, 0]),
        made("setxattr", libc::SYS_setxattr, [path, name, value, 1, 0, 0]),
        made("lsetxattr", libc::SYS_lsetxattr, [path, name, value, 1, 0, 0]),
        made("removexattr", libc::SYS_removexattr, [path, name, 0, 0, 0, 0]),
        made("getxattr", libc::SYS_getxattr, [path, name, 0, 0, 0, 0]),
        made("listxattr", libc::SYS_listxattr, [path, 0, 0, 0, 0, 0]),
        made("setxattrat", SETXATTRAT, [HERE, path, 0, name, 0, 0]),
        made("file_setattr", FILE_SETATTR, [HERE, path, 0, 0, 0, 0]),
    ]
}

pub(crate) fn probe_programs(target: Target<'_>) -> Vec<Outcome> {
    let process = |name, flags: c_int| made(name, libc::SYS_clone, [flags as usize, 0, 0, 0, 0, 0]);
    let (write, run) = ((libc::PROT_READ | libc::PROT_WRITE) as usize, (libc::PROT_READ | libc::PROT_EXEC) as usize);
    let private = libc::MAP_PRIVATE as usize;
    let program = target.program.as_raw_fd() as usize;
    let memory = private | libc::MAP_ANONYMOUS as usize;
    let later = call(libc::SYS_mmap, [0, 4096, write, memory, usize::MAX, 0])
        .and_then(|page| call(libc::SYS_mprotect, [page as usize, 4096, run, 0, 0, 0]).map(drop));
    vec![
        process("fork", libc::SIGCHLD),
        process("posix_spawn", libc::CLONE_VFORK | libc::CLONE_VM | libc::SIGCHLD),
        process("a user namespace", libc::CLONE_NEWUSER | libc::SIGCHLD),
        made("execve", libc::SYS_execve, [c"/bin/true".as_ptr() as usize, 0, 0, 0, 0, 0]),
        made("execveat", libc::SYS_execveat, [program, c"".as_ptr() as usize, 0, 0, libc::AT_EMPTY_PATH as usize, 0]),
        made("memory to run", libc::SYS_mmap, [0, 4096, run, memory, usize::MAX, 0]),
        ("memory to run, later", later),
        made("a file to run", libc::SYS_mmap, [0, 4096, run, private, program, 0]),
        made("a file in memory", libc::SYS_memfd_create, [c"x".as_ptr() as usize, 0, 0, 0, 0, 0]),
        made("shared memory", libc::SYS_shmget, [0, 4096, 0o600, 0, 0, 0]),
    ]
}

pub(crate) fn probe_processes(target: Target<'_>) -> Vec<Outcome> {
    let process = target.process as usize;
    let program = target.program.as_raw_fd() as usize;
    let attach = libc::PTRACE_ATTACH as usize;
    let mut all = vec![
        made("kill", libc::SYS_kill, [process, 0, 0, 0, 0, 0]),
        made("kill all", libc::SYS_kill, [usize::MAX, 0, 0, 0, 0, 0]),
        made("tgkill", libc::SYS_tgkill, [process, process, 0, 0, 0, 0]),
        made("tkill", libc::SYS_tkill, [process, 0, 0, 0, 0, 0]),
        made("rt_sigqueueinfo", libc::SYS_rt_sigqueueinfo, [process, 0, 0, 0, 0, 0]),
        made("pidfd_open", libc::SYS_pidfd_open, [process, 0, 0, 0, 0, 0]),
        made("pidfd_getfd", libc::SYS_pidfd_getfd, [0, 0, 0, 0, 0, 0]),
        made("ptrace", libc::SYS_ptrace, [attach, process, 0, 0, 0, 0]),
        made("process_vm_readv", libc::SYS_process_vm_readv, [process, 0, 0, 0, 0, 0]),
        made("process_vm_writev", libc::SYS_process_vm_writev, [process, 0, 0, 0, 0, 0]),
        made("prlimit64", libc::SYS_prlimit64, [process, 0, 0, 0, 0, 0]),
        made("setpriority", libc::SYS_setpriority, [0, process, 0, 0, 0, 0]),
        made("kcmp", libc::SYS_kcmp, [process, process, 0, 0, 0, 0]),
        made("F_SETOWN", libc::SYS_fcntl, [program, libc::F_SETOWN as usize, process, 0, 0, 0]),
    ];
    for name in ["mem", "environ", "maps", "fd", "root", "cwd", "oom_score_adj"] {
        all.push((name, File::open(format!("/proc/{process}/{name}")).map(drop)));
    }
    all
}

pub(crate) fn probe_sockets(socket: BorrowedFd<'_>) -> Vec<Outcome> {
    let socket = socket.as_raw_fd() as usize;
    vec![
        made("sendmsg", libc::SYS_sendmsg, [socket, 0, 0, 0, 0, 0]),
        made("recvmsg", libc::SYS_recvmsg, [socket, 0, 0, 0, 0, 0]),
        made("sendto", libc::SYS_sendto, [socket, 0, 0, 0, 0, 0]),
        made("connect", libc::SYS_connect, [socket, 0, 0, 0, 0, 0]),
        made("setsockopt", libc::SYS_setsockopt, [socket, 0, 0, 0, 0, 0]),
        made("ioctl", libc::SYS_ioctl, [socket, libc::TIOCSTI as usize, 0, 0, 0, 0]),
        made("splice", libc::SYS_splice, [socket, 0, 0, 0, 0, 0]),
    ]
}

pub(crate) fn probe_special(target: Target<'_>) -> Vec<Outcome> {
    let path = target.free.as_ptr() as usize;
    let node = |name, kind: libc::mode_t| {
        // The device is the null device's number, where it is one.
        made(name, libc::SYS_mknodat, [HERE, path, kind as usize | 0o600, 0x103, 0, 0])
    };
    let link = [target.outside.as_ptr() as usize, HERE, path, 0, 0, 0];
    vec![
        node("a character device", libc::S_IFCHR),
        node("a block device", libc::S_IFBLK),
        node("a FIFO", libc::S_IFIFO),
        node("a socket", libc::S_IFSOCK),
        made("a symlink", libc::SYS_symlinkat, link),
    ]
}

pub(crate) fn probe_kernel() -> Vec<Outcome> {
    let mut all: Vec<Outcome> = [
        ("mount", libc::SYS_mount),
        ("umount2", libc::SYS_umount2),
        ("open_tree", libc::SYS_open_tree),
        ("move_mount", libc::SYS_move_mount),
        ("fsopen", libc::SYS_fsopen),
        ("fsmount", libc::SYS_fsmount),
        ("mount_setattr", libc::SYS_mount_setattr),
        ("pivot_root", libc::SYS_pivot_root),
        ("chroot", libc::SYS_chroot),
        ("chdir", libc::SYS_chdir),
        ("fchdir", libc::SYS_fchdir),
        ("unshare", libc::SYS_unshare),
        ("setns", libc::SYS_setns),
        ("bpf", libc::SYS_bpf),
        ("keyctl", libc::SYS_keyctl),
        ("add_key", libc::SYS_add_key),
        ("request_key", libc::SYS_request_key),
        ("io_uring_setup", libc::SYS_io_uring_setup),
        ("io_uring_enter", libc::SYS_io_uring_enter),
        ("io_uring_register", libc::SYS_io_uring_register),
        ("perf_event_open", libc::SYS_perf_event_open),
        ("userfaultfd", libc::SYS_userfaultfd),
        ("finit_module", libc::SYS_finit_module),
        ("open_by_handle_at", libc::SYS_open_by_handle_at),
        ("name_to_handle_at", libc::SYS_name_to_handle_at),
        ("fanotify_init", libc::SYS_fanotify_init),
        ("inotify_init1", libc::SYS_inotify_init1),
        ("seccomp", libc::SYS_seccomp),
        ("landlock_create_ruleset", libc::SYS_landlock_create_ruleset),
        ("personality", libc::SYS_personality),
        ("capset", libc::SYS_capset),
        ("setresuid", libc::SYS_setresuid),
        ("setgroups", libc::SYS_setgroups),
        ("setsid", libc::SYS_setsid),
        ("mq_open", libc::SYS_mq_open),
        ("timer_create", libc::SYS_timer_create),
        ("sethostname", libc::SYS_sethostname),
        ("clock_settime", libc::SYS_clock_settime),
        ("process_madvise", libc::SYS_process_madvise),
        ("pkey_mprotect", libc::SYS_pkey_mprotect),
        ("remap_file_pages", libc::SYS_remap_file_pages),
        ("vmsplice", libc::SYS_vmsplice),
        ("socket", libc::SYS_socket),
        ("socketpair", libc::SYS_socketpair),
    ]
    .into_iter()
    .map(|(name, number)| made(name, number, [0; 6]))
    .collect();
    for (name, option) in [
        ("PR_SET_DUMPABLE", libc::PR_SET_DUMPABLE),
        ("PR_SET_PDEATHSIG", libc::PR_SET_PDEATHSIG),
        ("PR_SET_MM", libc::PR_SET_MM),
        ("PR_SET_SECCOMP", libc::PR_SET_SECCOMP),
        ("PR_CAP_AMBIENT", libc::PR_CAP_AMBIENT),
    ] {
        all.push(made(name, libc::SYS_prctl, [option as usize, 0, 0, 0, 0, 0]));
    }
    all
}
