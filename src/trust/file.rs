//! `config.toml`: the programs a person trusts.
//!
//! Promise: whatever is not understood is an error with its place, and then nothing of the file holds; a file or folder
//! that somebody else could write is not read at all. Limit: it is read once, at the start, as the user.
//! Source: TOML 1.0; `docs/hold.md` has an example.

use std::io::Read as _;
use std::ops::Range;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use platform::{Access, Dir, FsError};
use toml_edit::{Array, Document, Item, TableLike};

use super::Trusted;
use crate::digest::Digest;
use crate::rules::Rule;
use crate::rules::glob::{Glob, GlobError};
use crate::text;

/// Its name in the folder `keepwatch` of the person's settings.
pub const FILE_NAME: &str = "config.toml";
/// A list of programs is a few lines.
const MAX_BYTES: u64 = 256 << 10;
/// Programs the file may name.
const MAX_ENTRIES: usize = 256;

/// Why the file cannot be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// Somebody else could have written it.
    #[error("others can write {what}, or it is another user's")]
    Writable {
        /// The file or its folder.
        what: &'static str,
    },
    /// It is no file of settings by its size.
    #[error("it has more than 256 KiB")]
    TooLarge,
    /// It could not be read.
    #[error("cannot be read")]
    Read(#[source] FsError),
    /// It says something that is not understood.
    #[error("line {line}, column {column}: {fault}")]
    Fault {
        /// The line, from 1.
        line: usize,
        /// The column, from 1, in characters.
        column: usize,
        /// What is wrong there.
        fault: Fault,
    },
}

/// What can be wrong in the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// It is not UTF-8.
    #[error("this is not UTF-8")]
    NotText,
    /// It is not TOML.
    #[error("{0}")]
    Syntax(String),
    /// A key nobody knows.
    #[error("there is no setting `{0}`")]
    UnknownKey(String),
    /// `trust` is no list of tables.
    #[error("programs are listed as [[trust]]")]
    NotTables,
    /// There are more of them than a person has.
    #[error("more than {MAX_ENTRIES} programs are listed")]
    TooMany,
    /// A key that must be there is not.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// The program is no absolute path.
    #[error("`program` is the absolute path of a program, without symlinks")]
    NoProgram,
    /// The digest is none.
    #[error("`sha256` is 64 lower-case hex digits, as sha256sum prints them")]
    NoDigest,
    /// What it may do is not known.
    #[error("`may` is a list of \"read\" and \"write\"")]
    NoPurpose,
    /// A rule nobody knows.
    #[error("`rules` is a list of names of rules, and there is none called `{0}`")]
    NoRule(String),
    /// A list that is none, or is empty, which could be read both ways.
    #[error("`{0}` is a list of texts that is not empty")]
    NoList(&'static str),
    /// A path is no glob.
    #[error("`paths`: `{0}` {1}")]
    NoGlob(String, GlobError),
}

/// Reads the file in this folder; nothing is trusted if there is none. It must be the user's, or root's.
pub fn read(folder: &Path, owner: u32) -> Result<Vec<Trusted>, FileError> {
    let is_absent = |error: &FsError| error.source.kind() == std::io::ErrorKind::NotFound;
    let dir = match Dir::open_ambient(folder) {
        Ok(dir) => dir,
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        Err(error) => return Err(FileError::Read(error)),
    };
    let file = match dir.open_read(FILE_NAME.as_bytes()) {
        Ok(file) => file,
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        Err(error) => return Err(FileError::Read(error)),
    };
    let stats = [("its folder", dir.own_stat()), ("it", platform::dir::stat_of(file.as_fd()))];
    for (what, stat) in stats {
        let stat = stat.map_err(FileError::Read)?;
        if ![owner, 0].contains(&stat.uid) || stat.mode & 0o022 != 0 {
            return Err(FileError::Writable { what });
        }
    }
    let mut bytes = Vec::new();
    let read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|source| FileError::Read(FsError { operation: "read", path: folder.join(FILE_NAME), source }))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(FileError::TooLarge);
    }
    parse(&bytes)
}

