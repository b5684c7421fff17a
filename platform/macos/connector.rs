//! macOS has no feed of processes that is open to us: that is the endpoint security framework's.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::witness::Received;

/// Never there.
pub(crate) fn process_connector() -> io::Result<OwnedFd> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A descriptor that says nothing.
#[derive(Debug)]
pub(crate) struct Connector(OwnedFd);

impl Connector {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self(socket)
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    pub(crate) fn receive(&self, _buffer: &mut [u8]) -> io::Result<Received> {
        Ok(Received::Nothing)
    }
}
