//! One path's state, and the difference between two of them.
//!
//! Limit: contents are not in here, only their digest; they lie in [`crate::store`]. Times are not part of a snapshot:
//! a file whose time alone changed has not changed.

use std::collections::BTreeMap;

use platform::{FileId, FileType, Stat};

use crate::digest::Digest;

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Nothing, or something above the path is gone or no directory.
    Absent,
    /// A regular file.
    Regular {
        /// Digest of its bytes.
        digest: Digest,
        /// Their number.
        size: u64,
    },
    /// A regular file whose content was not read: it is too large, or may not be read. It can be refused, not accepted.
    Unread {
        /// Its bytes, as far as they were counted.
        size: u64,
    },
    /// A symbolic link.
    Symlink {
        /// Its text, which is never followed.
        text: Vec<u8>,
    },
    /// A directory where a file belongs.
    Directory,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character or block device.
    Device,
}

/// One path's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Type and content.
    pub content: Content,
    /// Permission bits with set-id and sticky; zero if absent.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Extended attributes, ACLs among them, by name.
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Whether the file system refuses every change.
    pub immutable: bool,
    /// Whether only appending is allowed.
    pub append_only: bool,
    /// The last look at it, for telling cheaply that nothing happened since; not part of the comparison.
    pub stat: Option<Stat>,
}

/// How a path differs from the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeKind {
    /// It was not there.
    Added,
    /// Other content.
    Modified,
    /// It is gone.
    Deleted,
    /// It is of another type.
    Replaced,
    /// Same content, other bits, owner, attributes or flags.
    Mode,
}

impl ChangeKind {
    /// The name in questions, reports and the journal.
    pub const fn name(self) -> &'static str {
        match self {
            ChangeKind::Added => "added",
            ChangeKind::Modified => "modified",
            ChangeKind::Deleted => "deleted",
            ChangeKind::Replaced => "replaced",
            ChangeKind::Mode => "mode",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Added, Self::Modified, Self::Deleted, Self::Replaced, Self::Mode]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

/// A difference between baseline and disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// How it differs.
    pub kind: ChangeKind,
    /// What is there now.
    pub after: Snapshot,
}

impl Snapshot {
    /// Nothing there.
    pub fn absent() -> Self {
        Self {
            content: Content::Absent,
            mode: 0,
            uid: 0,
            gid: 0,
            xattrs: BTreeMap::new(),
            immutable: false,
            append_only: false,
            stat: None,
        }
    }

    /// Whether nothing is there.
    pub fn is_absent(&self) -> bool {
        self.content == Content::Absent
    }

    /// The digest of what is there: of a file's bytes or a link's text.
    pub fn digest(&self) -> Option<Digest> {
        match &self.content {
            Content::Regular { digest, .. } => Some(*digest),
            Content::Symlink { text } => Some(Digest::of(text)),
            _ => None,
        }
    }

    /// Device and inode, if something is there.
    pub fn id(&self) -> Option<FileId> {
        self.stat.map(|stat| stat.id)
    }

    /// Whether type, content, bits, owner, attributes and flags are the same. Times, inode and link count do not count.
    pub fn same(&self, other: &Snapshot) -> bool {
        self.content == other.content && self.same_attributes(other)
    }

    /// Whether bits, owner, attributes and flags are the same.
    pub fn same_attributes(&self, other: &Snapshot) -> bool {
        (self.mode, self.uid, self.gid) == (other.mode, other.uid, other.gid)
            && self.xattrs == other.xattrs
            && (self.immutable, self.append_only) == (other.immutable, other.append_only)
    }

