//! What the journal says, told to those who gather such things of many machines: systemd's journal, syslog, a file.
//!
//! Each entry that says that something happened becomes a [`Notice`] once it is durable; a thread for each collector puts
//! it into that one's [`Format`] and hands it over.
//!
//! Promise: nothing here delays the watch. What could not be handed over is counted, told once, and told to the collector
//! itself with the next notice that it takes. No notice holds content, and no name in one can make a line, a field or a
//! notice of its own.
//! Limit: a notice proves nothing: every process of the user can send one. What a collector adds by itself (which program
//! sent it) does, and so does the chain: each notice has the number and digest of its entry.

mod courier;
mod file;
mod format;
mod journal;
mod notice;

#[cfg(test)]
mod tests;

pub use courier::{Couriers, Destination};
pub use file::AppendedFile;
pub use format::Format;
pub use journal::{About, Forwarding};
pub use notice::{Notice, Severity};
