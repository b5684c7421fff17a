//! JSON as a tree in which everything has its place, for files a person writes and may get wrong.
//!
//! Promise: exactly what RFC 8259 allows is taken, in UTF-8 and without a byte order mark; a fault is told with the line and
//! column it stands at, both from 1, columns in characters. Names may be doubled here; who reads the tree decides.
//! Limit: at most [`MAX_DEPTH`] levels, and the tree takes a few times the memory of the text: bound that before.
//! Source: RFC 8259, sections 2 to 8.

use std::fmt;

/// The most levels of arrays and objects in one another.
const MAX_DEPTH: usize = 16;

/// Where something begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The character in it.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.line, self.column)
    }
}

/// A value and where it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Where.
    pub place: Place,
    /// What.
    pub value: Value,
}

/// A value; of those that are only ever refused, just what they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// An object: its members as they stand.
    Object(Vec<Member>),
    /// An array.
    Array(Vec<Node>),
    /// A string, its escapes resolved.
    Text(String),
    /// A number.
    Number,
    /// `true`, `false` or `null`.
    Word(&'static str),
}

impl Value {
    /// What it is, with its article.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Object(_) => "an object",
            Self::Array(_) => "an array",
            Self::Text(_) => "a string",
            Self::Number => "a number",
            Self::Word(word) => word,
        }
    }
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Where its name begins.
    pub place: Place,
    /// Its name.
    pub name: String,
    /// Its value.
    pub node: Node,
}

/// Why a text is no JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct JsonError {
    /// Where.
    pub place: Place,
    /// What is wrong.
    pub what: &'static str,
}

/// Reads one value and nothing after it.
pub fn read(text: &str) -> Result<Node, JsonError> {
    let mut reader = Reader { rest: text, place: Place { line: 1, column: 1 } };
    let node = reader.node(0)?;
    reader.space();
    match reader.peek() {
        None => Ok(node),
        Some(_) => reader.fault("something follows the end"),
    }
}

struct Reader<'a> {
    rest: &'a str,
    place: Place,
}

