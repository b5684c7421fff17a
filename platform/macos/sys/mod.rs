//! System calls that rustix does not have.

pub(crate) mod descriptors;
pub(crate) mod flags;
pub(crate) mod fsevents;
pub(crate) mod identity;
pub(crate) mod kqueue;
pub(crate) mod process;
pub(crate) mod socket;
