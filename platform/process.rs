//! Which process is which: numbers are used again, a number with its start time within one boot is not.
//!
//! Limit: where a process may not be looked at (`hidepid` in proc(5), another user on macOS), [`is_alive`] goes by the
//! number alone and says yes too often, never no.
//! Source: proc_pid_stat(5), random(4) on `boot_id`; proc_pidinfo and `kern.bootsessionuuid` on macOS.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::process::{Pid, getpid, test_kill_process};

use crate::clock::Moment;
use crate::host;
use crate::stat::FileId;

/// What the system tells of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its short name, which it can choose itself.
    pub name: Vec<u8>,
    /// Its parent.
    pub parent: u32,
    /// When it started, in a unit of the system: to compare for equality within one boot.
    pub start_time: u64,
    /// Whether it has ended and only waits for its parent to take notice. Its files are closed by then. One whose first thread
    /// has ended goes on while another has not.
    pub ended: bool,
    /// The leader of its session; `None` where the system does not say.
    pub session: Option<u32>,
    /// Whether it has a terminal.
    pub has_terminal: bool,
    /// How many threads it has; `None` where the system does not say.
    pub threads: Option<u32>,
}

impl Process {
    /// Whether it is what a person works in: the leader of a session that has a terminal.
    pub fn leads_a_terminal(&self, pid: u32) -> bool {
        self.has_terminal && self.session == Some(pid)
    }
}

/// A process with the file it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// What it is.
    pub process: Process,
    /// The file it runs; `None` if we may not know, or if it runs none any more.
    pub exe: Option<Vec<u8>>,
}

/// A process that has a file open for writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// The file.
    pub object: FileId,
    /// The process's number.
    pub pid: u32,
    /// Whether it has the file mapped, whether or not it still has it open.
    pub is_mapped: bool,
}

/// Our own number.
pub fn own_pid() -> u32 {
    getpid().as_raw_nonzero().get().unsigned_abs()
}

/// Identity of this boot of the machine.
pub fn boot_id() -> io::Result<String> {
    host::boot_id()
}

/// The process with this number; `None` if there is none, or none that we may see.
pub fn inspect(pid: u32) -> io::Result<Option<Process>> {
    host::inspect(pid)
}

/// When the process started; `None` if there is none, or none that we may see.
pub fn start_time(pid: u32) -> io::Result<Option<u64>> {
    Ok(inspect(pid)?.map(|process| process.start_time))
}

/// Whether a process that started then, as [`Process::start_time`], had begun by this moment; no, where that cannot be told.
pub fn began_by(start_time: u64, at: Moment) -> bool {
    host::started(start_time).is_some_and(|started| started <= at)
}

/// Whether the process that has this number and started then still runs, in this boot.
pub fn is_alive(pid: u32, start_time: u64) -> bool {
    match inspect(pid) {
        Ok(Some(process)) => !process.ended && process.start_time == start_time,
        Ok(None) | Err(_) => exists(pid),
    }
}

/// The process with this number and what it runs; `None` if there is none, or none that we may see. Waits for nobody.
pub fn running(pid: u32) -> io::Result<Option<Running>> {
    let Some(process) = inspect(pid)? else { return Ok(None) };
    let exe = program_file(pid, &process);
    Ok(Some(Running { process, exe }))
}

/// The file that the process runs, which is `process`; `None` if we may not know, or if it runs none any more. Waits for nobody.
pub fn program_file(pid: u32, process: &Process) -> Option<Vec<u8>> {
    host::program_file(pid, process)
}

/// Whether the process lives in another mount namespace than we, where the path of its file means something else; `None` if
/// it cannot be told. Waits for nobody.
pub fn is_elsewhere(pid: u32) -> Option<bool> {
    host::is_elsewhere(pid)
}

/// Its real user, as far as it can be told: by a descriptor of the process, if there is one. Waits for nobody.
pub fn user(pid: u32, pidfd: Option<BorrowedFd<'_>>) -> Option<u32> {
    pidfd.and_then(host::user_of).or_else(|| host::user_by_number(pid))
}

/// Its control group, as far as it can be told. Waits for nobody.
pub fn control_group(pid: u32) -> Option<Vec<u8>> {
    host::control_group(pid)
}

/// The first word of its arguments. A process can make whoever asks wait, for as long as it likes: not for a thread that
/// others wait for.
pub fn first_argument(pid: u32) -> Option<Vec<u8>> {
    host::first_argument(pid)
}

