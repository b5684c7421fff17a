//! There is no guardian on macOS, since there is nothing it could keep: no opens are held and no flags set with privilege.

use std::os::fd::BorrowedFd;

use crate::flags::FlagError;
use crate::guardian::message::Request;
use crate::guardian::{GuardianError, Settings, Word};

/// There is none.
#[derive(Debug)]
pub(crate) enum HostGuardian {}

impl HostGuardian {
    pub(crate) fn start(_: BorrowedFd<'_>, _: &[BorrowedFd<'_>], _: Settings) -> Result<Self, GuardianError> {
        Err(GuardianError::Unavailable)
    }

    pub(crate) fn pid(&self) -> u32 {
        match *self {}
    }

    pub(crate) fn request(&self, _: Request, _: Option<BorrowedFd<'_>>) -> Result<(), FlagError> {
        match *self {}
    }

    pub(crate) fn waits(&self, _: bool) {
        match *self {}
    }

    pub(crate) fn has_heard(&self) -> bool {
        match *self {}
    }

    pub(crate) fn listen(&self, _: Box<dyn Fn(Word) + Send>) -> Result<(), GuardianError> {
        match *self {}
    }
}
