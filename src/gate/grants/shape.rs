//! The bytes of `grants.json`: an array of objects with `kind` and `target`, and nothing else.
//!
//! Promise: one entry that is no grant, one field too many or too few, one written twice, and there are no grants at all.
//! What [`write`] makes is sorted by kind and target, an entry a line, and [`parse`] takes it.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};

use crate::gate::pattern::{Grant, GrantError};
use crate::gate::wire::GrantInfo;
use crate::text::{escaped, harmless_json};

/// The most bytes that are read or written: some hundred thousand grants.
pub const MAX_BYTES: u64 = 16 << 20;

/// How much of a parser's words is passed on; it repeats what it found.
const MAX_WORDS: usize = 160;

/// Why bytes are no grants.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// They are no array of such objects; the text names line and column, and is escaped.
    #[error("{0}")]
    Json(String),
    /// An entry is one in form, and grants nothing that can be granted.
    #[error("entry {number}: {source}")]
    Entry {
        /// Which; the first is 1.
        number: usize,
        /// Why.
        source: GrantError,
    },
}

/// An object with exactly `kind` and `target`. What serde derives would take an array of two as well.
struct Entry(GrantInfo);

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Entry;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object with `kind` and `target`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry, A::Error> {
                let (mut kind, mut target) = (None, None);
                while let Some(name) = map.next_key::<String>()? {
                    let (field, shown) = match name.as_str() {
                        "kind" => (&mut kind, "kind"),
                        "target" => (&mut target, "target"),
                        _ => return Err(A::Error::custom(format!("an entry has no field `{name}`"))),
                    };
                    if field.replace(map.next_value::<String>()?).is_some() {
                        return Err(A::Error::duplicate_field(shown));
                    }
                }
                Ok(Entry(GrantInfo {
                    kind: kind.ok_or_else(|| A::Error::missing_field("kind"))?,
                    target: target.ok_or_else(|| A::Error::missing_field("target"))?,
                }))
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

/// Takes the bytes of the file.
pub(super) fn parse(bytes: &[u8]) -> Result<BTreeSet<Grant>, ShapeError> {
    let entries: Vec<Entry> = serde_json::from_slice(bytes).map_err(|error| {
        let words: String = error.to_string().chars().take(MAX_WORDS).collect();
        ShapeError::Json(escaped(words.as_bytes()))
    })?;
    let grant = |(index, Entry(entry)): (usize, Entry)| {
        Grant::parse(&entry.kind, &entry.target).map_err(|source| ShapeError::Entry { number: index + 1, source })
    };
    entries.into_iter().enumerate().map(grant).collect()
}

/// A grant as the file spells it.
pub(super) fn entry(grant: &Grant) -> GrantInfo {
    GrantInfo { kind: grant.kind().name().to_owned(), target: grant.target() }
}

/// Makes the bytes of the file.
pub(super) fn write(grants: &BTreeSet<Grant>) -> Vec<u8> {
    let mut entries: Vec<GrantInfo> = grants.iter().map(entry).collect();
    entries.sort_unstable();
    let lines: Vec<String> = entries
        .iter()
        .map(|entry| harmless_json(serde_json::to_string(entry).expect("two strings are JSON")))
        .map(|line| format!("\n  {line}"))
        .collect();
    let end = if lines.is_empty() { "]\n" } else { "\n]\n" };
    format!("[{}{end}", lines.join(",")).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(grants: &[(&str, &str)]) -> BTreeSet<Grant> {
        grants.iter().map(|(kind, target)| Grant::parse(kind, target).expect(target)).collect()
    }

    #[test]
    fn the_file_is_sorted_and_has_a_line_for_each() {
        let grants = set(&[("net", "*.example.com"), ("file", "zeta.txt"), ("file", "notes/*"), ("file", "alpha.txt")]);
        let text = r#"[
  {"kind":"file","target":"alpha.txt"},
  {"kind":"file","target":"notes/*"},
  {"kind":"file","target":"zeta.txt"},
  {"kind":"net","target":"*.example.com"}
]
"#;
        assert_eq!(String::from_utf8(write(&grants)).expect("is text"), text);
        assert_eq!(parse(text.as_bytes()), Ok(grants));
        assert_eq!((write(&set(&[])).as_slice(), parse(b"[]")), (&b"[]\n"[..], Ok(set(&[]))));
    }

    #[test]
    fn the_same_entry_twice_is_one_and_any_order_and_spacing_is_taken() {
        let text =
            br#" [ {"target" : "b", "kind":"file"},{"kind":"file","target":"a"},{"kind":"file","target":"a"} ] "#;
        assert_eq!(parse(text), Ok(set(&[("file", "a"), ("file", "b")])));
    }

    #[test]
    fn anything_else_is_nothing_at_all() {
        for text in [
            "",
            "{",
            "null",
            "[",
            r#"[{"kind":"file","target":"a"}"#,
            r#"[{"kind":"file","target":"a"}] x"#,
            r#"[{"kind":"file","target":"a"}][]"#,
            r#"[{"kind":"file","target":"a"},]"#,
            r#"[{"kind":"file","target":"a"}, 7]"#,
            r#"[{"kind":"file","target":"a"}, null]"#,
            r#"[["file","a"]]"#,
            r#"{"kind":"file","target":"a"}"#,
            r#"[{"kind":"file","target":"a","note":"x"}]"#,
            r#"[{"kind":"file","kind":"net","target":"a"}]"#,
            r#"[{"kind":"file","target":"a","target":"a"}]"#,
            r#"[{"kind":"file"}]"#,
            r#"[{"target":"a"}]"#,
            r#"[{"kind":"file","target":["a"]}]"#,
            r#"[{"kind":"file","target":7}]"#,
            r#"[{"Kind":"file","target":"a"}]"#,
            r#"[{"kind":"files","target":"a"}]"#,
            r#"[{"kind":"*","target":"a"}]"#,
            r#"[{"kind":"file","target":"*"}]"#,
            r#"[{"kind":"file","target":"**/a"}]"#,
            r#"[{"kind":"file","target":"../a"}]"#,
            r#"[{"kind":"net","target":"api.*.test"}]"#,
            "\u{feff}[]",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(parse(b"[{\"kind\":\"file\",\"target\":\"\xff\"}]").is_err());
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
    }

    #[test]
    fn an_error_says_where_draws_nothing_and_is_short() {
        let error = parse(b"[\n  {\"kind\": \"file\", \"target\": \"a\", \"\\u001b[2J\": 1}]").expect_err("refused");
        let text = error.to_string();
        assert!(text.contains("line 2") && !text.chars().any(crate::text::is_hidden), "{text}");
        let error = parse(br#"[{"kind":"file","target":"a"},{"kind":"file","target":"*"}]"#).expect_err("refused");
        assert!(error.to_string().starts_with("entry 2: "), "{error}");
        let long = format!("[{{\"kind\":\"file\",\"{}\":1}}]", "x".repeat(10_000));
        assert!(parse(long.as_bytes()).expect_err("refused").to_string().len() < 1000);
    }

    fn grants() -> impl Strategy<Value = BTreeSet<Grant>> {
        let segment = proptest::sample::select(vec!["a", "b c", "é", "\"", "notes", "'{}'", "c.md"]);
        let path = proptest::collection::vec(segment, 1..4).prop_map(|segments| segments.join("/"));
        let grant = (path, any::<bool>(), any::<bool>()).prop_filter_map("a grant", |(path, children, memory)| {
            let target = if children { format!("{path}/*") } else { path };
            Grant::parse(if memory { "memory" } else { "file" }, &target).ok()
        });
        proptest::collection::btree_set(grant, 0..20)
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_and_nothing_less_of_it(grants in grants(), cut in any::<prop::sample::Index>()) {
            let bytes = write(&grants);
            prop_assert_eq!(parse(&bytes), Ok(grants));
            // All but the newline at the end.
            let part = &bytes[..cut.index(bytes.len() - 1)];
            prop_assert!(parse(part).is_err());
        }

        #[test]
        fn no_bytes_make_it_fall(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _any_answer = parse(&bytes);
        }
    }
}
