//! `policy.toml`: what the person made stricter, and how unattended callers are asked.
//!
//! Promise: whatever is not understood is an error with its file and line, and nothing of the file holds; only a missing
//! or misspelt `autonomy` is not, for it has a value that is the strictest. Limit: the file is read when a gate starts.
//! Source: TOML 1.0; docs/policy.md has an example.

use std::ops::Range;

use toml_edit::{Document, Item, TableLike};

use super::host::{Host, HostError, HostName};
use super::kind::Kind;
use super::policy::{Policy, PolicyRefusal, Tightening};
use super::recall::{Recall, Ruling};
use crate::text;

/// Who is asked about an unattended caller's actions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Autonomy {
    /// Nobody: what would have to be asked about is denied at once.
    #[default]
    Strict,
    /// The person at the terminal, if there is one.
    Guarded,
}

/// What a `policy.toml` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFile {
    /// The rulings.
    pub policy: Policy,
    /// Who is asked about unattended callers.
    pub autonomy: Autonomy,
    /// What a person should be told at the start, a line each, escaped.
    pub lines: Vec<String>,
    /// The hosts whose addresses may be local.
    pub allow_private: Vec<HostName>,
}

/// What is wrong with a `policy.toml`, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {fault}")]
pub struct PolicyError {
    /// The file, as it was named to us.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub fault: PolicyFault,
}

/// What can be wrong in a `policy.toml`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyFault {
    /// It is not UTF-8.
    #[error("this is not UTF-8")]
    NotText,
    /// It is not TOML.
    #[error("{0}")]
    Syntax(String),
    /// A key nobody knows.
    #[error("there is no setting `{0}`")]
    UnknownKey(String),
    /// A kind's settings are no table.
    #[error("{0} is a table: [{0}]")]
    NotATable(Kind),
    /// No ruling.
    #[error("a ruling is \"allow\", \"ask\" or \"deny\"")]
    NoRuling,
    /// No ceiling.
    #[error("a ceiling is \"never\", \"session\" or \"always\"")]
    NoCeiling,
    /// A ceiling beside a ruling that never asks.
    #[error("a ceiling is for ruling = \"ask\"")]
    UselessCeiling,
    /// No list of hosts.
    #[error("allow_private is a list of hosts: [\"192.168.1.10\", \"nas.example\"]")]
    NotHosts,
    /// An entry of `allow_private` is no host.
    #[error("allow_private: {0}")]
    Host(#[from] HostError),
    /// The kind cannot be changed like that.
    #[error(transparent)]
    Refused(#[from] PolicyRefusal),
}

/// Reads a `policy.toml`; `shown_name` is how messages call it. An empty text stands for a file that is not there.
pub fn parse(bytes: &[u8], shown_name: &str) -> Result<PolicyFile, PolicyError> {
    let reader = Reader { bytes, file: shown_name };
    let source = std::str::from_utf8(bytes)
        .map_err(|error| reader.error(Some(error.valid_up_to()..bytes.len()), PolicyFault::NotText))?;
    let document = Document::parse(source)
        .map_err(|error| reader.error(error.span(), PolicyFault::Syntax(text::escaped(error.message().as_bytes()))))?;
    reader.file(document.as_table())
}

struct Reader<'a> {
    bytes: &'a [u8],
    file: &'a str,
}

