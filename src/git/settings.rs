//! What git's configuration says that matters here, from every file git may read.
//!
//! Promise: every `core.hooksPath` that could hold is found: conditions of `includeIf` are not evaluated but taken as
//! met, because an agent can make them come true. What weakens (`core.excludesFile`) counts only where no condition is.
//! Caps keep a loop of includes, or ten thousand of them, short; reaching one is a warning.
//! Limit: settings given on a command line or in another process's environment are not seen, nor are the ones of
//! repositories inside the tree.
//! Source: git-config(1), "Files" and "Includes".

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use platform::ambient::{self, Content};

use super::Warning;
use super::config::{self, Setting};
use super::discover::Repository;
use super::index::ObjectFormat;

const MAX_DEPTH: usize = 10;
const MAX_FILES: usize = 256;
const MAX_CONFIG_BYTES: u64 = 1 << 20;
/// Settings of interest that are kept in all.
const MAX_VALUES: usize = 256;

/// Where the person's and the system's files lie.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// `$HOME`.
    pub home: Option<PathBuf>,
    /// `$XDG_CONFIG_HOME`, if set and not empty.
    pub xdg_config_home: Option<PathBuf>,
    /// `$GIT_CONFIG_GLOBAL`, read beside the usual files.
    pub global: Option<PathBuf>,
    /// The system's files: `/etc/gitconfig`, and where packagers put theirs.
    pub system: Vec<PathBuf>,
}

impl Sources {
    fn xdg(&self) -> Option<PathBuf> {
        self.xdg_config_home.clone().or_else(|| self.home.as_ref().map(|home| home.join(".config")))
    }
}

/// What was found.
#[derive(Debug, Default)]
pub struct Settings {
    /// Every `core.hooksPath`, made absolute; a relative one starts at the top of the working tree.
    pub hooks: Vec<PathBuf>,
    /// `core.excludesFile`, or where git looks without one.
    pub excludes: Option<PathBuf>,
    /// Files other ones include.
    pub included: Vec<PathBuf>,
    /// How objects are named.
    pub format: ObjectFormat,
    /// What could not be read or was cut short.
    pub warnings: Vec<Warning>,
}

struct Reading<'a> {
    repository: &'a Repository,
    sources: &'a Sources,
    found: Settings,
    /// A condition set `core.excludesFile`: it may or may not hold.
    doubtful_excludes: bool,
    read: HashSet<(PathBuf, bool)>,
    files: usize,
}

/// Reads all of it.
pub fn read(repository: &Repository, sources: &Sources) -> Settings {
    let found = Settings { excludes: sources.xdg().map(|xdg| xdg.join("git/ignore")), ..Settings::default() };
    let (read, files) = (HashSet::new(), 0);
    let mut reading = Reading { repository, sources, found, doubtful_excludes: false, read, files };
    for path in &sources.system {
        reading.file(path, 0, true);
    }
    if let Some(xdg) = sources.xdg() {
        reading.file(&xdg.join("git/config"), 0, true);
    }
    if let Some(home) = &sources.home {
        reading.file(&home.join(".gitconfig"), 0, true);
    }
    if let Some(global) = &sources.global {
        reading.file(global, 0, false);
    }
    reading.file(&repository.common_dir.join("config"), 0, true);
    // They hold only with an extension that can be switched on at any time.
    reading.file(&repository.common_dir.join("config.worktree"), 0, false);
    reading.file(&repository.git_dir.join("config.worktree"), 0, false);
    if reading.doubtful_excludes {
        reading.found.excludes = None;
    }
    reading.found
}

impl Reading<'_> {
    fn warn(&mut self, warning: Warning) {
        if !self.found.warnings.contains(&warning) {
            self.found.warnings.push(warning);
        }
    }

    /// Reads one file and what it includes. `certain`: git is sure to read it.
    fn file(&mut self, path: &Path, depth: usize, certain: bool) {
        if depth > MAX_DEPTH || self.files >= MAX_FILES {
            return self.warn(Warning::TooManyIncludes);
        }
        self.files += 1;
        let bytes = match ambient::read(path, MAX_CONFIG_BYTES) {
            Ok(Content::Bytes(bytes)) => bytes,
            Ok(Content::Absent) => return,
            Ok(Content::TooLarge) => return self.warn(Warning::ConfigTooLarge { path: path.to_path_buf() }),
            Err(_) => return self.warn(Warning::Unreadable { path: path.to_path_buf() }),
        };
        let known = ambient::resolve(path).unwrap_or_else(|_| path.to_path_buf());
        if !self.read.insert((known, certain)) {
            return;
        }
        let config = config::parse(&bytes);
        if let Some(line) = config.faulty_line {
            self.warn(Warning::ConfigFaulty { path: path.to_path_buf(), line });
        }
        for setting in &config.settings {
            self.setting(setting, path, depth, certain);
        }
    }

    fn setting(&mut self, setting: &Setting, file: &Path, depth: usize, certain: bool) {
        let Some(value) = setting.value.as_deref().filter(|value| !value.is_empty() && !value.contains(&0)) else {
            return;
        };
        let from = file.parent().unwrap_or(Path::new("/"));
        let conditional = setting.section == b"includeif" && setting.subsection.is_some();
        if setting.key == b"path" && (setting.is("include", "path") || conditional) {
            if let Some(path) = self.path(value, from) {
                self.keep_included(path.clone());
                self.file(&path, depth + 1, certain && !conditional);
            }
        } else if setting.is("core", "hookspath") {
            let top = self.repository.top.clone();
            if let Some(path) = self.path(value, &top)
                && !self.found.hooks.contains(&path)
            {
                if self.found.hooks.len() < MAX_VALUES {
                    self.found.hooks.push(path);
                } else {
                    self.warn(Warning::TooManyIncludes);
                }
            }
        } else if setting.is("core", "excludesfile") {
            if certain {
                let top = self.repository.top.clone();
                self.found.excludes = self.path(value, &top);
            } else {
                self.doubtful_excludes = true;
            }
        } else if setting.is("extensions", "objectformat") && value.eq_ignore_ascii_case(b"sha256") {
            self.found.format = ObjectFormat::Sha256;
        }
    }

    fn keep_included(&mut self, path: PathBuf) {
        if self.found.included.len() < MAX_FILES && !self.found.included.contains(&path) {
            self.found.included.push(path);
        }
    }

    /// A path as git reads it: `~/` is the home, what is relative starts at `from`.
    fn path(&mut self, value: &[u8], from: &Path) -> Option<PathBuf> {
        if let Some(rest) = value.strip_prefix(b"~") {
            return match (rest.strip_prefix(b"/"), &self.sources.home) {
                (Some(below), Some(home)) => Some(home.join(OsStr::from_bytes(below))),
                (None, Some(home)) if rest.is_empty() => Some(home.clone()),
                _ => {
                    self.warn(Warning::HomeUnknown { value: value.to_vec() });
                    None
                }
            };
        }
        if value.starts_with(b"%(prefix)") {
            self.warn(Warning::HomeUnknown { value: value.to_vec() });
            return None;
        }
        Some(from.join(OsStr::from_bytes(value)))
    }
}
