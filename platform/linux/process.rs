//! Processes as /proc shows them.
//!
//! Promise: what is read by [`inspect`], [`program_file`], [`is_elsewhere`], [`user_of`], [`user_by_number`] and [`control_group`] takes no lock that the process
//! itself can hold.
//! Limit: its arguments and its mappings do: a process whose memory is being changed, as by mmap(2) of a file on a slow
//! FUSE file system, makes the reader wait (`mmap_lock`; `access_remote_vm` in mm/memory.c).

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead as _, Read as _};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::clock::Moment;
use crate::process::{Open, Process, parse_descriptor, parse_group, parse_mapping, parse_stat, parse_user};
use crate::stat::FileId;

use super::openings::ask_lease;
use super::sys::{pidfd, signal_of};
use crate::openings::access::Lease;

pub(crate) fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// What fits is read by one call, and the end of it is no call more.
const PIECE: usize = 4096;

/// The content of a file of /proc about one process. A read that leaves room has come to its end, as the text is made whole
/// first (`single_open` in fs/seq_file.c); that is not so of lists as `mountinfo` and `maps`.
pub(super) fn read_small(path: &str) -> rustix::io::Result<Vec<u8>> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut text = Vec::with_capacity(PIECE);
    loop {
        let room = text.capacity() - text.len();
        match retry_on_intr(|| rustix::io::read(&file, rustix::buffer::spare_capacity(&mut text)))? {
            length if length < room => return Ok(text),
            _ => text.reserve(PIECE),
        }
    }
}

