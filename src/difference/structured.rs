//! JSON, YAML and TOML as a [`Node`]; `None` for what is none of it, or too deep.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_saphyr::DuplicateKeyPolicy;
use toml_edit::{Item, Value};

use super::MOST_BYTES;
use super::tree::{MOST_DEPTH, Node};

/// JSON; with comments and trailing commas if it is none without them, as editors allow in their settings.
pub(super) fn json(bytes: &[u8]) -> Option<Node> {
    if bytes.trim_ascii().is_empty() {
        return Some(Node::Map(Vec::new()));
    }
    strict_json(bytes).or_else(|| strict_json(&without_comments(bytes)))
}

fn strict_json(bytes: &[u8]) -> Option<Node> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let node = Depth(0).deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some(node)
}

/// Comments become blanks, and so do commas before a closing bracket.
fn without_comments(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(&byte) = rest.first() {
        let comment = rest.starts_with(b"//") || rest.starts_with(b"/*");
        let length = match byte {
            b'"' => {
                let mut end = 1;
                while end < rest.len() && rest[end] != b'"' {
                    end += if rest[end] == b'\\' { 2 } else { 1 };
                }
                let end = (end + 1).min(rest.len());
                plain.extend_from_slice(&rest[..end]);
                end
            }
            b'/' if rest.starts_with(b"//") => rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len()),
            b'/' if rest.starts_with(b"/*") => {
                rest.windows(2).skip(2).position(|pair| pair == b"*/").map_or(rest.len(), |at| at + 4)
            }
            closing => {
                if matches!(closing, b']' | b'}') {
                    let last = plain.iter().rposition(|byte: &u8| !byte.is_ascii_whitespace());
                    if let Some(comma) = last.filter(|&last| plain[last] == b',') {
                        plain[comma] = b' ';
                    }
                }
                plain.push(closing);
                1
            }
        };
        if comment {
            plain.push(b' ');
        }
        rest = &rest[length..];
    }
    plain
}

/// YAML, one document.
pub(super) fn yaml(bytes: &[u8]) -> Option<Node> {
    let text = std::str::from_utf8(bytes).ok()?;
    if text.trim().is_empty() {
        return Some(Node::Map(Vec::new()));
    }
    // Both of a pair of equal keys are wanted; aliases may repeat no more than a document without them could hold.
    let mut options = serde_saphyr::Options::default();
    options.duplicate_keys = DuplicateKeyPolicy::PassThrough;
    // `on:` of a workflow is the text it is for GitHub, no truth value.
    options.strict_booleans = true;
    options.alias_limits.max_total_replayed_events = MOST_BYTES;
    serde_saphyr::with_deserializer_from_str_with_options(text, options, |reader| Depth(0).deserialize(reader)).ok()
}

/// TOML.
pub(super) fn toml(bytes: &[u8]) -> Option<Node> {
    let document: toml_edit::Document<String> =
        toml_edit::Document::parse(std::str::from_utf8(bytes).ok()?.to_owned()).ok()?;
    toml_item(document.as_item(), 0)
}

fn toml_item(item: &Item, depth: usize) -> Option<Node> {
    if depth > MOST_DEPTH {
        return None;
    }
    Some(match item {
        Item::None => Node::Map(Vec::new()),
        Item::Value(value) => toml_value(value, depth)?,
        Item::Table(table) => {
            let entries = table.iter().map(|(key, item)| Some((key.to_owned(), toml_item(item, depth + 1)?)));
            Node::Map(entries.collect::<Option<_>>()?)
        }
        Item::ArrayOfTables(tables) => {
            let mut list = Vec::new();
            for table in tables {
                let entries = table.iter().map(|(key, item)| Some((key.to_owned(), toml_item(item, depth + 2)?)));
                list.push(Node::Map(entries.collect::<Option<_>>()?));
            }
            Node::List(list)
        }
    })
}

fn toml_value(value: &Value, depth: usize) -> Option<Node> {
    if depth > MOST_DEPTH {
        return None;
    }
    Some(match value {
        Value::String(text) => Node::Value("text", text.value().clone().into_bytes()),
        Value::Integer(number) => Node::Value("number", number.value().to_string().into_bytes()),
        Value::Float(number) => Node::Value("number", number.value().to_string().into_bytes()),
        Value::Boolean(truth) => Node::Value("bool", truth.value().to_string().into_bytes()),
        Value::Datetime(time) => Node::Value("time", time.value().to_string().into_bytes()),
        Value::Array(array) => {
            Node::List(array.iter().map(|value| toml_value(value, depth + 1)).collect::<Option<_>>()?)
        }
        Value::InlineTable(table) => {
            let entries = table.iter().map(|(key, value)| Some((key.to_owned(), toml_value(value, depth + 1)?)));
            Node::Map(entries.collect::<Option<_>>()?)
        }
    })
}

/// Reads a node that lies that deep.
#[derive(Clone, Copy)]
struct Depth(usize);

impl<'de> DeserializeSeed<'de> for Depth {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Node, D::Error> {
        if self.0 > MOST_DEPTH {
            return Err(D::Error::custom("too deep"));
        }
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Depth {
    type Value = Node;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a document")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Value("null", Vec::new()))
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Value("null", Vec::new()))
    }

    fn visit_some<D: Deserializer<'de>>(self, reader: D) -> Result<Node, D::Error> {
        reader.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Value("bool", value.to_string().into_bytes()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Value("number", value.to_string().into_bytes()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Value("number", value.to_string().into_bytes()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Node, E> {
        Ok(Node::Value("number", value.to_string().into_bytes()))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Node, E> {
        Ok(Node::Value("number", value.to_string().into_bytes()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Value("number", value.to_string().into_bytes()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Value("text", value.as_bytes().to_vec()))
    }

    fn visit_bytes<E>(self, value: &[u8]) -> Result<Node, E> {
        Ok(Node::Value("bytes", value.to_vec()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Depth(self.0 + 1))? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = entries.next_key_seed(Depth(self.0 + 1))? {
            let key = match key {
                Node::Value(_, text) => String::from_utf8_lossy(&text).into_owned(),
                Node::List(_) | Node::Map(_) => "(a key that is not a text)".to_owned(),
            };
            map.push((key, entries.next_value_seed(Depth(self.0 + 1))?));
        }
        Ok(Node::Map(map))
    }
}