impl Reader<'_> {
    fn file(&self, table: &dyn TableLike) -> Result<PolicyFile, PolicyError> {
        let mut read = PolicyFile {
            policy: Policy::default(),
            autonomy: Autonomy::default(),
            lines: Vec::new(),
            allow_private: Vec::new(),
        };
        for (name, item) in table.iter() {
            match Kind::parse(name) {
                Some(kind) => self.kind(kind, table, item, &mut read)?,
                None if name == "autonomy" => {}
                None => return Err(self.unknown(table, name)),
            }
        }
        match table.get("autonomy") {
            None => read.lines.push(format!("autonomy is not set in {}, so it is strict", self.file)),
            Some(item) => match item.as_str() {
                Some("strict") => {}
                Some("guarded") => read.autonomy = Autonomy::Guarded,
                _ => read.lines.push(format!(
                    "{}:{}: autonomy is neither \"strict\" nor \"guarded\", so it is strict",
                    self.file,
                    self.line(place(table, "autonomy"))
                )),
            },
        }
        Ok(read)
    }

    fn kind(&self, kind: Kind, above: &dyn TableLike, item: &Item, read: &mut PolicyFile) -> Result<(), PolicyError> {
        let Some(table) = item.as_table_like() else {
            return Err(self.error(place(above, kind.name()), PolicyFault::NotATable(kind)));
        };
        for (name, item) in table.iter() {
            match name {
                "ruling" | "ceiling" => {}
                "allow_private" if kind == Kind::Net => read.allow_private = self.hosts(table, item)?,
                _ => return Err(self.unknown(table, name)),
            }
        }
        let ceiling = match table.get("ceiling") {
            Some(item) => Some(
                item.as_str()
                    .and_then(Recall::parse)
                    .ok_or_else(|| self.error(place(table, "ceiling"), PolicyFault::NoCeiling))?,
            ),
            None => None,
        };
        let (by, key) = match (table.get("ruling").map(Item::as_str), ceiling) {
            (None, None) => return Ok(()),
            (None, Some(ceiling)) => (Tightening::Ceiling(ceiling), "ceiling"),
            // Without a word about it the ceiling is the table's, which is this one wherever it asks.
            (Some(Some("ask")), ceiling) => {
                (Tightening::Rule(Ruling::Ask { ceiling: ceiling.unwrap_or(Recall::Always) }), "ruling")
            }
            (Some(Some("allow" | "deny")), Some(_)) => {
                return Err(self.error(place(table, "ceiling"), PolicyFault::UselessCeiling));
            }
            (Some(Some("allow")), None) => (Tightening::Rule(Ruling::Allow), "ruling"),
            (Some(Some("deny")), None) => (Tightening::Rule(Ruling::Deny), "ruling"),
            (Some(_), _) => return Err(self.error(place(table, "ruling"), PolicyFault::NoRuling)),
        };
        read.policy =
            read.policy.clone().tightened(kind, by).map_err(|refusal| self.error(place(table, key), refusal))?;
        Ok(())
    }

    fn hosts(&self, table: &dyn TableLike, item: &Item) -> Result<Vec<HostName>, PolicyError> {
        let wrong = || self.error(place(table, "allow_private"), PolicyFault::NotHosts);
        let mut hosts = Vec::new();
        for entry in item.as_array().ok_or_else(wrong)? {
            let text = entry.as_str().ok_or_else(|| self.error(entry.span(), PolicyFault::NotHosts))?;
            let host = Host::parse(text, None).map_err(|error| self.error(entry.span(), error))?;
            hosts.push(host.name().clone());
        }
        Ok(hosts)
    }

    fn unknown(&self, table: &dyn TableLike, name: &str) -> PolicyError {
        self.error(place(table, name), PolicyFault::UnknownKey(text::escaped(name.as_bytes())))
    }

    fn error(&self, place: Option<Range<usize>>, fault: impl Into<PolicyFault>) -> PolicyError {
        PolicyError { file: self.file.to_owned(), line: self.line(place), fault: fault.into() }
    }

    /// The line a place begins in; what has no place is blamed on the whole file.
    fn line(&self, place: Option<Range<usize>>) -> usize {
        let start = place.map_or(0, |place| place.start.min(self.bytes.len()));
        1 + self.bytes[..start].iter().filter(|byte| **byte == b'\n').count()
    }
}

