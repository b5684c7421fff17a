//! Paths in their one canonical form.
//!
//! Promise: a path is relative, has no empty, `.` or `..` segment, no control, bidirectional or invisible character, and
//! at most 4096 bytes; anything else is refused, never cleaned. Limit: names that look alike and differ stay different.

use std::fmt;

use platform::RelPath;

use crate::text;

/// The longest path, in bytes.
pub const MAX_PATH: usize = 4096;

/// Why a path was refused; the text is for the agent and does not repeat the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// Nothing was given.
    #[error("the path is empty")]
    Empty,
    /// It begins with `/`.
    #[error("the path is absolute; it has to be relative to the root")]
    Absolute,
    /// It has a `..`, which would leave or re-enter the root.
    #[error("the path has a `..` in it, which escapes the root")]
    Upwards,
    /// It has a `.` or an empty segment.
    #[error("the path has an empty or `.` segment; write it without")]
    NotCanonical,
    /// It has a character that shows as something else.
    #[error("the path has a control, bidirectional or invisible character in it")]
    Hidden,
    /// It is too long.
    #[error("the path has more than {MAX_PATH} bytes")]
    TooLong,
    /// A note's path does not end in `.md`.
    #[error("a note's path ends in .md")]
    NotMarkdown,
}

/// A path below the root, in its canonical form. The root itself is none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilePath(String);

/// The path of a note, below the folder of notes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NotePath(String);

fn canonical(path: &str) -> Result<String, PathError> {
    if path.is_empty() {
        return Err(PathError::Empty);
    }
    if path.len() > MAX_PATH {
        return Err(PathError::TooLong);
    }
    if path.chars().any(text::is_hidden) {
        return Err(PathError::Hidden);
    }
    if path.starts_with('/') {
        return Err(PathError::Absolute);
    }
    if path.split('/').any(|segment| segment == "..") {
        return Err(PathError::Upwards);
    }
    if path.split('/').any(|segment| segment.is_empty() || segment == ".") {
        return Err(PathError::NotCanonical);
    }
    Ok(path.to_owned())
}

impl FilePath {
    /// Takes a path that is in its canonical form already.
    pub fn parse(path: &str) -> Result<Self, PathError> {
        canonical(path).map(Self)
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// For a root handle.
    pub fn rel(&self) -> RelPath {
        RelPath::parse(self.0.as_bytes()).expect("a canonical path is a normal one")
    }

    /// The directory it lies in; `None` directly below the root.
    pub fn parent(&self) -> Option<Self> {
        self.0.rsplit_once('/').map(|(parent, _)| Self(parent.to_owned()))
    }
}

impl NotePath {
    /// Takes a path that is in its canonical form already and ends in `.md`.
    pub fn parse(path: &str) -> Result<Self, PathError> {
        let path = canonical(path)?;
        let name = path.rsplit('/').next().unwrap_or(&path);
        if name.len() > 3 && name.ends_with(".md") { Ok(Self(path)) } else { Err(PathError::NotMarkdown) }
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// For a root handle.
    pub fn rel(&self) -> RelPath {
        RelPath::parse(self.0.as_bytes()).expect("a canonical path is a normal one")
    }

    /// The folder it lies in, as text; `None` directly in the folder of notes.
    pub fn parent(&self) -> Option<&str> {
        self.0.rsplit_once('/').map(|(parent, _)| parent)
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Display for NotePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_path_is_taken_as_it_is_or_refused() {
        for path in ["a", "a/b.txt", ".env", "..a/b..", "žluťoučký kůň.txt", "a b", "*", "[a]", "back\\slash"] {
            assert_eq!(FilePath::parse(path).map(|taken| taken.to_string()), Ok(path.to_owned()));
        }
        for (path, why) in [
            ("", PathError::Empty),
            ("/", PathError::Absolute),
            ("/etc/passwd", PathError::Absolute),
            ("..", PathError::Upwards),
            ("a/../b", PathError::Upwards),
            ("./a", PathError::NotCanonical),
            ("a//b", PathError::NotCanonical),
            ("a/", PathError::NotCanonical),
            (".", PathError::NotCanonical),
            ("a\nb", PathError::Hidden),
            ("a\u{202e}b", PathError::Hidden),
            ("a\0b", PathError::Hidden),
        ] {
            assert_eq!(FilePath::parse(path), Err(why), "{path:?}");
        }
        assert_eq!(FilePath::parse(&"a".repeat(MAX_PATH + 1)), Err(PathError::TooLong));
        assert!(FilePath::parse(&"a".repeat(MAX_PATH)).is_ok());
    }

    #[test]
    fn a_note_is_markdown() {
        assert!(NotePath::parse("plans/next.md").is_ok());
        for path in ["note", "note.txt", ".md", "a/.md", "a.md/b"] {
            assert_eq!(NotePath::parse(path), Err(PathError::NotMarkdown), "{path}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_taken_stays_below_the_root(path in any::<String>()) {
            if let Ok(taken) = FilePath::parse(&path) {
                prop_assert!(RelPath::parse(taken.as_str().as_bytes()).is_ok_and(|rel| !rel.is_root()));
                prop_assert_eq!(taken.as_str(), path);
            }
        }
    }
}
