//! The question: its words, how it stands on the terminal, and which keys answer it.
//!
//! Promise: everything but the [`panel`], which holds the terminal, is pure; bytes and moments come in, bytes and keys go
//! out. What is shown has been escaped, so
//! that no path, program or host can draw a question of its own.
//! Limit: who may answer and what an answer means is decided elsewhere; a key is only a key.

pub mod keys;
pub mod panel;
pub mod question;
pub mod screen;
pub mod turns;

pub use keys::{Key, Keys, Typed};
pub use panel::{Panel, Reading, SharedPanel};
pub use question::{By, Item, Question, attributes, certain, shown_digest};
pub use screen::{Bell, Block, Frame, Printed, Screen, misleads};
pub use turns::{Turn, Turns, Wanted};
