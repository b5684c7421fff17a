//! Two contents beside each other, for the person who is asked.
//!
//! Promise: numbers of lines, and on demand the lines themselves, each escaped and cut, [`MOST_SHOWN`] at most; time and
//! memory are bounded whatever the contents are. Limit: where more than [`MOST_COMPARED`] lines lie between the first and
//! the last difference, moved lines are not told from changed ones.

use std::collections::HashMap;

use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};

use crate::text::escaped;

/// Lines of a difference that are shown.
const MOST_SHOWN: usize = 200;
/// Characters of a line that are shown.
const MOST_WIDE: usize = 300;
/// Unchanged lines around a change.
const CONTEXT: usize = 3;
/// Telling moves from changes can take the square of the number of lines.
const MOST_COMPARED: usize = 2000;
/// Lines that are looked at.
const MOST_LINES: usize = 500_000;

/// What is different.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Compared {
    /// Lines that come and lines that go; `None` if it is no text, or too much of it.
    pub(super) counts: Option<(usize, usize)>,
    /// The difference, a line each.
    pub(super) lines: Vec<String>,
}

/// Compares.
pub(super) fn compare(before: &[u8], after: &[u8]) -> Compared {
    if before == after {
        return Compared { counts: Some((0, 0)), lines: Vec::new() };
    }
    if [before, after].into_iter().any(is_binary) {
        let told = format!("not text: {} -> {} bytes", before.len(), after.len());
        return Compared { counts: None, lines: vec![told] };
    }
    if [before, after].into_iter().any(|side| newlines(side) > MOST_LINES) {
        let told = format!("too many lines to compare: {} -> {} bytes", before.len(), after.len());
        return Compared { counts: None, lines: vec![told] };
    }
    let (before, after): (Vec<&[u8]>, Vec<&[u8]>) = (split(before), split(after));
    let head = before.iter().zip(&after).take_while(|(one, other)| one == other).count();
    let tails = before[head..].iter().rev().zip(after[head..].iter().rev());
    let tail = tails.take_while(|(one, other)| one == other).count();
    let (old, new) = (&before[head..before.len() - tail], &after[head..after.len() - tail]);
    let few = old.len() + new.len() <= MOST_COMPARED;
    let middle = if few {
        numbered_diff(old, new)
    } else {
        vec![DiffOp::Replace { old_index: 0, old_len: old.len(), new_index: 0, new_len: new.len() }]
    };
    let counts = if few { counted(&middle) } else { counted_by_content(old, new) };
    let mut all = vec![DiffOp::Equal { old_index: 0, new_index: 0, len: head }];
    all.extend(middle.into_iter().map(|op| moved(op, head)));
    all.push(DiffOp::Equal { old_index: before.len() - tail, new_index: after.len() - tail, len: tail });
    Compared { counts: Some(counts), lines: shown(&before, &after, all) }
}

/// Compares numbers in place of lines: long lines that begin alike would be compared again and again.
fn numbered_diff(old: &[&[u8]], new: &[&[u8]]) -> Vec<DiffOp> {
    let mut known: HashMap<&[u8], usize> = HashMap::new();
    let mut numbers = Vec::with_capacity(old.len() + new.len());
    for line in old.iter().chain(new) {
        let next = known.len();
        numbers.push(*known.entry(line).or_insert(next));
    }
    let (old, new) = numbers.split_at(old.len());
    capture_diff_slices(Algorithm::Myers, old, new)
}

fn is_binary(bytes: &[u8]) -> bool {
    bytes.contains(&0) || std::str::from_utf8(bytes).is_err()
}

fn newlines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte == b'\n').count()
}

fn split(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|&byte| byte == b'\n').collect()
}

fn counted(ops: &[DiffOp]) -> (usize, usize) {
    ops.iter().fold((0, 0), |(came, went), op| match *op {
        DiffOp::Equal { .. } => (came, went),
        DiffOp::Insert { new_len, .. } => (came + new_len, went),
        DiffOp::Delete { old_len, .. } => (came, went + old_len),
        DiffOp::Replace { old_len, new_len, .. } => (came + new_len, went + old_len),
    })
}

fn counted_by_content(old: &[&[u8]], new: &[&[u8]]) -> (usize, usize) {
    let mut balance: HashMap<&[u8], isize> = HashMap::new();
    old.iter().for_each(|line| *balance.entry(line).or_default() -= 1);
    new.iter().for_each(|line| *balance.entry(line).or_default() += 1);
    let total = |sign: isize| balance.values().map(|count| (count * sign).max(0).unsigned_abs()).sum();
    (total(1), total(-1))
}

/// The same operation so many lines further down.
fn moved(op: DiffOp, by: usize) -> DiffOp {
    match op {
        DiffOp::Equal { old_index, new_index, len } => {
            DiffOp::Equal { old_index: old_index + by, new_index: new_index + by, len }
        }
        DiffOp::Delete { old_index, old_len, new_index } => {
            DiffOp::Delete { old_index: old_index + by, old_len, new_index: new_index + by }
        }
        DiffOp::Insert { old_index, new_index, new_len } => {
            DiffOp::Insert { old_index: old_index + by, new_index: new_index + by, new_len }
        }
        DiffOp::Replace { old_index, old_len, new_index, new_len } => {
            DiffOp::Replace { old_index: old_index + by, old_len, new_index: new_index + by, new_len }
        }
    }
}