    /// How `now` differs from this, the baseline; `None` if it does not.
    pub fn compare(&self, now: &Snapshot) -> Option<ChangeKind> {
        use Content::{Absent, Regular, Symlink, Unread};
        Some(match (&self.content, &now.content) {
            (Absent, Absent) => return None,
            (Absent, _) => ChangeKind::Added,
            (_, Absent) => ChangeKind::Deleted,
            (Regular { digest: before, .. }, Regular { digest: after, .. }) if before != after => ChangeKind::Modified,
            (Regular { .. }, Unread { .. }) | (Unread { .. }, Regular { .. }) => ChangeKind::Modified,
            // Nobody has read either: only the stamps can tell.
            (Unread { .. }, Unread { .. }) if self.may_be_rewritten(now) => ChangeKind::Modified,
            (Symlink { text: before }, Symlink { text: after }) if before != after => ChangeKind::Modified,
            (before, after) if std::mem::discriminant(before) != std::mem::discriminant(after) => ChangeKind::Replaced,
            _ if !self.same_attributes(now) => ChangeKind::Mode,
            _ => return None,
        })
    }

    /// Whether two looks at content that was not read allow for it to have changed in between.
    fn may_be_rewritten(&self, now: &Snapshot) -> bool {
        match (&self.stat, &now.stat) {
            (Some(before), Some(now)) => !is_unwritten(before, now),
            // A look from the journal has no stamps; its size is all there is.
            _ => self.content != now.content,
        }
    }
}

/// Whether the regular file looked at as `before` is, by all its stamps, the same one with the same content `now`: no
/// other inode, size or mtime, and no other ctime unless other bits, another owner or other flags account for it.
///
/// Limit: who owns a file can change its bits and set its mtime back, and so hide a write of the same length.
pub fn is_unwritten(before: &Stat, now: &Stat) -> bool {
    let object = |stat: &Stat| (stat.file_type, stat.id, stat.size, stat.mtime);
    let attributes = |stat: &Stat| (stat.mode, stat.uid, stat.gid, stat.immutable, stat.append_only);
    before.file_type == FileType::Regular
        && object(before) == object(now)
        && (before.ctime == now.ctime || attributes(before) != attributes(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unread(stat: Option<Stat>, size: u64) -> Snapshot {
        let mode = stat.map_or(0o600, |stat| stat.mode);
        Snapshot { content: Content::Unread { size }, mode, stat, ..Snapshot::absent() }
    }

    #[test]
    fn a_later_ctime_needs_other_bits_or_another_owner_to_account_for_it() {
        let start = Stat::sample();
        let later = Stat { ctime: (200, 0), ..start };
        assert!(is_unwritten(&start, &start));
        assert!(!is_unwritten(&start, &later), "its time may have been set back after a write");
        assert!(is_unwritten(&start, &Stat { mode: 0o644, ..later }));
        assert!(is_unwritten(&start, &Stat { uid: 2, ..later }));
        for other in [
            Stat { size: 5, ..start },
            Stat { mtime: (100, 1), ..start },
            Stat { id: FileId { dev: 1, ino: 8 }, ..start },
            Stat { file_type: FileType::Symlink, ..start },
        ] {
            assert!(!is_unwritten(&start, &Stat { mode: 0o644, ..other }), "{other:?}");
        }
    }

    #[test]
    fn content_that_was_never_read_differs_by_its_stamps() {
        let before = unread(Some(Stat::sample()), 4);
        let compare = |stat: Stat| before.compare(&unread(Some(stat), stat.size));
        assert_eq!(compare(Stat::sample()), None);
        assert_eq!(compare(Stat { mtime: (101, 0), ctime: (101, 0), ..Stat::sample() }), Some(ChangeKind::Modified));
        assert_eq!(compare(Stat { ctime: (101, 0), ..Stat::sample() }), Some(ChangeKind::Modified));
        assert_eq!(compare(Stat { mode: 0o644, ctime: (101, 0), ..Stat::sample() }), Some(ChangeKind::Mode));
        assert_eq!(unread(None, 4).compare(&before), None);
        assert_eq!(unread(None, 5).compare(&before), Some(ChangeKind::Modified));
    }
}
