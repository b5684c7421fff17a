//! What a change would do, told in facts.
//!
//! Promise: every word is computed from what is there and from the sizes of what is new; nothing an agent wrote is in it but
//! paths and, on demand, the lines of a difference, escaped. Of a file that holds secrets only keys are shown, never a value.

use std::io::Read as _;

use platform::{FileType, Root, Stat};

use super::compare::{Compared, compare};
use super::error::{FilesError, shown};
use super::listing::word;
use super::plan::Plan;
use super::resolve::Resolved;
use super::{After, Prepared};
use crate::difference::{self, Format};
use crate::digest::Digest;
use crate::gate::tools::request::MAX_WRITE;
use crate::rules::Rule;
use crate::rules::builtin::Table;
use crate::text::escaped;

/// A file that moves is read for its digest up to here.
const MOST_DIGESTED: u64 = 64 << 20;
/// Bytes of a link's text that are shown.
const MOST_TEXT: usize = 200;

/// Tells them.
pub(super) fn prepared(root: &Root, table: &Table, plan: &Plan<'_>) -> Result<Prepared, FilesError> {
    let told = match plan {
        Plan::Write { at, content } => write(root, table, at, content)?,
        Plan::Remove { at } => remove(root, table, at)?,
        Plan::Move { from, to } => relocate(root, from, to)?,
    };
    let paths = plan.paths().iter().map(|at| path_text(at)).collect();
    Ok(Prepared { paths, facts: told.facts, difference: told.difference, state: plan.state(), after: told.after })
}

#[derive(Default)]
struct Told {
    facts: Vec<String>,
    difference: Vec<String>,
    after: Vec<After>,
}

/// A resolved path is one a question can show: it is UTF-8 and nothing in it is hidden.
pub(super) fn path_text(at: &Resolved) -> String {
    String::from_utf8_lossy(at.path.as_bytes()).into_owned()
}

fn bytes(count: u64) -> String {
    if count == 1 { "1 byte".to_owned() } else { format!("{count} bytes") }
}

fn write(root: &Root, table: &Table, at: &Resolved, content: &[u8]) -> Result<Told, FilesError> {
    let size = bytes(content.len() as u64);
    let mut told = Told::default();
    let before = match &at.stat {
        None => Some(Vec::new()),
        Some(stat) => before(root, at, stat),
    };
    let compared = before.as_deref().map_or_else(unread, |before| compare(before, content));
    let verb = if at.stat.is_some() { "overwrite" } else { "create" };
    told.facts.push(match compared.counts {
        _ if at.stat.is_some() && before.as_deref() == Some(content) => format!("{verb}, {size}, the same content"),
        // So many lines that only their number is told.
        Some((0, 0)) if !content.is_empty() => format!("{verb}, {size}, +0 -0, the same lines in another order"),
        Some((came, went)) => format!("{verb}, {size}, +{came} -{went}"),
        None => format!("{verb}, {size}, in place of {}", bytes(at.stat.map_or(0, |stat| stat.size))),
    });
    match &at.stat {
        None => told.facts.extend(new_directory(root, at)?),
        Some(stat) => told.facts.extend(warnings(stat)),
    }
    told.difference = difference_of(table, at, before.as_deref(), Some(content), compared);
    told.after.push(After { path: path_text(at), digest: Some(Digest::of(content).to_string()) });
    Ok(told)
}

/// What a person may not expect of the file that is replaced.
fn warnings(stat: &Stat) -> Vec<String> {
    let mut warnings = Vec::new();
    if stat.mode & 0o111 != 0 {
        warnings.push("the file is executable, and stays so".to_owned());
    }
    if stat.nlink > 1 {
        warnings.push(format!("the file has {} names; the others keep the old content", stat.nlink));
    }
    warnings
}

/// The topmost directory that would be made.
fn new_directory(root: &Root, at: &Resolved) -> Result<Option<String>, FilesError> {
    for above in at.path.ancestors() {
        if root.stat(&above)?.is_none() {
            return Ok(Some(format!("makes the directory {}", shown(&above))));
        }
    }
    Ok(None)
}

