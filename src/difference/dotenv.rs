//! `KEY=value` files, as dotenv libraries read them.
//!
//! Promise: where readers disagree (quotes, continued lines), as much as possible counts as value and not as key: a key
//! certificate inside quotes has lines that look like keys. Lines that are nothing known are counted, never shown.

use std::collections::HashMap;

use super::tree::{self, Changes, Entry, Node, Sign};

/// The changed keys, and how many other lines changed.
pub(super) fn changes(before: &[u8], after: &[u8]) -> Changes {
    let (before, after) = (parse(before), parse(after));
    let mut changes = tree::changes(&Node::Map(before.keys), &Node::Map(after.keys));
    let others = differing(&before.others, &after.others);
    if others > 0 {
        let path = format!("{others} other line{}", if others == 1 { "" } else { "s" });
        changes.add(|| Entry { sign: Sign::Changed, path, note: None, matters: false });
    }
    changes
}

struct Parsed<'a> {
    keys: Vec<(String, Node)>,
    others: Vec<&'a [u8]>,
}

fn parse(bytes: &[u8]) -> Parsed<'_> {
    let mut parsed = Parsed { keys: Vec::new(), others: Vec::new() };
    let mut rest = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    while !rest.is_empty() {
        let line = rest.trim_ascii_start();
        let end = line_end(line);
        if end == 0 || line[0] == b'#' {
            rest = &line[end..];
            continue;
        }
        let Some((key, after)) = key(line) else {
            parsed.others.push(line[..end].trim_ascii_end());
            rest = &line[end..];
            continue;
        };
        let (value, left) = value(after);
        // The last line of base64 looks like a key without a value, or with `=` for one.
        let shouting = key.bytes().all(|byte| !byte.is_ascii_lowercase());
        if matches!(value.trim_ascii(), b"" | b"=") && !shouting {
            parsed.others.push(line[..end].trim_ascii_end());
        } else {
            parsed.keys.push((key, Node::Value("text", value.to_vec())));
        }
        rest = left;
    }
    parsed
}

/// The key of a line and what comes after its `=`.
fn key(line: &[u8]) -> Option<(String, &[u8])> {
    let line = line.strip_prefix(b"export ").map_or(line, |after| after.trim_ascii_start());
    let length = line.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(byte)).count();
    let (key, after) = line.split_at(length);
    if !key.first().is_some_and(|&byte| byte.is_ascii_alphabetic() || byte == b'_') {
        return None;
    }
    let blanks = after.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    Some((String::from_utf8_lossy(key).into_owned(), after[blanks..].strip_prefix(b"=")?))
}

/// The value at the start of `bytes`, quotes and all, and what comes after its line.
fn value(bytes: &[u8]) -> (&[u8], &[u8]) {
    let blanks = bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let mut end = blanks;
    if let Some(&quote @ (b'"' | b'\'' | b'`')) = bytes.get(blanks) {
        // Three quotes in a row open a text that only three close, for some readers; for the others it is empty.
        let triple = [quote; 3];
        let close = if bytes[blanks..].starts_with(&triple) { &triple[..] } else { &triple[..1] };
        end += close.len();
        while end < bytes.len() && !bytes[end..].starts_with(close) {
            end += if bytes[end] == b'\\' && quote == b'"' { 2 } else { 1 };
        }
        end = (end + close.len()).min(bytes.len());
    }
    loop {
        end += line_end(&bytes[end..]);
        // A line that ends with a backslash goes on, for those who read it as a shell does.
        let continued = bytes[..end].trim_ascii_end().ends_with(b"\\");
        if !continued || end == bytes.len() {
            return bytes.split_at(end);
        }
        end += 1;
    }
}

fn line_end(bytes: &[u8]) -> usize {
    bytes.iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len())
}

/// How many lines one side has and the other has not; the larger number of the two sides.
fn differing(before: &[&[u8]], after: &[&[u8]]) -> usize {
    let mut balance: HashMap<&[u8], isize> = HashMap::new();
    before.iter().for_each(|line| *balance.entry(line).or_default() -= 1);
    after.iter().for_each(|line| *balance.entry(line).or_default() += 1);
    let total = |sign: isize| -> usize { balance.values().map(|count| (count * sign).max(0).unsigned_abs()).sum() };
    total(1).max(total(-1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(before: &str, after: &str) -> Vec<String> {
        changes(before.as_bytes(), after.as_bytes()).entries.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn keys_are_told_and_values_are_not() {
        let before = "A=one\n# note\nexport B = two\nC=three\n";
        assert_eq!(told(before, "A=one\nexport B=changed\nD='four'\n"), ["~ B", "+ D", "- C"]);
        assert_eq!(told("A=1\r\nB=2\r\n", "A=1\r\nB=3\r\n"), ["~ B"]);
    }

    #[test]
    fn lines_inside_quotes_are_values() {
        let key = "KEY=\"-----BEGIN\nSECRET=inside\nMIIEow==\n-----END\"\n";
        assert_eq!(told("", key), ["+ KEY"]);
        assert_eq!(told(key, &key.replace("inside", "other")), ["~ KEY"]);
        assert_eq!(told("", "KEY=\"with \\\" quote\nSECRET=inside\"\nB=1\n"), ["+ KEY", "+ B"]);
        assert_eq!(told("", "KEY=\"\"\"x\nSECRET = \"inside\"\n\"\"\"\nB=1"), ["+ KEY", "+ B"]);
        assert_eq!(told("", "KEY='never closed\nSECRET=inside\n"), ["+ KEY"]);
        assert_eq!(told("", "KEY=goes on \\\nSECRET=inside\nB=1"), ["+ KEY", "+ B"]);
    }

    #[test]
    fn other_lines_are_only_counted() {
        assert_eq!(told("", "just a secret\n"), ["~ 1 other line"]);
        assert_eq!(told("x4Tz9Q==\n", "y4Tz9Q==\nMIIEowIB\n+/=\n"), ["~ 3 other lines"]);
        assert_eq!(told("debug=\n", "debug=\nDEBUG=\n"), ["+ DEBUG"]);
    }
}