/// The number of every process that we may see.
pub fn numbers() -> io::Result<Vec<u32>> {
    host::numbers()
}

/// Whether every process of the machine can be seen, under the number it has for the kernel.
pub fn all_are_seen() -> bool {
    host::all_are_seen()
}

/// The processes that have one of these regular files open for writing, or mapped so that they can write. Those of others,
/// and those that may not be traced, cannot be looked at. A process can make whoever asks wait: not for a thread that others
/// wait for.
pub fn openers(of: &BTreeSet<FileId>, mut tell: impl FnMut(Open)) -> io::Result<()> {
    for pid in numbers()? {
        if pid != own_pid() {
            host::opened_by(pid, of, &mut tell);
        }
    }
    Ok(())
}

/// Whether any process has the number, even one that we may not see.
pub fn exists(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

/// Reads a line of `/proc/PID/stat`.
pub fn parse_stat(line: &[u8]) -> Option<Process> {
    // The name is in parentheses and may hold spaces and parentheses itself; nothing after it does.
    let open = line.iter().position(|&byte| byte == b'(')?;
    let close = line.iter().rposition(|&byte| byte == b')')?;
    let name = line.get(open + 1..close)?.to_vec();
    let rest = std::str::from_utf8(&line[close + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    // The state is field 3 of the line, the parent field 4, the session field 6, its terminal field 7, the number of threads
    // field 20, the start time field 22.
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(6 - 4 - 1)?.parse().ok()?;
    let terminal: i64 = fields.next()?.parse().ok()?;
    let threads = fields.nth(20 - 7 - 1)?.parse().ok()?;
    let start_time = fields.nth(22 - 20 - 1)?.parse().ok()?;
    // The state is that of the first thread, which counts until the last one has ended.
    let ended = matches!(state, "Z" | "X" | "x") && threads <= 1;
    let (session, has_terminal) = (Some(session), terminal != 0);
    Some(Process { name, parent, start_time, ended, session, has_terminal, threads: Some(threads) })
}

/// The real user in `/proc/PID/status`.
pub fn parse_user(status: &[u8]) -> Option<u32> {
    let line = status.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"Uid:"))?;
    std::str::from_utf8(line).ok()?.split_ascii_whitespace().next()?.parse().ok()
}

/// The control group in `/proc/PID/cgroup`: the one of the unified hierarchy, or else the first.
pub fn parse_group(groups: &[u8]) -> Option<Vec<u8>> {
    let mut lines = groups.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let path = |line: &[u8]| line.splitn(3, |&byte| byte == b':').nth(2).map(<[u8]>::to_vec);
    let unified = lines.clone().find(|line| line.starts_with(b"0::"));
    unified.or_else(|| lines.next()).and_then(path)
}

/// How a descriptor was opened, the number of its file, and of its mount, in `/proc/PID/fdinfo/N`. Whether it writes.
pub fn parse_descriptor(info: &[u8]) -> Option<(bool, u64)> {
    let field = |name: &[u8]| {
        let line = info.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(name))?;
        std::str::from_utf8(line).ok().map(str::trim)
    };
    // The last octal digit's lower bits are the access mode: 0 reads, 1 writes, 2 does both; O_PATH does neither.
    let flags = u32::from_str_radix(field(b"flags:")?, 8).ok()?;
    const PATH_ONLY: u32 = 0o10_000_000;
    Some((matches!(flags & 3, 1 | 2) && flags & PATH_ONLY == 0, field(b"ino:")?.parse().ok()?))
}

