//! Where a line stands when it is wider than the terminal: on which rows, broken where it reads well.
//!
//! Promise: the rows hold every character of the line, in order and nothing else; none is wider than the terminal, unless a
//! single wide character is. A row ends after a space; inside a word only if the word fits no row: then after a `/`, and
//! inside a name only if that fits no row either. Rows after the first are indented where there is room, so that a path
//! cannot place words of its own where a line begins.
//! Limit: widths are those of Unicode; a terminal that draws some character wider wraps a row once more.

use std::ops::Range;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Narrower terminals have no room for an indent.
const INDENT_FROM: usize = 24;

/// Stands before a row that is no beginning of a line and could be taken for one.
pub(super) const MARK: &str = "| ";
/// Narrower terminals have no room for a mark either.
const MARK_FROM: usize = 8;

/// One row of the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// What stands on it.
    pub(super) text: String,
    /// The part of it that may stand out.
    pub(super) bold: Range<usize>,
    /// Columns left empty before it.
    pub(super) indent: usize,
    /// Whether a line begins with it.
    pub(super) begins: bool,
    /// Whether [`MARK`] stands at the end of the empty columns.
    pub(super) marked: bool,
}

/// A line and how it may be broken.
#[derive(Debug, Clone, Default)]
pub(super) struct Line<'t> {
    /// Its text.
    pub(super) text: &'t str,
    /// The part of it that may stand out.
    pub(super) bold: Range<usize>,
    /// If the line takes several rows, one begins at each of these, until the rest fits one row.
    pub(super) parts: &'t [usize],
    /// How far rows after the first are indented.
    pub(super) indent: usize,
    /// Whether rows after the first are indented on narrow terminals, too, and marked where the text, which others chose,
    /// would let them look like lines of ours: a choice, or the first line of a question.
    pub(super) guarded: bool,
}

impl Line<'_> {
    /// Its rows on a terminal of that many columns. At least one.
    pub(super) fn rows(&self, columns: usize) -> Vec<Row> {
        let indent = match columns {
            INDENT_FROM.. => self.indent,
            MARK_FROM.. if self.guarded => MARK.len(),
            _ => 0,
        };
        let may_mark = self.guarded && indent >= MARK.len();
        let starts = self.starts(columns, columns - indent);
        let ends = starts.iter().skip(1).copied().chain([self.text.len()]);
        let row = |(&start, end): (&usize, usize)| {
            let within = |at: usize| at.clamp(start, end) - start;
            Row {
                text: self.text[start..end].to_owned(),
                bold: within(self.bold.start)..within(self.bold.end),
                indent: if start == 0 { 0 } else { indent },
                begins: start == 0,
                marked: may_mark && start > 0 && misleads(&self.text[start..end]),
            }
        };
        starts.iter().zip(ends).map(row).collect()
    }

    /// The byte at which each row starts; `later` columns are left for rows after the first.
    fn starts(&self, columns: usize, later: usize) -> Vec<usize> {
        if self.text.width() <= columns {
            return vec![0];
        }
        let mut filling = Filling { starts: vec![0], column: 0, columns, later };
        let mut start = 0;
        for &part in self.parts {
            filling.put(start, &self.text[start..part]);
            filling.begin_row(part);
            start = part;
            if self.text[part..].width() <= later {
                break;
            }
        }
        filling.put(start, &self.text[start..]);
        filling.starts
    }
}

/// Whether a row of this text, which somebody else chose, could be taken for a line of ours: all of those begin with our
/// own name or a bracket, and there are characters that look like a bracket.
pub fn misleads(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with("keep")
        || text.starts_with(|first: char| first == '[' || !(first.is_ascii() || first.is_alphanumeric()))
}

/// Whether a row may end between these two characters.
type MayBreak = fn(char, char) -> bool;

fn ends_word(before: char, after: char) -> bool {
    before == ' ' && after != ' '
}

/// For a word that fits, but not with its space.
fn ends_before_space(before: char, after: char) -> bool {
    before != ' ' && after == ' '
}

fn ends_folder(before: char, _: char) -> bool {
    before == '/'
}

fn ends_character(_: char, _: char) -> bool {
    true
}

/// Rows being filled.
struct Filling {
    starts: Vec<usize>,
    /// Columns taken of the last row.
    column: usize,
    columns: usize,
    later: usize,
}

impl Filling {
    /// Puts the next text of the line, which begins at the byte `start`.
    fn put(&mut self, start: usize, text: &str) {
        self.put_broken(start, text, &[ends_word, ends_before_space, ends_folder, ends_character]);
    }

    fn begin_row(&mut self, start: usize) {
        self.starts.push(start);
        self.column = 0;
    }

    /// Breaks the text in the first of these ways, and a piece that is wider than a row by the next ones.
    fn put_broken(&mut self, start: usize, text: &str, ways: &[MayBreak]) {
        let Some((&way, finer)) = ways.split_first() else {
            self.column += text.width();
            return;
        };
        for (at, piece) in pieces(text, way) {
            let width = piece.width();
            let room = if self.starts.len() == 1 { self.columns } else { self.later };
            if self.column + width <= room {
                self.column += width;
            } else if self.column > 0 && (width <= self.later || finer.is_empty()) {
                self.begin_row(start + at);
                self.column = width;
            } else {
                self.put_broken(start + at, piece, finer);
            }
        }
    }
}

