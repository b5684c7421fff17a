//! System calls without a safe wrapper elsewhere.

pub(crate) mod disposition;