/// The line of `/proc/PID/stat`; `None` if there is no such process, or none that we may see.
pub(super) fn stat_line(pid: u32) -> io::Result<Option<Vec<u8>>> {
    match read_small(&format!("/proc/{pid}/stat")) {
        Ok(line) => Ok(Some(line)),
        Err(Errno::NOENT | Errno::SRCH) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

pub(crate) fn inspect(pid: u32) -> io::Result<Option<Process>> {
    let Some(line) = stat_line(pid)? else { return Ok(None) };
    parse_stat(&line).map(Some).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// Threads that are asked for the program of a process whose first one has ended, at most.
const MOST_ASKED: usize = 64;

pub(crate) fn program_file(pid: u32, process: &Process) -> Option<Vec<u8>> {
    let link = |path: String| fs::read_link(path).map(|path| path.into_os_string().into_vec());
    match link(format!("/proc/{pid}/exe")) {
        Ok(path) => Some(path),
        // A thread that has ended has no program any more; the others run it still.
        Err(error) if is_gone(&error) && process.threads.is_some_and(|threads| threads > 1) => {
            let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten().take(MOST_ASKED);
            threads.into_iter().find_map(|thread| {
                let thread: u32 = thread.file_name().to_str()?.parse().ok()?;
                link(format!("/proc/{pid}/task/{thread}/exe")).ok()
            })
        }
        Err(_) => None,
    }
}

pub(super) fn is_gone(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::SRCH))
}

pub(crate) fn is_elsewhere(pid: u32) -> Option<bool> {
    let mounts = |process: &dyn std::fmt::Display| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    Some(mounts(&pid)? != mounts(&"self")?)
}

pub(crate) fn user_by_number(pid: u32) -> Option<u32> {
    parse_user(&read_small(&format!("/proc/{pid}/status")).ok()?)
}

/// By one call in place of a long text, where the kernel has it.
pub(crate) fn user_of(process: BorrowedFd<'_>) -> Option<u32> {
    pidfd::real_user(process).ok()
}

pub(crate) fn control_group(pid: u32) -> Option<Vec<u8>> {
    parse_group(&read_small(&format!("/proc/{pid}/cgroup")).ok()?)
}

/// Ticks in a second, as start times count them: `USER_HZ` of asm-generic/param.h.
const TICKS: u64 = 100;

/// When a process began that has this start time; up to one tick too early.
pub(crate) fn started(start_time: u64) -> Option<Moment> {
    start_time.checked_mul(1_000_000_000 / TICKS).map(Moment::from_nanos)
}

/// The longest first word that is kept.
const WORD: usize = 4096;

pub(crate) fn first_argument(pid: u32) -> Option<Vec<u8>> {
    // One read: each of them waits for the process's memory, and goes through it anew.
    let mut words = [0; WORD];
    let length = fs::File::open(format!("/proc/{pid}/cmdline")).ok()?.read(&mut words).ok()?;
    let word = words[..length].split(|&byte| byte == 0).next()?;
    (!word.is_empty()).then(|| word.to_vec())
}

pub(crate) fn numbers() -> io::Result<Vec<u32>> {
    let entries = fs::read_dir("/proc")?;
    Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

pub(crate) fn all_are_seen() -> bool {
    /// The first namespace of process numbers (`PROC_PID_INIT_INO` in include/linux/proc_ns.h).
    const FIRST: &str = "pid:[4026531836]";
    // Where others are hidden (`hidepid` in proc(5)), so is the first process.
    fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == FIRST) && matches!(inspect(1), Ok(Some(_)))
}

/// By a lease that the kernel gives only while nobody has (F_SETLEASE in fcntl(2)); whoever opens the file in that moment
/// waits for it.
pub(crate) fn is_open_for_writing(file: BorrowedFd<'_>) -> Option<bool> {
    signal_of::make_harmless(file).ok()?;
    match ask_lease(file) {
        Lease::NoWriter => Some(false),
        Lease::Writer => Some(true),
        Lease::Unknown => None,
    }
}

pub(crate) fn opened_by(pid: u32, of: &BTreeSet<FileId>, tell: &mut dyn FnMut(Open)) {
    let wanted = |ino: u64| of.iter().any(|object| object.ino == ino);
    let mut told = BTreeSet::new();
    let mut found = |object: FileId, is_mapped: bool| {
        if of.contains(&object) && told.insert((object, is_mapped)) {
            tell(Open { object, pid, is_mapped });
        }
    };
    if let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fdinfo")) {
        for number in descriptors.flatten().map(|entry| entry.file_name()) {
            let Some(number) = number.to_str() else { continue };
            let info = fs::read(format!("/proc/{pid}/fdinfo/{number}"));
            let Some((true, ino)) = info.ok().as_deref().and_then(parse_descriptor) else { continue };
            // Only of those with a number that is looked for: asking a file system that does not answer would hold us up.
            if wanted(ino)
                && let Ok(stat) = fs::metadata(format!("/proc/{pid}/fd/{number}"))
            {
                found(FileId { dev: stat.dev(), ino: stat.ino() }, false);
            }
        }
    }
    let Ok(maps) = fs::File::open(format!("/proc/{pid}/maps")) else { return };
    for line in io::BufReader::new(maps).split(b'\n').map_while(Result::ok) {
        let Some(((major, minor), ino)) = parse_mapping(&line) else { continue };
        // On file systems that are parts of one, as subvolumes of btrfs, the device is another than a stat gives.
        let device = rustix::fs::makedev(major, minor);
        for object in of.iter().filter(|object| object.ino == ino) {
            if object.dev == device || rustix::fs::major(object.dev) == 0 {
                found(*object, true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock as _, SystemClock};
    use crate::process::{began_by, own_pid, start_time};
    use crate::witness::Witness;
    use crate::writer::{Account as _, Certainty, Writer};
    use std::os::fd::AsFd as _;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    fn descriptor(pid: u32) -> std::os::fd::OwnedFd {
        let pid = Pid::from_raw(i32::try_from(pid).expect("a number")).expect("not zero");
        pidfd_open(pid, PidfdFlags::empty()).expect("it runs")
    }

    #[test]
    fn the_user_is_the_same_by_number_and_by_descriptor() {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        if crate::privilege::is_root() {
            command.uid(65_534);
        }
        let mut child = command.spawn().expect("starts");
        let process = descriptor(child.id());
        let by_number = user_by_number(child.id());
        assert!(by_number.is_some());
        // A kernel without the call says nothing, and the number is asked.
        assert!(user_of(process.as_fd()).is_none_or(|user| Some(user) == by_number));
        drop(child.stdin.take());
        child.wait().expect("ends");
        assert_eq!(user_of(process.as_fd()), None, "it has been waited for");
    }

    #[test]
    fn a_text_that_is_longer_than_a_piece_is_read_whole() {
        assert_eq!(read_small("/proc/self/cgroup").expect("reads"), fs::read("/proc/self/cgroup").expect("reads"));
        let folder = tempfile::tempdir().expect("a folder");
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 5 * PIECE] {
            let path = folder.path().join("text");
            fs::write(&path, vec![b'x'; length]).expect("writes");
            assert_eq!(read_small(path.to_str().expect("text")).expect("reads").len(), length);
        }
        assert_eq!(read_small("/proc/self/nothing"), Err(Errno::NOENT));
    }

    #[test]
    fn a_process_has_begun_by_now_and_not_long_before() {
        let start = start_time(own_pid()).expect("we may look").expect("we exist");
        let now = SystemClock.now();
        assert!(began_by(start, now));
        assert!(!began_by(start, Moment::default()));
        // One that began an hour from now, counted as this kernel counts.
        assert!(!began_by(start + 3600 * super::TICKS, now));
    }

    #[test]
    fn who_had_a_number_is_at_most_likely_and_nobody_who_began_later() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("starts");
        let witness = Witness::new(None);
        let had = witness.opener(child.id(), SystemClock.now());
        assert_eq!((had.certainty, had.program.pid), (Certainty::Likely, child.id()));
        assert!(!had.program.name.is_empty());
        // Before the boot of anybody: another had the number then.
        assert_eq!(witness.opener(child.id(), Moment::default()), Writer::unknown(child.id()));
        drop(child.stdin.take());
        child.wait().expect("ends");
    }
}
