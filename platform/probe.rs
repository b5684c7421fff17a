//! For tests: what a process that was taken over would try, call by call, below every wrapper.
//!
//! Promise: where nothing forbids it, a call does nothing that outlives the process, unless it is said to. Each function
//! makes its calls and tells what came of each. None on a system that confines nothing.

use std::ffi::CStr;
use std::io;
use std::os::fd::BorrowedFd;

use crate::host;

/// What the calls are aimed at.
#[derive(Debug, Clone, Copy)]
pub struct Target<'t> {
    /// The path of a file outside.
    pub outside: &'t CStr,
    /// A path in the folder where nothing is.
    pub free: &'t CStr,
    /// A file of the folder, open for reading, and a program.
    pub program: BorrowedFd<'t>,
    /// Another process of the same user.
    pub process: u32,
}

/// A call's name and what came of it.
pub type Outcome = (&'static str, io::Result<()>);

/// Opens, cuts short and makes outside, where no portable interface has a way to.
pub fn files(target: Target<'_>) -> Vec<Outcome> {
    host::probe_files(target)
}

/// Changes bits, owner, times and attributes of the file outside.
pub fn attributes(target: Target<'_>) -> Vec<Outcome> {
    host::probe_attributes(target)
}

/// Starts programs and processes, and makes memory that can be run.
pub fn programs(target: Target<'_>) -> Vec<Outcome> {
    host::probe_programs(target)
}

/// Sends signals to the other process, traces it, reads its memory.
pub fn processes(target: Target<'_>) -> Vec<Outcome> {
    host::probe_processes(target)
}

/// Sends and takes descriptors by an open socket.
pub fn sockets(socket: BorrowedFd<'_>) -> Vec<Outcome> {
    host::probe_sockets(socket)
}

/// Makes devices, FIFOs, sockets and symlinks in the folder.
pub fn special(target: Target<'_>) -> Vec<Outcome> {
    host::probe_special(target)
}

/// Everything else that a kernel offers, without arguments.
pub fn kernel() -> Vec<Outcome> {
    host::probe_kernel()
}