/// Reads the text of the file.
pub fn parse(bytes: &[u8]) -> Result<Vec<Trusted>, FileError> {
    let reader = Reader(bytes);
    let source = std::str::from_utf8(bytes)
        .map_err(|error| reader.fault(Some(error.valid_up_to()..bytes.len()), Fault::NotText))?;
    let document = Document::parse(source)
        .map_err(|error| reader.fault(error.span(), Fault::Syntax(text::escaped(error.message().as_bytes()))))?;
    reader.all(document.as_table())
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn all(&self, table: &dyn TableLike) -> Result<Vec<Trusted>, FileError> {
        if let Some((name, _)) = table.iter().find(|(name, _)| *name != "trust") {
            return Err(self.unknown(table, name));
        }
        let Some(item) = table.get("trust") else { return Ok(Vec::new()) };
        let place = || place(table, "trust");
        let entries: Vec<&dyn TableLike> = match item {
            Item::ArrayOfTables(tables) => tables.iter().map(|table| table as &dyn TableLike).collect(),
            Item::Value(value) => {
                let inline = value.as_array().map(|array| array.iter().map(|value| value.as_inline_table()));
                let tables: Option<Vec<_>> = inline.and_then(Iterator::collect);
                let tables = tables.ok_or_else(|| self.fault(place(), Fault::NotTables))?;
                tables.into_iter().map(|table| table as &dyn TableLike).collect()
            }
            _ => return Err(self.fault(place(), Fault::NotTables)),
        };
        if entries.len() > MAX_ENTRIES {
            return Err(self.fault(place(), Fault::TooMany));
        }
        entries.into_iter().map(|entry| self.entry(entry, place())).collect()
    }

    fn entry(&self, table: &dyn TableLike, whole: Option<Range<usize>>) -> Result<Trusted, FileError> {
        let known = ["program", "sha256", "may", "rules", "paths"];
        if let Some((name, _)) = table.iter().find(|(name, _)| !known.contains(name)) {
            return Err(self.unknown(table, name));
        }
        let get = |key: &'static str| {
            let start = table.iter().next().and_then(|(first, _)| place(table, first)).or_else(|| whole.clone());
            table.get(key).ok_or_else(|| self.fault(start, Fault::Missing(key)))
        };
        let at = |key: &str, fault: Fault| self.fault(value_place(table, key), fault);
        let program = get("program")?.as_str().filter(|path| is_plain_absolute(path));
        let program = program.ok_or_else(|| at("program", Fault::NoProgram))?;
        let digest = get("sha256")?.as_str().and_then(Digest::parse).ok_or_else(|| at("sha256", Fault::NoDigest))?;
        let purposes = self.texts(table, "may", get("may")?)?;
        let may = purposes.iter().map(|(word, span)| match *word {
            "read" => Ok(Access::Read),
            "write" => Ok(Access::Write),
            _ => Err(self.fault(span.clone(), Fault::NoPurpose)),
        });
        let may = may.collect::<Result<_, _>>()?;
        let rules = match table.get("rules") {
            Some(item) => self.texts(table, "rules", item)?,
            None => Vec::new(),
        };
        let rules = rules.into_iter().map(|(name, span)| {
            let unknown = || self.fault(span, Fault::NoRule(text::escaped(name.as_bytes())));
            Rule::from_name(name).ok_or_else(unknown)
        });
        let rules = rules.collect::<Result<_, _>>()?;
        let paths = match table.get("paths") {
            Some(item) => self.texts(table, "paths", item)?,
            None => Vec::new(),
        };
        let paths = paths.into_iter().map(|(glob, span)| {
            let wrong = |why| self.fault(span, Fault::NoGlob(text::escaped(glob.as_bytes()), why));
            Glob::compile(glob).map_err(wrong)
        });
        let paths = paths.collect::<Result<_, _>>()?;
        Ok(Trusted { program: program.as_bytes().to_vec(), digest, may, rules, paths })
    }

    /// The texts of a list, each with its place.
    #[allow(clippy::type_complexity)]
    fn texts<'t>(
        &self,
        table: &dyn TableLike,
        key: &'static str,
        item: &'t Item,
    ) -> Result<Vec<(&'t str, Option<Range<usize>>)>, FileError> {
        let wrong = || self.fault(value_place(table, key), Fault::NoList(key));
        let list = item.as_array().filter(|list| !Array::is_empty(list)).ok_or_else(wrong)?;
        list.iter().map(|value| Ok((value.as_str().ok_or_else(wrong)?, value.span()))).collect()
    }

    fn unknown(&self, table: &dyn TableLike, name: &str) -> FileError {
        self.fault(place(table, name), Fault::UnknownKey(text::escaped(name.as_bytes())))
    }

    /// A fault at the beginning of this place; what has no place is blamed on the whole file.
    fn fault(&self, place: Option<Range<usize>>, fault: Fault) -> FileError {
        let before = &self.0[..place.map_or(0, |place| place.start.min(self.0.len()))];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let column = 1 + String::from_utf8_lossy(&before[start..]).chars().count();
        FileError::Fault { line, column, fault }
    }
}

