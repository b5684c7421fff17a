//! Learning of changes by fanotify: as any user may, and with what was opened with privilege.
//!
//! Promise and limit: see [`super::marks`]; here is only which of it works and why not.
//! Source: fanotify_init(2) on its errors and limits.

use std::io;
use std::sync::{Arc, Mutex};

use crate::backends::Equipment;
use crate::cover::{self, Extra, MarkError, Marks as _, Seat};
use crate::dir::Dir;
use crate::event::{EventSource, Names, Powers, Sink, StartError, Subscription, WatchSet};
use crate::opening::Marker;

use super::later;
use super::marks::Groups;
use super::privileged::{MarkGroups, Whole};

const NAME: &str = "fanotify";

/// The backend.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fanotify;

impl EventSource for Fanotify {
    fn name(&self) -> &'static str {
        NAME
    }

    fn probe(&self) -> Result<(), StartError> {
        try_out(Groups::new().map_err(unavailable)?)
    }

    fn start(&self, set: WatchSet, sink: Sink) -> Result<Box<dyn Subscription>, StartError> {
        cover::start(NAME, Groups::new().map_err(unavailable)?, None, set, sink)
    }
}

/// The backend over groups that were made with privilege.
pub(crate) struct WithPrivilege {
    /// Taken by the first start.
    groups: Mutex<Option<MarkGroups>>,
    marker: Option<Arc<dyn Marker>>,
    names: Option<Arc<dyn Names>>,
    whole: Option<Whole>,
}

impl WithPrivilege {
    pub(crate) fn new(equipment: Equipment) -> Self {
        let Equipment { groups, marker, names } = equipment;
        let groups = groups.0;
        let whole = groups.whole.as_ref().ok().map(|(whole, _)| *whole);
        Self { groups: Mutex::new(Some(groups)), marker, names, whole }
    }
}

impl EventSource for WithPrivilege {
    fn name(&self) -> &'static str {
        NAME
    }

    fn powers(&self, set: &WatchSet) -> Powers {
        let device = set.roots.first().map(|root| root.id().dev);
        Powers {
            whole_file_system: self.whole.is_some_and(|whole| device == Some(whole.device)),
            names_the_writer: self.marker.is_some() && self.names.is_some(),
        }
    }

    fn probe(&self) -> Result<(), StartError> {
        // What privilege was needed for is done; that directories can be marked is the same without.
        try_out(Groups::new().map_err(unavailable)?)
    }

    fn start(&self, set: WatchSet, sink: Sink) -> Result<Box<dyn Subscription>, StartError> {
        let groups = self.groups.lock().expect("no holder of this lock panics").take();
        let groups = groups.ok_or_else(|| StartError::Unavailable {
            backend: NAME,
            reason: "what was opened with privilege is in use".to_owned(),
        })?;
        let groups = Groups::with(groups, self.marker.clone()).map_err(unavailable)?;
        cover::start(NAME, groups, self.names.clone(), set, sink)
    }
}

fn try_out(mut groups: Groups) -> Result<(), StartError> {
    let root = Dir::open_ambient(std::path::Path::new("/"))
        .map_err(|error| StartError::Unavailable { backend: NAME, reason: error.source.to_string() })?;
    let marked = groups.mark_dir(&root, Extra::default(), Seat::default(), &mut Vec::new());
    later::close(groups);
    marked.map_err(|error| StartError::Unavailable { backend: NAME, reason: why(&error) })
}

/// Why there is no group.
fn unavailable(error: io::Error) -> StartError {
    let reason = match error.raw_os_error() {
        Some(libc::EMFILE) => format!(
            "all {} groups of this user or all descriptors of this process are in use; raise fs.fanotify.max_user_groups",
            limit("max_user_groups")
        ),
        Some(libc::EPERM) => "this kernel gives it to root only (before Linux 5.13), or a filter forbids it".to_owned(),
        Some(libc::ENOSYS | libc::EINVAL) => "this kernel lacks it; Linux 5.13 or later is needed".to_owned(),
        _ => error.to_string(),
    };
    StartError::Unavailable { backend: NAME, reason }
}

fn limit(name: &str) -> String {
    std::fs::read_to_string(format!("/proc/sys/fs/fanotify/{name}"))
        .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

fn why(error: &MarkError) -> String {
    match error {
        MarkError::Limit => {
            format!("all {} marks of this user are in use; raise fs.fanotify.max_user_marks", limit("max_user_marks"))
        }
        MarkError::Gone => error.to_string(),
        MarkError::Failed(error) => format!("a directory cannot be marked: {error}"),
    }
}
