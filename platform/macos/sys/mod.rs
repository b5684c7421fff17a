//! System calls that rustix does not have.

pub(crate) mod access_list;
pub(crate) mod descriptors;
pub(crate) mod flags;
pub(crate) mod fsevents;
pub(crate) mod identity;
pub(crate) mod kqueue;
pub(crate) mod materialise;
#[cfg(feature = "testing")]
pub(crate) mod probe;
pub(crate) mod process;
pub(crate) mod sandbox;
pub(crate) mod select;
pub(crate) mod socket;
