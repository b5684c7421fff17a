//! A change, resolved and checked: what it acts on, and what is there.
//!
//! Promise: a plan that exists can be carried out as far as a look can tell. Its [`Plan::state`] is the same only while
//! every path leads to the same place and what is there is the same object, of the same type, size and times.

use std::fmt::Write as _;

use platform::{FileType, Root, Stat};

use super::Change;
use super::error::FilesError;
use super::resolve::{self, Resolved};
use super::unfinished::is_unfinished;
use crate::digest::Digest;
use crate::gate::path::FilePath;
use crate::gate::tools::request::MAX_WRITE;

/// What a change acts on.
#[derive(Debug)]
pub(super) enum Plan<'c> {
    /// New content for a file, or a new file.
    Write {
        /// Where.
        at: Resolved,
        /// All of its new content.
        content: &'c [u8],
    },
    /// Something goes.
    Remove {
        /// What.
        at: Resolved,
    },
    /// Something goes elsewhere.
    Move {
        /// What leaves.
        from: Resolved,
        /// Where it arrives.
        to: Resolved,
    },
}

impl<'c> Plan<'c> {
    /// Looks.
    pub(super) fn of(root: &Root, change: &'c Change) -> Result<Self, FilesError> {
        match change {
            Change::Write(write) => {
                if write.content.len() > MAX_WRITE {
                    return Err(FilesError::TooLarge { most: MAX_WRITE });
                }
                let at = resolve::through(root, &FilePath::parse(&write.path)?)?;
                match at.stat.map(|stat| stat.file_type) {
                    None | Some(FileType::Regular) => {}
                    Some(FileType::Directory) => return Err(FilesError::IsDirectory { path: at.path }),
                    Some(_) => return Err(FilesError::Special { path: at.path }),
                }
                not_reserved(&at)?;
                Ok(Self::Write { at, content: write.content.as_bytes() })
            }
            Change::Remove(remove) => {
                let at = resolve::itself(root, &FilePath::parse(&remove.path)?)?;
                if movable(&at)?.file_type == FileType::Directory && !is_empty(root, &at)? {
                    return Err(FilesError::NotEmpty { path: at.path });
                }
                Ok(Self::Remove { at })
            }
            Change::Move(relocate) => {
                let from = resolve::itself(root, &FilePath::parse(&relocate.from)?)?;
                let to = resolve::itself(root, &FilePath::parse(&relocate.to)?)?;
                let moving = *movable(&from)?;
                not_reserved(&to)?;
                if let Some(replaced) = to.stat {
                    if replaced.id == moving.id {
                        return Err(FilesError::SameFile { path: to.path });
                    }
                    if !relocate.overwrite {
                        return Err(FilesError::Exists { path: to.path });
                    }
                    movable(&to)?;
                    if [moving, replaced].iter().any(|stat| stat.file_type == FileType::Directory) {
                        return Err(FilesError::NotOverwritten { path: to.path });
                    }
                } else if to.path.is_below(&from.path) {
                    return Err(FilesError::IntoItself { path: to.path });
                }
                Ok(Self::Move { from, to })
            }
        }
    }

    /// The paths it changes.
    pub(super) fn paths(&self) -> Vec<&Resolved> {
        match self {
            Self::Write { at, .. } | Self::Remove { at } => vec![at],
            Self::Move { from, to } => vec![from, to],
        }
    }

    /// What is there now, in a form that tells only whether it is the same.
    pub(super) fn state(&self) -> String {
        let mut text = String::new();
        for Resolved { path, stat } in self.paths() {
            let place = path.as_bytes();
            write!(text, "{} {}", place.len(), place.escape_ascii()).expect("a String takes everything");
            match stat {
                None => text.push_str(" nothing\n"),
                Some(Stat { file_type, id, size, mtime, ctime, .. }) => {
                    writeln!(text, " {file_type:?} {id:?} {size} {mtime:?} {ctime:?}")
                        .expect("a String takes everything");
                }
            }
        }
        Digest::of(text.as_bytes()).to_string()
    }
}

/// What is there, if it is something a tool removes or moves.
fn movable(at: &Resolved) -> Result<&Stat, FilesError> {
    let stat = at.present()?;
    match stat.file_type {
        FileType::Regular | FileType::Directory | FileType::Symlink => Ok(stat),
        _ => Err(FilesError::Special { path: at.path.clone() }),
    }
}

fn not_reserved(at: &Resolved) -> Result<(), FilesError> {
    if at.path.components().any(is_unfinished) {
        return Err(FilesError::Reserved { path: at.path.clone() });
    }
    Ok(())
}

fn is_empty(root: &Root, at: &Resolved) -> Result<bool, FilesError> {
    let mut empty = true;
    root.open_dir(&at.path)?.each_entry(|_, _| empty = false)?;
    Ok(empty)
}
