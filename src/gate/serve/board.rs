//! Where questions are put: the terminal, or nowhere.

use platform::Moment;

use crate::gate::machine::{OfferId, Question};

/// What a key means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateKey {
    /// This offer of the question on the screen.
    Offer(OfferId),
    /// No.
    No,
    /// Show the difference.
    Details,
    /// End the gate.
    Interrupt,
    /// Stop it for a while.
    Suspend,
}

/// The person's side.
pub trait Board {
    /// Puts this question on the screen, or only another number of those that wait behind it.
    fn show(&mut self, question: &Question, waiting: usize);
    /// Takes the question off; this line stays in its place.
    fn settled(&mut self, line: &str);
    /// A line, above the question if there is one.
    fn line(&mut self, line: &str);
    // The rest is for a terminal of the gate's own.

    /// Takes what was typed.
    fn key(&mut self, _bytes: &[u8], _at: Moment) -> Option<GateKey> {
        None
    }
    /// Shows the difference of the question on the screen.
    fn details(&mut self) {}
    /// When [`Board::tick`] has something to do.
    fn wake_at(&self) -> Option<Moment> {
        None
    }
    /// Counts the seconds, and writes what the terminal did not take before.
    fn tick(&mut self) {}
    /// The terminal has another size.
    fn resize(&mut self) {}
    /// Stops the process until somebody continues it.
    fn suspend(&mut self) {}
    /// Draws anew after a stop, or back in the foreground.
    fn resume(&mut self) {}
    /// We were continued, by our own suspending or by somebody else.
    fn go_on(&mut self) {}
    /// The terminal is gone.
    fn hang_up(&mut self) {}
    /// Leaves the terminal as it was found.
    fn finish(&mut self) {}
}

/// Nobody's side: for a gate without a terminal, which never asks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Board for Silent {
    fn show(&mut self, _question: &Question, _waiting: usize) {}
    fn settled(&mut self, _line: &str) {}
    fn line(&mut self, _line: &str) {}
}
