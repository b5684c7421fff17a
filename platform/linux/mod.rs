//! Linux.

pub mod file_systems;
pub mod mounts;
pub mod process_events;
pub mod records;
pub mod usage;

#[cfg(target_os = "linux")]
mod attributes;
#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
mod confine;
#[cfg(target_os = "linux")]
mod connector;
#[cfg(target_os = "linux")]
mod desktop;
#[cfg(target_os = "linux")]
mod durable;
#[cfg(target_os = "linux")]
mod event_filter;
#[cfg(target_os = "linux")]
mod fanotify;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod groups;
#[cfg(target_os = "linux")]
mod guardian;
#[cfg(target_os = "linux")]
mod inotify;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod later;
#[cfg(target_os = "linux")]
mod layout;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(target_os = "linux")]
mod listing;
#[cfg(target_os = "linux")]
mod marks;
#[cfg(target_os = "linux")]
mod mount_watch;
#[cfg(target_os = "linux")]
mod numbers;
#[cfg(target_os = "linux")]
mod openings;
#[cfg(target_os = "linux")]
mod powers;
#[cfg(target_os = "linux")]
mod privilege;
#[cfg(target_os = "linux")]
mod privileged;
#[cfg(all(target_os = "linux", feature = "testing"))]
mod probe;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod program;
#[cfg(target_os = "linux")]
mod ready;
#[cfg(target_os = "linux")]
mod socket;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(all(test, target_os = "linux"))]
mod witness_tests;
#[cfg(target_os = "linux")]
pub use desktop::*;
#[cfg(all(target_os = "linux", feature = "testing"))]
pub(crate) use probe::*;
#[cfg(target_os = "linux")]
pub(crate) use program::*;
#[cfg(target_os = "linux")]
pub(crate) use {
    attributes::*, child::*, confine::*, connector::*, durable::*, fanotify::Fanotify, files::*, guardian::*,
    inotify::Inotify, layout::*, limits::*, listing::*, mount_watch::MountWatch, openings::*, powers::*, privilege::*,
    privileged::*, process::*, ready::*, socket::*,
};

/// The kernel's ways to tell of changes, strongest first.
#[cfg(target_os = "linux")]
pub(crate) fn event_sources() -> Vec<Box<dyn crate::event::EventSource>> {
    vec![Box::new(Fanotify), Box::new(Inotify)]
}

/// The same, the strongest with what was opened with privilege.
#[cfg(target_os = "linux")]
pub(crate) fn privileged_event_sources(
    equipment: crate::backends::Equipment,
) -> Vec<Box<dyn crate::event::EventSource>> {
    vec![Box::new(fanotify::WithPrivilege::new(equipment)), Box::new(Inotify)]
}
