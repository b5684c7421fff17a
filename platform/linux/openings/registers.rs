//! What the registers of an opener say, while it is held.
//!
//! Limit: needs what tracing the process would need (ptrace(2), "Ptrace access mode checking": PTRACE_MODE_ATTACH_FSCREDS).
//! Of a process of many threads nothing is told: others would wait for us to read them all.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::time::Duration;

use rustix::io::Errno;

use super::super::process::{is_gone, read_small, stat_line};
use crate::clock::{Clock, SystemClock};
use crate::openings::access::{Posture, Told, posture, together, told};
use crate::process::parse_stat;

/// Who waits to get to sleep needs some microseconds for it, unless the processors are busy.
const PATIENCE: Duration = Duration::from_millis(2);
/// A process of more threads is not looked through only to see whether it cuts what it reads.
pub(super) const FEW_THREADS: u32 = 16;
/// One of more is not looked through at all.
pub(super) const MOST_THREADS: u32 = 128;

/// What the process, one of whose threads is held in an open, tells by its registers; `None` if we may not look. `line` is
/// what `/proc/PID/stat` said of it a moment ago, while it was held; of more than `most` threads nothing is told.
pub(super) fn registers(pid: u32, mut line: Option<&[u8]>, most: u32) -> Option<Told> {
    let end = SystemClock.now() + PATIENCE;
    loop {
        let threads = match look(pid, line.take(), most) {
            Ok(threads) => threads,
            Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::ACCESS | Errno::PERM)) => return None,
            Err(_) => return Some(Told::Nothing),
        };
        if let Some(told) = together(threads) {
            return Some(told);
        }
        if SystemClock.now() >= end {
            return Some(Told::Running);
        }
        std::thread::yield_now();
    }
}

fn look(pid: u32, line: Option<&[u8]>, most: u32) -> io::Result<Vec<(Posture, Told)>> {
    let process = format!("/proc/{pid}");
    let line = match line {
        Some(line) => Cow::Borrowed(line),
        None => Cow::Owned(stat_line(pid)?.ok_or(io::ErrorKind::NotFound)?),
    };
    match parse_stat(&line).and_then(|process| process.threads) {
        // The line of a process is that of its first thread: there is no other.
        Some(1) => return Ok(thread(&process, &line)?.into_iter().collect()),
        Some(threads) if threads <= most => {}
        _ => return Err(io::ErrorKind::InvalidData.into()),
    }
    let mut threads = Vec::new();
    for (number, task) in fs::read_dir(format!("{process}/task"))?.enumerate() {
        if number >= most as usize {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let name = task?.file_name();
        let task = format!("{process}/task/{}", name.to_str().ok_or(io::ErrorKind::InvalidData)?);
        match read_small(&format!("{task}/stat")) {
            Ok(line) => threads.extend(thread(&task, &line)?),
            Err(Errno::NOENT | Errno::SRCH) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(threads)
}

/// A thread, of which the line was just read; `None` if it is gone.
fn thread(task: &str, line: &[u8]) -> io::Result<Option<(Posture, Told)>> {
    let posture = posture(line).ok_or(io::ErrorKind::InvalidData)?;
    let told = match posture {
        Posture::Held => match read_small(&format!("{task}/syscall")) {
            Ok(line) => told(&line, std::env::consts::ARCH),
            Err(errno) if is_gone(&errno.into()) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        },
        Posture::Moves | Posture::Worker | Posture::Elsewhere => Told::Nothing,
    };
    Ok(Some((posture, told)))
}