impl Reader<'_> {
    fn fault<T>(&self, what: &'static str) -> Result<T, JsonError> {
        Err(JsonError { place: self.place, what })
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.rest = &self.rest[character.len_utf8()..];
        if character == '\n' {
            self.place = Place { line: self.place.line + 1, column: 1 };
        } else {
            self.place.column += 1;
        }
        Some(character)
    }

    fn takes(&mut self, wanted: char) -> bool {
        let is_there = self.peek() == Some(wanted);
        if is_there {
            self.next();
        }
        is_there
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t' | '\n' | '\r')) {
            self.next();
        }
    }

    fn node(&mut self, depth: usize) -> Result<Node, JsonError> {
        self.space();
        let place = self.place;
        let value = match self.peek() {
            Some('{' | '[') if depth == MAX_DEPTH => return self.fault("too deep"),
            Some('{') => self.object(depth + 1)?,
            Some('[') => self.array(depth + 1)?,
            Some('"') => Value::Text(self.text()?),
            Some('-' | '0'..='9') => self.number()?,
            Some(_) => self.word()?,
            None => return self.fault("the end comes too early"),
        };
        Ok(Node { place, value })
    }

    fn object(&mut self, depth: usize) -> Result<Value, JsonError> {
        self.next();
        let mut members = Vec::new();
        self.space();
        if self.takes('}') {
            return Ok(Value::Object(members));
        }
        loop {
            self.space();
            let place = self.place;
            if self.peek() != Some('"') {
                return self.fault("a name in double quotes is expected");
            }
            let name = self.text()?;
            self.space();
            if !self.takes(':') {
                return self.fault("a colon is expected after a name");
            }
            let node = self.node(depth)?;
            members.push(Member { place, name, node });
            self.space();
            if self.takes('}') {
                return Ok(Value::Object(members));
            }
            if !self.takes(',') {
                return self.fault("a comma or a closing brace is expected");
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, JsonError> {
        self.next();
        let mut nodes = Vec::new();
        self.space();
        if self.takes(']') {
            return Ok(Value::Array(nodes));
        }
        loop {
            nodes.push(self.node(depth)?);
            self.space();
            if self.takes(']') {
                return Ok(Value::Array(nodes));
            }
            if !self.takes(',') {
                return self.fault("a comma or a closing bracket is expected");
            }
        }
    }

    fn text(&mut self) -> Result<String, JsonError> {
        self.next();
        let mut text = String::new();
        loop {
            match self.peek() {
                None => return self.fault("a string has no closing quote"),
                Some('\0'..='\u{1f}') => return self.fault("a control character in a string has to be escaped"),
                Some('"') => {
                    self.next();
                    return Ok(text);
                }
                Some('\\') => text.push(self.escape()?),
                Some(plain) => {
                    self.next();
                    text.push(plain);
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        let place = self.place;
        let fault = |what| Err(JsonError { place, what });
        self.next();
        Ok(match self.next() {
            Some(plain @ ('"' | '\\' | '/')) => plain,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => {
                let first = self.unit(place)?;
                let second = if matches!(first, 0xd800..=0xdbff) && self.rest.starts_with("\\u") {
                    self.next();
                    self.next();
                    Some(self.unit(place)?)
                } else {
                    None
                };
                match char::decode_utf16([first].into_iter().chain(second)).next() {
                    Some(Ok(character)) => character,
                    Some(Err(_)) | None => return fault("half of a pair of surrogates"),
                }
            }
            Some(_) | None => return fault("an unknown escape"),
        })
    }

    fn unit(&mut self, place: Place) -> Result<u16, JsonError> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.next().and_then(|digit| digit.to_digit(16));
            let digit = digit.ok_or(JsonError { place, what: "four hex digits are expected" })?;
            unit = unit << 4 | digit as u16;
        }
        Ok(unit)
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        self.takes('-');
        if !self.takes('0') {
            self.digits()?;
        }
        if self.takes('.') {
            self.digits()?;
        }
        if self.takes('e') || self.takes('E') {
            let _signed = self.takes('+') || self.takes('-');
            self.digits()?;
        }
        Ok(Value::Number)
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        if !matches!(self.peek(), Some('0'..='9')) {
            return self.fault("a digit is expected");
        }
        while matches!(self.peek(), Some('0'..='9')) {
            self.next();
        }
        Ok(())
    }

    fn word(&mut self) -> Result<Value, JsonError> {
        let Some(word) = ["true", "false", "null"].into_iter().find(|word| self.rest.starts_with(word)) else {
            return self.fault("a value is expected");
        };
        for _ in word.chars() {
            self.next();
        }
        Ok(Value::Word(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refused(text: &str) -> String {
        read(text).expect_err(text).to_string()
    }

    #[test]
    fn a_fault_is_told_where_it_stands() {
        assert_eq!(refused(""), "1:1: the end comes too early");
        assert_eq!(refused("{\"a\": 1,\n }"), "2:2: a name in double quotes is expected");
        assert_eq!(refused("[1\n 2]"), "2:2: a comma or a closing bracket is expected");
        assert_eq!(refused("{\"é\" 1}"), "1:6: a colon is expected after a name");
        assert_eq!(refused("[] x"), "1:4: something follows the end");
        assert_eq!(refused("[\"a\\x\"]"), "1:4: an unknown escape");
        assert_eq!(refused("[\"\\ud800\"]"), "1:3: half of a pair of surrogates");
        assert_eq!(refused("\u{feff}[]"), "1:1: a value is expected");
        assert_eq!(refused(&"[".repeat(50)), "1:17: too deep");
    }

    #[test]
    fn strings_are_what_their_escapes_mean() {
        let node = read(r#""\u0041\ud83d\ude00\/\n""#).expect("JSON");
        assert_eq!(node.value, Value::Text("A😀/\n".to_owned()));
    }

    fn plain(node: Node) -> serde_json::Value {
        match node.value {
            Value::Object(members) => members
                .into_iter()
                .map(|member| (member.name, plain(member.node)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            Value::Array(nodes) => nodes.into_iter().map(plain).collect(),
            Value::Text(text) => text.into(),
            Value::Number => 0.into(),
            Value::Word(word) => serde_json::from_str(word).expect("a word of JSON"),
        }
    }

    fn without_numbers(value: serde_json::Value) -> serde_json::Value {
        match value {
            serde_json::Value::Number(_) => 0.into(),
            serde_json::Value::Array(values) => values.into_iter().map(without_numbers).collect(),
            serde_json::Value::Object(members) => members
                .into_iter()
                .map(|(name, value)| (name, without_numbers(value)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            other => other,
        }
    }

    proptest! {
        #[test]
        fn it_takes_and_reads_what_another_reader_does(text in "([\\[\\]{}:, 0-9.eE+\n-]|\"[\\\\u0dn/\"é]{0,8}\"?|true|null|false|\"a\"){0,12}") {
            match (read(&text), serde_json::from_str::<serde_json::Value>(&text)) {
                (Ok(node), Ok(value)) => prop_assert_eq!(plain(node), without_numbers(value)),
                (Err(_), Err(_)) => {}
                // It keeps numbers, and some are too large for it.
                (Ok(_), Err(error)) => prop_assert!(error.to_string().contains("out of range"), "{text:?}: {error}"),
                (Err(error), Ok(_)) => prop_assert!(false, "{text:?}: {error}"),
            }
        }

        #[test]
        fn whatever_can_be_written_is_read(name in any::<String>(), texts in proptest::collection::vec(any::<String>(), 0..4)) {
            let value = serde_json::json!({ name: texts });
            for text in [value.to_string(), serde_json::to_string_pretty(&value).expect("writes")] {
                prop_assert_eq!(plain(read(&text).expect("JSON")), value.clone());
            }
        }
    }
}
