//! The journal on disk: `journal.jsonl` in the state folder, and the full ones set aside as `journal-<n>.jsonl`.
//!
//! Promise: a file that is not ours alone, or whose chain is broken other than by a torn last batch, is left as it is,
//! byte for byte. There is never more than one batch that was written and not synced.
//! Limit: one writer; whoever opens the journal holds the state folder's lock.
//! Source: fsync(2): after a failed sync the kernel may take the lost pages for clean, so a batch whose sync failed is cut
//! off and written anew, never synced a second time.

use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};
use std::os::fd::AsFd;

use platform::{Dir, FsError, Stat, dir, file};

use crate::state::is_ours_alone;

use super::chain::Chain;
use super::event::Event;
use super::line::{Entry, Head, MAX_LINE_BYTES, START, Unreadable, link};
use super::replay::{Replay, Replayed};
use super::scan::{Origin, ScanError, Scanned, scan};
use super::{Journal, JournalError};

/// The journal's name in the state folder.
pub(super) const NAME: &str = "journal.jsonl";

/// An ended journal longer than this is set aside at the next start.
const ROTATE_ABOVE_BYTES: u64 = 16 << 20;

/// The journal of one state folder, open for one session.
#[derive(Debug)]
pub struct FileJournal {
    dir: Dir,
    file: File,
    id: platform::FileId,
    chain: Chain,
    session: String,
    /// Length of the good lines; the file may be longer for a while after a failure.
    good_bytes: u64,
    /// Whether the file is known to end there.
    is_settled: bool,
}

/// An opened journal, and what it said.
#[derive(Debug)]
pub struct Opened {
    /// The journal, ready for entries of the new session.
    pub journal: FileJournal,
    /// What the entries of earlier sessions come to.
    pub replayed: Replayed,
    /// How many bytes of a torn last batch were cut off.
    pub cut_bytes: u64,
    /// The name under which the full journal was set aside, if it was.
    pub rotated: Option<String>,
}

impl FileJournal {
    /// Opens the journal in `dir`, makes it if there is none, verifies its chain, cuts off a torn last batch and sets it
    /// aside if it is full. `owner` is the user we run as, `session` the name of the new session.
    pub fn open(dir: &Dir, owner: u32, session: &str) -> Result<Opened, JournalError> {
        Self::open_rotating(dir, owner, session, ROTATE_ABOVE_BYTES)
    }

    /// The same with another limit.
    pub(super) fn open_rotating(
        dir: &Dir,
        owner: u32,
        session: &str,
        above_bytes: u64,
    ) -> Result<Opened, JournalError> {
        let aside = set_aside(dir)?;
        let origin = match aside.last() {
            None => Origin::Anywhere,
            Some(&number) => Origin::After(last_head(dir, &aside_name(number), owner)?),
        };
        let file = open_or_make(dir, owner)?;
        let mut replay = Replay::default();
        let mut scanned = feed(&file, NAME, origin, &mut replay)?;
        if let (false, Some(&number)) = (replay.has_sealed(), aside.last()) {
            // Set aside, and the next session died before it had a baseline: the one set aside still tells.
            replay = Replay::default();
            let name = aside_name(number);
            feed(&open_aside(dir, &name, owner)?, &name, Origin::Anywhere, &mut replay)?;
            scanned = feed(&file, NAME, origin, &mut replay)?;
        }
        let replayed = replay.finish();
        let cut_bytes = scanned.torn_bytes;
        if cut_bytes > 0 {
            file::truncate(&file, NAME.as_bytes(), scanned.good_bytes).map_err(JournalError::Cut)?;
        }
        // The one who wrote the last batch may have been killed before it was durable. Were it not made so now, the next
        // batch would be the second that a power cut can tear.
        file::sync_all(&file, NAME.as_bytes()).map_err(JournalError::Cut)?;
        let stat = dir::stat_of(file.as_fd()).map_err(JournalError::Open)?;
        let mut journal = Self {
            dir: dir.try_clone().map_err(JournalError::Open)?,
            file,
            id: stat.id,
            chain: Chain::at(scanned.head),
            session: session.to_owned(),
            good_bytes: scanned.good_bytes,
            is_settled: true,
        };
        let mut rotated = None;
        // What is still immutable must be found by the starts to come, and those read no journal that was set aside.
        if scanned.good_bytes > above_bytes && replayed.ended_properly && replayed.flagged.is_empty() {
            let name = aside_name(aside.last().map_or(1, |last| last + 1));
            journal.rotate(&name).map_err(JournalError::Rotate)?;
            rotated = Some(name);
        }
        Ok(Opened { journal, replayed, cut_bytes, rotated })
    }

