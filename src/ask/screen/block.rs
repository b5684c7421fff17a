//! What a question shows, and the rows it takes.
//!
//! Promise: the question itself is always whole; a list gives way to it. Limit: on a terminal with fewer rows than the
//! question has, its beginning scrolls off.

use std::ops::Range;

use unicode_width::UnicodeWidthStr;

use super::rows::{Line, Row};

/// A list is never longer than this on the screen; the rest is behind `d`.
const MOST_LISTED: usize = 20;

/// How far rows after the first of a printed line are indented; in that room stands the mark of a row that could be
/// mistaken for the beginning of a line.
const PRINTED_INDENT: usize = 4;

/// A line that is written once and left where it is.
///
/// Where it is wider than the terminal it is broken like a question, and no text in it can make a row of it look like the
/// first row of another line: see [`Line::guarded`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Printed {
    /// Its text; without line ends and without anything that moves the cursor.
    pub text: String,
    /// The part of it that may stand out.
    pub bold: Range<usize>,
}

impl From<String> for Printed {
    fn from(text: String) -> Self {
        Self { text, bold: 0..0 }
    }
}

impl Printed {
    /// Its rows on a terminal of that many columns.
    pub(super) fn rows(&self, columns: usize) -> Vec<Row> {
        let Self { text, bold } = self;
        Line { text, bold: bold.clone(), indent: PRINTED_INDENT, guarded: true, ..Line::default() }.rows(columns)
    }
}

/// What a question shows; without line ends and without anything that moves the cursor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Block {
    /// Lines that are written once, above everything that is drawn again.
    pub head: Vec<Printed>,
    /// The changes of a burst, one a line; cut to what fits.
    pub list: Vec<String>,
    /// Lines above the question itself.
    pub above: Vec<String>,
    /// The question before its subject.
    pub before: String,
    /// What changed; the one part that may stand out.
    pub subject: String,
    /// What happened to the subject.
    pub after: String,
    /// What is asked.
    pub ask: String,
    /// The keys that answer, up to the seconds.
    pub keys: String,
    /// What stands after the seconds.
    pub unit: String,
}

/// A block as it stands on the terminal.
#[derive(Debug, Default)]
pub(super) struct Laid {
    /// Its rows.
    pub(super) rows: Vec<Row>,
    /// The row on which the countdown begins; all later ones are its own.
    pub(super) countdown: usize,
}

impl Block {
    /// The rows of the lines that are written once.
    pub(super) fn head(&self, columns: usize) -> Vec<Row> {
        self.head.iter().flat_map(|line| line.rows(columns)).collect()
    }

    /// All but the head: the list, cut to what fits, the lines above the question, and the question.
    pub(super) fn lay_out(&self, seconds: u64, digits: usize, columns: usize, rows: usize) -> Laid {
        let above: Vec<Row> = self.above.iter().flat_map(|line| beside(line, columns)).collect();
        let (question, countdown) = self.question(seconds, digits, columns, rows);
        let room = rows.saturating_sub(3 + above.len() + question.len());
        let mut drawn = Vec::new();
        let mut listed = 0;
        for line in self.list.iter().take(MOST_LISTED) {
            let more = beside(line, columns);
            if listed > 0 && drawn.len() + more.len() > room {
                break;
            }
            drawn.extend(more);
            listed += 1;
        }
        if listed < self.list.len() {
            drawn.extend(beside(&format!("  … and {} more", self.list.len() - listed), columns));
        }
        drawn.extend(above);
        let countdown = drawn.len() + countdown;
        drawn.extend(question);
        Laid { rows: drawn, countdown }
    }

    /// The rows of the question itself, and which of them the countdown begins on.
    fn question(&self, seconds: u64, digits: usize, columns: usize, rows: usize) -> (Vec<Row>, usize) {
        let Self { before, subject, after, ask, keys, unit, .. } = self;
        let mut text = format!("{before}{subject}{after}");
        let asks = text.len();
        text.push_str(ask);
        let answers = text.len();
        text.push_str(keys);
        let counts = text.len();
        let count = format!("{seconds}{unit}");
        text.push_str(&count);
        // Fewer digits are padded, so that the width stays.
        text.push_str(&" ".repeat((digits + unit.width()).saturating_sub(count.width())));
        let bold = before.len()..before.len() + subject.len();
        let parts: Vec<usize> = [asks, answers].into_iter().filter(|at| *at > 0).collect();
        let line = Line { text: &text, bold, parts: &parts, indent: 2, guarded: false };
        let readable = line.rows(columns);
        let drawn = if readable.len() < rows { readable } else { Line { parts: &[], ..line }.rows(columns) };
        let mut end = 0;
        let before = drawn.iter().take_while(|row| {
            end += row.text.len();
            end <= counts
        });
        let countdown = before.count();
        (drawn, countdown)
    }
}

/// The rows of a line of the list, or of one above the question.
fn beside(line: &str, columns: usize) -> Vec<Row> {
    Line { text: line, indent: 4, ..Line::default() }.rows(columns)
}
