//! Where the open question stands, and the bytes that draw, tick, move and erase it.
//!
//! Promise: no alternate screen, no hidden cursor, no absolute position: what was printed before stays as it is and can be
//! scrolled back to. A tick rewrites no more than the row or two in which the countdown stands; its width never changes
//! while a question is open, so a tick that got lost changes nothing for the next one.
//! Limit: the terminal wraps by itself, and whether it wraps old rows anew when it is resized is its own affair: after a
//! resize we move up by the smaller of both answers, so that a stale copy may stay above, but nobody else's line is erased.
//! Source: ECMA-48 8.3 (CUU, ED, SGR); the last column of a row keeps the cursor ("pending wrap") until one more character
//! comes, and erasing there eats that column: so we erase before we print, never after (DEC STD 070, autowrap).

use crossterm::Command;
use crossterm::cursor::MoveUp;
use crossterm::style::{Attribute, SetAttribute};
use crossterm::terminal::{Clear, ClearType};
use unicode_width::UnicodeWidthChar;

/// A list is never longer than this on the screen; the rest is behind `d`.
const MOST_LISTED: usize = 20;

/// What a question shows; without line ends and without anything that moves the cursor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Block {
    /// The changes of a burst, one a line; cut to what fits.
    pub list: Vec<String>,
    /// Lines above the question itself.
    pub above: Vec<String>,
    /// The question before its subject.
    pub before: String,
    /// What changed; the one part that may stand out.
    pub subject: String,
    /// The question after its subject, up to the seconds.
    pub after: String,
}

/// Whether the bell rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bell {
    /// It is another question.
    Ring,
    /// The question is the same, with other content.
    Silent,
}

/// Bytes for the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// Must be written.
    Lasting(Vec<u8>),
    /// A countdown in place: if it was not written before the next frame, it need not be written at all.
    Passing(Vec<u8>),
}

impl Frame {
    /// The bytes, whichever they are.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Frame::Lasting(bytes) | Frame::Passing(bytes) => bytes,
        }
    }
}

/// What is on the terminal below the last finished line.
#[derive(Debug)]
pub struct Screen {
    columns: usize,
    rows: usize,
    colour: bool,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    block: Block,
    seconds: u64,
    /// Digits of the seconds when the question came up: fewer are padded, so that the width stays.
    digits: usize,
    /// The lines above the question as drawn.
    drawn: Vec<String>,
}

impl Screen {
    /// An empty one. The cursor must be at the start of a row. `colour` lets the subject stand out.
    pub fn new(columns: u16, rows: u16, colour: bool) -> Self {
        let mut screen = Self { columns: 80, rows: 24, colour, open: None };
        screen.set_size(columns, rows);
        screen
    }

    /// Whether a question is on the screen.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Shows a question, in the place of the one that is open.
    pub fn question(&mut self, block: Block, seconds: u64, bell: Bell) -> Frame {
        let mut out = self.erase();
        if bell == Bell::Ring {
            out.push('\x07');
        }
        let digits = seconds.to_string().len();
        self.draw(&mut out, Open { block, seconds, digits, drawn: Vec::new() });
        Frame::Lasting(out.into_bytes())
    }

    /// Shows the seconds that are left, in place. `None` if nothing changes.
    pub fn tick(&mut self, seconds: u64) -> Option<Frame> {
        let columns = self.columns;
        let colour = self.colour;
        let open = self.open.as_mut()?;
        if open.seconds == seconds {
            return None;
        }
        open.seconds = seconds;
        let text = open.text();
        let starts = row_starts(&text, columns);
        let number = open.block.before.len() + open.block.subject.len() + open.block.after.len();
        // The row in which the countdown begins; all later ones belong to it.
        let row = starts.iter().rposition(|&start| start <= number).unwrap_or(0);
        let up = (starts.len() - 1 - row).min(self.rows - 1);
        let mut out = String::new();
        rewind(&mut out, up);
        open.print(&mut out, &text, starts[starts.len() - 1 - up], colour);
        Some(Frame::Passing(out.into_bytes()))
    }

    /// Prints a line above the open question.
    pub fn line(&mut self, line: &str) -> Frame {
        self.lines(std::slice::from_ref(&line))
    }

    /// Prints lines above the open question.
    pub fn lines(&mut self, lines: &[impl AsRef<str>]) -> Frame {
        let mut out = self.erase();
        for line in lines {
            debug_assert!(!line.as_ref().contains(|character: char| character.is_control()), "not one plain line");
            out.push_str(line.as_ref());
            out.push_str("\r\n");
        }
        if let Some(open) = self.open.take() {
            self.draw(&mut out, open);
        }
        Frame::Lasting(out.into_bytes())
    }

