//! macOS.

#[cfg(target_os = "macos")]
mod files;
#[cfg(target_os = "macos")]
pub(crate) use files::*;
#[cfg(target_os = "macos")]
mod layout;
#[cfg(target_os = "macos")]
pub(crate) use layout::*;
