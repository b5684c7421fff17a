//! What is opened while there is privilege, and the guardian that keeps a little of it.
//!
//! Promise: opens are read only where a guardian answers when the watch is dead or stopped; without one, nobody's open waits
//! for us. Limit: a guardian needs what the watch itself needs of the system, and the kernel's filter of system calls.

use std::os::fd::AsFd;
use std::sync::Arc;

use platform::guardian::{Guardian, OnDeath, Settings};
use platform::privilege::PrivilegeError;
use platform::privileged::MarkGroups;
use platform::{Dir, Privileged, Wanted, flags, openings};

use super::args::WatchArgs;
use super::exit::causes;

/// What there is of it.
pub struct Opened {
    /// For events and opens.
    pub privileged: Result<Option<Privileged>, PrivilegeError>,
    /// Who keeps a part of the privilege.
    pub guardian: Option<Arc<Guardian>>,
    /// Why there is no guardian although there was privilege.
    pub trouble: Option<String>,
}

fn settings(on_death: OnDeath, user: u32) -> Settings {
    Settings { on_death, may_flag: flags::in_process().is_some(), user }
}

/// Opens what `keep watch` wants, for a user.
pub fn open(args: &WatchArgs, wanted: Wanted, dir: &Dir, user: u32) -> Opened {
    let mut privileged = Privileged::open(dir, wanted);
    let on_death = if args.hold.is_some() { OnDeath::Refuse } else { OnDeath::Allow };
    let (mut guardian, mut trouble) = (None, None);
    if let Ok(Some(opened)) = &mut privileged
        && let Some(group) = &opened.openings
    {
        let others = opened.groups.as_ref().map_or_else(Vec::new, MarkGroups::all);
        match Guardian::start(group.as_fd(), &others, settings(on_death, user)) {
            Ok(started) => guardian = Some(Arc::new(started)),
            Err(error) => {
                trouble = Some(causes(&error));
                opened.openings = None;
            }
        }
    }
    Opened { privileged, guardian, trouble }
}

/// Tries whether a guardian can be had for a user: one is made, shows that it is confined, and is ended.
pub fn try_it(user: u32) -> Result<(), String> {
    let group = openings::group().map_err(|error| error.to_string())?;
    Guardian::start(group.as_fd(), &[], settings(OnDeath::Refuse, user)).map(drop).map_err(|error| causes(&error))
}

/// A guardian that only takes off flags which a watch has left; `None` without the privilege.
pub fn for_flags(user: u32) -> Option<Arc<Guardian>> {
    flags::in_process()?;
    let group = openings::group().ok()?;
    Guardian::start(group.as_fd(), &[], settings(OnDeath::Allow, user)).ok().map(Arc::new)
}
