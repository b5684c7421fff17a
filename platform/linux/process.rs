//! Processes as /proc shows them.
//!
//! Promise: what is read by [`inspect`], [`running`] and [`standing`] takes no lock that the process itself can hold.
//! Limit: its arguments and its mappings do: a process whose memory is being changed, as by mmap(2) of a file on a slow
//! FUSE file system, makes the reader wait (`mmap_lock`; `access_remote_vm` in mm/memory.c).

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead as _, Read as _};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;

use rustix::io::Errno;

use crate::clock::Moment;
use crate::process::{Open, Process, Running, parse_descriptor, parse_group, parse_mapping, parse_stat, parse_user};
use crate::stat::FileId;

use super::openings::ask_lease;
use super::sys::signal_of;
use crate::openings::access::Lease;

pub(crate) fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

pub(crate) fn inspect(pid: u32) -> io::Result<Option<Process>> {
    let line = match fs::read(format!("/proc/{pid}/stat")) {
        Ok(line) => line,
        Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::NOENT | Errno::SRCH)) => return Ok(None),
        Err(error) => return Err(error),
    };
    parse_stat(&line).map(Some).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

pub(crate) fn running(pid: u32) -> io::Result<Option<Running>> {
    let Some(process) = inspect(pid)? else { return Ok(None) };
    let exe = fs::read_link(format!("/proc/{pid}/exe")).ok().map(|path| path.into_os_string().into_vec());
    Ok(Some(Running { process, exe }))
}

pub(crate) fn standing(pid: u32) -> (Option<u32>, Option<Vec<u8>>) {
    let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).ok();
    (read("status").as_deref().and_then(parse_user), read("cgroup").as_deref().and_then(parse_group))
}

/// Ticks in a second, as start times count them: `USER_HZ` of asm-generic/param.h.
const TICKS: u64 = 100;

/// When a process began that has this start time; up to one tick too early.
pub(crate) fn started(start_time: u64) -> Option<Moment> {
    start_time.checked_mul(1_000_000_000 / TICKS).map(Moment::from_nanos)
}

/// The longest first word that is kept.
const WORD: u64 = 4096;

pub(crate) fn first_argument(pid: u32) -> Option<Vec<u8>> {
    let mut word = Vec::new();
    fs::File::open(format!("/proc/{pid}/cmdline")).ok()?.take(WORD).read_to_end(&mut word).ok()?;
    word.truncate(word.iter().position(|&byte| byte == 0).unwrap_or(word.len()));
    (!word.is_empty()).then_some(word)
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
    use crate::clock::{Clock as _, Moment, SystemClock};
    use crate::process::{began_by, own_pid, start_time};
    use crate::witness::Witness;
    use crate::writer::{Account as _, Certainty, Writer};
    use std::process::{Command, Stdio};

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
