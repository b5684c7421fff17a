//! `.cage.yaml`: what a repository adds to the rules.
//!
//! Promise: a file can only add protection. Whatever it says that is not understood, or would take protection away, is a
//! fault with its place, and the watch does not start. Limit: it is read once, at the start, from the tree as it is;
//! that it is not the committed one is a warning of [`crate::git`]'s.

use platform::{Dir, RelPath};

use super::builtin::Table;
use super::glob::{Glob, check, trimmed};
use super::set::Target;
use super::yaml::{self, Fault, Key, Node, Position, Value};
use super::{Mode, gitdir};
use crate::text::escaped;

/// The file's name; it lies at the root.
pub const FILE_NAME: &str = ".cage.yaml";
/// Bytes the file may have.
pub const MAX_FILE_BYTES: u64 = 1 << 20;
/// Entries and globs the file may hold.
const MAX_ENTRIES: usize = 10_000;

/// What the file says.
#[derive(Debug, Clone, Default)]
pub struct RuleFile {
    /// `protect:` entries with their modes.
    pub entries: Vec<(Target, Mode)>,
    /// `contest_limit:`; 0 is never.
    pub contest_limit: Option<u32>,
    /// `dependencies: revert`.
    pub frozen: bool,
    /// `allow_only:`; empty if it is not there.
    pub allow_only: Vec<Glob>,
}

/// Why the file could not be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuleFileError {
    /// It says something that is not allowed.
    #[error(".cage.yaml: {0}")]
    Fault(#[from] Fault),
    /// It has more than [`MAX_FILE_BYTES`] bytes.
    #[error(".cage.yaml: line 1, column 1: the file has more than 1 MiB")]
    TooLarge,
    /// It is a link, a directory or the like.
    #[error(".cage.yaml: line 1, column 1: not a regular file")]
    NotRegular,
    /// It could not be read.
    #[error(".cage.yaml: line 1, column 1: cannot be read")]
    Read(#[source] platform::FsError),
}

/// The bytes of `.cage.yaml` in the root's directory; `None` if there is none.
pub fn read(root: &Dir) -> Result<Option<Vec<u8>>, RuleFileError> {
    let name = FILE_NAME.as_bytes();
    let Some(stat) = root.stat(name).map_err(RuleFileError::Read)? else { return Ok(None) };
    if stat.file_type != platform::FileType::Regular {
        return Err(RuleFileError::NotRegular);
    }
    match crate::git::files::read_in(root, name, MAX_FILE_BYTES) {
        Ok(crate::git::files::Content::Bytes(bytes)) => Ok(Some(bytes)),
        Ok(crate::git::files::Content::TooLarge) => Err(RuleFileError::TooLarge),
        Ok(crate::git::files::Content::Absent) => Ok(None),
        Err(error) => Err(RuleFileError::Read(error)),
    }
}

/// Reads the text of a file.
pub fn parse(bytes: &[u8]) -> Result<RuleFile, Fault> {
    let Some(root) = yaml::parse(bytes)? else { return Ok(RuleFile::default()) };
    let Value::Map(pairs) = &root.value else {
        return Err(Fault::new(root.at, format!("the file must be a mapping, not {}", root.kind())));
    };
    let mut file = RuleFile::default();
    let mut default = Mode::Restore;
    for (key, value) in pairs {
        match key.text.as_str() {
            "mode" => default = mode(value, "mode")?,
            "contest_limit" => file.contest_limit = Some(count(value)?),
            "dependencies" => file.frozen = mode(value, "dependencies")? == Mode::Restore,
            "allow_only" => file.allow_only = globs(value)?,
            "protect" => {}
            _ => return Err(unknown(key)),
        }
    }
    let table = Table::new(file.frozen);
    if let Some((_, value)) = pairs.iter().find(|(key, _)| key.text == "protect") {
        let entries = list(value, "protect")?;
        file.entries = entries.iter().map(|node| entry(node, default, &table)).collect::<Result<_, _>>()?;
    }
    Ok(file)
}

/// Words in a key that would loosen something.
const LOOSENING: [&str; 13] = [
    "exclude",
    "except",
    "ignore",
    "allow",
    "unprotect",
    "relax",
    "skip",
    "disable",
    "override",
    "remove",
    "drop",
    "off",
    "not_",
];

fn unknown(key: &Key) -> Fault {
    let lower = key.text.to_lowercase();
    let shown = escaped(key.text.as_bytes());
    if LOOSENING.iter().any(|word| lower.contains(word)) {
        return Fault::new(key.at, format!("`{shown}` would remove protection; this file can only add to it"));
    }
    Fault::new(
        key.at,
        format!("unknown key `{shown}`; known are protect, mode, contest_limit, dependencies and allow_only"),
    )
}

fn text<'n>(node: &'n Node, what: &str) -> Result<&'n str, Fault> {
    match &node.value {
        Value::Text { text, .. } if node.kind() != "nothing" => Ok(text),
        _ => Err(Fault::new(node.at, format!("{what} must be a text, not {}", node.kind()))),
    }
}

