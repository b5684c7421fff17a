//! Which program shows a notification, and with which arguments; pure but for the look whether a file is there.
//!
//! Promise: the text is always one argument, or part of one, never an option and never part of a script.
//! Source: notify-send(1) and the Desktop Notifications Specification, "Markup" (the body may be taken for markup);
//! osascript(1), "on run argv".

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::Notification;

/// A kind of notifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// libnotify's command.
    NotifySend,
    /// AppleScript's interpreter.
    Osascript,
}

const SCRIPT: [&str; 3] =
    ["on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run"];

impl Program {
    /// Its name in `PATH`.
    pub const fn name(self) -> &'static str {
        match self {
            Program::NotifySend => "notify-send",
            Program::Osascript => "osascript",
        }
    }

    /// Whether there can be a desktop to show anything. Without one, `notify-send` would try to start a message bus.
    pub fn has_desktop(self, is_set: &dyn Fn(&str) -> bool) -> bool {
        match self {
            Program::NotifySend => ["DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"].into_iter().any(is_set),
            Program::Osascript => true,
        }
    }

    /// The arguments that show this notification.
    pub fn arguments(self, notification: &Notification) -> Vec<OsString> {
        let Notification { title, body } = notification;
        let arguments: Vec<String> = match self {
            Program::NotifySend => {
                let options = ["--app-name=keepwatch", "--urgency=normal", "--category=security", "--"];
                let mut arguments: Vec<String> = options.map(str::to_owned).into();
                arguments.extend([title.clone(), markup_free(body)]);
                arguments
            }
            Program::Osascript => {
                let mut arguments: Vec<String> =
                    SCRIPT.into_iter().flat_map(|line| ["-e".to_owned(), line.to_owned()]).collect();
                // After `--` nothing is an option of osascript; the text is data for the script above.
                arguments.push("--".to_owned());
                arguments.extend([title.clone(), body.clone()]);
                arguments
            }
        };
        arguments.into_iter().map(OsString::from).collect()
    }
}

/// The text such that a desktop that knows markup shows what one without does.
fn markup_free(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The program's file: the first in the absolute directories of `search` (the value of `PATH`) that we may execute, unless
/// it lies below one of the `forbidden` directories, seen without symlinks: what a repository holds is never run.
pub fn find(program: Program, search: &OsStr, forbidden: &[PathBuf]) -> Option<PathBuf> {
    let found = search
        .as_bytes()
        .split(|&byte| byte == b':')
        .map(|directory| Path::new(OsStr::from_bytes(directory)))
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(program.name()))
        .filter(|path| path.is_file() && access(path, Access::EXEC_OK).is_ok())
        // The real path: whatever the names in between point to later, this is what was looked at.
        .filter_map(|path| path.canonicalize().ok())
        .find(|path| !forbidden.iter().any(|directory| path.starts_with(directory)))?;
    Some(found)
}
