//! Where the open question stands, and the bytes that draw, tick, move and erase it.
//!
//! Promise: no alternate screen, no hidden cursor, no absolute position: what was printed before stays as it is and can be
//! scrolled back to. What changes is drawn from the first row that differs; a tick rewrites the row in which the countdown
//! stands. Its width never changes while a question is open, so a tick that got lost changes nothing for the next one.
//! In the stream of bytes a line that fits the terminal is one piece, also when it is wrapped: a recording can be searched.
//! Limit: finished lines are wrapped by the terminal, which can wrap them anew when it is resized. Whether it does so with
//! our rows is its own affair: after a resize a stale copy may stay above, but nobody else's line is erased.
//! Source: ECMA-48 8.3 (CNL, CUF, CUU, ED, SGR); the last column of a row keeps the cursor ("pending wrap") until one more
//! character comes, and erasing there eats that column: so we erase before we print, never after (DEC STD 070, autowrap).

mod block;
mod rows;

use crossterm::Command;
use crossterm::cursor::{MoveRight, MoveToNextLine, MoveUp};
use crossterm::style::{Attribute, SetAttribute};
use crossterm::terminal::{Clear, ClearType};
use unicode_width::UnicodeWidthStr;

use block::Laid;
pub use block::{Block, Printed};
pub use rows::misleads;
use rows::{MARK, Row};

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
    /// As it was drawn.
    drawn: Laid,
}

impl Screen {
    /// An empty one. The cursor must be at the start of a row. `colour` lets the subject stand out.
    pub fn new(columns: u16, rows: u16, colour: bool) -> Self {
        let mut screen = Self { columns: 80, rows: 24, colour, open: None };
        screen.has_size(columns, rows);
        screen
    }

    /// Whether a question is on the screen.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Shows a question, in the place of the one that is open; below it, if what it has left there is another head.
    pub fn question(&mut self, block: Block, seconds: u64, bell: Bell) -> Frame {
        let mut out = String::new();
        if bell == Bell::Ring {
            out.push('\x07');
        }
        let digits = seconds.to_string().len();
        let before = self.open.take();
        let open = self.open(block, seconds, digits);
        match before {
            Some(before) if before.block.head == open.block.head => self.draw_over(&mut out, &before.drawn, open),
            before => {
                if before.is_some() {
                    out.push_str("\r\n");
                }
                self.head(&mut out, &open.block);
                self.draw_over(&mut out, &Laid::default(), open);
            }
        }
        Frame::Lasting(out.into_bytes())
    }

