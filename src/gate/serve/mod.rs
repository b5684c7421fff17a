//! The running gate: one thread that owns everything that changes, and threads around it that only wait for somebody.
//!
//! Promise: no client and no worker can hold up a key at the terminal for longer than one message of a client and its entry
//! in the audit take, and none can hold up another client; what is decided is written down before it is done; a call gets one result, or its connection ends.
//! Limit: the audit and the grants are written by the core thread, each entry durable before the next step, so that a slow
//! disk is felt in every change an agent makes.
//!
//! The threads: the core ([`hub`]); two for each connection ([`connection`]); one for each of the two processes that touch
//! files ([`lane`]); one for reminders, notes and what else is no file of the root ([`errands`]); the listener's, the
//! keyboard's and the signals', which belong to `platform`.

pub mod board;
mod call;
mod canonical;
mod connection;
mod effects;
mod ending;
mod errands;
mod facts;
pub mod herald;
pub mod hub;
mod lane;
mod message;
pub mod parts;
mod taking;
mod turns;

#[cfg(test)]
mod tests;

pub use board::{Board, GateKey, Silent};
pub use herald::Herald;
pub use hub::{End, Gate};
pub use message::{Doors, Message};
pub use parts::{Books, Chores, Coming, Hands, Parts, Reading, Surroundings, Watch};
