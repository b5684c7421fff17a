//! Where a path really leads: through the symlinks inside the root, to a path without any.
//!
//! Promise: a link is followed only to what lies below the root: an absolute text, or a `..` too many, is an error, and so
//! is the forty-first link. The result is only a path: whoever acts on it does so with calls that follow no link, so
//! whatever is swapped after the resolving leads to an error and nowhere else.
//! Limit: every component is looked at by itself; of a tree that changes meanwhile the result may be a path that never
//! existed as a whole. It still lies below the root.
//! Source: path_resolution(7), symlink(7).

use platform::{FileType, RelPath, Root, Stat};

use super::error::FilesError;
use crate::gate::path::FilePath;

/// As many as the kernel follows.
const MAX_HOPS: u32 = 40;

/// A path without symlinks, and what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resolved {
    /// The path; below a directory that is missing, all the rest is.
    pub(super) path: RelPath,
    /// What is there.
    pub(super) stat: Option<Stat>,
}

impl Resolved {
    /// What is there, or an error.
    pub(super) fn present(&self) -> Result<&Stat, FilesError> {
        self.stat.as_ref().ok_or_else(|| FilesError::Absent { path: self.path.clone() })
    }
}

/// Where `path` leads, a link in its last component followed.
pub(super) fn through(root: &Root, path: &FilePath) -> Result<Resolved, FilesError> {
    resolve(root, &path.rel(), true)
}

/// The same for an optional path, whose absence is the root.
pub(super) fn directory(root: &Root, path: Option<&str>) -> Result<RelPath, FilesError> {
    let Some(path) = path else { return Ok(RelPath::root()) };
    let found = through(root, &FilePath::parse(path)?)?;
    match found.present()?.file_type {
        FileType::Directory => Ok(found.path),
        _ => Err(FilesError::NotDirectory { path: found.path }),
    }
}

/// Where `path` leads, a link in its last component being the thing itself.
pub(super) fn itself(root: &Root, path: &FilePath) -> Result<Resolved, FilesError> {
    resolve(root, &path.rel(), false)
}

enum Step {
    Into(Vec<u8>),
    Up,
}

