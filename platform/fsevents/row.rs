//! One row of an event stream: a path, merged flags, a number.
//!
//! Source: FSEvents.h, `FSEventStreamEventFlags`.

use std::fmt;

/// What may have happened at a path since it was last named: a sum, without order.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u32);

impl Flags {
    /// Rows were merged into one for a directory above: all below it is to be looked at.
    pub const MUST_SCAN_SUB_DIRS: Self = Self(0x1);
    /// Rows were dropped on the way to us.
    pub const USER_DROPPED: Self = Self(0x2);
    /// Rows were dropped in the kernel.
    pub const KERNEL_DROPPED: Self = Self(0x4);
    /// Numbers start again.
    pub const IDS_WRAPPED: Self = Self(0x8);
    /// What was asked for of the past has been told; the path means nothing.
    pub const HISTORY_DONE: Self = Self(0x10);
    /// The watched directory, or one above it, was moved or removed.
    pub const ROOT_CHANGED: Self = Self(0x20);
    /// A volume was mounted at the path.
    pub const MOUNT: Self = Self(0x40);
    /// A volume was unmounted there.
    pub const UNMOUNT: Self = Self(0x80);
    /// Something was made.
    pub const CREATED: Self = Self(0x100);
    /// Something was removed.
    pub const REMOVED: Self = Self(0x200);
    /// Bits, times or other attributes changed.
    pub const INODE_META_MOD: Self = Self(0x400);
    /// The name is one of the two of a rename.
    pub const RENAMED: Self = Self(0x800);
    /// Content changed.
    pub const MODIFIED: Self = Self(0x1000);
    /// Finder information changed.
    pub const FINDER_INFO_MOD: Self = Self(0x2000);
    /// The owner changed.
    pub const CHANGE_OWNER: Self = Self(0x4000);
    /// Extended attributes changed.
    pub const XATTR_MOD: Self = Self(0x8000);
    /// It was a regular file.
    pub const IS_FILE: Self = Self(0x1_0000);
    /// It was a directory.
    pub const IS_DIR: Self = Self(0x2_0000);
    /// It was a symlink.
    pub const IS_SYMLINK: Self = Self(0x4_0000);
    /// This process did it. Only set in streams that ask for it, as ours do not.
    pub const OWN_EVENT: Self = Self(0x8_0000);
    /// The object had more than one name.
    pub const IS_HARDLINK: Self = Self(0x10_0000);
    /// The name was the object's last.
    pub const IS_LAST_HARDLINK: Self = Self(0x20_0000);
    /// It was cloned, or is a clone.
    pub const CLONED: Self = Self(0x40_0000);

    /// Each flag with the end of its name in FSEvents.h.
    pub const NAMES: [(&str, Self); 23] = [
        ("MustScanSubDirs", Self::MUST_SCAN_SUB_DIRS),
        ("UserDropped", Self::USER_DROPPED),
        ("KernelDropped", Self::KERNEL_DROPPED),
        ("EventIdsWrapped", Self::IDS_WRAPPED),
        ("HistoryDone", Self::HISTORY_DONE),
        ("RootChanged", Self::ROOT_CHANGED),
        ("Mount", Self::MOUNT),
        ("Unmount", Self::UNMOUNT),
        ("Created", Self::CREATED),
        ("Removed", Self::REMOVED),
        ("InodeMetaMod", Self::INODE_META_MOD),
        ("Renamed", Self::RENAMED),
        ("Modified", Self::MODIFIED),
        ("FinderInfoMod", Self::FINDER_INFO_MOD),
        ("ChangeOwner", Self::CHANGE_OWNER),
        ("XattrMod", Self::XATTR_MOD),
        ("IsFile", Self::IS_FILE),
        ("IsDir", Self::IS_DIR),
        ("IsSymlink", Self::IS_SYMLINK),
        ("OwnEvent", Self::OWN_EVENT),
        ("IsHardlink", Self::IS_HARDLINK),
        ("IsLastHardlink", Self::IS_LAST_HARDLINK),
        ("Cloned", Self::CLONED),
    ];

    /// Whether one of `other` is set.
    pub fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Both.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for (name, _) in Self::NAMES.iter().filter(|(_, flag)| self.any(*flag)) {
            let bar = if std::mem::take(&mut first) { "" } else { "|" };
            write!(formatter, "{bar}{name}")?;
        }
        if first { write!(formatter, "None") } else { Ok(()) }
    }
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// An absolute path in whatever spelling; `None` if the system gave one that is no text.
    pub path: Option<Vec<u8>>,
    /// What may have happened.
    pub flags: Flags,
    /// Its number; zero for [`Flags::ROOT_CHANGED`].
    pub id: u64,
    /// The inode number of what the row is about, if the system told it.
    pub file: Option<u64>,
}