fn list<'n>(node: &'n Node, what: &str) -> Result<&'n [Node], Fault> {
    match &node.value {
        Value::List(items) if items.len() > MAX_ENTRIES => {
            Err(Fault::new(items[MAX_ENTRIES].at, format!("{what} has more than {MAX_ENTRIES} entries")))
        }
        Value::List(items) => Ok(items),
        _ => Err(Fault::new(node.at, format!("{what} must be a list, not {}", node.kind()))),
    }
}

fn mode(node: &Node, what: &str) -> Result<Mode, Fault> {
    match text(node, what)?.trim() {
        "revert" => Ok(Mode::Restore),
        "report" => Ok(Mode::Report),
        other => {
            Err(Fault::new(node.at, format!("{what} is `{}`; it can be revert or report", escaped(other.as_bytes()))))
        }
    }
}

fn count(node: &Node) -> Result<u32, Fault> {
    let wrong = || Fault::new(node.at, "contest_limit must be a whole number, 0 or more");
    match &node.value {
        Value::Text { text, plain: true } if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.parse().map_err(|_| wrong())
        }
        _ => Err(wrong()),
    }
}

fn globs(node: &Node) -> Result<Vec<Glob>, Fault> {
    let items = list(node, "allow_only")?;
    if items.is_empty() {
        return Err(Fault::new(node.at, "allow_only is empty; leave it out, or name what may change"));
    }
    items.iter().map(|item| glob(item, "allow_only")).collect()
}

fn glob(node: &Node, what: &str) -> Result<Glob, Fault> {
    let text = text(node, what)?;
    Glob::compile(text).map_err(|why| faulty(node.at, what, text, why))
}

fn faulty(at: Position, what: &str, text: &str, why: impl std::fmt::Display) -> Fault {
    Fault::new(at, format!("{what} `{}` {why}", escaped(text.as_bytes())))
}

fn entry(node: &Node, default: Mode, table: &Table) -> Result<(Target, Mode), Fault> {
    let Value::Map(pairs) = &node.value else {
        return Err(Fault::new(node.at, format!("an entry must be a mapping with path or glob, not {}", node.kind())));
    };
    let (mut target, mut chosen) = (None, default);
    for (key, value) in pairs {
        let found = match key.text.as_str() {
            "mode" => {
                chosen = mode(value, "mode")?;
                continue;
            }
            "path" => Target::Path(path(value)?),
            "glob" => Target::Glob(glob(value, "glob")?),
            _ => return Err(unknown_in_entry(key)),
        };
        if target.replace((found, value.at)).is_some() {
            return Err(Fault::new(key.at, "an entry has either path or glob, not both"));
        }
    }
    let Some((target, at)) = target else {
        return Err(Fault::new(node.at, "an entry needs a path or a glob"));
    };
    // A glob in report mode weakens nothing: restore beats report.
    if let (Target::Path(path), Mode::Report) = (&target, chosen)
        && let Some(rule) = restored(path, table)
    {
        let shown = escaped(path.as_bytes());
        return Err(Fault::new(at, format!("report mode on `{shown}` would weaken the built-in rule {rule}")));
    }
    Ok((target, chosen))
}

