//! Skills: folders below the control folder's `skills/` that a person put there, each with a `SKILL.md`.
//!
//! Promise: they are only read, and only below their own folder: a name is one segment, no symlink is followed, and nothing
//! but a regular file is opened. Texts are cut at 256 KiB, listings at 40 files, and both say so.
//! Limit: a skill that is a symlink is none: copy it there. A skill adds words to what an agent knows, never a tool.

use std::io;
use std::path::PathBuf;

use platform::{Dir, FileType, Root};
use serde_json::{Map, Value};

use super::file::{self, Text, cannot_open, means_absent, why};
use super::object;
use crate::gate::path::FilePath;

/// The folder, in the control folder.
const FOLDER: &[u8] = b"skills";
/// What makes a folder a skill.
const MAIN: &str = "SKILL.md";
/// The most bytes of a text.
pub const MAX_TEXT: u64 = 256 << 10;
/// The most files that are listed.
pub const MOST_FILES: usize = 40;
/// The most names that are looked at for that, whatever they are.
const MAX_ENTRIES: usize = 2_000;
/// The most folders in one another.
const MAX_DEPTH: usize = 8;

/// The skills of one control folder.
#[derive(Debug)]
pub struct Skills {
    control: Dir,
}

impl Skills {
    /// Those in this control folder.
    pub fn of(control: Dir) -> Self {
        Self { control }
    }

    /// `skill_load`: the main text, and which other files there are.
    pub fn load(&self, name: &str) -> Result<Map<String, Value>, String> {
        let skill = self.skill(name)?;
        let Text { content, size, truncated } = self.text(&skill, name, MAIN)?;
        let (files, more) =
            files(skill.dir()).map_err(|error| format!("the skill {name} cannot be listed: {error}"))?;
        Ok(object([
            ("name", name.into()),
            ("content", content.into()),
            ("size", size.into()),
            ("truncated", truncated.into()),
            ("files", files.into()),
            ("filesTruncated", more.into()),
        ]))
    }

    /// `skill_read`: one file.
    pub fn read(&self, name: &str, path: &str) -> Result<Map<String, Value>, String> {
        let skill = self.skill(name)?;
        let Text { content, size, truncated } = self.text(&skill, name, path)?;
        Ok(object([
            ("name", name.into()),
            ("path", path.into()),
            ("content", content.into()),
            ("size", size.into()),
            ("truncated", truncated.into()),
        ]))
    }

    fn skill(&self, name: &str) -> Result<Root, String> {
        let is_name = FilePath::parse(name).is_ok() && !name.contains('/') && !name.starts_with('.');
        if !is_name {
            return Err("a skill's name is one segment, and does not begin with a dot".to_owned());
        }
        let absent = || match self.names() {
            names if names.is_empty() => format!("there is no skill {name}, and no other"),
            names => format!("there is no skill {name}; there are: {}", names.join(", ")),
        };
        let opened = self.control.open_dir(FOLDER).and_then(|skills| skills.open_dir(name.as_bytes()));
        let dir = opened.map_err(|error| match error.source.kind() {
            io::ErrorKind::NotFound => absent(),
            _ => format!("the skill {name} cannot be opened: {}", error.source),
        })?;
        let skill = Root::of(dir, PathBuf::from(name)).map_err(|error| why(&error))?;
        match skill.dir().stat(MAIN.as_bytes()) {
            Ok(Some(stat)) if stat.file_type == FileType::Regular => Ok(skill),
            _ => Err(absent()),
        }
    }

    fn text(&self, skill: &Root, name: &str, path: &str) -> Result<Text, String> {
        let path = FilePath::parse(path).map_err(|error| error.to_string())?;
        let file = skill.open_read(&path.rel()).map_err(|error| match &error {
            error if means_absent(error) => format!("the skill {name} has no file {path}"),
            error => format!("{path} of the skill {name} cannot be read: {}", cannot_open(error)),
        })?;
        file::text(file, MAX_TEXT).map_err(|error| format!("{path} of the skill {name} cannot be read: {error}"))
    }

    /// The skills there are, as far as their names can be said; at most so many as files are listed.
    fn names(&self) -> Vec<String> {
        let Ok(skills) = self.control.open_dir(FOLDER) else { return Vec::new() };
        let is_skill = |name: &str| {
            let main = skills.open_dir(name.as_bytes()).and_then(|skill| skill.stat(MAIN.as_bytes()));
            !name.starts_with('.')
                && main.is_ok_and(|stat| stat.is_some_and(|stat| stat.file_type == FileType::Regular))
        };
        let mut names: Vec<String> = entries(&skills, MAX_ENTRIES).unwrap_or_default().0;
        names.sort();
        names.into_iter().filter(|name| is_skill(name)).take(MOST_FILES).collect()
    }
}

