//! System calls of Linux that no safe wrapper crate has: the only unsafe code on Linux.

pub(crate) mod descriptors;
pub(crate) mod doors;
pub(crate) mod fanotify;
pub(crate) mod fork;
pub(crate) mod identity;
pub(crate) mod landlock;
pub(crate) mod lease;
pub(crate) mod pidfd;
#[cfg(feature = "testing")]
pub(crate) mod probe;
pub(crate) mod seccomp;
pub(crate) mod signal_of;
pub(crate) mod socket_filter;
