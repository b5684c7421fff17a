//! Notes: Markdown files in the control folder's `memory/`, each with a line that says what is in it.
//!
//! Promise: content is read as it was written, and it changes with its line at once; nothing outside the folder is read or
//! written, no symlink is followed, nothing but a regular file opened. At most [`MOST`] notes of 64 KiB, in folders at most
//! [`MAX_SEGMENTS`] deep, so that an agent that writes on and on comes to an end.
//! Limit: a note somebody wrote by hand may be longer; it is read cut, and says so. Who reads the index while notes change
//! may get some of before and some of after.

mod index;
mod page;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use platform::turn::Turn;
use platform::{Dir, FileType, FsError, Root};
use serde_json::{Map, Value};

use super::file::{self, Text, cannot_open, means_absent, why};
use super::{object, wording};
use crate::gate::path::NotePath;
use crate::gate::tools::request::MAX_NOTE;

/// The folder, in the control folder.
const FOLDER: &[u8] = b"memory";
/// A note while it is being written, in the control folder: it never lies among the others.
const UNFINISHED: &[u8] = b"note.new";
/// Who writes a note has this.
const TURN: &[u8] = b"notes.lock";
/// How long we wait for another process.
const PATIENCE: Duration = Duration::from_secs(2);
/// The note that is made by itself.
pub const INDEX: &str = "MEMORY.md";
/// The most characters of a summary; longer ones are cut.
pub const MAX_SUMMARY: usize = 120;
/// The most notes.
pub const MOST: usize = 500;
/// The most segments of a note's path.
pub const MAX_SEGMENTS: usize = 8;

/// The notes of one control folder.
#[derive(Debug)]
pub struct Notes {
    control: Dir,
}

impl Notes {
    /// Those in this control folder. The folder of notes is made by the first one.
    pub fn of(control: Dir) -> Self {
        Self { control }
    }

    /// `memory_read`.
    pub fn read(&self, path: &str) -> Result<Map<String, Value>, String> {
        let path = parse(path)?;
        if path.as_str() == INDEX {
            return self.index();
        }
        let absent = || format!("there is no note {path}");
        let folder = self.folder()?.ok_or_else(absent)?;
        let file = folder.open_read(&path.rel()).map_err(|error| match &error {
            error if means_absent(error) => absent(),
            error => format!("the note {path} cannot be read: {}", cannot_open(error)),
        })?;
        let text = file::text(file, (MAX_NOTE + page::MAX_HEAD) as u64);
        let Text { content, size, truncated } =
            text.map_err(|error| format!("the note {path} cannot be read: {error}"))?;
        let (summary, rest) = page::split(&content);
        let head = content.len() - rest.len();
        let (rest, is_cut) = clipped(rest, MAX_NOTE);
        Ok(object([
            ("path", path.as_str().into()),
            ("summary", summary.map_or(Value::Null, Value::from)),
            ("content", rest.into()),
            ("size", (size - head as u64).into()),
            ("truncated", (truncated || is_cut).into()),
        ]))
    }

    /// `memory_write`.
    pub fn write(&self, path: &str, summary: &str, content: &str) -> Result<Map<String, Value>, String> {
        let path = parse(path)?;
        if path.as_str() == INDEX {
            return Err(format!("{INDEX} is made by itself, of the notes and their summaries"));
        }
        if path.as_str().split('/').count() > MAX_SEGMENTS {
            return Err(format!("a note's path has at most {MAX_SEGMENTS} segments"));
        }
        if content.len() > MAX_NOTE {
            return Err(format!("a note has at most {MAX_NOTE} bytes"));
        }
        let summary = wording::line(summary, MAX_SUMMARY).ok_or(
            "`summary` is one line that says what is in the note, without control, bidirectional or invisible characters",
        )?;
        let failed = |error: &str| format!("the note {path} cannot be written: {error}");
        let turn = Turn::named(&self.control, TURN, PATIENCE).map_err(|error| failed(&error.to_string()))?;
        let folder = self.made_folder().map_err(|error| failed(&why(&error)))?;
        let (parent, name) = made_parent(&folder, &path).map_err(|error| failed(&why(&error)))?;
        match parent.stat(name).map_err(|error| failed(&why(&error)))?.map(|stat| stat.file_type) {
            Some(FileType::Regular) => {}
            Some(_) => return Err(failed("something that is no regular file has that name")),
            None if index::count(folder)? >= MOST => return Err(failed(&format!("there are {MOST} notes already"))),
            None => {}
        }
        let page = page::join(&summary, content);
        file::replace(&self.control, UNFINISHED, &parent, name, page.as_bytes())
            .map_err(|error| failed(&why(&error)))?;
        drop(turn);
        Ok(object([
            ("path", path.as_str().into()),
            ("summary", summary.into()),
            ("bytesWritten", content.len().into()),
        ]))
    }

    fn index(&self) -> Result<Map<String, Value>, String> {
        let text = match self.folder()? {
            Some(folder) => index::text(folder.dir(), |path| self.summary(path))?,
            None => String::new(),
        };
        let (shown, is_cut) = clipped(&text, MAX_NOTE);
        // Whole lines only.
        let shown = if is_cut { shown.rsplit_once('\n').map_or("", |(lines, _)| lines) } else { shown };
        Ok(object([
            ("path", INDEX.into()),
            ("summary", "the notes and what is in them".into()),
            ("content", shown.into()),
            ("size", text.len().into()),
            ("truncated", is_cut.into()),
        ]))
    }

    /// What the index says of a note.
    fn summary(&self, path: &NotePath) -> Option<String> {
        let file = self.folder().ok()??.open_read(&path.rel()).ok()?;
        let Text { content, .. } = file::text(file, page::MAX_HEAD as u64).ok()?;
        match page::split(&content) {
            (Some(summary), _) => Some(summary.to_owned()),
            (None, rest) => page::first_words(rest),
        }
    }

    fn folder(&self) -> Result<Option<Root>, String> {
        match self.control.open_dir(FOLDER) {
            Ok(dir) => Root::of(dir, PathBuf::from("memory")).map(Some).map_err(|error| why(&error)),
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("the folder of notes cannot be opened: {}", error.source)),
        }
    }

    fn made_folder(&self) -> Result<Dir, FsError> {
        opened_or_made(&self.control, FOLDER)
    }
}

fn parse(path: &str) -> Result<NotePath, String> {
    NotePath::parse(path).map_err(|error| error.to_string())
}

/// The folder a note lies in, made if it is missing, and its name there.
fn made_parent<'p>(folder: &Dir, path: &'p NotePath) -> Result<(Dir, &'p [u8]), FsError> {
    let (above, name) = path.as_str().rsplit_once('/').unwrap_or(("", path.as_str()));
    let mut dir = folder.reopen()?;
    for segment in above.split('/').filter(|segment| !segment.is_empty()) {
        dir = opened_or_made(&dir, segment.as_bytes())?;
    }
    Ok((dir, name.as_bytes()))
}

fn opened_or_made(parent: &Dir, name: &[u8]) -> Result<Dir, FsError> {
    match parent.open_dir(name) {
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => {
            let made = parent.make_dir(name, 0o700)?;
            parent.sync()?;
            Ok(made)
        }
        opened => opened,
    }
}

/// At most so many bytes of a text, and whether something was cut.
fn clipped(text: &str, most: usize) -> (&str, bool) {
    let end = text.floor_char_boundary(most);
    (&text[..end], end < text.len())
}

#[cfg(test)]
mod tests;
