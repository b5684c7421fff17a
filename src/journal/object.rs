//! A file or folder by its identity, as the journal names what was made immutable.
//!
//! Limit: device numbers can be others after the machine starts again, on file systems that have none of their own (btrfs,
//! tmpfs, loop devices).

use platform::{FileId, Stat};
use serde::{Deserialize, Serialize};

/// One object: device, inode, and whose it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Object {
    /// Device number.
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
    /// Owner.
    pub uid: u32,
}

impl Object {
    /// The object that was looked at.
    pub fn of(stat: &Stat) -> Self {
        Self { dev: stat.id.dev, ino: stat.id.ino, uid: stat.uid }
    }

    /// Device and inode.
    pub fn id(&self) -> FileId {
        FileId { dev: self.dev, ino: self.ino }
    }
}
