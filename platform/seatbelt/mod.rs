//! Profiles for Seatbelt, the sandbox of macOS: what a process may still do, as a value, and its text.
//!
//! Promise: pure; the text holds the profile's clauses in their order and nothing else, whatever bytes its paths have.
//! Limit: Apple documents the language nowhere, so that what a text means is found out by trying it, each time
//! ([`crate::confine::attempts`]). Paths are matched by name when they are used: a profile does not follow a folder that is
//! moved, and holds for what takes its place.
//! Source: sandbox_init(3); the profiles in /System/Library/Sandbox/Profiles of macOS, WebKit's and Chromium's.

mod path;
mod profiles;
mod text;

pub use path::{PathError, PlainPath};
pub use profiles::{Command, command, files_worker, pure_computation};

/// A whole profile. Of the clauses that name an operation the last one that fits counts; one that names it counts before
/// one that names its family, wherever they stand, so that whoever takes something back names each operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// What holds for what no clause speaks of.
    pub default: Effect,
    /// In order.
    pub clauses: Vec<Clause>,
}

/// What a clause does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The operations are allowed.
    Allow,
    /// The operations fail with EPERM.
    Deny,
}

/// One line of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clause {
    /// What it does.
    pub effect: Effect,
    /// To what; never empty.
    pub operations: Vec<Operation>,
    /// Where only; everywhere without one.
    pub filter: Option<Filter>,
}

/// Where an operation is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// At this path.
    Exactly(PlainPath),
    /// At this path and everywhere below it.
    Below(PlainPath),
    /// On objects of this type.
    OfType(ObjectType),
    /// On the process itself.
    Itself,
    /// A value of the kernel, by its name.
    Value(&'static str),
    /// These commands of fcntl(2), by their numbers.
    Commands(&'static [u16]),
    /// Where all of them hold.
    All(Vec<Filter>),
    /// Where one of them holds.
    Any(Vec<Filter>),
}

/// A type of an object with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ObjectType {
    RegularFile,
    Directory,
    Symlink,
}

/// An operation, or a family of them, by the name that the language has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Operation {
    FileRead,
    FileReadData,
    FileReadMetadata,
    FileReadXattr,
    FileWrite,
    FileWriteAcl,
    FileWriteCreate,
    FileWriteData,
    FileWriteFlags,
    FileWriteMode,
    FileWriteOwner,
    FileWriteSetId,
    FileWriteTimes,
    FileWriteUnlink,
    FileWriteXattr,
    FileClone,
    FileLink,
    FileMapExecutable,
    IoKitGetProperties,
    Network,
    Nvram,
    ProcessExec,
    ProcessFork,
    ProcessInfo,
    Signal,
    SysctlRead,
    SystemFcntl,
}

impl Operation {
    /// Every one.
    pub const ALL: [Operation; 27] = [
        Self::FileRead,
        Self::FileReadData,
        Self::FileReadMetadata,
        Self::FileReadXattr,
        Self::FileWrite,
        Self::FileWriteAcl,
        Self::FileWriteCreate,
        Self::FileWriteData,
        Self::FileWriteFlags,
        Self::FileWriteMode,
        Self::FileWriteOwner,
        Self::FileWriteSetId,
        Self::FileWriteTimes,
        Self::FileWriteUnlink,
        Self::FileWriteXattr,
        Self::FileClone,
        Self::FileLink,
        Self::FileMapExecutable,
        Self::IoKitGetProperties,
        Self::Network,
        Self::Nvram,
        Self::ProcessExec,
        Self::ProcessFork,
        Self::ProcessInfo,
        Self::Signal,
        Self::SysctlRead,
        Self::SystemFcntl,
    ];

    /// Its name in the language.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FileRead => "file-read*",
            Self::FileReadData => "file-read-data",
            Self::FileReadMetadata => "file-read-metadata",
            Self::FileReadXattr => "file-read-xattr",
            Self::FileWrite => "file-write*",
            Self::FileWriteAcl => "file-write-acl",
            Self::FileWriteCreate => "file-write-create",
            Self::FileWriteData => "file-write-data",
            Self::FileWriteFlags => "file-write-flags",
            Self::FileWriteMode => "file-write-mode",
            Self::FileWriteOwner => "file-write-owner",
            Self::FileWriteSetId => "file-write-setugid",
            Self::FileWriteTimes => "file-write-times",
            Self::FileWriteUnlink => "file-write-unlink",
            Self::FileWriteXattr => "file-write-xattr",
            Self::FileClone => "file-clone",
            Self::FileLink => "file-link",
            Self::FileMapExecutable => "file-map-executable",
            Self::IoKitGetProperties => "iokit-get-properties",
            Self::Network => "network*",
            Self::Nvram => "nvram*",
            Self::ProcessExec => "process-exec*",
            Self::ProcessFork => "process-fork",
            Self::ProcessInfo => "process-info*",
            Self::Signal => "signal",
            Self::SysctlRead => "sysctl-read",
            Self::SystemFcntl => "system-fcntl",
        }
    }
}

impl ObjectType {
    /// Every one.
    pub const ALL: [ObjectType; 3] = [Self::RegularFile, Self::Directory, Self::Symlink];

    /// Its name in the language.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RegularFile => "REGULAR-FILE",
            Self::Directory => "DIRECTORY",
            Self::Symlink => "SYMLINK",
        }
    }
}

impl Profile {
    /// The text, which has no NUL.
    pub fn text(&self) -> Vec<u8> {
        text::of(self)
    }
}

#[cfg(test)]
mod tests;
