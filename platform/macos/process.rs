//! Processes as the macOS kernel shows them.

use std::io;

use rustix::io::Errno;

use super::sys::process::{bsd_info, sysctl_text};
use crate::process::Process;

/// `SZOMB` of sys/proc.h.
const ZOMBIE: u32 = 5;

pub(crate) fn boot_id() -> io::Result<String> {
    sysctl_text(c"kern.bootsessionuuid")
}

pub(crate) fn inspect(pid: u32) -> io::Result<Option<Process>> {
    let info = match bsd_info(pid) {
        Ok(info) => info,
        Err(error) if Errno::from_io_error(&error) == Some(Errno::SRCH) => return Ok(None),
        Err(error) => return Err(error),
    };
    let name = info.pbi_comm.iter().map(|&byte| byte as u8).take_while(|&byte| byte != 0).collect();
    Ok(Some(Process {
        name,
        parent: info.pbi_ppid,
        start_time: info.pbi_start_tvsec * 1_000_000 + info.pbi_start_tvusec,
        ended: info.pbi_status == ZOMBIE,
    }))
}
