//! Confining this process on macOS: limits, then Seatbelt.
//!
//! The profile names the folder by the path that its handle has at that moment. Limit: if the folder is moved later the
//! worker loses it, and it could reach what takes its place, though nothing in it asks for a path: it works from its handle.
//! Source: sandbox_init(3), fcntl(2) `F_GETPATH`, setrlimit(2).

use std::ffi::CString;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getppid, getrlimit, setrlimit, test_kill_process};

use super::files;
use super::sys::{process, sandbox};
use crate::confine::{Attempt, Axis, ConfineError, Means, Plan, Support};
use crate::dir::{Dir, on};
use crate::privilege;
use crate::process::own_pid;
use crate::seatbelt::{PlainPath, files_worker};

/// A walk holds a descriptor for each directory above the one it is in, and there may be several walks.
const MAX_FILES: u64 = 1024;

/// A socket that every user may connect to: name resolution.
const ANY_SOCKET: &str = "/private/var/run/mDNSResponder";

/// A program that does nothing, for a process that should not be able to start it.
const ANY_PROGRAM: &str = "/usr/bin/true";

/// A process can enter one sandbox in its life, so one that is in another's cannot have ours.
pub(crate) fn confine_support() -> Support {
    Support { landlock: None, filter: false, seatbelt: matches!(sandbox::is_in_one(), Ok(false)), is_expected: true }
}

pub(crate) fn confine(plan: &Plan, folder: &Dir) -> Result<(), ConfineError> {
    let count = process::thread_count(own_pid()).map_err(ConfineError::Count)?;
    // All threads would be confined, but one that runs already may have opened what it should not have.
    if count != 1 {
        return Err(ConfineError::Threads { count });
    }
    privilege::harden().map_err(ConfineError::Harden)?;
    // A limit that is lower already cannot be raised.
    let most = getrlimit(Resource::Nofile).maximum.map_or(MAX_FILES, |most| most.min(MAX_FILES));
    let files = Rlimit { current: Some(most), maximum: Some(most) };
    setrlimit(Resource::Nofile, files)
        .map_err(|errno| ConfineError::Limit { what: "open files", source: errno.into() })?;
    // What the kernel knows of symlinks is found out at a path that is out of reach afterwards.
    files::refuses_any_symlink();
    if plan.uses(Means::Seatbelt) {
        enter(folder)?;
    }
    Ok(())
}

fn enter(folder: &Dir) -> Result<(), ConfineError> {
    let path = rustix::fs::getpath(folder).map_err(|errno| ConfineError::Shut(on("find", b".")(errno.into())))?;
    let path = PlainPath::new(path.as_bytes()).map_err(ConfineError::Path)?;
    let text = CString::new(files_worker(path).text()).map_err(|error| ConfineError::Seatbelt(error.into()))?;
    sandbox::enter(&text).map_err(ConfineError::Seatbelt)?;
    if !sandbox::is_in_one().map_err(ConfineError::Seatbelt)? {
        return Err(ConfineError::NoSandbox);
    }
    // A path that the language reads in another way than we write it would fit nothing.
    folder.reopen().and_then(|folder| folder.each_entry(|_, _| {})).map_err(ConfineError::Shut)
}

pub(crate) fn forbidden_attempts(folder: &Dir, outside: &[PathBuf]) -> Vec<Attempt> {
    let list = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let read = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let write = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
    let open = |path: &Path, flags| rustix::fs::open(path, flags, Mode::empty()).map(drop);
    // Seatbelt's answer is EPERM: another one is another reason, and no proof.
    let tried = |axis, what: String, done: rustix::io::Result<()>| match done {
        Err(Errno::NOENT | Errno::NOTDIR) => None,
        done => Some(Attempt { axis, means: Means::Seatbelt, what, was_refused: done == Err(Errno::PERM) }),
    };
    let errno = |done: io::Result<()>| done.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));

    let mut all = vec![
        tried(Axis::Read, "list /".into(), open(Path::new("/"), list)),
        tried(Axis::Read, "list ..".into(), rustix::fs::openat(folder, c"..", list, Mode::empty()).map(drop)),
    ];
    all.extend(outside.iter().map(|path| {
        let shown = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        tried(Axis::Read, format!("read {shown}"), open(path, read))
    }));
    let parent = getppid().map_or(Err(Errno::SRCH), test_kill_process);
    let looked = getppid().map_or(Ok(()), |pid| process::bsd_info(pid.as_raw_nonzero().get().unsigned_abs()).map(drop));
    all.extend([
        tried(Axis::Write, "write /dev/null".into(), open(Path::new("/dev/null"), write)),
        // Where nothing forbids it, none of these does anything that stays: a program that ends at once, sockets that are
        // closed unused, a parent that is only looked for.
        tried(Axis::Execute, "start a program".into(), errno(run())),
        tried(Axis::Tcp, "listen for TCP".into(), errno(TcpListener::bind("127.0.0.1:0").map(drop))),
        tried(Axis::Datagrams, "listen for UDP".into(), errno(UdpSocket::bind("127.0.0.1:0").map(drop))),
        tried(Axis::NamedSockets, "connect to a local socket".into(), errno(UnixStream::connect(ANY_SOCKET).map(drop))),
        tried(Axis::Signals, "signal its parent".into(), parent),
        tried(Axis::Processes, "look at its parent".into(), errno(looked)),
    ]);
    all.into_iter().flatten().collect()
}

fn run() -> io::Result<()> {
    Command::new(ANY_PROGRAM).env_clear().spawn()?.wait().map(drop)
}
