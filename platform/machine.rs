//! What kind of machine this is: its kernel, its limits on events, the file system of a directory.
//!
//! Promise: only reads. Limit: how much of a limit is used counts what this user may see of its own processes; the kernel
//! tells nobody the sum.
//! Source: uname(2), fstatfs(2), proc_sys_fs(5), proc_pid_fdinfo(5).

use std::io;
use std::os::fd::AsFd;

use crate::dir::Dir;
use crate::host;

/// How changes come to a file system, which decides what events tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only this machine changes it.
    Local,
    /// It shows another folder, which can be changed underneath.
    Layered,
    /// Other machines change it, too.
    Network,
    /// A program of somebody's answers for it.
    UserSpace,
    /// Not known here.
    Unknown,
}

impl Kind {
    /// Whether files there are somebody's own and nothing else: no doors to the kernel (cgroup, sysfs, proc), whose opens
    /// others depend on whoever owns them, and none of a program that may take its time. What is not known is neither.
    pub const fn holds_own_files(self) -> bool {
        matches!(self, Kind::Local | Kind::Layered | Kind::Network)
    }
}

/// A file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSystem {
    /// Its name.
    pub name: String,
    /// How changes come to it.
    pub kind: Kind,
}

/// One of the system's limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// Its name, as the command that changes it takes it.
    pub name: &'static str,
    /// The value now; `None` if it cannot be read.
    pub value: Option<u64>,
    /// How much of it our user is seen to use; `None` if that cannot be told.
    pub used: Option<u64>,
}

/// A setting of the kernel that keeps a program from others of its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// Whether a program may trace another that it did not start.
    Tracing,
    /// Whether a program may push keys into its terminal.
    KeyPushing,
}

impl Setting {
    /// Its name, as the command that changes it takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Setting::Tracing => "kernel.yama.ptrace_scope",
            Setting::KeyPushing => "dev.tty.legacy_tiocsti",
        }
    }
}

/// The settings there are on this system, and their values; `None` if this kernel has no such setting.
pub fn settings() -> Vec<(Setting, Option<u64>)> {
    host::settings()
}

/// The file system a directory lies on.
pub fn file_system(dir: &Dir) -> io::Result<FileSystem> {
    host::file_system(dir.as_fd())
}

/// How changes come to a file system that macOS calls by this name (statfs(2), `f_fstypename`).
pub fn kind_on_macos(name: &[u8]) -> Kind {
    match name {
        // Since macOS 13 the FAT systems are programs of Apple's own behind `lifs`; nothing else has their devices.
        b"apfs" | b"hfs" | b"msdos" | b"exfat" | b"lifs" | b"ntfs" | b"udf" | b"cd9660" | b"tmpfs" => Kind::Local,
        b"nfs" | b"smbfs" | b"afpfs" | b"webdav" | b"ftp" | b"autofs" => Kind::Network,
        // One folder shown over another.
        b"unionfs" | b"bindfs" | b"nullfs" => Kind::Layered,
        // macFUSE and its relatives; virtiofs is the host's folder in a guest.
        b"virtiofs" | b"AppleVirtIOFS" => Kind::UserSpace,
        name if name.windows(4).any(|part| part.eq_ignore_ascii_case(b"fuse")) => Kind::UserSpace,
        _ => Kind::Unknown,
    }
}

/// Name and release of the kernel.
pub fn kernel() -> String {
    let uname = rustix::system::uname();
    format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy())
}

/// The limits that concern the backends, by the name of the backend.
pub fn limits() -> Vec<(&'static str, Limit)> {
    host::limits()
}

/// What a process can confine itself by on this system.
#[derive(Debug)]
pub struct Confinement {
    /// The name of the strongest means there is for this kind of system, in lower case.
    pub name: &'static str,
    /// What was found of it, or why it cannot be had.
    pub found: io::Result<String>,
}

/// Looks for it.
pub fn confinement() -> Confinement {
    host::own_confinement()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_has_a_name_and_a_release() {
        let kernel = kernel();
        assert!(kernel.split(' ').count() >= 2, "{kernel}");
    }

    #[test]
    fn the_root_directory_lies_on_a_file_system_with_a_name() {
        let root = Dir::open_ambient(std::path::Path::new("/")).expect("opens");
        assert!(!file_system(&root).expect("the system tells").name.is_empty());
    }

    #[test]
    fn what_can_confine_a_process_has_a_name_and_is_found_or_missed_for_a_reason() {
        let Confinement { name, found } = confinement();
        assert!(!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase()), "{name}");
        assert!(!found.unwrap_or_else(|error| error.to_string()).is_empty());
    }

    #[test]
    fn a_file_system_of_macos_is_known_by_its_name_and_an_unknown_one_is_not_called_local() {
        for (name, kind) in [
            ("apfs", Kind::Local),
            ("smbfs", Kind::Network),
            ("macfuse", Kind::UserSpace),
            ("osxfuse", Kind::UserSpace),
            ("macFUSE", Kind::UserSpace),
            ("bindfs", Kind::Layered),
            ("", Kind::Unknown),
            ("apfs2", Kind::Unknown),
        ] {
            assert_eq!(kind_on_macos(name.as_bytes()), kind, "{name}");
        }
    }

    #[test]
    fn no_limit_is_named_twice() {
        let mut names: Vec<_> = limits().into_iter().map(|(_, limit)| limit.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
