//! `audit.jsonl` in the control folder, which a gate and the `keep mcp` of clients without one write together.
//!
//! Every append takes its turn at the file, reads what others have added, and chains its line to that. A lock for a whole
//! run would keep all but one of them out.
//!
//! Promise: a file that is not ours alone, or whose chain is broken other than by a torn last line, is left as it is. A
//! line whose writing failed is cut off again. Limit: the whole file is read once when it is opened.
//! Source: write(2) with `O_APPEND`; fsync(2): after a failed sync the kernel may take the lost pages for clean, so a line
//! whose sync failed is cut off, never synced a second time.

use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::fd::AsFd as _;
use std::time::{Duration, SystemTime};

use platform::turn::{Turn, TurnError};
use platform::{Dir, FileId, FsError, dir, file};

use super::AuditEvent;
use super::chain::{End, ScanError, TooLong, line, scan};
use crate::gate::control::Control;
use crate::journal::rfc3339;
use crate::state::is_ours_alone;

/// The file's name in the control folder.
pub(super) const NAME: &[u8] = b"audit.jsonl";

/// How long a writer waits for its turn. Nobody holds one for longer than a line and a sync take, save who opens the file.
const WAIT: Duration = Duration::from_secs(5);

/// Why there is no audit, or an event is not in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// It could not be opened or made.
    #[error("cannot open the audit")]
    Open(#[source] FsError),
    /// It is there, and we do not trust whoever can write it.
    #[error("audit.jsonl {0}")]
    NotOurs(&'static str),
    /// Another process did not let go of it.
    #[error("cannot get a turn at audit.jsonl")]
    Turn(#[from] TurnError),
    /// It could not be read to its end.
    #[error("cannot read audit.jsonl")]
    Read(#[source] io::Error),
    /// An entry was altered, or is missing. Nothing was changed.
    #[error("audit.jsonl, line {line}: {reason}")]
    Chain {
        /// The first line that is wrong; the first is 1.
        line: u64,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A torn end could not be cut off.
    #[error("cannot cut the audit back to its last good line")]
    Cut(#[source] FsError),
    /// The entry could not be written or made durable; it is not in the audit.
    #[error("cannot write to the audit")]
    Write(#[source] FsError),
    /// The entry is too long; it was not written.
    #[error("cannot write to the audit")]
    TooLong(#[from] TooLong),
    /// Another file, or none, has its name now, or it is shorter than what was written.
    #[error("the audit was removed, replaced or cut by another program")]
    Taken,
}

impl From<ScanError> for AuditError {
    fn from(error: ScanError) -> Self {
        match error {
            ScanError::Read(source) => Self::Read(source),
            ScanError::Chain { line, reason } => Self::Chain { line, reason },
        }
    }
}

/// The audit of one control folder.
#[derive(Debug)]
pub struct Audit {
    dir: Dir,
    file: File,
    id: FileId,
    /// Where the chain ended when we last had our turn.
    end: End,
    /// A line of ours that is not to count and may still be there.
    failed: Vec<u8>,
    /// Bytes of an unfinished line that were cut off and not told yet.
    cut_bytes: u64,
}

impl Audit {
    /// Opens the audit, makes it if there is none, verifies its chain, and cuts off a torn last line.
    pub fn open(control: &Control) -> Result<Self, AuditError> {
        let dir = control.dir().try_clone().map_err(AuditError::Open)?;
        let file = open_or_make(&dir, control.owner())?;
        let id = dir::stat_of(file.as_fd()).map_err(AuditError::Open)?.id;
        let mut audit = Self { dir, file, id, end: End::default(), failed: Vec::new(), cut_bytes: 0 };
        let _turn = Turn::at(&audit.file, WAIT)?;
        audit.catch_up()?;
        // Whoever wrote the last line may have been killed before it was durable. Were it not made so now, the next one
        // would be the second that a power cut can tear.
        file::sync_all(&audit.file, NAME).map_err(AuditError::Cut)?;
        Ok(audit)
    }

    /// Writes an event down, durably. `at` is when it happened.
    ///
    /// # Errors
    /// Any: the event is not in the audit. What must be in it has to be appended again.
    pub fn append(&mut self, event: &AuditEvent, at: SystemTime) -> Result<(), AuditError> {
        let _turn = Turn::at(&self.file, WAIT)?;
        match self.dir.stat(NAME).map_err(AuditError::Write)? {
            Some(stat) if stat.id == self.id && stat.size >= self.end.bytes => {
                if stat.size > self.end.bytes {
                    self.catch_up()?;
                }
            }
            _ => return Err(AuditError::Taken),
        }
        let at = rfc3339(at);
        if self.cut_bytes > 0 {
            let what = format!("an unfinished entry of {} bytes was cut off the audit", self.cut_bytes);
            self.write(&AuditEvent::Fault { what }, &at)?;
            self.cut_bytes = 0;
        }
        self.write(event, &at)
    }

    /// Reads what was added since our last turn, and cuts off what nobody finished. It is our turn: nobody is writing.
    fn catch_up(&mut self) -> Result<(), AuditError> {
        if self.is_our_failed_line().map_err(AuditError::Read)? {
            return self.cut();
        }
        self.failed.clear();
        let mut reader = BufReader::with_capacity(1 << 16, &self.file);
        reader.seek(SeekFrom::Start(self.end.bytes)).map_err(AuditError::Read)?;
        let (end, torn_bytes) = scan(&mut reader, self.end)?;
        self.end = end;
        if torn_bytes > 0 {
            self.cut()?;
            self.cut_bytes += torn_bytes;
        }
        Ok(())
    }

    /// Whether all that follows the last line we know is the one whose writing failed: whole, it looks like a good one.
    fn is_our_failed_line(&mut self) -> io::Result<bool> {
        if self.failed.is_empty() {
            return Ok(false);
        }
        let mut rest = Vec::new();
        (&self.file).seek(SeekFrom::Start(self.end.bytes))?;
        (&self.file).take(self.failed.len() as u64 + 1).read_to_end(&mut rest)?;
        Ok(self.failed.starts_with(&rest))
    }

    /// Cuts the file back to the last good line and makes that durable, so that nothing of the rest can come back between
    /// the blocks of the next line.
    fn cut(&mut self) -> Result<(), AuditError> {
        file::truncate(&self.file, NAME, self.end.bytes)
            .and_then(|()| file::sync_all(&self.file, NAME))
            .map_err(AuditError::Cut)?;
        self.failed.clear();
        Ok(())
    }

    fn write(&mut self, event: &AuditEvent, at: &str) -> Result<(), AuditError> {
        let mut line = line(self.end.head, at, event)?;
        let end = self.end.after(&line);
        line.push(b'\n');
        let written = file::write_all(&self.file, NAME, &line).and_then(|()| file::sync_data(&self.file, NAME));
        match written {
            Ok(()) => {
                self.end = end;
                Ok(())
            }
            Err(error) => {
                self.failed = line;
                // If this fails, too, the next turn begins with it.
                let _ = self.cut();
                Err(AuditError::Write(error))
            }
        }
    }
}

fn open_or_make(dir: &Dir, owner: u32) -> Result<File, AuditError> {
    let there = dir.stat(NAME).map_err(AuditError::Open)?;
    if let Some(stat) = &there {
        // Before it is opened: opening a pipe or a device can do things.
        is_ours_alone(stat, owner).map_err(AuditError::NotOurs)?;
    }
    let file = dir.open_append(NAME).map_err(AuditError::Open)?;
    let stat = dir::stat_of(file.as_fd()).map_err(AuditError::Open)?;
    is_ours_alone(&stat, owner).map_err(AuditError::NotOurs)?;
    if stat.mode != 0o600 {
        file::set_mode(&file, NAME, 0o600).map_err(AuditError::Open)?;
    }
    if there.is_none() {
        dir.sync().map_err(AuditError::Open)?;
    }
    Ok(file)
}

#[cfg(test)]
pub(super) mod tests;
