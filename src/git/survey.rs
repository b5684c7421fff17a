//! Finds the `.gitignore` files of a tree once, at the start.
//!
//! Promise: those that git tracks are all read; of the others, those in the first directories from the top down, ignored
//! ones left out. Nothing is read through a link. Limit: [`MAX_DIRS`] directories are looked into, so that a huge tree
//! does not delay the start.

use std::collections::VecDeque;

use platform::{FileType, RelPath, Root};

use super::files::{Content, read_below};
use super::ignore::{IgnoreFile, IgnoreSet};
use super::index::Tracked;
use super::{MAX_IGNORE_BYTES, Warning};

const NAME: &[u8] = b".gitignore";
/// Directories the survey lists.
const MAX_DIRS: usize = 4096;

/// Adds what it finds to `ignored`.
pub fn read(tree: &Root, tracked: &Tracked, ignored: &mut IgnoreSet, warnings: &mut Vec<Warning>) {
    if let Tracked::Paths(paths) = tracked {
        for path in paths.iter().filter(|path| path.ends_with(NAME)) {
            let Ok(path) = RelPath::parse(path) else { continue };
            if path.name() == Some(NAME)
                && let Some(dir) = path.parent()
            {
                add(tree, &dir, ignored, warnings);
            }
        }
    }
    let mut queue = VecDeque::from([RelPath::root()]);
    let mut left = MAX_DIRS;
    while let Some(dir) = queue.pop_front() {
        let Some(rest) = left.checked_sub(1) else { return };
        left = rest;
        let Ok(open) = tree.open_dir(&dir) else { continue };
        let Ok(entries) = open.list() else { continue };
        if !ignored.knows(&dir) && entries.iter().any(|entry| entry.name == NAME) {
            add(tree, &dir, ignored, warnings);
        }
        if ignored.ignores_dir(dir.as_bytes()) {
            continue;
        }
        for entry in entries {
            let is_dir = entry.file_type == Some(FileType::Directory);
            if is_dir && entry.name != b".git" {
                let below = dir.join(&entry.name);
                if !ignored.ignores_dir(below.as_bytes()) {
                    queue.push_back(below);
                }
            }
        }
    }
}

fn add(tree: &Root, dir: &RelPath, ignored: &mut IgnoreSet, warnings: &mut Vec<Warning>) {
    let path = dir.join(NAME);
    let file = match read_below(tree, &path, MAX_IGNORE_BYTES) {
        Ok(Content::Absent) => return,
        Ok(Content::Bytes(bytes)) => IgnoreFile::parse(&bytes),
        Ok(Content::TooLarge) | Err(_) => {
            warnings.push(Warning::Ignore { path: path.as_bytes().to_vec() });
            // It may bring back anything that a file above ignores.
            IgnoreFile::parse(b"!*")
        }
    };
    ignored.add(dir, file);
}