    /// Shows the seconds that are left, in place. `None` if nothing changes.
    pub fn tick(&mut self, seconds: u64) -> Option<Frame> {
        let Open { block, digits, drawn, .. } = self.open.take_if(|open| open.seconds != seconds)?;
        let open = self.open(block, seconds, digits);
        let mut out = String::new();
        self.draw_over(&mut out, &drawn, open);
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

    /// Prints lines above what is drawn again of the open question.
    pub fn printed(&mut self, lines: &[Printed]) -> Frame {
        let mut out = self.erase();
        let rows: Vec<Row> = lines.iter().flat_map(|line| line.rows(self.columns)).collect();
        self.print_ended(&mut out, &rows);
        if let Some(open) = self.open.take() {
            self.draw(&mut out, open);
        }
        Frame::Lasting(out.into_bytes())
    }

    /// Whether a terminal of this size shows the question with its head all at once.
    pub fn has_room_for(&self, block: &Block, seconds: u64) -> bool {
        let rows = block.head(self.columns).len();
        rows + block.lay_out(seconds, seconds.to_string().len(), self.columns, self.rows).rows.len() <= self.rows
    }

    /// Whether the head of the open question can be read on a terminal of that many columns as it was written.
    pub fn head_fits(&self, columns: u16) -> bool {
        let rows = self.open.iter().flat_map(|open| open.block.head(self.columns));
        columns == 0 || rows.map(|row| row.indent + row.text.width()).all(|width| width <= usize::from(columns))
    }

    /// Takes the question off the screen without a trace; of a head that was written, only what is drawn again.
    pub fn withdraw(&mut self) -> Frame {
        let out = self.erase();
        self.open = None;
        Frame::Lasting(out.into_bytes())
    }

    /// Takes the question off the screen until [`redraw`](Self::redraw): whoever has the screen meanwhile finds nothing on it
    /// that looks as if it could be answered.
    pub fn hide(&mut self) -> Frame {
        let out = self.erase();
        if let Some(open) = &mut self.open {
            open.drawn = Laid::default();
        }
        Frame::Lasting(out.into_bytes())
    }

    /// Leaves the question where it is, to be read later, and goes on below it: for a question that was decided.
    pub fn close(&mut self) -> Frame {
        let end = if self.open.take().is_some() { "\r\n" } else { "" };
        Frame::Lasting(end.as_bytes().to_vec())
    }

    /// The terminal has another size: draws the question anew; its head only if it cannot be read any more.
    pub fn resize(&mut self, columns: u16, rows: u16) -> Frame {
        if !self.head_fits(columns) {
            self.has_size(columns, rows);
            return self.redraw();
        }
        let before = self.rows_drawn();
        self.has_size(columns, rows);
        let Some(open) = self.open.take() else { return Frame::Lasting(Vec::new()) };
        let mut out = String::new();
        // A narrower terminal may have made more of our rows, never fewer: each of them ends by itself.
        rewind(&mut out, before.saturating_sub(1).min(self.rows - 1));
        self.draw(&mut out, open);
        Frame::Lasting(out.into_bytes())
    }

    /// Draws the question anew below whatever is there now: after other output, a stop, or bytes that got lost.
    pub fn redraw(&mut self) -> Frame {
        let mut out = String::from("\r\n");
        match self.open.take() {
            Some(open) => {
                self.head(&mut out, &open.block);
                self.draw(&mut out, open);
            }
            None => out.clear(),
        }
        Frame::Lasting(out.into_bytes())
    }

    /// The terminal has this size; nothing is drawn.
    pub fn has_size(&mut self, columns: u16, rows: u16) {
        // Zero means that the terminal does not know (a serial line, a bare pty).
        if columns > 0 && rows > 0 {
            (self.columns, self.rows) = (usize::from(columns), usize::from(rows));
        }
    }

    /// Prints the head of a question at the start of an empty row, and ends its last row.
    fn head(&self, out: &mut String, block: &Block) {
        self.print_ended(out, &block.head(self.columns));
    }

    fn print_ended(&self, out: &mut String, rows: &[Row]) {
        self.print(out, rows);
        if !rows.is_empty() {
            out.push_str("\r\n");
        }
    }

    fn rows_drawn(&self) -> usize {
        self.open.as_ref().map_or(0, |open| open.drawn.rows.len())
    }

    fn erase(&self) -> String {
        let mut out = String::new();
        if self.open.is_some() {
            rewind(&mut out, self.rows_drawn().saturating_sub(1).min(self.rows - 1));
        }
        out
    }

    fn open(&self, block: Block, seconds: u64, digits: usize) -> Open {
        let drawn = block.lay_out(seconds, digits, self.columns, self.rows);
        Open { block, seconds, digits, drawn }
    }

    /// Draws at the start of an empty row.
    fn draw(&mut self, out: &mut String, open: Open) {
        let open = self.open(open.block, open.seconds, open.digits);
        self.draw_over(out, &Laid::default(), open);
    }

    /// Draws where the other one is, with the cursor at its end; from the first row that differs.
    fn draw_over(&mut self, out: &mut String, other: &Laid, open: Open) {
        let (before, after) = (&other.rows, &open.drawn.rows);
        let same = before.iter().zip(after).take_while(|(old, new)| old == new).count();
        // A tick may have got lost: what stands there is not known, only how wide it is.
        let same = same.min(other.countdown).min(open.drawn.countdown);
        let reach = before.len().min(self.rows);
        let from = if before.len() - same <= reach { same } else { 0 };
        if !before.is_empty() {
            rewind(out, (before.len() - from).min(reach) - 1);
        }
        self.print(out, &after[from..]);
        self.open = Some(open);
    }

    /// Prints rows at the start of an empty row.
    fn print(&self, out: &mut String, rows: &[Row]) {
        let mut reserved = 0;
        for (at, row) in rows.iter().enumerate() {
            if at == 0 || row.begins {
                if at > 0 {
                    out.push_str("\r\n");
                }
                // A line end would tear the line apart in the stream; moving down does not scroll. So there is made room first.
                reserved = rows[at + 1..].iter().take_while(|row| !row.begins).count();
                if reserved >= self.rows {
                    reserved = 0;
                }
                if reserved > 0 {
                    out.push_str(&"\r\n".repeat(reserved));
                    ansi(out, MoveUp(u16::try_from(reserved).unwrap_or(u16::MAX)));
                }
            } else if reserved > 0 {
                ansi(out, MoveToNextLine(1));
            } else {
                out.push_str("\r\n");
            }
            row.print(out, self.colour);
        }
    }
}

impl Row {
    fn print(&self, out: &mut String, colour: bool) {
        let empty = if self.marked { self.indent - MARK.len() } else { self.indent };
        if empty > 0 {
            ansi(out, MoveRight(u16::try_from(empty).unwrap_or(u16::MAX)));
        }
        if self.marked {
            out.push_str(MARK);
        }
        if !colour || self.bold.is_empty() {
            out.push_str(&self.text);
            return;
        }
        out.push_str(&self.text[..self.bold.start]);
        ansi(out, SetAttribute(Attribute::Bold));
        out.push_str(&self.text[self.bold.clone()]);
        ansi(out, SetAttribute(Attribute::NormalIntensity));
        out.push_str(&self.text[self.bold.end..]);
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

#[cfg(test)]
mod tests;
