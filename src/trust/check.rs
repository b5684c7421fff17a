//! Whether an entry of `config.toml` still fits the program it names: for the person who wrote it, before it is needed.
//!
//! Promise: the file is opened without following a link and read as the user; nothing is run. Limit: what counts when an open
//! is held is the file that process runs, which is looked at then.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use platform::{Dir, ambient};

use super::Trusted;
use super::examine::MAX_BYTES;
use crate::cli::exit::causes;
use crate::digest::Digest;

/// How an entry fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fit {
    /// The program has the digest that was written down.
    Same,
    /// It has another one: it was updated, or is another program.
    Other(Digest),
    /// The path leads there by a link, which no process says it runs.
    Elsewhere(PathBuf),
    /// It has more bytes than are read.
    TooLarge,
    /// It cannot be read.
    Unreadable(String),
}

impl Trusted {
    /// Looks at the program.
    pub fn check(&self) -> Fit {
        self.look().unwrap_or_else(Fit::Unreadable)
    }

    fn look(&self) -> Result<Fit, String> {
        let path = Path::new(OsStr::from_bytes(&self.program));
        let resolved = ambient::resolve(path).map_err(|error| causes(&error))?;
        if resolved != path {
            return Ok(Fit::Elsewhere(resolved));
        }
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::from(io::ErrorKind::IsADirectory).to_string());
        };
        let file = Dir::open_ambient(folder).and_then(|dir| dir.open_read(name.as_bytes()));
        let file = file.map_err(|error| causes(&error))?;
        let (digest, length) = Digest::of_reader(&mut &file, MAX_BYTES).map_err(|error| error.to_string())?;
        Ok(match digest {
            _ if length > MAX_BYTES => Fit::TooLarge,
            digest if digest == self.digest => Fit::Same,
            digest => Fit::Other(digest),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn entry(program: &Path) -> Trusted {
        let program = program.as_os_str().as_bytes().to_vec();
        Trusted { program, digest: Digest::of(b"one"), may: Vec::new(), rules: Vec::new(), paths: Vec::new() }
    }

    #[test]
    fn a_program_fits_by_its_digest_at_its_own_path() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().canonicalize().expect("resolves");
        let [program, link] = ["program", "link"].map(|name| folder.join(name));
        fs::write(&program, "one").expect("writes");
        assert_eq!(entry(&program).check(), Fit::Same);
        fs::write(&program, "two").expect("writes");
        assert_eq!(entry(&program).check(), Fit::Other(Digest::of(b"two")));
        std::os::unix::fs::symlink(&program, &link).expect("links");
        assert_eq!(entry(&link).check(), Fit::Elsewhere(program));
        assert!(matches!(entry(&folder).check(), Fit::Unreadable(_)), "a folder is no program");
        assert!(matches!(entry(&folder.join("none")).check(), Fit::Unreadable(_)));
        fs::File::create(folder.join("large")).and_then(|file| file.set_len(MAX_BYTES + 1)).expect("makes");
        assert_eq!(entry(&folder.join("large")).check(), Fit::TooLarge);
    }
}
