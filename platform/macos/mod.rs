//! macOS.

#[cfg(target_os = "macos")]
mod attributes;
#[cfg(target_os = "macos")]
mod durable;
#[cfg(target_os = "macos")]
mod files;
#[cfg(target_os = "macos")]
mod privilege;
#[cfg(target_os = "macos")]
mod process;
#[cfg(target_os = "macos")]
mod sys;
#[cfg(target_os = "macos")]
pub(crate) use attributes::*;
#[cfg(target_os = "macos")]
pub(crate) use durable::*;
#[cfg(target_os = "macos")]
pub(crate) use files::*;
#[cfg(target_os = "macos")]
pub(crate) use privilege::*;
#[cfg(target_os = "macos")]
pub(crate) use process::*;