fn resolve(root: &Root, asked: &RelPath, follow_last: bool) -> Result<Resolved, FilesError> {
    // What is reached without following anything is where it leads.
    if let Some(stat) = root.stat(asked)?
        && !(follow_last && stat.file_type == FileType::Symlink)
    {
        return Ok(Resolved { path: asked.clone(), stat: Some(stat) });
    }
    let mut left: Vec<Step> = asked.components().rev().map(|name| Step::Into(name.to_vec())).collect();
    let mut at = Resolved { path: RelPath::root(), stat: Some(root.dir().own_stat()?) };
    let mut hops = 0;
    while let Some(step) = left.pop() {
        if at.stat.is_some_and(|stat| stat.file_type != FileType::Directory) {
            return Err(FilesError::NotDirectory { path: at.path });
        }
        let name = match step {
            Step::Into(name) => name,
            Step::Up if at.stat.is_none() => return Err(FilesError::Absent { path: at.path }),
            Step::Up => {
                // No link is left in it, so the directory above is the one its name says.
                let above = at.path.parent().ok_or_else(|| FilesError::Outside { path: asked.clone() })?;
                at = Resolved { stat: root.stat(&above)?, path: above };
                continue;
            }
        };
        let next = at.path.join(&name);
        let stat = if at.stat.is_some() { root.stat(&next)? } else { None };
        let follows = follow_last || !left.is_empty();
        if !follows || stat.is_none_or(|stat| stat.file_type != FileType::Symlink) {
            at = Resolved { path: next, stat };
            continue;
        }
        hops += 1;
        if hops > MAX_HOPS {
            return Err(FilesError::Loop { path: asked.clone() });
        }
        let (dir, name) = root.parent(&next)?;
        let text = dir.read_link(name)?;
        if text.starts_with(b"/") {
            return Err(FilesError::Outside { path: asked.clone() });
        }
        let steps = text.split(|&byte| byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
        left.extend(steps.rev().map(|part| if part == b".." { Step::Up } else { Step::Into(part.to_vec()) }));
    }
    // A question and a grant have to be able to spell it.
    let spelled = std::str::from_utf8(at.path.as_bytes()).is_ok_and(|path| FilePath::parse(path).is_ok());
    if spelled || at.path.is_root() { Ok(at) } else { Err(FilesError::Unshowable { path: asked.clone() }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn fixture() -> (tempfile::TempDir, Root) {
        let temp = tempfile::tempdir().expect("a folder");
        let root = temp.path().join("root");
        fs::create_dir_all(root.join("a/b")).expect("makes");
        fs::write(root.join("a/b/file"), "x").expect("writes");
        fs::write(temp.path().join("secret"), "x").expect("writes");
        let root = Root::open(&root).expect("opens");
        (temp, root)
    }

    fn link(root: &Root, name: &str, text: &str) {
        symlink(text, root.path().join(name)).expect("links");
    }

    fn leads(root: &Root, path: &str) -> Result<String, FilesError> {
        let found = through(root, &FilePath::parse(path).expect("a path"))?;
        Ok(String::from_utf8(found.path.as_bytes().to_vec()).expect("text"))
    }

    #[test]
    fn links_inside_are_followed_to_a_path_without_any() {
        let (_temp, root) = fixture();
        link(&root, "to-file", "a/b/file");
        link(&root, "a/up", "../a/./b//");
        link(&root, "twice", "a/up");
        link(&root, "new", "a/fresh/deep");
        link(&root, "a/top", "..");
        for (path, wanted) in [
            ("a/b/file", "a/b/file"),
            ("to-file", "a/b/file"),
            ("twice/file", "a/b/file"),
            ("a/up", "a/b"),
            ("new", "a/fresh/deep"),
            ("new/er", "a/fresh/deep/er"),
            ("a/top/a/top/to-file", "a/b/file"),
            ("missing/x/y", "missing/x/y"),
        ] {
            assert_eq!(leads(&root, path).expect(path), wanted, "{path}");
        }
    }

    #[test]
    fn what_leads_outside_or_round_is_an_error() {
        let (_temp, root) = fixture();
        link(&root, "absolute", "/etc");
        link(&root, "inside-but-absolute", root.path().join("a").to_str().expect("text"));
        link(&root, "a/out", "../../secret");
        link(&root, "a/back", "../../root/a");
        link(&root, "proc", "/proc/self/root");
        link(&root, "round", "round");
        link(&root, "ping", "pong");
        link(&root, "pong", "ping");
        link(&root, "via-nothing", "missing/../a");
        for path in ["absolute", "absolute/passwd", "inside-but-absolute", "a/out", "a/back", "proc/etc"] {
            assert!(matches!(leads(&root, path), Err(FilesError::Outside { .. })), "{path}: {:?}", leads(&root, path));
        }
        for path in ["round", "ping", "round/x"] {
            assert!(matches!(leads(&root, path), Err(FilesError::Loop { .. })), "{path}");
        }
        assert!(matches!(leads(&root, "a/b/file/x"), Err(FilesError::NotDirectory { .. })));
        assert!(matches!(leads(&root, "via-nothing"), Err(FilesError::Absent { .. })));
    }

    #[test]
    fn forty_links_are_followed_and_not_one_more() {
        let (_temp, root) = fixture();
        link(&root, "l1", "a/b/file");
        for number in 2..=41 {
            link(&root, &format!("l{number}"), &format!("l{}", number - 1));
        }
        assert_eq!(leads(&root, "l40").expect("forty"), "a/b/file");
        assert!(matches!(leads(&root, "l41"), Err(FilesError::Loop { .. })));
    }

    #[test]
    fn a_link_itself_is_where_it_lies_and_the_way_to_it_is_resolved() {
        let (_temp, root) = fixture();
        link(&root, "folder", "a/b");
        link(&root, "a/b/away", "/etc/passwd");
        let found = itself(&root, &FilePath::parse("folder/away").expect("a path")).expect("is there");
        assert_eq!(found.path.as_bytes(), b"a/b/away");
        assert_eq!(found.present().expect("is there").file_type, FileType::Symlink);
    }

    #[test]
    fn a_link_to_a_name_no_question_could_show_is_an_error() {
        let (_temp, root) = fixture();
        link(&root, "pretty", "a/\u{202e}txt.b");
        link(&root, "line", "a/x\ny");
        for path in ["pretty", "line"] {
            assert!(matches!(leads(&root, path), Err(FilesError::Unshowable { .. })), "{path}");
        }
    }
}
