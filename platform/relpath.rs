//! Paths below a root: relative, normal, and bytes as the OS gave them.
//!
//! Promise: a [`RelPath`] has no empty, `.` or `..` component, no leading slash and no NUL, so joining it to a directory
//! handle cannot lead upwards. Limit: it says nothing about symlinks; that is [`crate::Root`]'s work.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// A path below a root; the empty path is the root itself. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelPath(Arc<[u8]>);

/// Why bytes are not a [`RelPath`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RelPathError {
    /// The path starts with `/`.
    #[error("the path is absolute")]
    Absolute,
    /// Two slashes in a row, or one at the end.
    #[error("the path has an empty segment")]
    EmptySegment,
    /// A component is `.` or `..`.
    #[error("the path has a `.` or `..` segment")]
    DotSegment,
    /// A NUL byte, which no file name can hold.
    #[error("the path has a NUL byte")]
    Nul,
}

impl RelPath {
    /// The root itself.
    pub fn root() -> Self {
        Self(Arc::from(&b""[..]))
    }

    /// Checks `bytes` and takes them as they are. Empty bytes are the root.
    pub fn parse(bytes: &[u8]) -> Result<Self, RelPathError> {
        if bytes.is_empty() {
            return Ok(Self::root());
        }
        if bytes[0] == b'/' {
            return Err(RelPathError::Absolute);
        }
        if bytes.contains(&0) {
            return Err(RelPathError::Nul);
        }
        for part in bytes.split(|&byte| byte == b'/') {
            match part {
                b"" => return Err(RelPathError::EmptySegment),
                b"." | b".." => return Err(RelPathError::DotSegment),
                _ => {}
            }
        }
        Ok(Self(Arc::from(bytes)))
    }

    /// The path of `name` in this directory. `name` must be one component as a directory listing gives it.
    pub fn join(&self, name: &[u8]) -> Self {
        debug_assert!(is_name(name), "not a single name: {name:?}");
        if self.is_root() {
            return Self(Arc::from(name));
        }
        let mut joined = Vec::with_capacity(self.0.len() + 1 + name.len());
        joined.extend_from_slice(&self.0);
        joined.push(b'/');
        joined.extend_from_slice(name);
        Self(Arc::from(joined))
    }

    /// This path with all of `below` under it.
    pub fn join_path(&self, below: &RelPath) -> Self {
        below.components().fold(self.clone(), |path, name| path.join(name))
    }

    /// The directory this path lies in; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        Some(match self.0.iter().rposition(|&byte| byte == b'/') {
            Some(slash) => Self(Arc::from(&self.0[..slash])),
            None => Self::root(),
        })
    }

    /// The last component; `None` for the root.
    pub fn name(&self) -> Option<&[u8]> {
        self.components().next_back()
    }

    /// The components from the top down; none for the root.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> + Clone {
        self.0.split(|&byte| byte == b'/').filter(|part| !part.is_empty())
    }

    /// Every directory above this path, nearest last, without the root: `a`, `a/b` for `a/b/c`.
    pub fn ancestors(&self) -> impl Iterator<Item = RelPath> + '_ {
        self.0.iter().enumerate().filter(|&(_, &byte)| byte == b'/').map(|(slash, _)| Self(Arc::from(&self.0[..slash])))
    }

    /// Whether this path is `dir` or lies below it.
    pub fn is_below(&self, dir: &RelPath) -> bool {
        dir.is_root() || (self.0.starts_with(&dir.0) && matches!(self.0.get(dir.0.len()), None | Some(b'/')))
    }

    /// What remains of this path below `dir`; `None` if it does not lie there.
    pub fn below(&self, dir: &RelPath) -> Option<RelPath> {
        if !self.is_below(dir) {
            return None;
        }
        let start = if dir.is_root() { 0 } else { (dir.0.len() + 1).min(self.0.len()) };
        Some(Self(Arc::from(&self.0[start..])))
    }

    /// Whether this is the root itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes, components separated by `/`.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The same bytes as a [`Path`].
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }
}

/// Whether `name` is one component that can name a directory entry.
pub fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.contains(&b'/') && !name.contains(&0)
}

impl fmt::Debug for RelPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{}\"", self.0.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).expect("a valid path")
    }

    #[test]
    fn only_normal_relative_paths_are_taken() {
        assert_eq!(RelPath::parse(b"/etc"), Err(RelPathError::Absolute));
        assert_eq!(RelPath::parse(b"a//b"), Err(RelPathError::EmptySegment));
        assert_eq!(RelPath::parse(b"a/"), Err(RelPathError::EmptySegment));
        assert_eq!(RelPath::parse(b"a/../b"), Err(RelPathError::DotSegment));
        assert_eq!(RelPath::parse(b"./a"), Err(RelPathError::DotSegment));
        assert_eq!(RelPath::parse(b"a\0b"), Err(RelPathError::Nul));
        assert!(RelPath::parse(b"...").is_ok());
        assert!(RelPath::parse(b"\xff/\x1b").is_ok());
    }

    #[test]
    fn parents_names_and_ancestors_agree() {
        let deep = path("a/b/c");
        assert_eq!(deep.parent(), Some(path("a/b")));
        assert_eq!(deep.name(), Some(&b"c"[..]));
        assert_eq!(deep.ancestors().collect::<Vec<_>>(), [path("a"), path("a/b")]);
        assert_eq!(path("a").parent(), Some(RelPath::root()));
        assert_eq!(RelPath::root().parent(), None);
        assert_eq!(RelPath::root().name(), None);
    }

    #[test]
    fn below_compares_whole_components() {
        assert!(path("a/b").is_below(&path("a")));
        assert!(!path("ab").is_below(&path("a")));
        assert!(path("a").is_below(&path("a")));
        assert_eq!(path("a/b/c").below(&path("a")), Some(path("b/c")));
        assert_eq!(path("a").below(&path("a")), Some(RelPath::root()));
        assert_eq!(path("b").below(&path("a")), None);
        assert_eq!(path("a/b").below(&RelPath::root()), Some(path("a/b")));
    }
}
