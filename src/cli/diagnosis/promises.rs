//! What each limit and each facility is good for, and what happens without.

use platform::machine::Limit;
use platform::trial::{Facility, Trial};

use super::Ground;
use super::finding::{Area, Finding, finding};

/// What is said of a limit. It is no promise that is kept or not, unless all of it is in use.
pub fn limit_finding(backend: &str, limit: &Limit) -> Finding {
    let promise = match limit.name.rsplit('.').next() {
        Some("max_user_marks" | "max_user_watches") => {
            "directories and protected files that can be covered, for all programs of a user"
        }
        Some("max_user_groups" | "max_user_instances") => "programs of a user that can watch; keep watch takes two",
        Some("max_queued_events") => "changes that can wait; if more come at once, everything is compared",
        _ => "a limit of the system",
    };
    let in_use = limit.used.map_or_else(String::new, |used| format!(", {used} of them seen in use"));
    let value = limit.value.map_or_else(|| "not known".to_owned(), |value| value.to_string());
    let is_used_up = limit.value.zip(limit.used).is_some_and(|(value, used)| used >= value);
    Finding {
        works: is_used_up.then_some(false),
        detail: Some(format!("{value}{in_use}; for {backend}")),
        raise: limit.value.map(|value| format!("sudo sysctl {}={}", limit.name, value.saturating_mul(2))),
        limit: Some(limit.clone()),
        ..finding(Area::Limits, limit.name, promise)
    }
}

/// What each facility is good for in a folder; `None` if it is not needed there. The second text is what happens without.
fn facility(facility: Facility, area: Area) -> Option<(&'static str, &'static str, &'static str, &'static str)> {
    Some(match (facility, area) {
        (Facility::Beneath, Area::Tree) => (
            "beneath",
            "a path is opened in one call that follows no symlink",
            "it is opened component by component, slower and as safe",
            "Linux 5.6 (openat2) or macOS 11 (O_NOFOLLOW_ANY), or later",
        ),
        (Facility::Exchange, Area::Tree) => (
            "exchange",
            "accepted content takes its place in one step",
            "it takes two steps, and the path is absent for a moment between them",
            "a file system with RENAME_EXCHANGE or RENAME_SWAP",
        ),
        (Facility::SharedBlocks, _) => (
            "shared_blocks",
            "a copy shares blocks and takes no room",
            "bytes are copied",
            "btrfs, xfs, bcachefs or APFS",
        ),
        (Facility::Attributes, Area::Tree) => (
            "attributes",
            "extended attributes are compared and restored",
            "there are none to compare",
            "a file system with user attributes",
        ),
        (Facility::AccessLists, Area::Tree) => (
            "access_lists",
            "access lists are compared and restored",
            "there are none to compare",
            "a file system with access lists (on Linux, mount option acl)",
        ),
        (Facility::ImmutableFlag, Area::Tree) => (
            "immutable",
            "the immutable and append-only flags of an accepted file are set again",
            "a file that lost one is put back without it, and that is said",
            "a file system with flags, and on Linux CAP_LINUX_IMMUTABLE",
        ),
        (Facility::CaseSensitive, Area::Tree) => (
            "case_sensitive",
            "no file has two names that differ in case",
            "a rule is for the spelling it names: a new .ENV is opened as .env and no rule covers it",
            "a volume that tells case apart",
        ),
        (Facility::ExactNames, Area::Tree) => (
            "exact_names",
            "no file has two names that write an accent in two ways",
            "a rule is for the way its name is written: another way leads to the same file",
            "a volume that compares names byte by byte",
        ),
        (Facility::FullSync, Area::State) => (
            "full_sync",
            "what is written down outlasts a power cut",
            "what is synced may lie in the cache of the drive or of another machine still",
            "a disk of this machine's own (F_FULLFSYNC on macOS)",
        ),
        (Facility::Lock, Area::State) => (
            "lock",
            "the kernel lets one watch at a time into a root, and the next one in when that dies",
            "the lock's file says who holds it, which is good on one machine only",
            "a file system with flock(2)",
        ),
        _ => return None,
    })
}

/// What is said of what was tried in a folder.
pub fn trials(ground: &Ground, area: Area) -> Vec<Finding> {
    let trials = match &ground.trials {
        Ok(trials) => trials,
        Err(reason) => {
            let (detail, raise) = (Some(reason.clone()), Some("a folder this user can write to".to_owned()));
            return vec![Finding {
                works: Some(false),
                detail,
                raise,
                ..finding(area, "scratch", "scratch files can be made to try things")
            }];
        }
    };
    let said = trials.iter().filter_map(|(tried, trial)| {
        let (name, promise, without, raise) = facility(*tried, area)?;
        let plain = finding(area, name, promise);
        Some(match trial {
            Trial::Works => Finding { works: Some(true), ..plain },
            Trial::Fails(reason) => Finding {
                works: Some(false),
                detail: Some(format!("{reason}; {without}")),
                raise: Some(raise.to_owned()),
                ..plain
            },
        })
    });
    said.collect()
}
