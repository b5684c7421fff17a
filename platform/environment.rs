//! What the process was started with. The one place that reads it; everything else gets values.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::process::{geteuid, getuid, umask};

/// Arguments, variables, working directory and identity of the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// The arguments, the program's own name first.
    pub args: Vec<OsString>,
    /// The variables.
    pub variables: BTreeMap<OsString, OsString>,
    /// The working directory.
    pub directory: PathBuf,
    /// The permission bits that new files do not get.
    pub umask: u32,
    /// Who started us.
    pub uid: u32,
    /// With whose rights we run.
    pub euid: u32,
}

/// Why the environment could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// getcwd(3) failed: the directory was removed, or may not be searched.
    #[error("cannot tell the current directory")]
    Directory(#[source] io::Error),
}

/// The permission bits, in the width that is the same on every system.
fn low_bits(mask: Mode) -> u32 {
    u32::from(mask.bits() & 0o777)
}

impl Environment {
    /// Reads it. To be called once, before there are other threads: the umask can only be read by setting it (umask(2)).
    pub fn from_process() -> Result<Self, EnvironmentError> {
        let mask = umask(Mode::from_raw_mode(0o077));
        umask(mask);
        Ok(Self {
            args: std::env::args_os().collect(),
            variables: std::env::vars_os().collect(),
            directory: std::env::current_dir().map_err(EnvironmentError::Directory)?,
            umask: low_bits(mask),
            uid: getuid().as_raw(),
            euid: geteuid().as_raw(),
        })
    }

    /// A variable; `None` if it is not set or not UTF-8.
    pub fn text(&self, name: &str) -> Option<String> {
        self.bytes(name)?.to_str().map(str::to_owned)
    }

    /// A variable, as it is.
    pub fn bytes(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// A variable that names a place; `None` if it is not set or not absolute (the XDG Base Directory Specification says
    /// that a relative one is to be ignored).
    pub fn absolute(&self, name: &str) -> Option<&Path> {
        self.bytes(name).map(Path::new).filter(|path| path.is_absolute())
    }

    /// Whether a variable is set and not empty, as `NO_COLOR` wants it.
    pub fn is_set(&self, name: &str) -> bool {
        self.bytes(name).is_some_and(|value| !value.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> Environment {
        Environment {
            args: Vec::new(),
            variables: [(name.into(), value.into())].into(),
            directory: "/".into(),
            umask: 0o022,
            uid: 0,
            euid: 0,
        }
    }

    #[test]
    fn the_process_is_read_as_it_is() {
        let environment = Environment::from_process().expect("readable");
        assert!(!environment.args.is_empty());
        assert!(environment.directory.is_absolute());
        assert_eq!(Environment::from_process().expect("readable"), environment, "reading changes nothing");
    }

    #[test]
    fn relative_places_and_empty_values_do_not_count() {
        assert_eq!(with("XDG_STATE_HOME", "state").absolute("XDG_STATE_HOME"), None);
        assert_eq!(with("XDG_STATE_HOME", "/s").absolute("XDG_STATE_HOME"), Some(Path::new("/s")));
        assert!(!with("NO_COLOR", "").is_set("NO_COLOR"));
        assert!(with("NO_COLOR", "1").is_set("NO_COLOR"));
        assert_eq!(with("A", "b").text("A").as_deref(), Some("b"));
        assert_eq!(with("A", "b").text("B"), None);
    }
}