/// Device and inode number of the writable shared mapping on a line of `/proc/PID/maps`; `None` for every other.
pub fn parse_mapping(line: &[u8]) -> Option<((u32, u32), u64)> {
    let mut fields = line.split(|&byte| byte == b' ').filter(|field| !field.is_empty());
    let permissions = fields.nth(1)?;
    if permissions.get(1) != Some(&b'w') || permissions.get(3) != Some(&b's') {
        return None;
    }
    let device = std::str::from_utf8(fields.nth(1)?).ok()?;
    let (major, minor) = device.split_once(':')?;
    let hex = |text: &str| u32::from_str_radix(text, 16).ok();
    let inode = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    Some(((hex(major)?, hex(minor)?), inode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: &str = "4242 (node) S 17 4242 17 34816 4242 4194560 9 0 0 0 1 2 3 4 20 0 11 0 987654321 5 6";

    #[test]
    fn the_start_time_is_the_22nd_field() {
        let process = parse_stat(LINE.as_bytes()).expect("a good line");
        let expected = Process {
            name: b"node".to_vec(),
            parent: 17,
            start_time: 987_654_321,
            ended: false,
            session: Some(17),
            has_terminal: true,
            threads: Some(11),
        };
        assert_eq!(process, expected);
        assert!(process.leads_a_terminal(17) && !process.leads_a_terminal(4242));
    }

    #[test]
    fn a_name_made_to_look_like_fields_is_only_a_name() {
        let line = LINE.replace("(node)", "(a) Z 1 (2)\n");
        let process = parse_stat(line.replace("(2)\n", "(2))").as_bytes()).expect("a good line");
        assert_eq!(process.name, b"a) Z 1 (2)");
        assert_eq!((process.parent, process.start_time, process.ended), (17, 987_654_321, false));
    }

    #[test]
    fn user_group_descriptor_and_mapping_are_found_in_their_files() {
        assert_eq!(parse_user(b"Name:\tUid:\nUid:\t1000\t0\t0\t0\nGid:\t5\t5\t5\t5\n"), Some(1000));
        assert_eq!(parse_group(b"5:cpu:/a\n0::/user.slice/x:y\n").as_deref(), Some(&b"/user.slice/x:y"[..]));
        assert_eq!(parse_group(b"5:cpu:/a\n").as_deref(), Some(&b"/a"[..]), "without a unified hierarchy");
        let info = |flags: &str| format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t29\nino:\t4242\n").into_bytes();
        for (flags, writes) in [("0100000", false), ("02100001", true), ("0102002", true), ("012000002", false)] {
            assert_eq!(parse_descriptor(&info(flags)), Some((writes, 4242)), "{flags}");
        }
        let mapping = b"7f0000000000-7f0000001000 rw-s 00000000 fe:01 42      /tmp/a file";
        assert_eq!(parse_mapping(mapping), Some(((0xfe, 1), 42)));
        assert_eq!(parse_mapping(b"7f0000000000-7f0000001000 rw-p 00000000 fe:01 42 /tmp/f"), None, "its own copy");
        assert_eq!(parse_mapping(b"7f0000000000-7f0000001000 r--s 00000000 fe:01 42 /tmp/f"), None, "reads only");
    }

    #[test]
    fn a_zombie_has_ended_unless_other_threads_go_on() {
        let ended = |line: &str| parse_stat(line.as_bytes()).expect("a good line").ended;
        let zombie = LINE.replace(" S ", " Z ");
        assert!(!ended(&zombie), "ten of its threads go on");
        for left in ["0", "1"] {
            assert!(ended(&zombie.replace(" 11 ", &format!(" {left} "))));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (parse_stat(&line), parse_user(&line), parse_group(&line), parse_descriptor(&line), parse_mapping(&line));
        }

        #[test]
        fn any_name_is_found_between_its_parentheses(name in proptest::collection::vec(any::<u8>(), 0..16)) {
            let mut line = b"1 (".to_vec();
            line.extend_from_slice(&name);
            line.extend_from_slice(LINE.strip_prefix("4242 (node").expect("it starts so").as_bytes());
            let process = parse_stat(&line).expect("a good line");
            prop_assert_eq!((process.name, process.start_time), (name, 987_654_321));
        }
    }

    #[test]
    fn we_are_alive_and_nobody_else_with_our_number_is() {
        let start = start_time(own_pid()).expect("we may look").expect("we exist");
        assert!(is_alive(own_pid(), start));
        assert!(!is_alive(own_pid(), start + 1), "a process that had our number before us");
    }

    #[test]
    fn a_child_that_ended_is_not_alive_even_before_we_take_notice() {
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().expect("starts");
        let start = start_time(child.id()).expect("we may look").expect("it exists");
        assert!(is_alive(child.id(), start));
        drop(child.stdin.take());
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while is_alive(child.id(), start) {
            assert!(std::time::Instant::now() < deadline, "it has no more input and does not end");
            std::thread::yield_now();
        }
        assert!(exists(child.id()), "its number is kept until we take notice");
        child.wait().expect("ends");
        assert!(!is_alive(child.id(), start));
    }

    #[test]
    fn the_boot_has_an_identity_that_stays() {
        let id = boot_id().expect("the system tells");
        assert!(id.len() >= 8 && !id.contains(char::is_whitespace), "{id:?}");
        assert_eq!(boot_id().expect("the system tells"), id);
    }
}