fn is_plain_absolute(path: &str) -> bool {
    let parts = path.strip_prefix('/');
    !path.contains('\0') && parts.is_some_and(|parts| parts.split('/').all(|part| !["", ".", ".."].contains(&part)))
}

/// Where a key stands.
fn place(table: &dyn TableLike, key: &str) -> Option<Range<usize>> {
    let written = table.key(key).and_then(toml_edit::Key::span);
    written.or_else(|| table.get(key).and_then(Item::span))
}

/// Where its value stands.
fn value_place(table: &dyn TableLike, key: &str) -> Option<Range<usize>> {
    table.get(key).and_then(Item::span).or_else(|| place(table, key))
}

impl FileError {
    /// The error with the file it is about.
    pub fn of(&self, folder: &Path) -> String {
        let shown = text::escaped(folder.join(FILE_NAME).as_os_str().as_bytes());
        format!("{shown}: {}", crate::cli::exit::causes(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    fn sha() -> String {
        Digest::of(b"git").to_string()
    }

    fn entry(more: &str) -> String {
        format!("[[trust]]\nprogram = \"/usr/bin/git\"\nsha256 = \"{}\"\n{more}", sha())
    }

    #[test]
    fn a_full_entry_is_read() {
        let text =
            entry("may = [\"read\", \"write\"]\nrules = [\"git_control\"]\npaths = [\".git/config\", \"**/x\"]\n");
        let all = parse(text.as_bytes()).expect("reads");
        let one = &all[0];
        assert_eq!((&one.program[..], one.digest), (&b"/usr/bin/git"[..], Digest::of(b"git")));
        assert_eq!((&one.may[..], &one.rules[..]), (&[Access::Read, Access::Write][..], &[Rule::GitControl][..]));
        assert_eq!(one.paths.iter().map(Glob::text).collect::<Vec<_>>(), [".git/config", "**/x"]);
        let inline = format!("trust = [{{ program = \"/a\", sha256 = \"{}\", may = [\"read\"] }}]", sha());
        assert_eq!(parse(inline.as_bytes()).expect("reads").len(), 1);
        assert!(parse(b"").expect("reads").is_empty());
    }

    #[test]
    fn every_fault_says_where_and_why() {
        let may = "may = [\"read\"]\n";
        for (text, said) in [
            ("[trust\n".to_owned(), "line 1, column"),
            ("trusted = 1\n".to_owned(), "line 1, column 1: there is no setting `trusted`"),
            ("[trust]\nprogram = \"/a\"\n".to_owned(), "[[trust]]"),
            ("trust = 1\n".to_owned(), "line 1, column 1: programs are listed as [[trust]]"),
            ("trust = [1]\n".to_owned(), "programs are listed as [[trust]]"),
            (entry("colour = 1\n"), "line 4, column 1: there is no setting `colour`"),
            (entry(""), "line 2, column 1: `may` is missing"),
            (entry("may = []\n"), "line 4, column 7: `may` is a list of texts that is not empty"),
            (entry("may = \"read\"\n"), "`may` is a list"),
            (entry("may = [\"read\", \"exec\"]\n"), "line 4, column 16: `may` is a list of \"read\" and \"write\""),
            (entry(&format!("{may}rules = [\"secret\"]\n")), "line 5, column 10: `rules` is a list of names"),
            (entry(&format!("{may}rules = []\n")), "`rules` is a list of texts"),
            (entry(&format!("{may}paths = [\"../x\"]\n")), "line 5, column 10: `paths`: `../x`"),
            (entry(may).replace("/usr/bin/git", "git"), "line 2, column 11: `program` is the absolute path"),
            (entry(may).replace("/usr/bin/git", "/usr/../git"), "`program` is the absolute path"),
            (entry(may).replace(&sha(), "abc"), "line 3, column 10: `sha256` is 64"),
            (entry(may).replace(&sha(), &sha().to_uppercase()), "`sha256` is 64"),
            ("[[trust]]\n".to_owned(), "`program` is missing"),
            (entry(&format!("{may}{may}")), "line 5, column"),
            ("[\"tr\\u202eust\"]\n".to_owned(), "there is no setting `tr\\u{202e}ust`"),
        ] {
            let error = parse(text.as_bytes()).err().unwrap_or_else(|| panic!("{text:?} was taken")).to_string();
            assert!(error.contains(said), "{text:?}: {error}");
        }
        assert_eq!(parse(b"\n \xff").expect_err("not text").to_string(), "line 2, column 2: this is not UTF-8");
        let many = entry(may).repeat(MAX_ENTRIES + 1);
        assert!(parse(many.as_bytes()).expect_err("too many").to_string().contains("more than 256"));
    }

    #[test]
    fn a_file_that_others_can_write_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let owner = fs::metadata(folder.path()).expect("stats").uid();
        assert!(read(folder.path(), owner).expect("nothing is there").is_empty());
        assert!(read(&folder.path().join("none"), owner).expect("nothing is there").is_empty());
        let file = folder.path().join(FILE_NAME);
        fs::write(&file, entry("may = [\"read\"]\n")).expect("writes");
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("sets");
        mode(&file, 0o644);
        assert_eq!(read(folder.path(), owner).expect("reads").len(), 1);
        for bits in [0o664, 0o646] {
            mode(&file, bits);
            let error = read(folder.path(), owner).expect_err("refused");
            assert!(matches!(error, FileError::Writable { what: "it" }), "{error}");
        }
        mode(&file, 0o600);
        mode(folder.path(), 0o777);
        let error = read(folder.path(), owner).expect_err("refused");
        assert!(matches!(error, FileError::Writable { what: "its folder" }), "{error}");
        mode(folder.path(), 0o700);
        if owner != 0 {
            return;
        }
        assert!(read(folder.path(), owner + 1).is_ok(), "root's own can be read for anybody");
        std::os::unix::fs::chown(&file, Some(owner + 2), None).expect("root may");
        assert!(read(folder.path(), owner + 1).is_err(), "another user's");
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let owner = fs::metadata(folder.path()).expect("stats").uid();
        fs::write(folder.path().join("other"), "").expect("writes");
        std::os::unix::fs::symlink("other", folder.path().join(FILE_NAME)).expect("links");
        assert!(matches!(read(folder.path(), owner), Err(FileError::Read(_))));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fall(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _any_answer = parse(&bytes);
        }
    }
}
