//! Nothing here tells of mounts; the caller's sweep finds that a path leads elsewhere.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use crate::event::LostCause;
use crate::root::Root;

/// Tells of nothing.
pub(crate) struct MountWatch;

impl MountWatch {
    /// There is nothing to open.
    pub(crate) fn new(_roots: &[Arc<Root>]) -> Option<Self> {
        None
    }

    /// Never called: there is no value of this type.
    pub(crate) fn queue(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// No mount is known to have come or gone.
    pub(crate) fn changed(&mut self) -> Option<LostCause> {
        None
    }
}
