//! Linux.

pub mod mounts;
pub mod records;

#[cfg(target_os = "linux")]
mod fanotify;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod groups;
#[cfg(target_os = "linux")]
mod inotify;
#[cfg(target_os = "linux")]
mod listing;
#[cfg(target_os = "linux")]
mod mount_watch;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
pub(crate) use {fanotify::Fanotify, files::*, inotify::Inotify, listing::*, mount_watch::MountWatch};

/// The kernel's ways to tell of changes, strongest first.
#[cfg(target_os = "linux")]
pub(crate) fn event_sources() -> Vec<Box<dyn crate::event::EventSource>> {
    vec![Box::new(Fanotify), Box::new(Inotify)]
}