/// The files of a skill but the main one, sorted, and whether there are more.
fn files(skill: &Dir) -> Result<(Vec<String>, bool), String> {
    let mut open = vec![(String::new(), skill.reopen().map_err(|error| why(&error))?, 1)];
    let (mut files, mut more, mut left) = (Vec::new(), false, MAX_ENTRIES);
    while let Some((above, dir, depth)) = open.pop() {
        let (names, is_cut) = entries(&dir, left)?;
        left -= names.len();
        more |= is_cut;
        for name in names {
            let path = format!("{above}{name}");
            match dir.stat(name.as_bytes()).ok().flatten().map(|stat| stat.file_type) {
                Some(FileType::Regular) if path != MAIN => files.push(path),
                Some(FileType::Directory) if depth == MAX_DEPTH => more = true,
                Some(FileType::Directory) => {
                    // What may not be looked into has no files for us.
                    open.extend(dir.open_dir(name.as_bytes()).ok().map(|below| (format!("{path}/"), below, depth + 1)));
                }
                _ => {}
            }
        }
    }
    files.sort();
    more |= files.len() > MOST_FILES;
    files.truncate(MOST_FILES);
    Ok((files, more))
}

/// At most `most` names in a directory that a path can hold, and whether there are more. The limit is on all names.
fn entries(dir: &Dir, most: usize) -> Result<(Vec<String>, bool), String> {
    let (mut names, mut looked) = (Vec::new(), 0);
    let listed = dir.each_entry(|name, _| {
        looked += 1;
        if looked <= most {
            let name = std::str::from_utf8(name).ok().filter(|name| FilePath::parse(name).is_ok());
            names.extend(name.map(str::to_owned));
        }
    });
    listed.map_err(|error| why(&error))?;
    Ok((names, looked > most))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            let folder = Self(tempfile::tempdir().expect("a temporary directory"));
            folder.put("skills/brewing/SKILL.md", "Heat the water first.\n");
            folder.put("skills/brewing/times.md", "Four minutes.\n");
            folder.put("secret.md", "secret");
            folder
        }

        fn skills(&self) -> Skills {
            Skills::of(Dir::open_ambient(self.0.path()).expect("it exists"))
        }

        fn path(&self, below: &str) -> PathBuf {
            self.0.path().join(below)
        }

        fn put(&self, below: &str, content: &str) {
            std::fs::create_dir_all(self.path(below).parent().expect("a parent")).expect("made");
            std::fs::write(self.path(below), content).expect("written");
        }
    }

    #[test]
    fn a_skill_is_loaded_with_its_files_and_they_are_read() {
        let folder = Folder::new();
        folder.put("skills/brewing/more/beans.md", "x");
        let loaded = Value::Object(folder.skills().load("brewing").expect("a skill"));
        let wanted = json!({"name": "brewing", "content": "Heat the water first.\n", "size": 22, "truncated": false,
            "files": ["more/beans.md", "times.md"], "filesTruncated": false});
        assert_eq!(loaded, wanted);
        let read = Value::Object(folder.skills().read("brewing", "times.md").expect("a file"));
        let wanted = json!({"name": "brewing", "path": "times.md", "content": "Four minutes.\n", "size": 14, "truncated": false});
        assert_eq!(read, wanted);
    }

    #[test]
    fn nothing_beside_its_folder_is_read() {
        let folder = Folder::new();
        symlink(folder.path("secret.md"), folder.path("skills/brewing/link.md")).expect("linked");
        symlink(folder.path(""), folder.path("skills/brewing/linked")).expect("linked");
        symlink(folder.path("skills/brewing"), folder.path("skills/alias")).expect("linked");
        std::fs::create_dir(folder.path("skills/empty")).expect("made");
        std::fs::create_dir(folder.path("skills/linked")).expect("made");
        symlink(folder.path("secret.md"), folder.path("skills/linked/SKILL.md")).expect("linked");
        let skills = folder.skills();
        for path in ["../../secret.md", "link.md", "linked/secret.md", "/etc/passwd", "", "nothing.md", "more", "."] {
            let why = skills.read("brewing", path).expect_err(path);
            assert!(!why.contains("secret\n"), "{why}");
        }
        for name in ["../memory", "..", ".", "", ".git", "brewing/..", "alias", "empty", "linked", "br\newing"] {
            assert!(skills.load(name).is_err(), "{name:?}");
            assert!(skills.read(name, "SKILL.md").is_err(), "{name:?}");
        }
        let loaded = skills.load("brewing").expect("a skill");
        assert_eq!(loaded["files"], json!(["times.md"]), "links are no files of it");
    }

    #[test]
    fn who_asks_for_what_is_not_there_is_told_what_is() {
        let folder = Folder::new();
        let why = folder.skills().load("nothing").expect_err("absent");
        assert_eq!(why, "there is no skill nothing; there are: brewing");
        std::fs::remove_dir_all(folder.path("skills")).expect("removed");
        assert_eq!(folder.skills().load("x").expect_err("absent"), "there is no skill x, and no other");
    }

    #[test]
    fn long_texts_and_many_files_are_cut_and_say_so() {
        let folder = Folder::new();
        folder.put("skills/brewing/SKILL.md", &"x".repeat(MAX_TEXT as usize + 1));
        for number in 0..MOST_FILES {
            folder.put(&format!("skills/brewing/{number:02}.md"), "x");
        }
        let loaded = folder.skills().load("brewing").expect("a skill");
        assert_eq!(loaded["content"].as_str().map(str::len), Some(MAX_TEXT as usize));
        assert_eq!((&loaded["size"], &loaded["truncated"]), (&json!(MAX_TEXT + 1), &json!(true)));
        assert_eq!(
            (loaded["files"].as_array().map(Vec::len), &loaded["filesTruncated"]),
            (Some(MOST_FILES), &json!(true))
        );
        assert_eq!(loaded["files"][0], json!("00.md"));
    }
}
