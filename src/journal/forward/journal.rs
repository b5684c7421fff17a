//! A journal whose durable entries are told to collectors.

use std::sync::Arc;

use super::courier::Couriers;
use super::notice::Notice;
use crate::journal::{Event, Head, Journal, JournalError};

/// What every notice of a watch says.
#[derive(Debug, Clone)]
pub struct About {
    /// Our process.
    pub pid: u32,
    /// The stored path of the tree.
    pub root: String,
    /// An entry as people read it; `None` for one that says of no event.
    pub describe: fn(&Event) -> Option<String>,
}

/// See the module.
#[derive(Debug)]
pub struct Forwarding<J> {
    inner: J,
    about: About,
    couriers: Arc<Couriers>,
    /// Of the batch that waits.
    waiting: Vec<Notice>,
}

impl<J: Journal> Forwarding<J> {
    /// Tells these collectors of what is written to `inner` from now on.
    pub fn new(inner: J, about: About, couriers: Arc<Couriers>) -> Self {
        Self { inner, about, couriers, waiting: Vec::new() }
    }
}

impl<J: Journal> Journal for Forwarding<J> {
    fn append(&mut self, at: &str, event: &Event) -> Result<(), JournalError> {
        self.inner.append(at, event)?;
        if !self.couriers.is_empty()
            && let Some(message) = (self.about.describe)(event)
        {
            let stamp = (at, self.inner.session());
            let from = (self.about.pid, self.about.root.as_str());
            self.waiting.push(Notice::of(event, &message, stamp, from, self.inner.head()));
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), JournalError> {
        let committed = self.inner.commit();
        let waiting = std::mem::take(&mut self.waiting);
        if committed.is_ok() {
            waiting.into_iter().for_each(|notice| self.couriers.send(notice));
        }
        committed
    }

    fn discard(&mut self) {
        self.inner.discard();
        self.waiting.clear();
    }

    fn session(&self) -> &str {
        self.inner.session()
    }

    fn head(&self) -> Head {
        self.inner.head()
    }
}
