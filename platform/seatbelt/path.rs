//! A path as a profile can name it.
//!
//! Promise: absolute and plain, so that the kernel, which compares paths without links and dots, can meet it at all: a
//! clause about `/a/../b` or `/a/` would fit nothing, which in a clause that denies is a hole.
//! Limit: whether there is a link in it is not looked at; who makes one takes it from an open handle (fcntl(2),
//! `F_GETPATH`), or from realpath(3).

/// Why a path cannot stand in a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// It starts at no root.
    #[error("the path is not absolute")]
    Relative,
    /// A byte of it ends every text of the system.
    #[error("the path has a NUL in it")]
    Nul,
    /// `.`, `..`, two slashes, or one at the end.
    #[error("the path is not the shortest one: it has an empty component, . or ..")]
    NotPlain,
}

/// An absolute path of plain components, of any bytes but NUL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlainPath(Vec<u8>);

impl PlainPath {
    /// The path of these bytes.
    pub fn new(bytes: &[u8]) -> Result<Self, PathError> {
        if bytes.contains(&0) {
            return Err(PathError::Nul);
        }
        let Some(below) = bytes.strip_prefix(b"/") else { return Err(PathError::Relative) };
        let is_plain = |component: &[u8]| !matches!(component, b"" | b"." | b"..");
        if below.is_empty() || below.split(|&byte| byte == b'/').all(is_plain) {
            Ok(Self(bytes.to_vec()))
        } else {
            Err(PathError::NotPlain)
        }
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_path_of_the_kernel_can_equal_is_refused() {
        for (bytes, expected) in [
            (&b""[..], PathError::Relative),
            (b"a/b", PathError::Relative),
            (b"/a/", PathError::NotPlain),
            (b"//a", PathError::NotPlain),
            (b"/a//b", PathError::NotPlain),
            (b"/a/./b", PathError::NotPlain),
            (b"/a/..", PathError::NotPlain),
            (b"/a\0b", PathError::Nul),
        ] {
            assert_eq!(PlainPath::new(bytes), Err(expected), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn any_other_bytes_are_a_path() {
        for bytes in [&b"/"[..], b"/a", b"/...", b"/.env/..x", b"/\"\\\n(\xff\xfe)", "/Ü".as_bytes()] {
            assert_eq!(PlainPath::new(bytes).expect("is one").as_bytes(), bytes);
        }
    }
}
