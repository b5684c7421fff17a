//! The cage: which tools a caller has at all, settled once from a manifest.
//!
//! Promise: a tool that the manifest does not name is not in the cage, and a manifest with anything doubled, unknown or of a
//! wrong type is refused whole, with its line and column. No later rule, grant or answer adds a tool.
//! Limit: a manifest may name a tool of the table that this version does not serve yet; [`Cage::absent`] tells of it.

mod json;

use std::collections::BTreeSet;

use self::json::{Member, Node, Place, Value};
use super::tools::Tool;
use crate::text::escaped;

/// The longest manifest.
pub const MAX_MANIFEST: usize = 64 << 10;

/// What `uses` holds for every tool of the table.
const EVERY: &str = "*";

/// Why a manifest was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{place}: {problem}")]
pub struct ManifestError {
    /// The file, as it is shown.
    file: String,
    /// Where the problem begins: line and column, both from 1.
    place: Place,
    /// What is wrong.
    problem: Problem,
}

/// What is wrong with a manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// It is longer than any has to be.
    #[error("a manifest has at most {MAX_MANIFEST} bytes")]
    TooLong,
    /// It is no text.
    #[error("the manifest is not UTF-8")]
    NoText,
    /// It is no JSON.
    #[error("{0}")]
    NoJson(&'static str),
    /// Something has another type.
    #[error("{what} has to be {wanted}, and is {found}")]
    Type {
        /// What.
        what: &'static str,
        /// What it should be.
        wanted: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// A field that manifests do not have.
    #[error("unknown field `{0}`; a manifest has `name` and `uses`")]
    UnknownField(String),
    /// A field stands there twice.
    #[error("the field `{0}` is there twice")]
    DoubledField(String),
    /// A field is not there.
    #[error("the field `{0}` is missing")]
    MissingField(&'static str),
    /// No tool has that name.
    #[error("unknown tool `{0}`; names are exact, and \"*\" alone means every tool")]
    UnknownTool(String),
    /// A tool is named twice.
    #[error("`{0}` is named twice")]
    DoubledTool(String),
    /// `"*"` stands beside tools.
    #[error("\"*\" means every tool and stands alone")]
    NotAlone,
}

/// The tools a caller has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cage {
    name: Option<String>,
    tools: BTreeSet<Tool>,
    /// Whether the tools were named one by one.
    is_named: bool,
}

impl Cage {
    /// Every tool of the table.
    pub fn all() -> Self {
        Self { name: None, tools: Tool::all().collect(), is_named: false }
    }

    /// Reads a manifest; `file` names it in errors.
    pub fn parse(bytes: &[u8], file: &str) -> Result<Self, ManifestError> {
        manifest(bytes).map_err(|(place, problem)| ManifestError { file: file.to_owned(), place, problem })
    }

    /// What the manifest calls it.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Whether the tool is in it.
    pub fn contains(&self, tool: Tool) -> bool {
        self.tools.contains(&tool)
    }

    /// The tools, in the order of the table.
    pub fn tools(&self) -> Vec<Tool> {
        self.tools.iter().copied().collect()
    }

    /// A line for each tool that the manifest asks for by name and nobody serves.
    pub fn absent(&self, is_served: impl Fn(Tool) -> bool) -> Vec<String> {
        let asked_for = self.tools.iter().filter(|_| self.is_named);
        let absent = asked_for.filter(|tool| !is_served(**tool));
        absent.map(|tool| format!("the manifest uses {}, which this version does not serve", tool.name())).collect()
    }
}

type Fault = (Place, Problem);

fn manifest(bytes: &[u8]) -> Result<Cage, Fault> {
    let start = Place { line: 1, column: 1 };
    if bytes.len() > MAX_MANIFEST {
        return Err((start, Problem::TooLong));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| (after(&bytes[..error.valid_up_to()]), Problem::NoText))?;
    let node = json::read(text).map_err(|error| (error.place, Problem::NoJson(error.what)))?;
    let Value::Object(members) = node.value else {
        return Err((node.place, wrong("a manifest", "an object", &node.value)));
    };
    let (mut name, mut uses) = (None, None);
    for Member { place, name: field, node } in members {
        let slot = match field.as_str() {
            "name" => &mut name,
            "uses" => &mut uses,
            _ => return Err((place, Problem::UnknownField(shown(&field)))),
        };
        if slot.replace(node).is_some() {
            return Err((place, Problem::DoubledField(field)));
        }
    }
    let name = match name.ok_or((node.place, Problem::MissingField("name")))? {
        Node { value: Value::Text(name), .. } => name,
        Node { place, value } => return Err((place, wrong("`name`", "a string", &value))),
    };
    let uses = match uses.ok_or((node.place, Problem::MissingField("uses")))? {
        Node { value: Value::Array(uses), .. } => uses,
        Node { place, value } => return Err((place, wrong("`uses`", "an array of names", &value))),
    };
    tools(uses).map(|cage| Cage { name: Some(name), ..cage })
}

fn tools(uses: Vec<Node>) -> Result<Cage, Fault> {
    let mut cage = Cage { name: None, tools: BTreeSet::new(), is_named: true };
    for Node { place, value } in uses {
        let name = match value {
            Value::Text(name) => name,
            other => return Err((place, wrong("an entry of `uses`", "a string", &other))),
        };
        if name == EVERY {
            if !cage.is_named {
                return Err((place, Problem::DoubledTool(name)));
            }
            if !cage.tools.is_empty() {
                return Err((place, Problem::NotAlone));
            }
            cage = Cage::all();
            continue;
        }
        let Some(tool) = Tool::parse(&name) else { return Err((place, Problem::UnknownTool(shown(&name)))) };
        if !cage.is_named {
            return Err((place, Problem::NotAlone));
        }
        if !cage.tools.insert(tool) {
            return Err((place, Problem::DoubledTool(name)));
        }
    }
    Ok(cage)
}

fn wrong(what: &'static str, wanted: &'static str, found: &Value) -> Problem {
    Problem::Type { what, wanted, found: found.kind() }
}

/// A word of the manifest in a message: no line of its own, and no longer than a line.
fn shown(word: &str) -> String {
    let clipped: String = word.chars().take(60).collect();
    escaped(clipped.as_bytes())
}

/// The place after these bytes, which are UTF-8.
fn after(bytes: &[u8]) -> Place {
    let text = String::from_utf8_lossy(bytes);
    let line = text.rsplit('\n').next().unwrap_or_default();
    Place { line: text.matches('\n').count() + 1, column: line.chars().count() + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(manifest: &str) -> Result<Cage, String> {
        Cage::parse(manifest.as_bytes(), "m.json").map_err(|error| error.to_string())
    }

    #[test]
    fn the_cage_holds_what_the_manifest_names_and_nothing_else() {
        let cage = parse(r#"{"name": "m", "uses": ["time_now", "file_read"]}"#).expect("a manifest");
        assert_eq!(cage.tools(), [Tool::FileRead, Tool::TimeNow], "in the order of the table");
        assert!(cage.contains(Tool::FileRead) && !cage.contains(Tool::FileWrite));
        assert_eq!(cage.name(), Some("m"));
        assert_eq!(parse(r#"{"uses": [], "name": ""}"#).expect("a manifest").tools(), []);
        let every = parse(r#"{"name": "m", "uses": ["*"]}"#).expect("a manifest");
        assert_eq!(every.tools(), Cage::all().tools());
        assert!(every.contains(Tool::CodeRun));
    }

    #[test]
    fn a_bad_manifest_is_refused_with_its_place() {
        for (manifest, said) in [
            ("", "m.json:1:1: the end comes too early"),
            ("[\"file_read\"]", "m.json:1:1: a manifest has to be an object, and is an array"),
            (
                "{\"name\": \"m\",\n \"uses\": [\"file_read\"],\n \"allow\": true}",
                "m.json:3:2: unknown field `allow`; a manifest has `name` and `uses`",
            ),
            (
                "{\"name\": \"m\",\n \"uses\": [\"file_read\",\n \"file_raed\"]}",
                "m.json:3:2: unknown tool `file_raed`; names are exact, and \"*\" alone means every tool",
            ),
            ("{\"name\":\"m\",\"uses\":[\"a\nb\"]}", "m.json:1:23: a control character in a string has to be escaped"),
            ("{\"name\":\"m\",\n\"uses\":[\"time_now\",\"time_now\"]}", "m.json:2:20: `time_now` is named twice"),
            ("{\"name\":\"m\",\"uses\":[],\n\"uses\":[]}", "m.json:2:1: the field `uses` is there twice"),
            ("{\"name\":\"m\",\"\\u0075ses\":[],\"uses\":[]}", "m.json:1:28: the field `uses` is there twice"),
            ("{\"uses\":[]}", "m.json:1:1: the field `name` is missing"),
            ("{\"name\":\"m\"}", "m.json:1:1: the field `uses` is missing"),
            ("{\"name\":7,\"uses\":[]}", "m.json:1:9: `name` has to be a string, and is a number"),
            ("{\"name\":\"m\",\"uses\":\"*\"}", "m.json:1:20: `uses` has to be an array of names, and is a string"),
            ("{\"name\":\"m\",\"uses\":[null]}", "m.json:1:21: an entry of `uses` has to be a string, and is null"),
            ("{\"name\":\"m\",\"uses\":[\"*\",\"*\"]}", "m.json:1:25: `*` is named twice"),
            ("{\"name\":\"m\",\"uses\":[\"ping\",\"*\"]}", "m.json:1:28: \"*\" means every tool and stands alone"),
            ("{\"name\":\"m\",\"uses\":[\"*\",\"ping\"]}", "m.json:1:25: \"*\" means every tool and stands alone"),
        ] {
            assert_eq!(parse(manifest), Err(said.to_owned()), "{manifest}");
        }
        for glob in ["file_*", "File_Read", " file_read", "file_read\\n", "FILE_READ", ""] {
            let error = parse(&format!(r#"{{"name":"m","uses":["{glob}"]}}"#)).expect_err(glob);
            assert!(error.contains("1:21: unknown tool"), "{error}");
        }
        let error = Cage::parse(b"{\n\"\xff", "m.json").expect_err("no UTF-8").to_string();
        assert_eq!(error, "m.json:2:2: the manifest is not UTF-8");
        let long = format!("{}{{}}", " ".repeat(MAX_MANIFEST));
        assert_eq!(parse(&long), Err("m.json:1:1: a manifest has at most 65536 bytes".to_owned()));
    }

    #[test]
    fn only_what_was_asked_for_by_name_is_missed() {
        let cage = parse(r#"{"name": "m", "uses": ["ping", "time_now"]}"#).expect("a manifest");
        let absent = cage.absent(|tool| tool != Tool::Ping);
        assert_eq!(absent, ["the manifest uses ping, which this version does not serve"]);
        assert_eq!(Cage::all().absent(|_| false), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn a_manifest_never_gives_more_than_it_names(picked in proptest::sample::subsequence(Tool::all().collect::<Vec<_>>(), 0..8)) {
            let names: Vec<&str> = picked.iter().map(|tool| tool.name()).collect();
            let manifest = serde_json::json!({"name": "m", "uses": names}).to_string();
            prop_assert_eq!(parse(&manifest).expect("a manifest").tools(), picked);
        }

        #[test]
        fn no_bytes_make_it_fall_or_speak_in_two_lines(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Err(error) = Cage::parse(&bytes, "m.json") {
                prop_assert!(!error.to_string().chars().any(crate::text::is_hidden));
            }
        }
    }
}
