//! Where a program keeps its state on this system: a path made from values of the environment.
//!
//! Promise: the path is absolute. Nothing is looked up or made here.
//! Source: XDG Base Directory Specification 0.8 (relative values are invalid and are to be ignored); on macOS the folder
//! `Library/Application Support`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::host;

/// The name of our folder there.
const NAME: &str = "keepwatch";

/// How a system lays out per-user state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// `$XDG_STATE_HOME`, else `~/.local/state`.
    Xdg,
    /// `~/Library/Application Support`.
    Library,
}

/// The layout of this system.
pub const LAYOUT: Layout = host::STATE_LAYOUT;

/// Why there is no place for state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateDirError {
    /// The person chose a relative path, which would mean another folder from every directory.
    #[error("KEEP_STATE_DIR is not an absolute path")]
    Relative,
    /// Neither the state folder nor the home directory is known.
    #[error("HOME is not an absolute path, and no other variable says where state is kept")]
    NoHome,
}

/// The values of the environment that decide; `None` where a variable is not set.
#[derive(Debug, Clone, Copy, Default)]
pub struct Environment<'e> {
    /// `KEEP_STATE_DIR`: the folder itself.
    pub keep_state_dir: Option<&'e OsStr>,
    /// `XDG_STATE_HOME`; not read on macOS.
    pub xdg_state_home: Option<&'e OsStr>,
    /// `HOME`.
    pub home: Option<&'e OsStr>,
}

/// The folder that holds all our state: the one the person chose, or `keepwatch` where the layout says. An empty variable
/// counts as not set.
pub fn state_dir(layout: Layout, environment: Environment<'_>) -> Result<PathBuf, StateDirError> {
    let absolute = |value: Option<&OsStr>| value.map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(chosen) = environment.keep_state_dir.filter(|value| !value.is_empty()) {
        return absolute(Some(chosen)).ok_or(StateDirError::Relative);
    }
    let home = || absolute(environment.home).ok_or(StateDirError::NoHome);
    Ok(match layout {
        Layout::Xdg => match absolute(environment.xdg_state_home) {
            Some(state) => state.join(NAME),
            None => home()?.join(Path::new(".local/state")).join(NAME),
        },
        Layout::Library => home()?.join(Path::new("Library/Application Support")).join(NAME),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment<'e>(chosen: &'e str, xdg: &'e str, home: &'e str) -> Environment<'e> {
        Environment {
            keep_state_dir: Some(OsStr::new(chosen)),
            xdg_state_home: Some(OsStr::new(xdg)),
            home: Some(OsStr::new(home)),
        }
    }

    #[test]
    fn the_chosen_folder_wins_and_must_be_absolute() {
        let chosen = environment("/s", "/x", "/h");
        assert_eq!(state_dir(Layout::Xdg, chosen), Ok(PathBuf::from("/s")));
        assert_eq!(state_dir(Layout::Library, chosen), Ok(PathBuf::from("/s")));
        assert_eq!(state_dir(Layout::Xdg, environment("s", "/x", "/h")), Err(StateDirError::Relative));
    }

    #[test]
    fn each_layout_has_its_own_place_below_home() {
        let at = |layout, xdg, home| state_dir(layout, environment("", xdg, home));
        assert_eq!(at(Layout::Xdg, "/x", "/h"), Ok(PathBuf::from("/x/keepwatch")));
        assert_eq!(at(Layout::Xdg, "relative", "/h"), Ok(PathBuf::from("/h/.local/state/keepwatch")));
        assert_eq!(at(Layout::Library, "/x", "/h"), Ok(PathBuf::from("/h/Library/Application Support/keepwatch")));
        assert_eq!(at(Layout::Xdg, "", "h"), Err(StateDirError::NoHome));
        assert_eq!(state_dir(Layout::Library, Environment::default()), Err(StateDirError::NoHome));
    }
}
