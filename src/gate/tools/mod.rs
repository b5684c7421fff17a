//! The tools there are: one table, closed.
//!
//! Promise: a tool that is not in the table cannot be named in a manifest and does not exist for any caller.

pub mod info;
pub mod request;

pub use info::{info, served};
pub use request::{ArgumentError, Request};

/// A tool of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tool {
    /// Fetch a page.
    HttpRead,
    /// Send something to a host.
    HttpWrite,
    /// Look a name up.
    DnsResolve,
    /// Ask whether a host is there.
    Ping,
    /// Read a file.
    FileRead,
    /// List a directory.
    FileList,
    /// Say what is at a path.
    FileStat,
    /// Find files by name and content.
    FileSearch,
    /// Create or replace a file.
    FileWrite,
    /// Remove a file or an empty directory.
    FileRemove,
    /// Move a file or directory.
    FileMove,
    /// Tell the person something now.
    Notify,
    /// Tell the person something later.
    Remind,
    /// List what will be told.
    RemindList,
    /// Take a reminder back.
    RemindCancel,
    /// Read a note.
    MemoryRead,
    /// Write a note.
    MemoryWrite,
    /// Read a file of a skill.
    SkillRead,
    /// Load a skill.
    SkillLoad,
    /// Tell the time.
    TimeNow,
    /// Be called again later.
    Wake,
    /// Run a script over the other tools.
    CodeRun,
}

use Tool::*;

/// What the table says of one tool: its name, whether it only observes, whether it can destroy something.
const TABLE: [(Tool, &str, bool, bool); 22] = [
    (HttpRead, "http_read", true, false),
    (HttpWrite, "http_write", false, true),
    (DnsResolve, "dns_resolve", true, false),
    (Ping, "ping", true, false),
    (FileRead, "file_read", true, false),
    (FileList, "file_list", true, false),
    (FileStat, "file_stat", true, false),
    (FileSearch, "file_search", true, false),
    (FileWrite, "file_write", false, true),
    (FileRemove, "file_remove", false, true),
    (FileMove, "file_move", false, true),
    (Notify, "notify", false, false),
    (Remind, "remind", false, false),
    (RemindList, "remind_list", true, false),
    (RemindCancel, "remind_cancel", false, false),
    (MemoryRead, "memory_read", true, false),
    (MemoryWrite, "memory_write", false, true),
    (SkillRead, "skill_read", true, false),
    (SkillLoad, "skill_load", true, false),
    (TimeNow, "time_now", true, false),
    (Wake, "wake", false, false),
    (CodeRun, "code_run", false, false),
];

impl Tool {
    /// All of them, in the order they are listed in.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|(tool, ..)| *tool)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The tool of this exact name.
    pub fn parse(name: &str) -> Option<Self> {
        TABLE.iter().find(|(_, known, ..)| *known == name).map(|(tool, ..)| *tool)
    }

    /// Whether it changes nothing.
    pub fn is_read_only(self) -> bool {
        self.row().2
    }

    /// Whether it can destroy something.
    pub fn is_destructive(self) -> bool {
        self.row().3
    }

    fn row(self) -> &'static (Self, &'static str, bool, bool) {
        TABLE.iter().find(|(tool, ..)| *tool == self).expect("every tool has a row")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_its_tool_and_no_other_spelling_does() {
        for tool in Tool::all() {
            assert_eq!(Tool::parse(tool.name()), Some(tool));
            assert_eq!(Tool::parse(&tool.name().to_uppercase()), None);
            assert!(!(tool.is_read_only() && tool.is_destructive()));
        }
        assert_eq!(Tool::parse("*"), None);
    }
}
