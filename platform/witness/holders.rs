//! Who has files open for writing, or mapped, before anybody watches.
//!
//! Promise: it takes no longer than it is given, whatever a process does to whoever looks at it.
//! Limit: only processes that may be looked at are found: those of the user, unless they may not be traced; every one by
//! root. Source: `/proc/PID/fdinfo`, `/proc/PID/maps` in proc(5).

use std::collections::BTreeSet;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::clock::{Clock, SystemClock};
use crate::process::{self, Open};
use crate::stat::FileId;
use crate::writer::Writer;

use super::describe;

/// A process that has a file open for writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The file.
    pub object: FileId,
    /// Whether it has the file mapped.
    pub is_mapped: bool,
    /// The process.
    pub by: Writer,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Holders {
    /// The holders, one for each file and process.
    pub found: Vec<Holder>,
    /// Whether every process that may be looked at was.
    pub is_complete: bool,
}

/// Looks for the processes that have one of these files open for writing.
pub fn holders(of: &BTreeSet<FileId>, within: Duration) -> Holders {
    let mut holders = Holders::default();
    let (tell, told) = channel();
    let wanted = of.clone();
    // A thread of its own, that is left behind if a process holds it up: its mappings are read under its own lock.
    let thread = std::thread::Builder::new().name("holders".to_owned()).spawn(move || {
        let done = process::openers(&wanted, |Open { object, pid, is_mapped }| {
            if let Some(by) = describe(pid) {
                let _nobody_waits_any_more = tell.send(Some(Holder { object, is_mapped, by }));
            }
        });
        if done.is_ok() {
            let _nobody_waits_any_more = tell.send(None);
        }
    });
    if thread.is_err() {
        return holders;
    }
    let end = SystemClock.now() + within;
    loop {
        match told.recv_timeout(end.since(SystemClock.now())) {
            Ok(Some(holder)) => {
                let is_it = |known: &&mut Holder| {
                    known.object == holder.object && known.by.program.pid == holder.by.program.pid
                };
                match holders.found.iter_mut().find(is_it) {
                    Some(known) => known.is_mapped |= holder.is_mapped,
                    None => holders.found.push(holder),
                }
            }
            Ok(None) => {
                holders.is_complete = true;
                return holders;
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return holders,
        }
    }
}
