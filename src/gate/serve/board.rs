//! Where questions are put: the terminal, or nowhere.

use platform::Moment;

use crate::gate::machine::Question;
use crate::gate::screen::Screen;

pub use crate::gate::screen::GateKey;

/// The person's side.
pub trait Board {
    /// Puts this question on the screen, or only another number of those that wait behind it.
    fn show(&mut self, question: &Question, waiting: usize);
    /// Takes the question off; this line stays in its place.
    fn settled(&mut self, line: &str);
    /// A line, above the question if there is one.
    fn line(&mut self, line: &str);
    /// Takes what was typed.
    fn key(&mut self, bytes: &[u8], at: Moment) -> Option<GateKey>;
    /// Shows the difference of the question on the screen.
    fn details(&mut self);
    /// When [`Board::tick`] has something to do.
    fn wake_at(&self) -> Option<Moment>;
    /// Counts the seconds, and writes what the terminal did not take before.
    fn tick(&mut self);
    /// The terminal has another size.
    fn resize(&mut self);
    /// Stops the process until somebody continues it.
    fn suspend(&mut self);
    /// Draws anew after a stop, or back in the foreground.
    fn resume(&mut self);
    /// We were continued, by our own suspending or by somebody else.
    fn go_on(&mut self);
    /// The terminal is gone.
    fn hang_up(&mut self);
    /// Leaves the terminal as it was found.
    fn finish(&mut self);
}

impl Board for Screen {
    fn show(&mut self, question: &Question, waiting: usize) {
        let _is_another = Screen::show(self, question, waiting);
    }
    fn settled(&mut self, line: &str) {
        Screen::settled(self, line);
    }
    fn line(&mut self, line: &str) {
        Screen::line(self, line);
    }
    fn key(&mut self, bytes: &[u8], at: Moment) -> Option<GateKey> {
        Screen::key(self, bytes, at)
    }
    fn details(&mut self) {
        Screen::details(self);
    }
    fn wake_at(&self) -> Option<Moment> {
        Screen::wake_at(self)
    }
    fn tick(&mut self) {
        Screen::tick(self);
    }
    fn resize(&mut self) {
        Screen::resize(self);
    }
    fn suspend(&mut self) {
        Screen::suspend(self);
    }
    fn resume(&mut self) {
        Screen::resume(self);
    }
    fn go_on(&mut self) {
        Screen::go_on(self);
    }
    fn hang_up(&mut self) {
        Screen::hang_up(self);
    }
    fn finish(&mut self) {
        Screen::finish(self);
    }
}

/// Nobody's side: for a gate without a terminal, which never asks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Board for Silent {
    fn show(&mut self, _question: &Question, _waiting: usize) {}
    fn settled(&mut self, _line: &str) {}
    fn line(&mut self, _line: &str) {}
    fn key(&mut self, _bytes: &[u8], _at: Moment) -> Option<GateKey> {
        None
    }
    fn details(&mut self) {}
    fn wake_at(&self) -> Option<Moment> {
        None
    }
    fn tick(&mut self) {}
    fn resize(&mut self) {}
    fn suspend(&mut self) {}
    fn resume(&mut self) {}
    fn go_on(&mut self) {}
    fn hang_up(&mut self) {}
    fn finish(&mut self) {}
}
