//! What a journal says is still immutable, read beside the one who writes it.
//!
//! Limit: what was set aside is not read: a journal is set aside only when nothing is immutable by it.

use std::collections::BTreeSet;
use std::io::BufReader;

use platform::{Dir, Stat};

use super::JournalError;
use super::event::Event;
use super::file::{NAME, open_aside};
use super::object::Object;
use super::read::read_one;
use super::scan::Origin;

/// The stamps of the journal in a state folder, by which it is told that it says no more than before; `None` if none is
/// there.
pub fn stamps(dir: &Dir) -> Option<Stat> {
    dir.stat(NAME.as_bytes()).ok().flatten()
}

/// The objects that the journal in `dir` says are immutable. `owner` is the user we run as.
pub fn read(dir: &Dir, owner: u32) -> Result<BTreeSet<Object>, JournalError> {
    let mut flagged = BTreeSet::new();
    let mut reader = BufReader::with_capacity(1 << 16, open_aside(dir, NAME, owner)?);
    read_one(&mut reader, NAME, Origin::Anywhere, &mut |seen| match seen.entry.map(|entry| entry.event) {
        Ok(Event::Flagged { id, .. }) => {
            flagged.insert(id);
        }
        Ok(Event::Unflagged { id, .. }) => {
            flagged.remove(&id);
        }
        _ => {}
    })?;
    Ok(flagged)
}
