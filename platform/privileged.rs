//! What a process opens while it has privilege, to go on with when it has none.
//!
//! Promise: [`Privileged::open`] looks at one open directory and at nothing in it. What it gives is open descriptors, which
//! [`crate::privilege::drop_to`] and [`crate::privilege::drop_capabilities`] leave alone.
//! Limit: only Linux has any of it, and there only for root of the whole machine or a program with `CAP_SYS_ADMIN`.

use std::os::fd::{BorrowedFd, OwnedFd};

use crate::dir::Dir;
use crate::host;
use crate::privilege::PrivilegeError;
use crate::witness;

/// What to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wanted {
    /// Groups for events that say who, and one mark on the directory's file system.
    pub events: bool,
    /// The group by which opens are held and openers named.
    pub openings: bool,
    /// The feed of processes that are made and end.
    pub processes: bool,
}

impl Wanted {
    /// All there is.
    pub const ALL: Self = Self { events: true, openings: true, processes: true };
}

/// Groups for events that say who.
pub struct MarkGroups(pub(crate) host::MarkGroups);

impl MarkGroups {
    /// Each of the groups, for the [guardian](crate::guardian), which closes them last.
    pub fn all(&self) -> Vec<BorrowedFd<'_>> {
        self.0.all()
    }
}

/// What was opened. What is missing was not wanted, or this system does not have it, or not for us.
pub struct Privileged {
    /// For the event backend: see [`crate::backends::with_privilege`].
    pub groups: Option<MarkGroups>,
    /// For permission events.
    pub openings: Option<OwnedFd>,
    /// Tells of processes, for [`witness::Witness::new`].
    pub connector: Option<witness::Connection>,
}

impl Privileged {
    /// Opens what is wanted for a tree on the file system of `dir`; `None` without the privilege.
    pub fn open(dir: &Dir, wanted: Wanted) -> Result<Option<Self>, PrivilegeError> {
        if !host::is_privileged() {
            return Ok(None);
        }
        let groups = if wanted.events { host::mark_groups(dir)?.map(MarkGroups) } else { None };
        let openings = if wanted.openings { host::openings()? } else { None };
        let connector = if wanted.processes { witness::connector().ok() } else { None };
        Ok(Some(Self { groups, openings, connector }))
    }
}
