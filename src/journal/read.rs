//! Reading entries without changing anything: of any bytes, or of all files of a state folder, oldest first.
//!
//! Limit: a session may be writing meanwhile; what it has not finished counts as torn, not as broken.

use std::io::{BufRead, BufReader};

use platform::Dir;

use super::JournalError;
use super::file::{NAME, aside_name, open_aside, scan_error, set_aside};
use super::line::Head;
use super::line::{Entry, Unreadable};
use super::scan::{Origin, Scanned, scan};

/// One entry that was read.
#[derive(Debug)]
pub struct Seen<'l> {
    /// The file of the state folder it is in.
    pub file: &'l str,
    /// The line without its newline; it cannot draw on a terminal.
    pub line: &'l [u8],
    /// What it says; an error if a newer version wrote it.
    pub entry: Result<Entry, Unreadable>,
}

/// A chain that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Verified {
    /// How many files there are.
    pub files: usize,
    /// How many entries are in them.
    pub entries: u64,
    /// The number of the first entry: more than 1 if older files were taken away, zero if there is none.
    pub first: u64,
    /// Bytes of a torn last batch, which the next session will cut off.
    pub torn_bytes: u64,
}

/// Verifies the chain of all files and gives every entry to `see`. `owner` is the user we run as.
pub fn read(dir: &Dir, owner: u32, mut see: impl FnMut(Seen<'_>)) -> Result<Verified, JournalError> {
    let mut names: Vec<String> = set_aside(dir)?.into_iter().map(aside_name).collect();
    if dir.stat(NAME.as_bytes()).map_err(JournalError::Open)?.is_some() {
        names.push(NAME.to_owned());
    }
    let mut verified = Verified::default();
    let mut origin = Origin::Anywhere;
    for (index, name) in names.iter().enumerate() {
        let file = open_aside(dir, name, owner)?;
        let mut reader = BufReader::with_capacity(1 << 16, file);
        let scanned = read_one(&mut reader, name, origin, &mut see)?;
        if scanned.torn_bytes > 0 && index + 1 < names.len() {
            let (file, line) = (name.clone(), scanned.lines + 1);
            return Err(JournalError::Chain {
                file,
                line,
                reason: "the entry is damaged, and others were written after it",
            });
        }
        verified.files += 1;
        verified.entries += scanned.lines;
        verified.torn_bytes = scanned.torn_bytes;
        if verified.first == 0 {
            verified.first = scanned.first;
        }
        origin = Origin::After(scanned.head);
    }
    Ok(verified)
}

/// Verifies the one journal `reader` gives, which must be the first of its chain, and gives every entry to `see`. `file` is
/// what errors call it.
pub fn read_from(
    reader: &mut impl BufRead,
    file: &str,
    mut see: impl FnMut(Seen<'_>),
) -> Result<Verified, JournalError> {
    let scanned = read_one(reader, file, Origin::After(Head::default()), &mut see)?;
    let Scanned { lines: entries, first, torn_bytes, .. } = scanned;
    Ok(Verified { files: 1, entries, first, torn_bytes })
}

pub(super) fn read_one(
    reader: &mut impl BufRead,
    file: &str,
    origin: Origin,
    see: &mut impl FnMut(Seen<'_>),
) -> Result<Scanned, JournalError> {
    let scanned = scan(reader, origin, |line| {
        see(Seen { file, line, entry: Entry::parse(line) });
        Ok(())
    });
    scanned.map_err(|error| scan_error(file, error))
}

/// Verifies the chain of all files.
pub fn verify(dir: &Dir, owner: u32) -> Result<Verified, JournalError> {
    read(dir, owner, |_| {})
}
