//! What makes two calls the same call: a digest over the tool, its arguments and what they were found to change.
//!
//! Promise: the order of an object's keys, and how the client spelt a number or a string, make no difference; everything
//! else does. No value can be built that reads like another one: each part is preceded by its kind and length.

use serde_json::{Map, Value};
use sha2::Digest as _;

use crate::digest::Digest;

/// The digest of a call's tool and arguments, and about how many bytes the arguments take.
pub(super) fn digest(tool: &str, arguments: &Map<String, Value>) -> (Digest, usize) {
    let mut hasher = Hasher { sha: sha2::Sha256::new(), bytes: 0 };
    hasher.text(b's', tool);
    hasher.object(arguments);
    (Digest::from_bytes(hasher.sha.finalize().into()), hasher.bytes)
}

/// The digest of a call with what it was found to change.
pub(super) fn with_state(call: Digest, state: &str) -> Digest {
    let mut hasher = Hasher { sha: sha2::Sha256::new(), bytes: 0 };
    hasher.text(b'c', &call.to_string());
    hasher.text(b's', state);
    Digest::from_bytes(hasher.sha.finalize().into())
}

struct Hasher {
    sha: sha2::Sha256,
    bytes: usize,
}

impl Hasher {
    fn head(&mut self, kind: u8, length: usize) {
        self.sha.update([kind]);
        self.sha.update((length as u64).to_le_bytes());
        self.bytes += size_of::<Value>() + length;
    }

    fn text(&mut self, kind: u8, text: &str) {
        self.head(kind, text.len());
        self.sha.update(text.as_bytes());
    }

    fn object(&mut self, object: &Map<String, Value>) {
        self.head(b'o', object.len());
        let mut fields: Vec<_> = object.iter().collect();
        fields.sort_by_key(|(name, _)| *name);
        for (name, value) in fields {
            self.text(b's', name);
            self.value(value);
        }
    }

    /// Not deeper than the parser went, which stops at 128.
    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.head(b'z', 0),
            Value::Bool(truth) => self.head(if *truth { b't' } else { b'f' }, 0),
            Value::Number(number) => self.text(b'n', &number.to_string()),
            Value::String(text) => self.text(b's', text),
            Value::Array(items) => {
                self.head(b'a', items.len());
                items.iter().for_each(|item| self.value(item));
            }
            Value::Object(object) => self.object(object),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> Digest {
        digest("tool", serde_json::from_str::<Value>(json).expect("JSON").as_object().expect("an object")).0
    }

    #[test]
    fn spelling_makes_no_difference_and_everything_else_does() {
        assert_eq!(of(r#"{"a": 1, "b": "é"}"#), of(r#"{"b":"\u00e9","a":1}"#));
        let different = [
            r#"{}"#,
            r#"{"a":1}"#,
            r#"{"a":"1"}"#,
            r#"{"a":[1]}"#,
            r#"{"a":{"1":null}}"#,
            r#"{"a":null}"#,
            r#"{"a":false}"#,
            r#"{"a":"b","c":"d"}"#,
            r#"{"a":"bscd"}"#,
            r#"{"a":["b","c"]}"#,
            r#"{"a":["bc"]}"#,
        ];
        for (at, one) in different.iter().enumerate() {
            for other in &different[at + 1..] {
                assert_ne!(of(one), of(other), "{one} and {other}");
            }
        }
        let none = Map::new();
        assert_ne!(digest("file_remove", &none).0, digest("file_read", &none).0);
    }

    #[test]
    fn what_is_found_at_the_path_is_part_of_the_call() {
        let call = of("{}");
        assert_eq!(with_state(call, "inode 7"), with_state(call, "inode 7"));
        assert_ne!(with_state(call, "inode 7"), with_state(call, "inode 8"));
        assert_ne!(with_state(call, ""), call);
    }

    #[test]
    fn what_arguments_take_is_about_their_text() {
        let arguments = serde_json::json!({"path": "a", "content": "x".repeat(5000)});
        let (_, bytes) = digest("file_write", arguments.as_object().expect("an object"));
        assert!((5000..6000).contains(&bytes), "{bytes}");
    }
}
