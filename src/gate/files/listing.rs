//! `file_list` and `file_stat`: names and facts, nothing opened but directories.
//!
//! Promise: entries are sorted by their bytes, at most [`MOST`] of them, with `truncated` and `total` for the rest; a
//! symlink in a listing is a symlink, whatever it leads to. Limit: a name that is not UTF-8, or could draw on a terminal, is
//! shown escaped, and no path of a call can spell it.

use platform::{FileType, RelPath, Root, Stat};
use serde_json::{Map, Value, json};

use super::error::{FilesError, shown};
use super::resolve;
use crate::gate::path::FilePath;
use crate::gate::tools::request::{FileList, FileStat};
use crate::text::escaped;

/// The most entries of a listing.
const MOST: usize = 10_000;

/// The word for a type in results and questions.
pub(super) fn word(file_type: FileType) -> &'static str {
    match file_type {
        FileType::Regular => "file",
        FileType::Directory => "directory",
        FileType::Symlink => "symlink",
        FileType::Fifo => "fifo",
        FileType::Socket => "socket",
        FileType::CharDevice | FileType::BlockDevice => "device",
    }
}

/// Lists a directory.
pub(super) fn list(root: &Root, request: &FileList) -> Result<Map<String, Value>, FilesError> {
    let path = resolve::directory(root, request.path.as_deref())?;
    let dir = root.open_dir(&path)?;
    let mut names: Vec<Vec<u8>> = Vec::new();
    let mut total = 0_u64;
    dir.each_entry(|name, _| {
        total += 1;
        names.push(name.to_vec());
        // Only the first are wanted: a directory of millions takes no more memory than they do.
        if names.len() > 4 * MOST {
            first(&mut names);
        }
    })?;
    first(&mut names);
    let mut entries = Vec::with_capacity(names.len());
    for name in &names {
        // Gone since it was listed, or not for us to see.
        let Ok(Some(stat)) = dir.stat(name) else { continue };
        entries.push(json!({
            "name": escaped(name),
            "isDir": stat.file_type == FileType::Directory,
            "size": size(&stat),
            "type": word(stat.file_type),
        }));
    }
    let mut answer = Map::new();
    answer.insert("path".into(), if path.is_root() { ".".into() } else { shown(&path).into() });
    answer.insert("entries".into(), entries.into());
    answer.insert("total".into(), total.into());
    answer.insert("truncated".into(), (total > MOST as u64).into());
    Ok(answer)
}

fn first(names: &mut Vec<Vec<u8>>) {
    names.sort_unstable();
    names.truncate(MOST);
}

/// What a directory says of its size is the file system's own matter.
fn size(stat: &Stat) -> u64 {
    if stat.file_type == FileType::Directory { 0 } else { stat.size }
}

/// Says what is at a path; a symlink inside the root is followed.
pub(super) fn stat(root: &Root, request: &FileStat) -> Result<Map<String, Value>, FilesError> {
    let found = match resolve::through(root, &FilePath::parse(&request.path)?) {
        // Below a file, or beside something missing, nothing is there.
        Err(FilesError::NotDirectory { .. } | FilesError::Absent { .. }) => None,
        found => found.map(|found| found.stat.map(|stat| (found.path, stat)))?,
    };
    Ok(match found {
        None => Map::from_iter([("exists".into(), false.into())]),
        Some((path, stat)) => facts(&path, &stat),
    })
}

fn facts(path: &RelPath, stat: &Stat) -> Map<String, Value> {
    let modified = jiff::Timestamp::new(stat.mtime.0, stat.mtime.1 as i32).map(|time| format!("{time:.3}"));
    Map::from_iter([
        ("exists".into(), true.into()),
        ("isDir".into(), (stat.file_type == FileType::Directory).into()),
        ("size".into(), size(stat).into()),
        ("type".into(), word(stat.file_type).into()),
        ("path".into(), shown(path).into()),
        ("mode".into(), format!("{:04o}", stat.mode).into()),
        ("modified".into(), modified.map_or(Value::Null, Value::from)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;

    #[test]
    fn entries_are_sorted_and_say_what_they_are() {
        let temp = tempfile::tempdir().expect("a folder");
        for name in ["b", "a", "c d"] {
            fs::write(temp.path().join(name), name).expect("writes");
        }
        fs::create_dir(temp.path().join("folder")).expect("makes");
        std::os::unix::fs::symlink("folder", temp.path().join("link")).expect("links");
        // Not every file system takes names that are no UTF-8.
        let odd = [(&b"\x1b[2J\xff"[..], "\\x1b[2J\\xff"), (b"\x1b[2J\x7f", "\\x1b[2J\\x7f")];
        let takes = |name: &[u8]| fs::write(temp.path().join(std::ffi::OsStr::from_bytes(name)), "").is_ok();
        let (_, odd) = odd.into_iter().find(|(name, _)| takes(name)).expect("the second one is only unusual");
        let root = Root::open(temp.path()).expect("opens");
        let listed = list(&root, &FileList { path: None }).expect("lists");
        let names: Vec<_> = listed["entries"].as_array().expect("a list").iter().map(|e| e["name"].clone()).collect();
        assert_eq!(names, [odd, "a", "b", "c d", "folder", "link"]);
        assert_eq!(listed["entries"][3], json!({"name": "c d", "isDir": false, "size": 3, "type": "file"}));
        assert_eq!(listed["entries"][5]["type"], "symlink");
        assert_eq!((&listed["truncated"], &listed["total"]), (&json!(false), &json!(6)));
        let through = list(&root, &FileList { path: Some("link".into()) }).expect("lists");
        assert_eq!(through["path"], "folder");
        assert!(list(&root, &FileList { path: Some("a".into()) }).is_err());
    }

    #[test]
    fn a_long_listing_is_cut_at_the_same_place_whatever_the_order() {
        let mut names: Vec<Vec<u8>> = (0..MOST + 7).rev().map(|n| format!("{n:07}").into_bytes()).collect();
        first(&mut names);
        assert_eq!((names.len(), names.last()), (MOST, Some(&format!("{:07}", MOST - 1).into_bytes())));
    }

    #[test]
    fn nothing_is_told_of_what_is_not_there() {
        let temp = tempfile::tempdir().expect("a folder");
        fs::write(temp.path().join("f"), "abc").expect("writes");
        std::os::unix::fs::symlink("/etc/passwd", temp.path().join("out")).expect("links");
        let root = Root::open(temp.path()).expect("opens");
        let told = |path: &str| stat(&root, &FileStat { path: path.into() });
        for path in ["nothing", "nothing/below", "f/below"] {
            assert_eq!(told(path).expect("tells"), Map::from_iter([("exists".into(), json!(false))]), "{path}");
        }
        let facts = told("f").expect("tells");
        assert_eq!((&facts["exists"], &facts["size"], &facts["type"]), (&json!(true), &json!(3), &json!("file")));
        assert!(matches!(told("out"), Err(FilesError::Outside { .. })));
    }
}