/// The text cut wherever it may be broken, with the byte at which each piece starts.
fn pieces(text: &str, may_break: MayBreak) -> Vec<(usize, &str)> {
    let mut cuts = vec![0];
    let mut before = None;
    for (at, character) in text.char_indices() {
        // A character without a width belongs to the one before.
        if before.is_some_and(|before| may_break(before, character)) && character.width().unwrap_or(0) > 0 {
            cuts.push(at);
        }
        before = Some(character);
    }
    let ends = cuts.iter().skip(1).copied().chain([text.len()]);
    cuts.iter().copied().zip(ends).map(|(start, end)| (start, &text[start..end])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows(text: &str, columns: usize) -> Vec<String> {
        let line = Line { text, indent: 2, ..Line::default() };
        line.rows(columns).iter().map(|row| format!("{}{}", " ".repeat(row.indent), row.text)).collect()
    }

    #[test]
    fn a_row_ends_after_a_space() {
        assert_eq!(rows("keep watch: .env changed", 16), ["keep watch: ", ".env changed"]);
        assert_eq!(rows("one two three four five six", 24), ["one two three four five ", "  six"]);
        assert_eq!(rows("fits", 4), ["fits"]);
    }

    #[test]
    fn a_path_that_fits_no_row_is_broken_after_a_folder() {
        let rows = rows("keep watch: services/payments/production/secrets/.env.production changed", 30);
        assert_eq!(rows, ["keep watch: services/payments/", "  production/secrets/", "  .env.production changed"]);
    }

    #[test]
    fn a_path_that_fits_one_row_is_not_broken() {
        assert_eq!(
            rows("keep watch: a/b/c/d/e/f/g/h/i/.env changed", 32),
            ["keep watch: ", "  a/b/c/d/e/f/g/h/i/.env changed"]
        );
    }

    #[test]
    fn a_name_that_fits_no_row_is_broken_between_characters() {
        assert_eq!(rows("設定環境.env", 5), ["設定", "環境.", "env"]);
        assert_eq!(rows("x", 1), ["x"]);
        assert_eq!(rows("日本", 1), ["日", "本"]);
    }

    #[test]
    fn the_end_stays_whole_where_it_fits() {
        let text = "a long statement. Keep it? [a] / [r]; 20s";
        let at = |words: &str| text.find(words).expect("there");
        let parts = [at("Keep"), at("[a]")];
        let wrapped = |columns| {
            let line = Line { text, parts: &parts, ..Line::default() };
            line.rows(columns).into_iter().map(|row| row.text).collect::<Vec<_>>()
        };
        assert_eq!(wrapped(41), [text]);
        assert_eq!(wrapped(40), ["a long statement. ", "Keep it? [a] / [r]; 20s"]);
        assert_eq!(wrapped(18), ["a long statement. ", "Keep it? ", "[a] / [r]; 20s"]);
        assert_eq!(wrapped(10), ["a long ", "statement.", " ", "Keep it? ", "[a] / ", "[r]; 20s"]);
    }

    #[test]
    fn what_stands_out_is_followed_over_the_rows() {
        let line = Line { text: "see a/b/c now", bold: 4..9, ..Line::default() };
        let bold: Vec<_> = line.rows(4).into_iter().map(|row| row.text[row.bold].to_owned()).collect();
        assert_eq!(bold.concat(), "a/b/c");
    }

    #[test]
    fn a_guarded_row_that_looks_like_ours_is_marked() {
        let marked = |text: &str, columns| {
            let line = Line { text, indent: 4, guarded: true, ..Line::default() };
            line.rows(columns).into_iter().filter(|row| row.marked).map(|row| row.text).collect::<Vec<_>>()
        };
        assert_eq!(marked("keep gate: file aaaaaaaaaa [o] no", 27), ["[o] no"]);
        assert_eq!(marked("keep gate: file aaaaaaaaaaaaaaa keep gate: x", 32), ["keep gate: x"]);
        assert_eq!(marked("keep gate: file aaaaaaaa \u{ff3b}o] no", 25), ["\u{ff3b}o] no"]);
        assert_eq!(marked("[o] no", 8), [] as [&str; 0], "the first row is whose line it is");
        assert_eq!(marked("keep gate: file aaa [o]", 12), ["[o]"]);
        assert_eq!(marked("keep gate: file notes/todo.md", 25), [] as [&str; 0]);
    }

    proptest! {
        #[test]
        fn rows_hold_the_whole_line_and_fit(text in "[a-c/ 日é]{0,120}", columns in 2usize..60, part in 0usize..120) {
            let parts: Vec<usize> = text.char_indices().map(|(at, _)| at).skip(1).nth(part).into_iter().collect();
            let line = Line { text: &text, parts: &parts, indent: 4, guarded: part % 2 == 0, ..Line::default() };
            let rows = line.rows(columns);
            let all: String = rows.iter().map(|row| row.text.as_str()).collect();
            prop_assert_eq!(&all, &text);
            for row in &rows {
                prop_assert!(row.indent + row.text.width() <= columns, "{:?}", rows);
            }
            prop_assert!(rows.iter().skip(1).all(|row| !row.text.is_empty() && !row.begins), "{:?}", rows);
        }
    }
}
