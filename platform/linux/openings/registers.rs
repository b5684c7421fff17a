//! What the registers of an opener say, while it is held.
//!
//! Limit: needs what tracing the process would need (ptrace(2), "Ptrace access mode checking": PTRACE_MODE_ATTACH_FSCREDS).

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;

use crate::clock::{Clock, SystemClock};
use crate::openings::access::{Posture, Told, posture, together, told};

/// Who waits to get to sleep needs some microseconds for it, unless the processors are busy.
const PATIENCE: Duration = Duration::from_millis(2);
/// A process of more threads is not looked through.
const MOST_THREADS: usize = 128;

/// What the process, one of whose threads is held in an open, tells by its registers; `None` if we may not look.
pub(super) fn registers(pid: u32) -> Option<Told> {
    let tasks = format!("/proc/{pid}/task");
    let end = SystemClock.now() + PATIENCE;
    loop {
        let threads = match look(Path::new(&tasks)) {
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

fn look(tasks: &Path) -> io::Result<Vec<(Posture, Told)>> {
    let mut threads = Vec::new();
    for task in fs::read_dir(tasks)? {
        if threads.len() == MOST_THREADS {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let task = task?.path();
        let posture = match fs::read(task.join("stat")) {
            Ok(line) => posture(&line).ok_or(io::ErrorKind::InvalidData)?,
            Err(error) if is_gone(&error) => continue,
            Err(error) => return Err(error),
        };
        let told = match posture {
            Posture::Held => match fs::read(task.join("syscall")) {
                Ok(line) => told(&line, std::env::consts::ARCH),
                Err(error) if is_gone(&error) => continue,
                Err(error) => return Err(error),
            },
            Posture::Moves | Posture::Worker | Posture::Elsewhere => Told::Nothing,
        };
        threads.push((posture, told));
    }
    Ok(threads)
}

fn is_gone(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::SRCH))
}
