//! Privilege on macOS: nothing of it is used to learn of changes.

use std::os::fd::{BorrowedFd, OwnedFd};

use crate::dir::Dir;
use crate::privilege::PrivilegeError;

/// There are none.
pub(crate) enum MarkGroups {}

impl MarkGroups {
    pub(crate) fn all(&self) -> Vec<BorrowedFd<'_>> {
        match *self {}
    }
}

pub(crate) fn is_privileged() -> bool {
    false
}

pub(crate) fn mark_groups(_dir: &Dir) -> Result<Option<MarkGroups>, PrivilegeError> {
    Ok(None)
}

pub(crate) fn openings() -> Result<Option<OwnedFd>, PrivilegeError> {
    Ok(None)
}
