//! macOS.

#[cfg(target_os = "macos")]
mod files;
#[cfg(target_os = "macos")]
pub(crate) use files::*;
#[cfg(target_os = "macos")]
mod desktop;
#[cfg(target_os = "macos")]
pub use desktop::*;