    /// Takes the question off the screen without a trace.
    pub fn withdraw(&mut self) -> Frame {
        let out = self.erase();
        self.open = None;
        Frame::Lasting(out.into_bytes())
    }

    /// Leaves the question where it is, to be read later, and goes on below it: for a question that was decided.
    pub fn close(&mut self) -> Frame {
        let end = if self.open.take().is_some() { "\r\n" } else { "" };
        Frame::Lasting(end.as_bytes().to_vec())
    }

    /// The terminal has another size: draws the question anew.
    pub fn resize(&mut self, columns: u16, rows: u16) -> Frame {
        let before = self.rows_drawn();
        self.set_size(columns, rows);
        let Some(open) = self.open.take() else { return Frame::Lasting(Vec::new()) };
        let mut out = String::new();
        rewind(&mut out, before.min(self.rows_of(&open)).saturating_sub(1).min(self.rows - 1));
        self.draw(&mut out, open);
        Frame::Lasting(out.into_bytes())
    }

    /// Draws the question anew below whatever is there now: after other output, a stop, or bytes that got lost.
    pub fn redraw(&mut self) -> Frame {
        let mut out = String::from("\r\n");
        match self.open.take() {
            Some(open) => self.draw(&mut out, open),
            None => out.clear(),
        }
        Frame::Lasting(out.into_bytes())
    }

    fn set_size(&mut self, columns: u16, rows: u16) {
        // Zero means that the terminal does not know (a serial line, a bare pty).
        if columns > 0 && rows > 0 {
            (self.columns, self.rows) = (usize::from(columns), usize::from(rows));
        }
    }

    fn rows_drawn(&self) -> usize {
        self.open.as_ref().map_or(0, |open| self.rows_of(open))
    }

    fn rows_of(&self, open: &Open) -> usize {
        let above: usize = open.drawn.iter().map(|line| row_starts(line, self.columns).len()).sum();
        above + row_starts(&open.text(), self.columns).len()
    }

    fn erase(&self) -> String {
        let mut out = String::new();
        if self.open.is_some() {
            rewind(&mut out, self.rows_drawn().saturating_sub(1).min(self.rows - 1));
        }
        out
    }

    fn draw(&mut self, out: &mut String, mut open: Open) {
        open.drawn = open.block.lines(self.rows);
        for line in &open.drawn {
            out.push_str(line);
            out.push_str("\r\n");
        }
        open.print(out, &open.text(), 0, self.colour);
        self.open = Some(open);
    }
}

impl Block {
    /// The lines above the question: the list, cut to what fits on that many rows, and the others.
    fn lines(&self, rows: usize) -> Vec<String> {
        let most = rows.saturating_sub(4 + self.above.len()).clamp(1, MOST_LISTED);
        let mut lines: Vec<String> = self.list.iter().take(most).cloned().collect();
        if self.list.len() > most {
            lines.push(format!("  … and {} more", self.list.len() - most));
        }
        lines.extend(self.above.iter().cloned());
        lines
    }
}

impl Open {
    fn text(&self) -> String {
        let Block { before, subject, after, .. } = &self.block;
        let seconds = format!("{}s", self.seconds);
        format!("{before}{subject}{after}{seconds:<width$}", width = self.digits + 1)
    }

    /// Prints the text from the byte `start` on.
    fn print(&self, out: &mut String, text: &str, start: usize, colour: bool) {
        let from = self.block.before.len();
        let to = from + self.block.subject.len();
        if !colour || start >= to {
            out.push_str(&text[start..]);
            return;
        }
        let from = from.max(start);
        out.push_str(&text[start..from]);
        ansi(out, SetAttribute(Attribute::Bold));
        out.push_str(&text[from..to]);
        ansi(out, SetAttribute(Attribute::NormalIntensity));
        out.push_str(&text[to..]);
    }
}

/// To the first column, that many rows up, and nothing left below.
fn rewind(out: &mut String, up: usize) {
    out.push('\r');
    if up > 0 {
        ansi(out, MoveUp(u16::try_from(up).unwrap_or(u16::MAX)));
    }
    ansi(out, Clear(ClearType::FromCursorDown));
}

fn ansi(out: &mut String, command: impl Command) {
    command.write_ansi(out).expect("a String takes everything");
}

/// The byte at which each row starts when a terminal of that many columns wraps the text. At least one row.
fn row_starts(text: &str, columns: usize) -> Vec<usize> {
    let mut starts = vec![0];
    let mut column = 0;
    for (at, character) in text.char_indices() {
        let width = character.width().unwrap_or(0);
        if column + width > columns && column > 0 {
            starts.push(at);
            column = 0;
        }
        column += width;
    }
    starts
}

#[cfg(test)]
mod tests;
