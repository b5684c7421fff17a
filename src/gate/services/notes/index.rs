//! The index: every note with what is in it, made when it is read, so that it cannot be wrong.
//!
//! Promise: bounded work: at most [`MAX_ENTRIES`] names are looked at, and folders no deeper than a note's can lie.
//! Only regular files that a note can be are listed; a name that cannot be shown is passed over.

use platform::{Dir, FileType};

use super::file::why;
use super::{INDEX, MAX_SEGMENTS, MOST};
use crate::gate::path::NotePath;

/// The most names that are looked at, whatever they are.
const MAX_ENTRIES: usize = 10_000;

/// A line for each note, sorted by path.
pub fn text(folder: &Dir, summary: impl Fn(&NotePath) -> Option<String>) -> Result<String, String> {
    let folder = folder.reopen().map_err(|error| why(&error))?;
    let mut notes = notes(folder)?;
    notes.sort();
    notes.truncate(MOST);
    let lines = notes.iter().map(|path| match summary(path) {
        Some(summary) => format!("- {path} — {summary}\n"),
        None => format!("- {path}\n"),
    });
    Ok(lines.collect())
}

/// How many notes there are.
pub fn count(folder: Dir) -> Result<usize, String> {
    Ok(notes(folder)?.len())
}

fn notes(folder: Dir) -> Result<Vec<NotePath>, String> {
    let mut open = vec![(String::new(), folder)];
    let (mut notes, mut looked) = (Vec::new(), 0);
    while let Some((above, dir)) = open.pop() {
        let mut entries = Vec::new();
        let listed = dir.each_entry(|name, _| {
            looked += 1;
            if looked <= MAX_ENTRIES {
                entries.push(name.to_vec());
            }
        });
        listed.map_err(|error| why(&error))?;
        if looked > MAX_ENTRIES {
            return Err(format!("there are more than {MAX_ENTRIES} files in the folder of notes"));
        }
        for name in entries {
            let Ok(text) = std::str::from_utf8(&name) else { continue };
            let path = format!("{above}{text}");
            // What went away meanwhile is none.
            match dir.stat(&name).ok().flatten().map(|stat| stat.file_type) {
                Some(FileType::Regular) if path != INDEX => notes.extend(NotePath::parse(&path)),
                Some(FileType::Directory) if path.matches('/').count() + 1 < MAX_SEGMENTS => {
                    // Nor is what may not be looked into.
                    open.extend(dir.open_dir(&name).ok().map(|below| (format!("{path}/"), below)));
                }
                _ => {}
            }
        }
    }
    Ok(notes)
}
