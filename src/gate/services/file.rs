//! Files of the services: read whole with a cap, and replaced at once.
//!
//! Promise: what is replaced is, after any crash, all of the old or all of the new; what could not be written leaves the
//! old. Reads open regular files only, follow no symlink and take no more memory than their cap.
//! Source: rename(2); fsync(2) on the directory, or a power cut can take the new name.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd as _;

use platform::{Dir, FsError, RootError, file};

/// Text of a file, as much as was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The text.
    pub content: String,
    /// Bytes in the whole file.
    pub size: u64,
    /// Whether the file goes on.
    pub truncated: bool,
}

/// Why a text could not be read; for the agent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// The file could not be looked at.
    #[error("{}", why(.0))]
    Stat(FsError),
    /// The file could not be read.
    #[error("cannot read it: {0}")]
    Read(io::Error),
    /// It holds something else.
    #[error("it is not UTF-8 text")]
    NoText,
}

/// Reads at most `most` bytes of an open file as text; what is cut is cut between characters.
pub fn text(file: File, most: u64) -> Result<Text, TextError> {
    let told = platform::dir::stat_of(file.as_fd()).map_err(TextError::Stat)?.size;
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(TextError::Read)?;
    let truncated = bytes.len() as u64 > most;
    let size = if truncated { told.max(bytes.len() as u64) } else { bytes.len() as u64 };
    bytes.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    let whole = match std::str::from_utf8(&bytes) {
        Ok(_) => bytes.len(),
        // Without a length it is the beginning of a character.
        Err(error) if truncated && error.error_len().is_none() => error.valid_up_to(),
        Err(_) => return Err(TextError::NoText),
    };
    bytes.truncate(whole);
    let content = String::from_utf8(bytes).map_err(|_| TextError::NoText)?;
    Ok(Text { content, size, truncated })
}

/// Puts a file with this content in the place of `name` in `target`. Until it is complete it lies as `temporary` in
/// `scratch`, on the same file system; whoever calls is the only one who uses that name now.
pub fn replace(scratch: &Dir, temporary: &[u8], target: &Dir, name: &[u8], content: &[u8]) -> Result<(), FsError> {
    if scratch.stat(temporary)?.is_some() {
        // What a crash has left.
        scratch.unlink(temporary)?;
    }
    let written = scratch.create_new(temporary, 0o600).and_then(|new| {
        file::write_all(&new, temporary, content)?;
        file::sync_all(&new, temporary)?;
        scratch.rename(temporary, target, name)
    });
    if written.is_err() {
        // Not left for the next one, who would do the same: a full disk wants its room back.
        let _the_first_error_counts = scratch.unlink(temporary);
    }
    written?;
    target.sync()
}

/// An error of a file system in one line, for the agent or a line of the gate.
pub fn why(error: &FsError) -> String {
    format!("{error}: {}", error.source)
}

/// Whether there is nothing at the path, or no directory that leads there.
pub fn means_absent(error: &RootError) -> bool {
    match error {
        RootError::NoParent { .. } => true,
        RootError::Fs(error) => error.source.kind() == io::ErrorKind::NotFound,
        _ => false,
    }
}

/// Why something could not be opened, without where: whoever asked knows the path.
pub fn cannot_open(error: &RootError) -> String {
    match error {
        RootError::Fs(error) if error.source.kind() == io::ErrorKind::InvalidInput => {
            "it is no regular file".to_owned()
        }
        RootError::Fs(error) => error.source.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use platform::fault::Plan;

    fn fixture() -> (tempfile::TempDir, Dir) {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let dir = Dir::open_ambient(temp.path()).expect("it exists");
        (temp, dir)
    }

    fn put(temp: &tempfile::TempDir, content: &[u8]) -> File {
        let path = temp.path().join("text");
        std::fs::write(&path, content).expect("written");
        File::open(path).expect("it is there")
    }

    #[test]
    fn a_text_is_cut_between_characters_and_says_so() {
        let (temp, _dir) = fixture();
        let whole = text(put(&temp, "žluť".as_bytes()), 6).expect("text");
        assert_eq!(whole, Text { content: "žluť".to_owned(), size: 6, truncated: false });
        let cut = text(put(&temp, "žluť".as_bytes()), 5).expect("text");
        assert_eq!(cut, Text { content: "žlu".to_owned(), size: 6, truncated: true });
        assert!(matches!(text(put(&temp, b"a\xffb"), 6), Err(TextError::NoText)));
        assert!(matches!(text(put(&temp, "ž".as_bytes().split_at(1).0), 6), Err(TextError::NoText)));
    }

    #[test]
    fn a_crash_or_a_full_disk_at_any_point_leaves_the_old_or_the_new_and_the_next_one_writes() {
        let (temp, dir) = fixture();
        let read = || std::fs::read_to_string(temp.path().join("name")).expect("it is there");
        let counted = Plan::count();
        replace(&dir, b"new", &dir, b"name", b"first").expect("replaces");
        let points = counted.passed();
        drop(counted);
        assert!(points >= 5, "{points}");
        for point in 0..points {
            for plan in [Plan::crash_after, |point| Plan::fail_after(point, 28)] {
                replace(&dir, b"new", &dir, b"name", b"old").expect("replaces");
                let plan = plan(point);
                replace(&dir, b"new", &dir, b"name", b"another").expect_err("planned");
                drop(plan);
                assert!(["old", "another"].contains(&read().as_str()), "at {point}: {}", read());
            }
        }
        replace(&dir, b"new", &dir, b"name", b"last").expect("replaces");
        assert_eq!(read(), "last");
        assert_eq!(dir.list().expect("lists").len(), 1, "nothing is left beside it");
    }
}