    fn rotate(&mut self, aside: &str) -> Result<(), FsError> {
        self.dir.rename_new(NAME.as_bytes(), &self.dir, aside.as_bytes())?;
        self.file = make(&self.dir)?;
        self.id = dir::stat_of(self.file.as_fd())?.id;
        self.good_bytes = 0;
        Ok(())
    }

    /// Cuts the file back to the last good line and makes that durable, so that nothing of a failed batch can come back
    /// between the blocks of the next one.
    fn settle(&mut self) -> Result<(), FsError> {
        file::truncate(&self.file, NAME.as_bytes(), self.good_bytes)?;
        file::sync_all(&self.file, NAME.as_bytes())?;
        self.is_settled = true;
        Ok(())
    }

    fn write(&mut self) -> Result<(), JournalError> {
        let here = self.dir.stat(NAME.as_bytes()).map_err(JournalError::Write)?;
        match here {
            Some(stat) if stat.id == self.id && stat.size >= self.good_bytes => {
                self.is_settled &= stat.size == self.good_bytes;
            }
            _ => return Err(JournalError::Taken),
        }
        if !self.is_settled {
            self.settle().map_err(JournalError::Cut)?;
        }
        let written = file::write_all(&self.file, NAME.as_bytes(), self.chain.pending())
            .and_then(|()| file::sync_data(&self.file, NAME.as_bytes()));
        written.map_err(|error| {
            self.is_settled = false;
            // If this fails, too, the next commit begins with it.
            let _ = self.settle();
            JournalError::Write(error)
        })
    }
}

impl Journal for FileJournal {
    fn append(&mut self, at: &str, event: &Event) -> Result<(), JournalError> {
        Ok(self.chain.append((at, &self.session), event)?)
    }

    fn commit(&mut self) -> Result<(), JournalError> {
        if self.chain.pending().is_empty() {
            return Ok(());
        }
        let written = self.write();
        match &written {
            Ok(()) => {
                self.good_bytes += self.chain.pending().len() as u64;
                self.chain.settle();
            }
            Err(_) => self.chain.discard(),
        }
        written
    }

    fn discard(&mut self) {
        self.chain.discard();
    }

    fn session(&self) -> &str {
        &self.session
    }

    fn head(&self) -> Head {
        self.chain.head()
    }
}

/// The name of the n-th journal that was set aside.
pub(super) fn aside_name(number: u64) -> String {
    format!("journal-{number}.jsonl")
}

/// The numbers of the journals that were set aside, oldest first.
pub(super) fn set_aside(dir: &Dir) -> Result<Vec<u64>, JournalError> {
    let mut numbers = Vec::new();
    dir.each_entry(|name, _| {
        let number = std::str::from_utf8(name)
            .ok()
            .and_then(|name| name.strip_prefix("journal-")?.strip_suffix(".jsonl")?.parse().ok());
        numbers.extend(number.filter(|&number| aside_name(number).as_bytes() == name));
    })
    .map_err(JournalError::Open)?;
    numbers.sort_unstable();
    Ok(numbers)
}

