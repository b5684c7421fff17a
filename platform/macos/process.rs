//! Processes as the macOS kernel shows them.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use super::sys::process::{bsd_info, sysctl_text};
use crate::clock::Moment;
use crate::process::{Open, Process};
use crate::stat::FileId;

/// `SZOMB` of sys/proc.h.
const ZOMBIE: u32 = 5;

pub(crate) fn boot_id() -> io::Result<String> {
    sysctl_text(c"kern.bootsessionuuid")
}

/// Start times are of a clock that can be set: they are no moments.
pub(crate) fn started(_: u64) -> Option<Moment> {
    None
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
        session: None,
        has_terminal: false,
        threads: None,
    }))
}

/// Nothing here names writers yet.
pub(crate) fn program_file(_pid: u32, _process: &Process) -> Option<Vec<u8>> {
    None
}

/// There is one only.
pub(crate) fn is_elsewhere(_pid: u32) -> Option<bool> {
    Some(false)
}

pub(crate) fn user_by_number(_pid: u32) -> Option<u32> {
    None
}

/// There are no such descriptors.
pub(crate) fn user_of(_process: BorrowedFd<'_>) -> Option<u32> {
    None
}

/// There are none.
pub(crate) fn control_group(_pid: u32) -> Option<Vec<u8>> {
    None
}

pub(crate) fn first_argument(_pid: u32) -> Option<Vec<u8>> {
    None
}

pub(crate) fn numbers() -> io::Result<Vec<u32>> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn all_are_seen() -> bool {
    false
}

/// Nothing tells that here.
pub(crate) fn is_open_for_writing(_file: BorrowedFd<'_>) -> Option<bool> {
    None
}

pub(crate) fn opened_by(_pid: u32, _of: &BTreeSet<FileId>, _tell: &mut dyn FnMut(Open)) {}
