//! The limits of inotify and fanotify, and what of them our user is seen to use.
//!
//! Limit: processes that may not be looked into are left out (others in a container, those that refuse tracing), and a
//! group inherited by a child counts twice. Source: inotify(7), fanotify(7), "/proc interfaces".

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::file_systems::by_number;
use super::sys::landlock;
use super::usage::{Usage, effective_user, group};
use crate::machine::{Confinement, FileSystem, Limit};

pub(crate) fn limits() -> Vec<(&'static str, Limit)> {
    let usage = usage();
    let used = |of: fn(Usage) -> u64| usage.map(of);
    let limit = |name: &'static str, used| Limit { name, value: value(name), used };
    vec![
        ("fanotify", limit("fs.fanotify.max_user_marks", used(|usage| usage.fanotify.marks))),
        ("fanotify", limit("fs.fanotify.max_user_groups", used(|usage| usage.fanotify.groups))),
        ("fanotify", limit("fs.fanotify.max_queued_events", None)),
        ("inotify", limit("fs.inotify.max_user_watches", used(|usage| usage.inotify.marks))),
        ("inotify", limit("fs.inotify.max_user_instances", used(|usage| usage.inotify.groups))),
        ("inotify", limit("fs.inotify.max_queued_events", None)),
    ]
}

/// The value of a setting: sysctl(8) writes a dot where the path has a slash.
fn value(name: &str) -> Option<u64> {
    fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/"))).ok()?.trim().parse().ok()
}

/// What all processes of our user have that we may look into; `None` without /proc.
fn usage() -> Option<Usage> {
    let user = rustix::process::geteuid().as_raw();
    let mut usage = Usage::default();
    for process in fs::read_dir("/proc").ok()?.flatten() {
        let is_process = process.file_name().as_bytes().iter().all(u8::is_ascii_digit);
        let path = process.path();
        // Whatever fails from here on: the process has ended, or may not be looked into.
        let is_ours = || fs::read(path.join("status")).is_ok_and(|status| effective_user(&status) == Some(user));
        if is_process && is_ours() {
            add(&path, &mut usage);
        }
    }
    Some(usage)
}

fn add(process: &Path, usage: &mut Usage) {
    let Ok(open) = fs::read_dir(process.join("fd")) else { return };
    for file in open.flatten() {
        let link = fs::read_link(file.path()).ok();
        let Some(group) = link.and_then(|link| group(link.as_os_str().as_bytes())) else { continue };
        if let Ok(text) = fs::read(process.join("fdinfo").join(file.file_name())) {
            usage.add(group, &text);
        }
    }
}

pub(crate) fn file_system(dir: BorrowedFd<'_>) -> io::Result<FileSystem> {
    // The type of the field differs between architectures; the numbers have 32 bits.
    let number = rustix::fs::fstatfs(dir.as_fd())?.f_type as u32;
    Ok(by_number(number))
}

pub(crate) fn own_confinement() -> Confinement {
    Confinement {
        name: "landlock",
        found: landlock::version().map(|version| format!("version {version} of its interface")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};

    #[test]
    fn a_watch_of_ours_is_seen() {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let Ok(instance) = init(CreateFlags::CLOEXEC) else { return };
        add_watch(&instance, temp.path(), WatchFlags::CREATE).expect("one more is allowed");
        let usage = usage().expect("/proc is mounted");
        assert!(usage.inotify.groups >= 1 && usage.inotify.marks >= 1, "{usage:?}");
    }

    #[test]
    fn a_setting_that_is_not_there_has_no_value() {
        assert_eq!(value("fs.keep.not_there"), None);
        assert!(value("fs.file-max").is_some_and(|value| value > 0));
    }
}
