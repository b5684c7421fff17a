//! Which process is which: numbers are used again, a number with its start time within one boot is not.
//!
//! Limit: where a process may not be looked at (`hidepid` in proc(5), another user on macOS), [`is_alive`] goes by the
//! number alone and says yes too often, never no.
//! Source: proc_pid_stat(5), random(4) on `boot_id`; proc_pidinfo and `kern.bootsessionuuid` on macOS.

use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, getpid, test_kill_process};

use crate::host;

/// What the system tells of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its short name, which it can choose itself.
    pub name: Vec<u8>,
    /// Its parent.
    pub parent: u32,
    /// When it started, in a unit of the system: to compare for equality within one boot.
    pub start_time: u64,
    /// Whether it has ended and only waits for its parent to take notice. Its files are closed by then.
    pub ended: bool,
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

/// Whether the process that has this number and started then still runs, in this boot.
pub fn is_alive(pid: u32, start_time: u64) -> bool {
    match inspect(pid) {
        Ok(Some(process)) => !process.ended && process.start_time == start_time,
        Ok(None) | Err(_) => exists(pid),
    }
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
    // The state is field 3 of the line, the parent field 4, the start time field 22.
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let start_time = fields.nth(22 - 4 - 1)?.parse().ok()?;
    Some(Process { name, parent, start_time, ended: matches!(state, "Z" | "X" | "x") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: &str = "4242 (node) S 17 4242 17 34816 4242 4194560 9 0 0 0 1 2 3 4 20 0 11 0 987654321 5 6";

    #[test]
    fn the_start_time_is_the_22nd_field() {
        let process = parse_stat(LINE.as_bytes()).expect("a good line");
        let expected = Process { name: b"node".to_vec(), parent: 17, start_time: 987_654_321, ended: false };
        assert_eq!(process, expected);
    }

    #[test]
    fn a_name_made_to_look_like_fields_is_only_a_name() {
        let line = LINE.replace("(node)", "(a) Z 1 (2)\n");
        let process = parse_stat(line.replace("(2)\n", "(2))").as_bytes()).expect("a good line");
        assert_eq!(process.name, b"a) Z 1 (2)");
        assert_eq!((process.parent, process.start_time, process.ended), (17, 987_654_321, false));
    }

    #[test]
    fn a_zombie_has_ended() {
        assert!(parse_stat(LINE.replace(" S ", " Z ").as_bytes()).expect("a good line").ended);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_stat(&line);
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