fn unknown_in_entry(key: &Key) -> Fault {
    let fault = unknown(key);
    let shown = escaped(key.text.as_bytes());
    if fault.reason.starts_with("unknown") {
        Fault::new(key.at, format!("unknown key `{shown}` in an entry; known are path, glob and mode"))
    } else {
        fault
    }
}

fn path(node: &Node) -> Result<RelPath, Fault> {
    let text = trimmed(text(node, "path")?);
    check(text).map_err(|why| faulty(node.at, "path", text, why))?;
    RelPath::parse(text.as_bytes()).map_err(|why| faulty(node.at, "path", text, format!("is no path: {why}")))
}

/// The built-in rule that restores what is at the path, or lies in it, if it is one of the table's places.
fn restored(path: &RelPath, table: &Table) -> Option<super::Rule> {
    let parent = path.parent()?;
    let (dir, name) = (parent.as_bytes(), path.name()?);
    let in_table = table.find(dir, name).filter(|found| found.mode == Mode::Restore).map(|found| found.rule);
    in_table.or_else(|| {
        let mut inside = path.components().skip_while(|&part| part != b".git").skip(1).collect::<Vec<_>>();
        if !path.components().any(|part| part == b".git") {
            return None;
        }
        let covered = match inside.pop() {
            None => true,
            Some(name) => gitdir::part(&inside.join(&b'/'), name).is_some(),
        };
        covered.then_some(super::Rule::GitControl)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_full_file_is_read() {
        let file = parse(
            b"# rules\nmode: report\nprotect:\n  - path: ./infra/\n    mode: revert\n  - glob: ' *.pem '\ncontest_limit: 5\n\
              dependencies: revert\nallow_only: ['src/**', 'docs/*.md']\n",
        )
        .expect("valid");
        assert_eq!((file.contest_limit, file.frozen), (Some(5), true));
        assert_eq!(file.allow_only.iter().map(Glob::text).collect::<Vec<_>>(), ["src/**", "docs/*.md"]);
        assert!(matches!(&file.entries[0], (Target::Path(path), Mode::Restore) if path.as_bytes() == b"infra"));
        assert!(matches!(&file.entries[1], (Target::Glob(glob), Mode::Report) if glob.text() == "*.pem"));
    }

    #[test]
    fn a_file_without_content_adds_nothing() {
        for text in ["", "\n", "# only a comment\n", "---\n", "{}", "\u{feff}protect: []\n"] {
            let file = parse(text.as_bytes()).unwrap_or_else(|fault| panic!("{text:?}: {fault}"));
            assert!(file.entries.is_empty(), "{text:?}");
        }
    }

    #[test]
    fn every_fault_says_where_and_why() {
        let deep = format!("protect: {}", "[".repeat(20));
        for (text, message) in [
            ("protect:\n  - path: [a\n", "invalid YAML"),
            ("- path: a\n", "line 1, column 1: the file must be a mapping, not a list"),
            ("word\n", "line 1, column 1: the file must be a mapping"),
            ("mode: revert\nprotect: []\nmode: report\n", "line 3, column 1: duplicate key `mode`"),
            ("protect:\n  - path: a\n    path: b\n", "line 3, column 5: duplicate key `path`"),
            ("protect:\n  - &x\n    path: a\n", "anchors"),
            ("protect:\n  - &x\n    path: a\n  - *x\n", "anchors"),
            ("protect:\n  - *x\n", "line 2, column 5"),
            ("protect: !!seq []\n", "tags"),
            ("%YAML 1.2\n---\nprotect: []\n", "directives"),
            ("protect: []\n---\nprotect: []\n", "line 2, column 1: a second document"),
            ("protect: []\nprotcet: []\n", "line 2, column 1: unknown key `protcet`"),
            ("protect: []\nexclude:\n  - .env\n", "line 2, column 1: `exclude` would remove protection"),
            ("allow_overrides: []\n", "would remove protection"),
            ("protect:\n  - path: a\n    unprotect: true\n", "line 3, column 5: `unprotect` would remove protection"),
            ("protect: infra\n", "line 1, column 10: protect must be a list"),
            ("protect:\n", "protect must be a list, not nothing"),
            ("protect:\n  - infra\n", "line 2, column 5: an entry must be a mapping"),
            ("protect:\n  - path: /etc/passwd\n", "line 2, column 11: path `/etc/passwd` is absolute"),
            ("protect:\n  - path: ../other\n", "`..` segment"),
            ("protect:\n  - path: a//b\n", "empty segment"),
            ("protect:\n  - path: 'C:/data'\n", "drive letter"),
            ("protect:\n  - path: ' '\n", "is empty"),
            ("protect:\n  - path: .\n", "`.` or `..`"),
            ("protect:\n  - path: \"a\\u202e/\\0\"\n", "path `a\\u{202e}/\\x00` has a control character"),
            ("protect:\n  - path: a\\b\n", "backslash"),
            ("protect:\n  - path: [a]\n", "path must be a text, not a list"),
            ("protect:\n  - path:\n", "path must be a text, not nothing"),
            ("protect:\n  - path: a\n    glob: '*.b'\n", "line 3, column 5: an entry has either path or glob"),
            ("protect:\n  - mode: revert\n", "line 2, column 5: an entry needs a path or a glob"),
            ("protect:\n  - path: a\n    mode: ask\n", "line 3, column 11: mode is `ask`"),
            ("protect:\n  - path: .env\n    mode: report\n", "weaken the built-in rule secrets"),
            ("mode: report\nprotect:\n  - path: .claude\n", "weaken the built-in rule agent_config"),
            ("protect:\n  - path: .git/hooks\n    mode: report\n", "weaken the built-in rule git_control"),
            ("protect:\n  - path: .git\n    mode: report\n", "weaken the built-in rule git_control"),
            ("dependencies: revert\nprotect:\n  - path: yarn.lock\n    mode: report\n", "rule lockfile"),
            ("protect:\n  - glob: '[a'\n", "line 2, column 11: glob `[a`"),
            ("contest_limit: -1\n", "line 1, column 16: contest_limit"),
            ("contest_limit: 1.5\n", "contest_limit"),
            ("contest_limit: '3'\n", "contest_limit"),
            ("contest_limit: 99999999999\n", "contest_limit"),
            ("contest_limit:\n", "contest_limit"),
            ("dependencies: maybe\n", "dependencies is `maybe`"),
            ("allow_only:\n  - '../**'\n", "line 2, column 5: allow_only `../**`"),
            ("allow_only: []\n", "allow_only is empty"),
            ("allow_only: src\n", "allow_only must be a list"),
            ("? [a]\n: b\n", "a key must be a single text"),
            ("<<: {}\n", "unknown key `<<`"),
            (&deep, "line 1, column"),
        ] {
            let fault = parse(text.as_bytes()).err().unwrap_or_else(|| panic!("{text:?} was taken"));
            let shown = fault.to_string();
            assert!(shown.contains(message), "{text:?}: {shown}");
            assert!((1..=text.matches('\n').count() + 1).contains(&fault.at.line), "{text:?}: {shown}");
        }
        let fault = parse(b"a: b\nc: \xff\n").expect_err("not UTF-8");
        assert_eq!(fault.to_string(), "line 2, column 4: is not UTF-8 text");
    }

    #[test]
    fn numbers_are_capped() {
        let many = format!("allow_only:\n{}", "- a\n".repeat(MAX_ENTRIES + 1));
        assert!(parse(many.as_bytes()).expect_err("too many").reason.contains("more than"));
        let wide = format!("x: [{}]", "a,".repeat(60_000));
        assert!(parse(wide.as_bytes()).expect_err("too much").reason.contains("too much"));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn no_text_of_yaml_signs_panics(text in "[-:?\\[\\]{},&*!|>'\"%@`#a \n~<]{0,60}") {
            let _ = parse(text.as_bytes());
        }
    }
}
