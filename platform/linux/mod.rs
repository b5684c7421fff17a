//! Linux.

#[cfg(target_os = "linux")]
mod attributes;
#[cfg(target_os = "linux")]
mod durable;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod privilege;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
pub(crate) use attributes::*;
#[cfg(target_os = "linux")]
pub(crate) use durable::*;
#[cfg(target_os = "linux")]
pub(crate) use files::*;
#[cfg(target_os = "linux")]
pub(crate) use privilege::*;
#[cfg(target_os = "linux")]
pub(crate) use process::*;
