//! The text of a profile.
//!
//! Promise: a path is one string literal, whatever is in it. Quote and backslash are escaped, as are bytes that are no
//! UTF-8 and control characters, by `\xHH`; all else stands as it is: letters beyond ASCII are read as their bytes.
//! Source: the reader of strings in TinyScheme, by which the language is read: it knows `\"`, `\\`, `\n`, `\t`, `\r` and
//! two hexadecimal digits after `\x`, and no `\u`.

use super::{Clause, Effect, Filter, Profile};

/// The text of a profile.
pub(super) fn of(profile: &Profile) -> Vec<u8> {
    let mut text = b"(version 1)\n".to_vec();
    open(&mut text, name(profile.default));
    text.extend_from_slice(b" default)\n");
    for clause in &profile.clauses {
        push_clause(&mut text, clause);
        text.push(b'\n');
    }
    text
}

fn name(effect: Effect) -> &'static str {
    match effect {
        Effect::Allow => "allow",
        Effect::Deny => "deny",
    }
}

fn open(text: &mut Vec<u8>, word: &str) {
    text.push(b'(');
    text.extend_from_slice(word.as_bytes());
}

fn push_clause(text: &mut Vec<u8>, clause: &Clause) {
    open(text, name(clause.effect));
    for operation in &clause.operations {
        text.push(b' ');
        text.extend_from_slice(operation.name().as_bytes());
    }
    if let Some(filter) = &clause.filter {
        text.push(b' ');
        push_filter(text, filter);
    }
    text.push(b')');
}

fn push_filter(text: &mut Vec<u8>, filter: &Filter) {
    match filter {
        Filter::Exactly(path) => push_quoted(text, "literal", path.as_bytes()),
        Filter::Below(path) => push_quoted(text, "subpath", path.as_bytes()),
        Filter::Value(value) => push_quoted(text, "sysctl-name", value.as_bytes()),
        Filter::OfType(object) => {
            open(text, "vnode-type ");
            text.extend_from_slice(object.name().as_bytes());
        }
        Filter::Itself => open(text, "target self"),
        Filter::Commands(numbers) => {
            open(text, "fcntl-command");
            numbers.iter().for_each(|number| text.extend_from_slice(format!(" {number}").as_bytes()));
        }
        Filter::All(filters) => push_filters(text, "require-all", filters),
        Filter::Any(filters) => push_filters(text, "require-any", filters),
    }
    text.push(b')');
}

fn push_filters(text: &mut Vec<u8>, word: &str, filters: &[Filter]) {
    open(text, word);
    for filter in filters {
        text.push(b' ');
        push_filter(text, filter);
    }
}

fn push_quoted(text: &mut Vec<u8>, word: &str, bytes: &[u8]) {
    open(text, word);
    text.extend_from_slice(b" \"");
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            let mut room = [0; 4];
            let encoded = letter.encode_utf8(&mut room).as_bytes();
            match letter {
                '"' | '\\' => text.extend_from_slice(&[b'\\', encoded[0]]),
                _ if letter.is_control() => encoded.iter().for_each(|&byte| push_escaped(text, byte)),
                _ => text.extend_from_slice(encoded),
            }
        }
        chunk.invalid().iter().for_each(|&byte| push_escaped(text, byte));
    }
    text.push(b'"');
}

fn push_escaped(text: &mut Vec<u8>, byte: u8) {
    text.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
}
