//! System calls that rustix does not have.

pub(crate) mod identity;
