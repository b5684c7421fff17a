//! `file_search`: files by name, and by what they hold.
//!
//! Promise: the answer is the first [`MOST_HITS`] files by the bytes of their paths, whatever order they are found in, with
//! `truncated` if there are more. Symlinks are named and not followed, nothing but directories and regular files is opened,
//! no mount is entered, and a directory that cannot be read is counted and passed over. Unless `all` is asked for, what
//! git's ignore files in the tree leave out is left out, and `.git` with it. A file counts as binary as soon as a NUL turns
//! up in it, and is then no hit. A regular expression takes time linear in what it reads, whatever it says.
//! Limit: of a tree that changes meanwhile the answer is no picture of any moment. After [`walk::MOST_VISITED`] entries it
//! stops, and says `truncated`.

mod content;
mod found;
mod ignored;
mod queue;
mod walk;

use std::sync::Arc;

use platform::Root;
use serde_json::{Map, Value, json};

use super::error::FilesError;
use super::resolve;
use crate::gate::tools::request::FileSearch;
use crate::rules::glob::Glob;
use crate::text::escaped;
use found::{Found, Line};

/// The most files of an answer.
pub(super) const MOST_HITS: usize = 500;

/// Searches.
pub(super) fn search(root: &Arc<Root>, request: &FileSearch) -> Result<Map<String, Value>, FilesError> {
    let base = resolve::directory(root, request.path.as_deref())?;
    let glob = Glob::compile(&request.pattern)?;
    let wanted = request.contains.as_deref().map(|text| content::Wanted::new(text, request.regex)).transpose()?;
    let found = Found::new(MOST_HITS);
    let walked =
        walk::Walk { root, base: &base, glob: &glob, wanted: wanted.as_ref(), all: request.all, found: &found };
    let told = walked.run();
    let (hits, more) = found.into_sorted();
    let mut answer = Map::new();
    if wanted.is_some() {
        let hits: Vec<Value> = hits.iter().map(|(path, lines)| hit(path, lines)).collect();
        answer.insert("hits".into(), hits.into());
    } else {
        let paths: Vec<Value> = hits.iter().map(|(path, _)| escaped(path).into()).collect();
        answer.insert("paths".into(), paths.into());
    }
    answer.insert("truncated".into(), (more || told.stopped).into());
    if told.unreadable > 0 {
        answer.insert("unreadable".into(), told.unreadable.into());
    }
    Ok(answer)
}

/// A file and the first of its lines that match.
fn hit(path: &[u8], lines: &[Line]) -> Value {
    let shown: Vec<Value> =
        lines.iter().take(content::MOST_LINES).map(|line| json!({"line": line.number, "text": line.text})).collect();
    json!({"path": escaped(path), "lines": shown, "more": lines.len() > content::MOST_LINES})
}

#[cfg(test)]
mod tests;
