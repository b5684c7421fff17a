//! Journals for tests: one in memory, and one that fails when told to.

use std::io;

use platform::FsError;

use super::chain::Chain;
use super::event::Event;
use super::line::{Entry, Head, Unreadable};
use super::{Journal, JournalError};

/// A journal in memory, with the very bytes a file would have.
#[derive(Debug)]
pub struct MemoryJournal {
    chain: Chain,
    session: String,
    bytes: Vec<u8>,
}

impl MemoryJournal {
    /// An empty journal.
    pub fn new(session: &str) -> Self {
        Self { chain: Chain::default(), session: session.to_owned(), bytes: Vec::new() }
    }

    /// The lines committed so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The entries committed so far.
    pub fn entries(&self) -> Result<Vec<Entry>, Unreadable> {
        self.bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(Entry::parse).collect()
    }
}

impl Journal for MemoryJournal {
    fn append(&mut self, at: &str, event: &Event) -> Result<(), JournalError> {
        Ok(self.chain.append((at, &self.session), event)?)
    }

    fn commit(&mut self) -> Result<(), JournalError> {
        self.bytes.extend_from_slice(self.chain.pending());
        self.chain.settle();
        Ok(())
    }

    fn discard(&mut self) {
        self.chain.discard();
    }

    fn session(&self) -> &str {
        &self.session
    }

    fn head(&self) -> Head {
        self.chain.head()
    }
}

/// A journal one of whose commits fails, as if the disk were full just then.
#[derive(Debug)]
pub struct FailsAt<J> {
    inner: J,
    left: u64,
}

impl<J: Journal> FailsAt<J> {
    /// Lets `commits` commits succeed, and the next one fail; those after it succeed again.
    pub fn new(inner: J, commits: u64) -> Self {
        Self { inner, left: commits }
    }

    /// The journal inside.
    pub fn inner(&self) -> &J {
        &self.inner
    }
}

impl<J: Journal> Journal for FailsAt<J> {
    fn append(&mut self, at: &str, event: &Event) -> Result<(), JournalError> {
        self.inner.append(at, event)
    }

    fn commit(&mut self) -> Result<(), JournalError> {
        let fails = self.left == 0;
        self.left = self.left.checked_sub(1).unwrap_or(u64::MAX);
        if !fails {
            return self.inner.commit();
        }
        self.inner.discard();
        let source = io::Error::from(io::ErrorKind::StorageFull);
        Err(JournalError::Write(FsError { operation: "write", path: "journal.jsonl".into(), source }))
    }

    fn discard(&mut self) {
        self.inner.discard();
    }

    fn session(&self) -> &str {
        self.inner.session()
    }

    fn head(&self) -> Head {
        self.inner.head()
    }
}
