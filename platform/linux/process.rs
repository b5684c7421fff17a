//! Processes as /proc shows them.

use std::fs;
use std::io;

use rustix::io::Errno;

use crate::process::{Process, parse_stat};

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