/// Where a key stands.
fn place(table: &dyn TableLike, key: &str) -> Option<Range<usize>> {
    let written = table.key(key).and_then(toml_edit::Key::span);
    written.or_else(|| table.get(key).and_then(Item::span))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<PolicyFile, String> {
        parse(text.as_bytes(), "policy.toml").map_err(|error| error.to_string())
    }

    fn ask(ceiling: Recall) -> Ruling {
        Ruling::Ask { ceiling }
    }

    #[test]
    fn an_empty_file_is_the_table_and_strict_with_a_line() {
        let read = read("").expect("reads");
        assert_eq!((&read.policy, read.autonomy), (&Policy::default(), Autonomy::Strict));
        assert_eq!(read.lines, ["autonomy is not set in policy.toml, so it is strict"]);
    }

    #[test]
    fn kinds_are_made_stricter() {
        let text = "autonomy = \"guarded\"\n[file]\nruling = \"ask\"\nceiling = \"session\"\n[notify]\nruling = \"ask\"\n\
                    [memory]\nruling = \"deny\"\n[net]\nceiling = \"never\"\nallow_private = [\"LocalHost.\", \"::1\"]\n";
        let read = read(text).expect("reads");
        for unattended in [false, true] {
            assert_eq!(read.policy.rule(Kind::File, unattended), ask(Recall::Session));
            assert_eq!(read.policy.rule(Kind::Notify, unattended), ask(Recall::Always));
            assert_eq!(read.policy.rule(Kind::Memory, unattended), Ruling::Deny);
            assert_eq!(read.policy.rule(Kind::Net, unattended), ask(Recall::Never));
            assert_eq!(read.policy.rule(Kind::Remind, unattended), Ruling::Allow);
        }
        assert_eq!((read.autonomy, read.lines), (Autonomy::Guarded, vec![]));
        let names: Vec<_> = read.allow_private.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["localhost", "[::1]"]);
    }

    #[test]
    fn a_misspelt_autonomy_is_strict_and_a_line_says_so() {
        for value in ["\"gaurded\"", "\"Guarded\"", "\"\"", "1", "[\"guarded\"]", "true"] {
            let read = read(&format!("\nautonomy = {value}\n")).expect("reads");
            assert_eq!(read.autonomy, Autonomy::Strict, "{value}");
            assert_eq!(read.lines, ["policy.toml:2: autonomy is neither \"strict\" nor \"guarded\", so it is strict"]);
        }
        assert_eq!(read("autonomy = \"strict\"").expect("reads").lines, Vec::<String>::new());
    }

    #[test]
    fn what_is_looser_wrong_or_unknown_is_an_error_with_its_line() {
        for (text, line, word) in [
            ("[file]\nruling = \"allow\"\n", 2, "stricter"),
            ("[net]\n\nruling = \"allow\"\n", 3, "stricter"),
            ("[memory]\nruling = \"allow\"\n", 2, "unattended"),
            ("autonomy = \"strict\"\n[files]\nruling = \"deny\"\n", 2, "files"),
            ("[file]\nruling = \"dney\"\n", 2, "ruling"),
            ("[file]\nruling = 1\n", 2, "ruling"),
            ("[file]\nceiling = \"forever\"\n", 2, "ceiling"),
            ("[file]\nceiling = \"Never\"\n", 2, "ceiling"),
            ("[file]\nruling = \"deny\"\nceiling = \"never\"\n", 3, "ask"),
            ("[notify]\nceiling = \"never\"\n", 2, "ask"),
            ("[file\n", 1, ""),
            ("[file]\ncolour = 1\n", 2, "colour"),
            ("[file]\nallow_private = []\n", 2, "allow_private"),
            ("[file]\n[file.x]\n", 2, "x"),
            ("file = 1\n", 1, "table"),
            ("\n\nautonomie = \"strict\"\n", 3, "autonomie"),
            ("[net]\nallow_private = \"localhost\"\n", 2, "list"),
            ("[net]\nallow_private = [\n  \"localhost\",\n  7,\n]\n", 4, "list"),
            ("[net]\nallow_private = [\n  \"localhost\",\n  \"127.1\",\n]\n", 4, "number"),
            ("[net]\nallow_private = [\"localhost:80\"]\n", 2, "port"),
            ("[net]\nallow_private = [\"*\"]\n", 2, "character"),
            ("[file]\nruling = \"deny\"\n[file]\nruling = \"deny\"\n", 3, ""),
            ("[\"fi\\u202ele\"]\n", 1, "\\u{202e}"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.starts_with(&format!("policy.toml:{line}: ")) && error.contains(word), "{text:?}: {error}");
        }
        let error = parse(b"\n\xff", "policy.toml").expect_err("not text").to_string();
        assert_eq!(error, "policy.toml:2: this is not UTF-8");
    }

    #[test]
    fn one_line_tables_and_dotted_keys_are_the_same() {
        for text in ["file = { ruling = \"deny\" }", "file.ruling = \"deny\"", "[file]\nruling = \"deny\""] {
            assert_eq!(read(text).expect(text).policy.rule(Kind::File, false), Ruling::Deny);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fall(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _any_answer = parse(&bytes, "policy.toml");
        }

        #[test]
        fn no_settings_allow_what_the_table_asks_about(
            settings in proptest::collection::vec(
                proptest::sample::select(vec![
                    "[file]", "[net]", "[memory]", "ruling = \"allow\"", "ruling = \"ask\"", "ruling = \"deny\"",
                    "ceiling = \"always\"", "ceiling = \"never\"", "autonomy = \"guarded\"", "file.ruling = \"ask\"",
                ]),
                0..7,
            )
        ) {
            if let Ok(read) = read(&settings.join("\n")) {
                for (kind, unattended) in [(Kind::Net, false), (Kind::File, false), (Kind::File, true), (Kind::Memory, true)] {
                    prop_assert_ne!(read.policy.rule(kind, unattended), Ruling::Allow);
                }
            }
        }
    }
}
