//! Names and texts made safe to show, and paths made safe to store.
//!
//! Promise: nothing that [`escaped`] returns can move a cursor, hide itself, change direction or start a new line; what
//! [`encode`] returns decodes to the very bytes it was made from.

use std::fmt::Write as _;

/// Whether a character must not reach a terminal as it is: controls, and everything that shows nothing or reorders text.
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// The bytes as text in which control, bidirectional and invisible characters, and bytes that are not UTF-8, are escaped.
pub fn escaped(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\n' => shown.push_str("\\n"),
                '\r' => shown.push_str("\\r"),
                '\t' => shown.push_str("\\t"),
                hidden if is_hidden(hidden) => {
                    let code = u32::from(hidden);
                    let written =
                        if code < 0x80 { write!(shown, "\\x{code:02x}") } else { write!(shown, "\\u{{{code:x}}}") };
                    written.expect("a String takes everything");
                }
                plain => shown.push(plain),
            }
        }
        for byte in chunk.invalid() {
            write!(shown, "\\x{byte:02x}").expect("a String takes everything");
        }
    }
    shown
}

/// Bytes as a string for the journal: UTF-8 as it is, `\` doubled, every other byte as `\xNN`. See [`decode`].
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character == '\\' {
                text.push('\\');
            }
            text.push(character);
        }
        for byte in chunk.invalid() {
            write!(text, "\\x{byte:02x}").expect("a String takes everything");
        }
    }
    text
}

/// The bytes [`encode`] was given; `None` for a text it never makes.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('\\') {
            bytes.push(b'\\');
            rest = after;
        } else {
            let digits = rest.strip_prefix('x')?.get(..2)?;
            if !digits.bytes().all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit)) {
                return None;
            }
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &rest[3..];
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    Some(bytes)
}

/// One JSON value on one line, with every hidden character in strings as `\uXXXX`: lossless, and harmless on a terminal.
pub fn json_line(value: &serde_json::Value) -> String {
    harmless_json(value.to_string())
}

/// Compact JSON with every hidden character in strings as `\uXXXX`.
pub fn harmless_json(plain: String) -> String {
    // JSON has no control character below this one unescaped, and every other hidden one is longer than a byte.
    if !plain.bytes().any(|byte| byte >= 0x7f) || !plain.chars().any(is_hidden) {
        return plain;
    }
    // Hidden characters can only stand inside strings: outside of them compact JSON is ASCII punctuation and digits.
    let mut line = String::with_capacity(plain.len() + 16);
    for character in plain.chars() {
        if is_hidden(character) {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                write!(line, "\\u{unit:04x}").expect("a String takes everything");
            }
        } else {
            line.push(character);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_cannot_draw() {
        assert_eq!(escaped(b"plain name.env"), "plain name.env");
        assert_eq!(escaped(b"\x1b]0;t\x07\r\n"), "\\x1b]0;t\\x07\\r\\n");
        assert_eq!(escaped("a\u{202e}b\u{200b}".as_bytes()), "a\\u{202e}b\\u{200b}");
        assert_eq!(escaped(b"caf\xe9\x9b7m"), "caf\\xe9\\x9b7m");
        assert_eq!(escaped("é 日本".as_bytes()), "é 日本");
    }

    #[test]
    fn hidden_characters_in_json_are_escaped_and_lossless() {
        let value = serde_json::json!({"path": "a\u{202e}\u{7f}\u{e0041}é\u{1b}"});
        let line = json_line(&value);
        assert!(!line.chars().any(is_hidden), "{line}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&line).expect("JSON"), value);
    }

    proptest! {
        #[test]
        fn encoding_is_lossless(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }

        #[test]
        fn nothing_hidden_survives_escaping(text in "\\PC*|[\\x00-\\u{2100}]*") {
            prop_assert!(!escaped(text.as_bytes()).chars().any(is_hidden));
        }
    }
}
