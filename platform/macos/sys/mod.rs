//! System calls that rustix does not have.

pub(crate) mod descriptors;
pub(crate) mod flags;
pub(crate) mod identity;
pub(crate) mod process;
pub(crate) mod socket;
