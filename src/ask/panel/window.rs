//! A window for tests: it shows what a terminal would, remembers all that was written, and can stop taking bytes.

use std::num::NonZeroU16;
use std::sync::{Arc, Mutex, MutexGuard};

use platform::terminal::WriteState;

use super::Glass;

/// The window; copies are the same one.
#[derive(Clone)]
pub(crate) struct Window(Arc<Mutex<Pane>>);

/// What is in it.
pub(crate) struct Pane {
    terminal: vt100::Parser<Bells>,
    /// All that was ever shown.
    pub(crate) stream: Vec<u8>,
    size: (u16, u16),
    /// Whether it takes bytes.
    pub(crate) takes: bool,
    kept: Vec<u8>,
    /// Whether it loses what it did not take.
    pub(crate) loses: bool,
}

/// Counts the bells.
#[derive(Default)]
pub(crate) struct Bells(pub(crate) usize);

impl vt100::Callbacks for Bells {
    fn audible_bell(&mut self, _: &mut vt100::Screen) {
        self.0 += 1;
    }
}

pub(crate) fn size(value: u16) -> NonZeroU16 {
    NonZeroU16::new(value).expect("not zero")
}

/// What a terminal of this size shows.
pub(crate) fn terminal(columns: u16, rows: u16) -> vt100::Parser<Bells> {
    vt100::Parser::new_with_callbacks(size(rows), size(columns), 200, Bells::default())
}

impl Window {
    pub(crate) fn new(columns: u16, rows: u16) -> Self {
        Self(Arc::new(Mutex::new(Pane {
            terminal: terminal(columns, rows),
            stream: Vec::new(),
            size: (columns, rows),
            takes: true,
            kept: Vec::new(),
            loses: false,
        })))
    }

    pub(crate) fn glass(&self) -> MutexGuard<'_, Pane> {
        self.0.lock().expect("no test panics with it")
    }
}

impl Pane {
    /// It has another size now.
    pub(crate) fn becomes(&mut self, columns: u16, rows: u16) {
        self.size = (columns, rows);
        self.terminal.screen_mut().set_size(size(rows), size(columns));
    }

    pub(crate) fn bells(&self) -> usize {
        self.terminal.callbacks().0
    }

    pub(crate) fn cursor(&self) -> (u16, u16) {
        self.terminal.screen().cursor_position()
    }

    /// What is on it, without empty rows at the end.
    pub(crate) fn rows(&self) -> Vec<String> {
        let screen = self.terminal.screen();
        let rows: Vec<String> = screen.rows(0, screen.size().1.get()).map(|row| row.trim_end().to_owned()).collect();
        let used = rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
        rows[..used].to_vec()
    }

    /// Every line that was ever written, without control sequences; a carriage return alone begins one, too.
    pub(crate) fn recording(&self) -> Vec<String> {
        let stream = String::from_utf8(self.stream.clone()).expect("UTF-8");
        let mut pieces = stream.split('\x1b');
        let mut text = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            text.push_str(piece.split_once(|letter: char| letter.is_ascii_alphabetic()).expect("a sequence ends").1);
        }
        let text = text.replace('\x07', "").replace("\r\n", "\n").replace('\r', "\n");
        text.split('\n').map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
    }

    fn show(&mut self, bytes: &[u8]) {
        self.terminal.process(bytes);
        self.stream.extend_from_slice(bytes);
    }

    fn write(&mut self, bytes: &[u8]) -> WriteState {
        if self.takes {
            self.show(bytes);
            return WriteState::Written;
        }
        self.kept.extend_from_slice(bytes);
        WriteState::Pending
    }
}

impl Glass for Window {
    fn size(&self) -> (u16, u16) {
        self.glass().size
    }

    fn write(&self, bytes: &[u8]) -> WriteState {
        self.glass().write(bytes)
    }

    fn write_passing(&self, bytes: &[u8]) -> WriteState {
        self.glass().write(bytes)
    }

    fn flush_pending(&self) -> WriteState {
        let mut pane = self.glass();
        if !pane.takes {
            return WriteState::Pending;
        }
        let kept = std::mem::take(&mut pane.kept);
        if std::mem::take(&mut pane.loses) {
            return WriteState::Lost;
        }
        pane.show(&kept);
        WriteState::Written
    }

    fn is_clear(&self) -> bool {
        let pane = self.glass();
        pane.takes && pane.kept.is_empty()
    }

    fn suspend(&self) -> bool {
        self.glass().show(b"\r\n[1]+  Stopped   keep\r\n$ fg\r\nkeep");
        true
    }

    fn resume(&self) {}
}
