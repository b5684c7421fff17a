//! The end of a chain in memory: what is durable, and what waits to be written as one batch.

use super::event::Event;
use super::line::{Head, TooLong, push};

/// The end of a chain.
#[derive(Debug, Default)]
pub(super) struct Chain {
    durable: Head,
    head: Head,
    pending: Vec<u8>,
}

impl Chain {
    /// A chain whose last durable line this is.
    pub fn at(head: Head) -> Self {
        Self { durable: head, head, pending: Vec::new() }
    }

    /// Adds an entry to the batch that waits.
    pub fn append(&mut self, stamp: (&str, &str), event: &Event) -> Result<(), TooLong> {
        push(&mut self.pending, &mut self.head, self.durable.seq + 1, stamp, event)
    }

    /// The last entry, be it durable or in the batch that waits.
    pub fn head(&self) -> Head {
        self.head
    }

    /// The batch that waits.
    pub fn pending(&self) -> &[u8] {
        &self.pending
    }

    /// Takes the batch as written and synced.
    pub fn settle(&mut self) {
        self.durable = self.head;
        self.pending.clear();
    }

    /// Forgets the batch that waits.
    pub fn discard(&mut self) {
        self.head = self.durable;
        self.pending.clear();
    }
}