fn shown(before: &[&[u8]], after: &[&[u8]], ops: Vec<DiffOp>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut left_out = 0_usize;
    let mut put = |line: &dyn Fn() -> String| {
        if lines.len() < MOST_SHOWN - 1 {
            lines.push(line());
        } else {
            left_out += 1;
        }
    };
    for group in group_diff_ops(ops, CONTEXT) {
        let Some(first) = group.first() else { continue };
        let line = first.new_range().start + 1;
        put(&|| format!("@@ line {line}"));
        for op in group {
            if let DiffOp::Equal { old_index, len, .. } = op {
                before[old_index..old_index + len].iter().for_each(|line| put(&|| written(' ', line)));
                continue;
            }
            before[op.old_range()].iter().for_each(|line| put(&|| written('-', line)));
            after[op.new_range()].iter().for_each(|line| put(&|| written('+', line)));
        }
    }
    if left_out > 0 {
        lines.push(format!("... and {left_out} more lines"));
    }
    lines
}

fn written(sign: char, line: &[u8]) -> String {
    let (text, ended) = match line.strip_suffix(b"\n") {
        Some(text) => (text, true),
        None => (line, false),
    };
    // Cut before escaping: what is cut may be megabytes.
    let whole = String::from_utf8_lossy(&text[..text.len().min(4 * MOST_WIDE)]);
    let cut: String = whole.chars().take(MOST_WIDE).collect();
    let rest = if cut.len() < text.len() { "..." } else { "" };
    let end = if ended { "" } else { " (no newline at the end)" };
    format!("{sign}{}{rest}{end}", escaped(cut.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_that_come_and_go_are_counted_and_shown() {
        let compared = compare(b"one\ntwo\nthree\n", b"one\nTWO\nthree\nfour\n");
        assert_eq!(compared.counts, Some((2, 1)));
        assert_eq!(compared.lines, ["@@ line 1", " one", "-two", "+TWO", " three", "+four"]);
        assert_eq!(compare(b"", b"a\nb").lines, ["@@ line 1", "+a", "+b (no newline at the end)"]);
        assert_eq!(compare(b"a\n", b"").counts, Some((0, 1)));
        assert_eq!(compare(b"same", b"same"), Compared { counts: Some((0, 0)), lines: vec![] });
    }

    #[test]
    fn changes_far_apart_are_shown_apart() {
        let text = |a: &str, b: &str| format!("{a}\n{}{b}\n", "x\n".repeat(50));
        let compared = compare(text("a", "b").as_bytes(), text("A", "B").as_bytes());
        assert_eq!(compared.counts, Some((2, 2)));
        assert_eq!(compared.lines[..3], ["@@ line 1", "-a", "+A"]);
        assert_eq!(compared.lines[6..], ["@@ line 49", " x", " x", " x", "-b", "+B"]);
    }

    #[test]
    fn what_is_no_text_is_told_by_its_size() {
        let compared = compare(b"\xff", b"text");
        assert_eq!((compared.counts, compared.lines), (None, vec!["not text: 1 -> 4 bytes".to_owned()]));
    }

    #[test]
    fn much_is_cut_and_says_so() {
        let many: String = (0..5000).map(|n| format!("{n}\n")).collect();
        let compared = compare(b"", many.as_bytes());
        assert_eq!((compared.counts, compared.lines.len()), (Some((5000, 0)), MOST_SHOWN));
        assert_eq!(compared.lines[MOST_SHOWN - 1], "... and 4802 more lines");
        let wide = compare(b"", "w".repeat(1 << 20).as_bytes());
        assert!(wide.lines[1].len() < 400, "{}", wide.lines[1]);
        let endless = "\n".repeat(MOST_LINES + 1);
        assert_eq!(compare(b"x", endless.as_bytes()).counts, None);
    }

    #[test]
    fn a_line_cannot_draw_on_a_terminal() {
        let compared = compare(b"", "a\x1b[2J\u{202e}b\r\n".as_bytes());
        assert_eq!(compared.lines[1], "+a\\x1b[2J\\u{202e}b\\r");
    }

    proptest! {
        #[test]
        fn counts_agree_with_the_lines_shown(before in "[ab\n]{0,40}", after in "[ab\n]{0,40}") {
            let compared = compare(before.as_bytes(), after.as_bytes());
            let (came, went) = compared.counts.expect("is text");
            let signs = |sign: char| compared.lines.iter().filter(|line| line.starts_with(sign)).count();
            prop_assert_eq!((signs('+'), signs('-')), (came, went));
            let lines = |text: &str| text.split_inclusive('\n').count();
            prop_assert_eq!(lines(&before) + came, lines(&after) + went);
        }

        #[test]
        fn no_contents_make_it_fall(before: Vec<u8>, after: Vec<u8>) {
            prop_assert!(compare(&before, &after).lines.len() <= MOST_SHOWN);
        }
    }
}
