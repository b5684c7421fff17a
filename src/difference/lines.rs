//! How many lines came and went; nothing of what is in them.

use std::collections::HashMap;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Up to so many lines, after equal ones at both ends are taken away, moves are told from changes. That can take the
/// square of the number; beyond it, lines are only counted by what they hold, in which a moved line has not changed.
const MOST_COMPARED: usize = 2000;

/// `+3 -1 lines`, or the sizes if either side is binary; what a file that is gone had, and whether a new one is empty.
pub(super) fn counted(before: Option<&[u8]>, after: Option<&[u8]>) -> String {
    match (before, after) {
        (Some(b""), None) => return "it was empty".to_owned(),
        (None, Some(b"")) => return "it is empty".to_owned(),
        (Some(gone), None) if is_binary(gone) => return format!("all gone: {}, binary", plural(gone.len(), "byte")),
        (Some(gone), None) => return format!("all gone: {}", plural(split(gone).len(), "line")),
        _ => {}
    }
    if [before, after].into_iter().flatten().any(is_binary) {
        let size = |side: Option<&[u8]>| side.map_or_else(|| "nothing".to_owned(), |bytes| bytes.len().to_string());
        return format!("binary, {} -> {} bytes", size(before), size(after));
    }
    let (before, after) = (split(before.unwrap_or_default()), split(after.unwrap_or_default()));
    match count(&before, &after) {
        (0, 0) => "the order of lines changed".to_owned(),
        (added, removed) => format!("+{added} -{removed} lines"),
    }
}

fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn is_binary(bytes: &[u8]) -> bool {
    bytes.contains(&0) || std::str::from_utf8(bytes).is_err()
}

fn split(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|&byte| byte == b'\n').collect()
}

/// Lines added and removed.
fn count(before: &[&[u8]], after: &[&[u8]]) -> (usize, usize) {
    let head = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    let (before, after) = (&before[head..], &after[head..]);
    let tail = before.iter().rev().zip(after.iter().rev()).take_while(|(one, other)| one == other).count();
    let (before, after) = (&before[..before.len() - tail], &after[..after.len() - tail]);
    if before.len() + after.len() > MOST_COMPARED {
        return count_by_content(before, after);
    }
    let mut counts = (0, 0);
    for change in capture_diff_slices(Algorithm::Myers, before, after) {
        match change {
            DiffOp::Equal { .. } => {}
            DiffOp::Insert { new_len, .. } => counts.0 += new_len,
            DiffOp::Delete { old_len, .. } => counts.1 += old_len,
            DiffOp::Replace { old_len, new_len, .. } => {
                counts.0 += new_len;
                counts.1 += old_len;
            }
        }
    }
    counts
}

fn count_by_content(before: &[&[u8]], after: &[&[u8]]) -> (usize, usize) {
    let mut balance: HashMap<&[u8], isize> = HashMap::new();
    for line in before {
        *balance.entry(line).or_default() -= 1;
    }
    for line in after {
        *balance.entry(line).or_default() += 1;
    }
    let total = |sign: isize| balance.values().map(|count| (count * sign).max(0).unsigned_abs()).sum();
    (total(1), total(-1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_came_and_went_are_counted() {
        assert_eq!(counted(Some(b"a\nb\nc\n"), Some(b"a\nx\ny\nz\nc\n")), "+3 -1 lines");
        assert_eq!(counted(None, Some(b"a\nb")), "+2 -0 lines");
        assert_eq!(counted(Some(b"a\nb\n"), Some(b"b\na\n")), "+1 -1 lines");
    }

    #[test]
    fn of_a_file_that_is_gone_all_is_counted() {
        assert_eq!(counted(Some(b"a\n"), None), "all gone: 1 line");
        assert_eq!(counted(Some(b"a\nb\nc"), None), "all gone: 3 lines");
        assert_eq!(counted(Some(b"\0\xff"), None), "all gone: 2 bytes, binary");
    }

    #[test]
    fn an_empty_file_that_came_or_went_is_called_empty() {
        assert_eq!(counted(Some(b""), None), "it was empty");
        assert_eq!(counted(None, Some(b"")), "it is empty");
    }

    #[test]
    fn binary_content_is_told_by_its_size() {
        assert_eq!(counted(Some(b"text"), Some(b"\0\xff")), "binary, 4 -> 2 bytes");
        assert_eq!(counted(None, Some(b"\xff")), "binary, nothing -> 1 bytes");
    }

    #[test]
    fn many_lines_are_counted_by_content() {
        let numbered = |range: std::ops::Range<u32>| range.map(|n| format!("{n}\n")).collect::<String>();
        let (before, after) = (numbered(0..30_000), numbered(10_000..45_000));
        assert_eq!(counted(Some(before.as_bytes()), Some(after.as_bytes())), "+15000 -10000 lines");
        let moved = format!("{}{}", numbered(2000..4000), numbered(0..2000));
        assert_eq!(counted(Some(numbered(0..4000).as_bytes()), Some(moved.as_bytes())), "the order of lines changed");
    }
}
