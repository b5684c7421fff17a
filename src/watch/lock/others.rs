//! Flags that other watches have set: on the same tree with state of its own, on one around it or in it, on another working
//! tree of the same repository.
//!
//! Promise: each of them has it in its journal before the flag is set, and that is what is asked, whether that watch runs or
//! was killed. Limit: journals of the same user in the same place (`KEEP_STATE_DIR`) are read, no others; they are the
//! user's, who can write into one what never was: then a flag that somebody else set is taken for a watch's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use platform::{Dir, FileType, Stat};

use crate::journal::{Object, flagged};

/// The journals beside ours.
#[derive(Debug)]
pub struct Others {
    /// The folder that holds the state of all roots; `None` if it cannot be opened.
    top: Option<Dir>,
    /// The name of our own.
    own: Vec<u8>,
    /// The user we run as.
    owner: u32,
    /// What each of them said when it was read, by name.
    read: BTreeMap<Vec<u8>, (Stat, BTreeSet<Object>)>,
}

impl Others {
    /// Those in the folder `top`, but for the one named `own`.
    pub fn beside(top: &Path, own: &str, owner: u32) -> Self {
        Self { top: Dir::open_ambient(top).ok(), own: own.as_bytes().to_vec(), owner, read: BTreeMap::new() }
    }

    /// Whether one of them has made this object immutable and not released it.
    pub fn have_flagged(&mut self, object: Object) -> bool {
        self.refresh();
        self.read.values().any(|(_, flagged)| flagged.contains(&object))
    }

    /// Reads what has changed since it was read.
    fn refresh(&mut self) {
        let Some(top) = &self.top else { return };
        // One whose folder cannot be listed or read has said nothing.
        let entries = top.list().unwrap_or_default();
        let folder = |file_type| matches!(file_type, None | Some(FileType::Directory));
        let names: BTreeSet<Vec<u8>> = entries
            .into_iter()
            .filter(|entry| folder(entry.file_type) && entry.name != self.own)
            .map(|entry| entry.name)
            .collect();
        self.read.retain(|name, _| names.contains(name));
        for name in names {
            let Ok(dir) = top.open_dir(&name) else { continue };
            let Some(stat) = flagged::stamps(&dir) else { continue };
            if self.read.get(&name).is_none_or(|(read, _)| *read != stat) {
                // The stamps are older than what is read: what comes in between is read the next time.
                let said = flagged::read(&dir, self.owner).unwrap_or_default();
                self.read.insert(name, (stat, said));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Event, FileJournal, Journal as _};

    const OBJECT: Object = Object { dev: 1, ino: 2, uid: 3 };

    fn flagged() -> Event {
        Event::Flagged { path: ".env".to_owned(), id: OBJECT }
    }

    /// A folder of states, and a journal in the one named `name`.
    fn journal(top: &Dir, name: &[u8]) -> FileJournal {
        let owner = top.own_stat().expect("stats").uid;
        FileJournal::open(&top.make_dir(name, 0o700).expect("makes"), owner, "s").expect("opens").journal
    }

    fn write(journal: &mut FileJournal, event: &Event) {
        journal.append("then", event).expect("fits");
        journal.commit().expect("commits");
    }

    #[test]
    fn what_another_journal_says_is_flagged_is_known_until_it_says_that_it_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = Dir::open_ambient(folder.path()).expect("opens");
        let mut others = Others::beside(folder.path(), "own", top.own_stat().expect("stats").uid);
        assert!(!others.have_flagged(OBJECT));
        let mut theirs = journal(&top, b"theirs");
        write(&mut theirs, &flagged());
        assert!(others.have_flagged(OBJECT));
        assert!(!others.have_flagged(Object { uid: 4, ..OBJECT }), "another user's");
        write(&mut theirs, &Event::Unflagged { path: ".env".to_owned(), id: OBJECT, missing: false });
        assert!(!others.have_flagged(OBJECT));
    }

    #[test]
    fn our_own_journal_is_none_of_them_and_what_is_no_journal_says_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = Dir::open_ambient(folder.path()).expect("opens");
        let mut others = Others::beside(folder.path(), "own", top.own_stat().expect("stats").uid);
        write(&mut journal(&top, b"own"), &flagged());
        top.make_dir(b"empty", 0o700).expect("makes");
        let broken = top.make_dir(b"broken", 0o700).expect("makes");
        std::io::Write::write_all(&mut broken.create_new(b"journal.jsonl", 0o600).expect("creates"), b"no journal\n\n")
            .expect("writes");
        top.create_new(b"file", 0o600).expect("creates");
        assert!(!others.have_flagged(OBJECT));
        assert!(!Others::beside(&folder.path().join("none"), "own", 0).have_flagged(OBJECT));
    }
}