fn remove(root: &Root, table: &Table, at: &Resolved) -> Result<Told, FilesError> {
    let stat = at.present()?;
    let mut told = Told::default();
    if stat.file_type == FileType::Directory {
        told.facts.push("remove an empty directory".to_owned());
    } else {
        told.facts.push(format!("remove {}", thing(root, at, stat)?));
    }
    if stat.file_type == FileType::Regular {
        let before = before(root, at, stat);
        let compared = before.as_deref().map_or_else(unread, |before| compare(before, b""));
        told.difference = difference_of(table, at, before.as_deref(), None, compared);
    }
    told.after.push(After { path: path_text(at), digest: None });
    Ok(told)
}

fn relocate(root: &Root, from: &Resolved, to: &Resolved) -> Result<Told, FilesError> {
    let stat = from.present()?;
    let mut told = Told::default();
    told.facts.push(format!("move {}", thing(root, from, stat)?));
    told.facts.push(format!("from {}", shown(&from.path)));
    told.facts.push(format!("to {}", shown(&to.path)));
    match &to.stat {
        Some(replaced) => told.facts.push(format!("overwrites {}", thing(root, to, replaced)?)),
        None => told.facts.extend(new_directory(root, to)?),
    }
    told.after.push(After { path: path_text(from), digest: None });
    told.after.push(After { path: path_text(to), digest: digest(root, from, stat) });
    Ok(told)
}

/// What is at a path, in a few words.
fn thing(root: &Root, at: &Resolved, stat: &Stat) -> Result<String, FilesError> {
    Ok(match stat.file_type {
        FileType::Directory => "a directory with all that is in it".to_owned(),
        FileType::Symlink => {
            let (dir, name) = root.parent(&at.path)?;
            let text = dir.read_link(name)?;
            format!("a symlink to {}", escaped(&text[..text.len().min(MOST_TEXT)]))
        }
        other => format!("a {}, {}", word(other), bytes(stat.size)),
    })
}

/// What a file holds, if it is not more than could be written, and may be read.
fn before(root: &Root, at: &Resolved, stat: &Stat) -> Option<Vec<u8>> {
    if stat.size > MAX_WRITE as u64 {
        return None;
    }
    let mut content = Vec::new();
    let read = root.open_read(&at.path).ok()?.take(MAX_WRITE as u64 + 1).read_to_end(&mut content);
    (read.is_ok() && content.len() <= MAX_WRITE).then_some(content)
}

fn unread() -> Compared {
    Compared { counts: None, lines: vec!["what is there is too large to compare, or cannot be read".to_owned()] }
}

fn difference_of(
    table: &Table,
    at: &Resolved,
    before: Option<&[u8]>,
    after: Option<&[u8]>,
    compared: Compared,
) -> Vec<String> {
    if !is_secret(table, at) {
        return compared.lines;
    }
    let format = Format::of(at.path.as_bytes(), Rule::Secrets);
    let masked = difference::difference(format, before, after);
    masked.details.iter().map(|line| escaped(line.as_bytes())).collect()
}

fn is_secret(table: &Table, at: &Resolved) -> bool {
    let (Some(parent), Some(name)) = (at.path.parent(), at.path.name()) else { return false };
    table.find(parent.as_bytes(), name).is_some_and(|found| found.rule == Rule::Secrets)
}

/// The digest of a regular file that is not too large.
fn digest(root: &Root, at: &Resolved, stat: &Stat) -> Option<String> {
    if stat.file_type != FileType::Regular || stat.size > MOST_DIGESTED {
        return None;
    }
    let mut file = root.open_read(&at.path).ok()?;
    let (digest, length) = Digest::of_reader(&mut file, MOST_DIGESTED).ok()?;
    (length == stat.size).then(|| digest.to_string())
}
