//! A small part of YAML: mappings, lists and texts, each with its place in the file.
//!
//! Promise: what the file says is what a reader sees. Anchors, aliases, tags, directives, merge keys, duplicate keys and
//! second documents are refused where they stand; depth and number of nodes are capped, so that no file takes long.
//! Limit: no numbers or dates; a scalar is its text, and whether it stood in quotes.
//! Source: YAML 1.2.2; the events come from `granit-parser`.

use granit_parser::{Event, Marker, Parser, ScalarStyle};

/// Mappings and lists inside each other.
const MAX_DEPTH: usize = 16;
/// Scalars, mappings and lists in all.
const MAX_NODES: usize = 50_000;

/// A place in the file, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line.
    pub line: usize,
    /// Column, in characters.
    pub column: usize,
}

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {}, column {}: {reason}", .at.line, .at.column)]
pub struct Fault {
    /// Where.
    pub at: Position,
    /// What, for people; hidden characters of the file are escaped.
    pub reason: String,
}

impl Fault {
    /// A fault at this place.
    pub fn new(at: Position, reason: impl Into<String>) -> Self {
        Self { at, reason: reason.into() }
    }
}

/// A value with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Where it begins.
    pub at: Position,
    /// What it is.
    pub value: Value,
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A scalar.
    Text {
        /// Its text.
        text: String,
        /// Whether it stood without quotes.
        plain: bool,
    },
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order of the file.
    Map(Vec<(Key, Node)>),
}

/// A key of a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Where it begins.
    pub at: Position,
    /// Its text.
    pub text: String,
}

impl Node {
    /// What a reader calls such a value.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::Text { text, plain: true } if matches!(text.as_str(), "" | "~" | "null") => "nothing",
            Value::Text { .. } => "a single value",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }
}

/// Collections that are still open.
enum Open {
    List(Position, Vec<Node>),
    Map(Position, Vec<(Key, Node)>, Option<Key>),
}

/// Parses a file; `None` if it holds nothing.
pub fn parse(bytes: &[u8]) -> Result<Option<Node>, Fault> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        Fault::new(end_of(&before), "is not UTF-8 text")
    })?;
    let last = end_of(text);
    let (mut open, mut root, mut documents, mut nodes): (Vec<Open>, _, _, _) = (Vec::new(), None, 0, 0);
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let reason = crate::text::escaped(error.kind().to_string().as_bytes());
            Fault::new(position(error.marker(), last), format!("invalid YAML: {reason}"))
        })?;
        let at = position(&span.start, last);
        refuse(&event, at)?;
        if event.is_node() {
            nodes += 1;
            if nodes > MAX_NODES || open.len() > MAX_DEPTH {
                return Err(Fault::new(at, "the file is nested too deeply or holds too much"));
            }
        }
        let done = match event {
            Event::DocumentStart(..) => {
                documents += 1;
                if documents > 1 {
                    return Err(Fault::new(at, "a second document is not allowed"));
                }
                continue;
            }
            Event::SequenceStart(..) => {
                if matches!(open.last(), Some(Open::Map(_, _, None))) {
                    return Err(Fault::new(at, "a key must be a single text"));
                }
                open.push(Open::List(at, Vec::new()));
                continue;
            }
            Event::MappingStart(..) => {
                if matches!(open.last(), Some(Open::Map(_, _, None))) {
                    return Err(Fault::new(at, "a key must be a single text"));
                }
                open.push(Open::Map(at, Vec::new(), None));
                continue;
            }
            Event::Scalar(text, style, _, _) => {
                let text = text.into_owned();
                if let Some(Open::Map(_, pairs, key @ None)) = open.last_mut() {
                    if pairs.iter().any(|(other, _)| other.text == text) {
                        let shown = crate::text::escaped(text.as_bytes());
                        return Err(Fault::new(at, format!("duplicate key `{shown}`")));
                    }
                    *key = Some(Key { at, text });
                    continue;
                }
                Node { at, value: Value::Text { text, plain: style == ScalarStyle::Plain } }
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(at, items)) => Node { at, value: Value::List(items) },
                Some(Open::Map(at, pairs, _)) => Node { at, value: Value::Map(pairs) },
                None => return Err(Fault::new(at, "invalid YAML: an end without a beginning")),
            },
            _ => continue,
        };
        match open.last_mut() {
            Some(Open::List(_, items)) => items.push(done),
            Some(Open::Map(_, pairs, key)) => {
                let key = key.take().ok_or_else(|| Fault::new(done.at, "invalid YAML: a value without a key"))?;
                pairs.push((key, done));
            }
            None => root = Some(done),
        }
    }
    // A document of comments only is an empty scalar to the parser.
    Ok(root.filter(|node| !matches!(&node.value, Value::Text { plain: true, .. } if node.kind() == "nothing")))
}

/// Refuses what makes a file say more than it shows.
fn refuse(event: &Event<'_>, at: Position) -> Result<(), Fault> {
    if event.is_alias() {
        return Err(Fault::new(at, "aliases (`*name`) are not allowed"));
    }
    if event.anchor_id().is_some() {
        return Err(Fault::new(at, "anchors (`&name`) are not allowed"));
    }
    if event.tag().is_some() {
        return Err(Fault::new(at, "tags (`!name`) are not allowed"));
    }
    match event {
        Event::DocumentStart(_, Some(_)) => Err(Fault::new(at, "directives (`%NAME`) are not allowed")),
        _ => Ok(()),
    }
}

/// The parser counts columns from 0, and may point past the end.
fn position(marker: &Marker, last: Position) -> Position {
    let found = Position { line: marker.line().max(1), column: marker.col() + 1 };
    found.min(last)
}

fn end_of(text: &str) -> Position {
    let line = text.matches('\n').count() + 1;
    let column = text.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    Position { line, column }
}
