//! macOS.

#[cfg(target_os = "macos")]
mod files;
#[cfg(target_os = "macos")]
mod listing;
#[cfg(target_os = "macos")]
mod mount_watch;
#[cfg(target_os = "macos")]
pub(crate) use {files::*, listing::*, mount_watch::MountWatch};

/// The kernel's ways to tell of changes, strongest first. None yet: polling does it.
#[cfg(target_os = "macos")]
pub(crate) fn event_sources() -> Vec<Box<dyn crate::event::EventSource>> {
    Vec::new()
}
