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

/// Name and release of the kernel.
pub fn kernel() -> String {
    let uname = rustix::system::uname();
    format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy())
}

/// The limits that concern the backends, by the name of the backend.
pub fn limits() -> Vec<(&'static str, Limit)> {
    host::limits()
}

/// Version of the interface by which a process can confine itself; the error says why there is none.
pub fn confinement() -> io::Result<u32> {
    host::confinement_version()
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
    fn no_limit_is_named_twice() {
        let mut names: Vec<_> = limits().into_iter().map(|(_, limit)| limit.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