/// Opens a journal that was set aside, for reading.
pub(super) fn open_aside(dir: &Dir, name: &str, owner: u32) -> Result<File, JournalError> {
    let file = dir.open_read(name.as_bytes()).map_err(|error| opened(name, error))?;
    check(&dir::stat_of(file.as_fd()).map_err(JournalError::Open)?, name, owner)?;
    Ok(file)
}

/// Reads a file's chain into `replay`.
fn feed(file: &File, name: &str, origin: Origin, replay: &mut Replay) -> Result<Scanned, JournalError> {
    let mut reader = BufReader::with_capacity(1 << 16, file);
    reader.seek(SeekFrom::Start(0)).map_err(|source| JournalError::Read { file: name.to_owned(), source })?;
    let scanned = scan(&mut reader, origin, |line| {
        replay.feed(Entry::parse(line)?);
        Ok(())
    });
    scanned.map_err(|error| scan_error(name, error))
}

/// Names the file in an error of a scan.
pub(super) fn scan_error(name: &str, error: ScanError<Unreadable>) -> JournalError {
    let file = name.to_owned();
    match error {
        ScanError::Read(source) => JournalError::Read { file, source },
        ScanError::Chain { line, reason } => JournalError::Chain { file, line, reason },
        ScanError::Refused { line, source: Unreadable::UnknownEvent(event) } => {
            JournalError::UnknownEvent { file, line, event: event.escape_debug().to_string() }
        }
        ScanError::Refused { line, source: Unreadable::Fields(reason) } => {
            JournalError::Malformed { file, line, reason: reason.escape_debug().to_string() }
        }
    }
}

/// Where the chain of a journal that was set aside ends. Its last line tells; the lines before are not read.
fn last_head(dir: &Dir, name: &str, owner: u32) -> Result<Head, JournalError> {
    let mut file = open_aside(dir, name, owner)?;
    let read = |source| JournalError::Read { file: name.to_owned(), source };
    let length = file.seek(SeekFrom::End(0)).map_err(read)?;
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_LINE_BYTES as u64 + 1))).map_err(read)?;
    let mut tail = Vec::new();
    std::io::Read::read_to_end(&mut std::io::Read::take(file, MAX_LINE_BYTES as u64 + 1), &mut tail).map_err(read)?;
    let last = tail.strip_suffix(b"\n").and_then(|tail| {
        let start = tail.windows(START.len()).rposition(|at| at == START)?;
        link(&tail[start..])
    });
    last.map(|link| link.head()).ok_or(JournalError::Chain {
        file: name.to_owned(),
        line: 1,
        reason: "its last entry is damaged",
    })
}

fn open_or_make(dir: &Dir, owner: u32) -> Result<File, JournalError> {
    let name = NAME.as_bytes();
    match dir.stat(name).map_err(JournalError::Open)? {
        None => make(dir).map_err(JournalError::Open),
        Some(stat) => {
            // Before it is opened: opening a pipe or a device can do things.
            check(&stat, NAME, owner)?;
            let file = dir.open_append(name).map_err(|error| opened(NAME, error))?;
            let stat = dir::stat_of(file.as_fd()).map_err(JournalError::Open)?;
            check(&stat, NAME, owner)?;
            if stat.mode != 0o600 {
                file::set_mode(&file, name, 0o600).map_err(JournalError::Open)?;
            }
            Ok(file)
        }
    }
}

fn make(dir: &Dir) -> Result<File, FsError> {
    dir.create_new(NAME.as_bytes(), 0o600)?;
    dir.sync()?;
    dir.open_append(NAME.as_bytes())
}

/// Whether the file is ours alone.
fn check(stat: &Stat, name: &str, owner: u32) -> Result<(), JournalError> {
    is_ours_alone(stat, owner).map_err(|reason| JournalError::NotOurs { file: name.to_owned(), reason })
}

fn opened(name: &str, error: FsError) -> JournalError {
    match error.source.kind() {
        std::io::ErrorKind::InvalidInput => {
            JournalError::NotOurs { file: name.to_owned(), reason: "is not a regular file" }
        }
        _ => JournalError::Open(error),
    }
}
