//! Where an absolute path of a row lies, seen from a root.
//!
//! One directory has many paths: `/tmp` is a symlink to `/private/tmp`, the data volume is shown at `/System/Volumes/Data`
//! and, by firmlinks, at `/`; and a person may have typed another case than the disk has.
//! Source: /usr/share/firmlinks, synthetic.conf(5); lsyncd/lsyncd#615, fsnotify/fsnotify#642.

use super::names::{Likeness, Names};

const DATA_VOLUME: &[u8] = b"/System/Volumes/Data";
const PRIVATE: &[u8] = b"/private";
const LINKED_FROM_PRIVATE: [&[u8]; 3] = [b"tmp", b"var", b"etc"];

/// Where a path lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Where {
    /// At this path below the root; empty for the root itself.
    Below(Vec<u8>),
    /// The root lies below it.
    Above,
    /// Neither, or it cannot be told.
    Elsewhere,
}

/// The paths by which a root is known.
#[derive(Debug, Clone, Default)]
pub struct Spelling(Vec<Vec<Vec<u8>>>);

/// The components of an absolute path, without what the system may put before them; `None` if it is none.
fn components(path: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut path = path;
    let begins = |path: &[u8], with: &[u8]| path.starts_with(with) && matches!(path.get(with.len()), None | Some(b'/'));
    if begins(path, DATA_VOLUME) {
        path = &path[DATA_VOLUME.len()..];
        path = if path.is_empty() { b"/" } else { path };
    }
    if begins(path, PRIVATE) {
        let rest = &path[PRIVATE.len()..];
        let next = rest.split(|&byte| byte == b'/').find(|part| !part.is_empty());
        if next.is_some_and(|next| LINKED_FROM_PRIVATE.contains(&next)) {
            path = rest;
        }
    }
    let rest = path.strip_prefix(b"/")?;
    let parts: Vec<_> = rest.split(|&byte| byte == b'/').filter(|part| !part.is_empty()).map(<[u8]>::to_vec).collect();
    let odd = |part: &Vec<u8>| part == b"." || part == b".." || part.contains(&0);
    (!parts.iter().any(odd)).then_some(parts)
}

impl Spelling {
    /// A root known by these absolute paths.
    pub fn new<'p>(paths: impl IntoIterator<Item = &'p [u8]>) -> Self {
        Self(paths.into_iter().filter_map(components).collect())
    }

    /// Where `path` lies. Names above the root are compared as by a volume that folds: that a row comes in this root's
    /// stream already says that it is about this root.
    pub fn find(&self, path: &[u8]) -> Where {
        let Some(parts) = components(path) else { return Where::Elsewhere };
        let alike = |(one, other): (&Vec<u8>, &Vec<u8>)| Names::default().likeness(one, other) != Likeness::Other;
        for root in &self.0 {
            if root.iter().zip(&parts).all(alike) {
                return match parts.get(root.len()..) {
                    Some(below) => Where::Below(below.join(&b'/')),
                    None => Where::Above,
                };
            }
        }
        Where::Elsewhere
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(root: &str, path: &str) -> Where {
        Spelling::new([root.as_bytes()]).find(path.as_bytes())
    }

    fn below(path: &str) -> Where {
        Where::Below(path.as_bytes().to_vec())
    }

    #[test]
    fn one_directory_is_found_by_each_of_its_paths() {
        for (root, path) in [
            ("/tmp/r", "/private/tmp/r/a/b"),
            ("/private/var/r", "/var/r/a/b"),
            ("/Users/me/r", "/System/Volumes/Data/Users/me/r/a/b"),
            ("/System/Volumes/Data/Users/me/r", "/Users/me/r/a/b/"),
            ("/System/Volumes/Data/private/tmp/r", "/tmp/r//a/b"),
            ("/users/Me/r", "/Users/me/R/a/b"),
        ] {
            assert_eq!(find(root, path), below("a/b"), "{root} {path}");
        }
    }

    #[test]
    fn a_longer_name_is_another_name() {
        assert_eq!(find("/Users/me/r", "/Users/me/r2/a"), Where::Elsewhere);
        assert_eq!(find("/Users/me/r", "/privateer/tmp"), Where::Elsewhere);
        assert_eq!(find("/private/r", "/r"), Where::Elsewhere);
    }

    #[test]
    fn the_root_itself_and_what_is_above_it_are_told_apart() {
        assert_eq!(find("/Users/me/r", "/Users/me/r/"), below(""));
        assert_eq!(find("/Users/me/r", "/Users"), Where::Above);
        assert_eq!(find("/Users/me/r", "/"), Where::Above);
        assert_eq!(find("/Users/me/r", "/System/Volumes/Data"), Where::Above);
        assert_eq!(find("/", "/a"), below("a"));
    }

    #[test]
    fn a_path_that_is_none_lies_nowhere() {
        for path in ["", "a", "/Users/me/r/../x", "/Users/me/r/./x", "/Users/me/r/a\0b"] {
            assert_eq!(find("/Users/me/r", path), Where::Elsewhere, "{path:?}");
        }
    }
}
