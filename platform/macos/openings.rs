//! Opens are not held on macOS: that takes the Endpoint Security framework and an entitlement that Apple grants.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use crate::dir::Dir;
use crate::opening::{Answered, Doorkeeper, HeldId, Marker, Verdict};
use crate::openings::trial::Tried;
use crate::openings::{Identify, OpeningsError, Relief};

pub(crate) fn permission_group() -> io::Result<OwnedFd> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn try_holding(_: BorrowedFd<'_>, _: &Dir) -> io::Result<Tried> {
    Err(io::ErrorKind::Unsupported.into())
}

/// There is none.
#[derive(Debug)]
pub(crate) enum HostOpenings {}

impl HostOpenings {
    pub(crate) fn start(_: OwnedFd, _: Arc<dyn Doorkeeper>, _: Arc<dyn Identify>) -> Result<Self, OpeningsError> {
        Err(OpeningsError::Unavailable)
    }

    pub(crate) fn marker(&self) -> Arc<dyn Marker> {
        match *self {}
    }

    pub(crate) fn answer(&self, _: HeldId, _: Verdict) -> Answered {
        match *self {}
    }

    pub(crate) fn relief(&self) -> Relief {
        match *self {}
    }

    pub(crate) fn waiting(&self) -> usize {
        match *self {}
    }

    pub(crate) fn answer_within(&self, _: Duration) {
        match *self {}
    }

    pub(crate) fn notice(&self, _: Box<dyn Fn(bool) + Send + Sync>) {
        match *self {}
    }
}
