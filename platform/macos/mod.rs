//! macOS.

#[cfg(target_os = "macos")]
mod attributes;
#[cfg(target_os = "macos")]
mod child;
#[cfg(target_os = "macos")]
mod confine;
#[cfg(target_os = "macos")]
mod connector;
#[cfg(target_os = "macos")]
mod desktop;
#[cfg(target_os = "macos")]
mod durable;
#[cfg(target_os = "macos")]
mod files;
#[cfg(target_os = "macos")]
mod fsevents;
#[cfg(target_os = "macos")]
mod guardian;
#[cfg(target_os = "macos")]
mod layout;
#[cfg(target_os = "macos")]
mod limits;
#[cfg(target_os = "macos")]
mod listing;
#[cfg(target_os = "macos")]
mod mount_watch;
#[cfg(target_os = "macos")]
mod openings;
#[cfg(target_os = "macos")]
mod powers;
#[cfg(target_os = "macos")]
mod privilege;
#[cfg(target_os = "macos")]
mod privileged;
#[cfg(all(target_os = "macos", feature = "testing"))]
mod probe;
#[cfg(target_os = "macos")]
mod process;
#[cfg(target_os = "macos")]
mod program;
#[cfg(target_os = "macos")]
mod ready;
#[cfg(target_os = "macos")]
mod socket;
#[cfg(target_os = "macos")]
mod sys;
#[cfg(target_os = "macos")]
pub use desktop::*;
#[cfg(all(target_os = "macos", feature = "testing"))]
pub(crate) use probe::*;
#[cfg(target_os = "macos")]
pub(crate) use program::*;
#[cfg(target_os = "macos")]
pub(crate) use {
    attributes::*, child::*, confine::*, connector::*, durable::*, files::*, guardian::*, layout::*, limits::*,
    listing::*, mount_watch::MountWatch, openings::*, powers::*, privilege::*, privileged::*, process::*, ready::*,
    socket::*,
};

/// The kernel's ways to tell of changes, strongest first.
#[cfg(target_os = "macos")]
pub(crate) fn event_sources() -> Vec<Box<dyn crate::event::EventSource>> {
    vec![Box::new(fsevents::FsEvents)]
}

/// There is nothing that privilege could add.
#[cfg(target_os = "macos")]
pub(crate) fn privileged_event_sources(
    equipment: crate::backends::Equipment,
) -> Vec<Box<dyn crate::event::EventSource>> {
    match equipment.groups.0 {}
}
