//! Linux.

#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
pub(crate) use files::*;
#[cfg(target_os = "linux")]
mod desktop;
#[cfg(target_os = "linux")]
pub use desktop::*;
