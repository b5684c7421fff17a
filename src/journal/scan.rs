//! Reads the chain from its start, and tells a torn end from an altered entry.
//!
//! At most one batch is ever written and not yet synced: the last. A power cut can leave any of its blocks out, so a break
//! is its tear if the broken entry can belong to it. It cannot if an entry after the break belongs to a batch that began
//! later (then the broken entry had been synced), or is the first of its batch and does not continue the line before (then
//! that line, synced earlier, was altered).
//!
//! Promise: memory stays below a few lines, whatever is in the file. Nothing is changed here.
//! Limit: entries cut off at the end of a batch leave no trace; the chain is not keyed.

use std::io::{self, BufRead, Read as _};

use super::line::{Head, Link, MAX_LINE_BYTES, START, link};

/// Where a chain must begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// After this line.
    After(Head),
    /// Anywhere: files before this one may have been taken away.
    Anywhere,
}

/// A chain that was read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scanned {
    /// The last good line.
    pub head: Head,
    /// The number of the first entry; zero if there is none.
    pub first: u64,
    /// Length of all good lines, newlines included.
    pub good_bytes: u64,
    /// How many there are.
    pub lines: u64,
    /// What follows them: the torn part of the last batch.
    pub torn_bytes: u64,
}

/// Why a chain was not read to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum ScanError<E> {
    #[error("cannot read")]
    Read(#[from] io::Error),
    #[error("line {line}: {reason}")]
    Chain { line: u64, reason: &'static str },
    #[error("line {line}")]
    Refused { line: u64, source: E },
}

/// Reads the lines and gives each good one to `see`, in order, without its newline; an error of `see` ends it.
pub(super) fn scan<E>(
    reader: &mut impl BufRead,
    origin: Origin,
    mut see: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<Scanned, ScanError<E>> {
    let mut chain = Chain::new(origin);
    let mut line = Vec::new();
    loop {
        line.clear();
        reader.by_ref().take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', &mut line)?;
        let whole = line.strip_suffix(b"\n").and_then(|text| Some((text, link(text)?)));
        match whole {
            Some((text, link)) if chain.takes(&link) => {
                chain.push(&link, line.len() as u64);
                see(text).map_err(|source| ScanError::Refused { line: chain.scanned.lines, source })?;
            }
            _ if line.is_empty() => return Ok(chain.scanned),
            _ => {
                chain.scanned.torn_bytes = torn(reader, &chain, line)?;
                return Ok(chain.scanned);
            }
        }
    }
}

struct Chain {
    origin: Origin,
    scanned: Scanned,
    /// The batch of the last good line; zero if there is none.
    batch: u64,
}

impl Chain {
    fn new(origin: Origin) -> Self {
        let head = match origin {
            Origin::After(head) => head,
            Origin::Anywhere => Head::default(),
        };
        Self { origin, scanned: Scanned { head, first: 0, good_bytes: 0, lines: 0, torn_bytes: 0 }, batch: 0 }
    }

    fn may_begin_with(&self, link: &Link) -> bool {
        self.scanned.lines == 0 && self.origin == Origin::Anywhere && link.seq > 1 && link.batch == link.seq
    }

    fn takes(&self, link: &Link) -> bool {
        let head = self.scanned.head;
        let continues = link.seq == head.seq + 1 && link.previous == head.digest;
        let batch = link.batch == link.seq || (link.batch == self.batch && self.batch != 0);
        (continues && batch) || self.may_begin_with(link)
    }

    fn push(&mut self, link: &Link, bytes: u64) {
        if self.scanned.lines == 0 {
            self.scanned.first = link.seq;
        }
        self.scanned.head = link.head();
        self.scanned.good_bytes += bytes;
        self.scanned.lines += 1;
        self.batch = link.batch;
    }

    /// Whether an entry found after the break is one of the last batch, and the broken entry can be one, too.
    fn judge(&self, stray: &Link, batch: &mut Option<u64>) -> Result<(), (u64, &'static str)> {
        let head = self.scanned.head;
        let broken = head.seq + 1;
        let here = self.scanned.lines + 1;
        if stray.seq < broken {
            return Err((here, "an entry stands where a later one belongs"));
        }
        if stray.batch > broken {
            return Err((here, "the entry is damaged, and others were written after it"));
        }
        if stray.batch != broken && (stray.batch != self.batch || self.batch == 0) {
            return Err((here, "an entry belongs to a batch that was complete before"));
        }
        if *batch.get_or_insert(stray.batch) != stray.batch {
            return Err((here, "entries of two batches follow a damaged one"));
        }
        if stray.seq == broken && stray.batch == broken && stray.previous != head.digest {
            return Err((here.saturating_sub(1).max(1), "the entry is not the one that the next one continues"));
        }
        Ok(())
    }
}

/// Looks at all that follows the good lines, `part` being what was read of it, and returns its length if it can be the
/// torn part of the last batch.
fn torn<E>(reader: &mut impl BufRead, chain: &Chain, mut part: Vec<u8>) -> Result<u64, ScanError<E>> {
    let mut bytes = part.len() as u64;
    let mut batch = None;
    let begins = &part[..part.len().min(START.len())];
    let mut is_journal = chain.scanned.lines > 0 || begins.first() == Some(&0) || START.starts_with(begins);
    loop {
        let line = part.strip_suffix(b"\n").unwrap_or(&part);
        // Only the last beginning in it can be that of a whole line: none contains another.
        if let Some(stray) = line.windows(START.len()).rposition(|at| at == START).and_then(|at| link(&line[at..])) {
            is_journal = true;
            chain.judge(&stray, &mut batch).map_err(|(line, reason)| ScanError::Chain { line, reason })?;
        }
        if part.last() == Some(&b'\n') {
            part.clear();
        } else {
            // A line that began before the last MAX_LINE_BYTES is too long to be one.
            part.drain(..part.len().saturating_sub(MAX_LINE_BYTES));
        }
        let read = reader.by_ref().take(MAX_LINE_BYTES as u64).read_until(b'\n', &mut part)?;
        bytes += read as u64;
        if read == 0 {
            break;
        }
    }
    if is_journal { Ok(bytes) } else { Err(ScanError::Chain { line: 1, reason: "this is no journal" }) }
}
