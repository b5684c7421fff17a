//! Linux.

#[cfg(target_os = "linux")]
mod attributes;
#[cfg(target_os = "linux")]
mod durable;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
pub(crate) use attributes::*;
#[cfg(target_os = "linux")]
pub(crate) use durable::*;
#[cfg(target_os = "linux")]
pub(crate) use files::*;
