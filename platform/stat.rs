//! What one lstat-like call tells about a path: type, bits, owner, identity and stamps.
//!
//! Source: statx(2) on Linux, fstatat(2) with `AT_SYMLINK_NOFOLLOW` on macOS.

/// Identity of an object on one machine while it exists: device and inode number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// Device number (`st_dev`).
    pub dev: u64,
    /// Inode number (`st_ino`).
    pub ino: u64,
}

/// Type of an object, never of what a symlink points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileType {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
}

impl FileType {
    /// From the type bits of `st_mode`. Unknown bits count as a character device: never opened, never followed.
    pub fn from_mode(mode: u32) -> Self {
        match mode & 0o170_000 {
            0o100_000 => Self::Regular,
            0o040_000 => Self::Directory,
            0o120_000 => Self::Symlink,
            0o010_000 => Self::Fifo,
            0o140_000 => Self::Socket,
            0o060_000 => Self::BlockDevice,
            _ => Self::CharDevice,
        }
    }
}

/// What is known of an object without opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stat {
    /// Its type.
    pub file_type: FileType,
    /// Permission bits with set-id and sticky: `st_mode & 0o7777`.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Size in bytes.
    pub size: u64,
    /// Number of hard links.
    pub nlink: u64,
    /// Device and inode.
    pub id: FileId,
    /// Device number it stands for, if it is a device.
    pub rdev: u64,
    /// Time of last content change: seconds and nanoseconds.
    pub mtime: (i64, u32),
    /// Time of last change of content or attributes: seconds and nanoseconds. No program can set it.
    pub ctime: (i64, u32),
    /// Identity of the mount it was reached through: on Linux `stx_mnt_id`, unique since boot from 6.8 on and not the
    /// number of /proc/self/mountinfo; on macOS the device.
    pub mount: u64,
    /// Whether the file system refuses every change of it (`FS_IMMUTABLE_FL`, `UF_IMMUTABLE`, `SF_IMMUTABLE`).
    pub immutable: bool,
    /// Whether it can only be appended to (`FS_APPEND_FL`, `UF_APPEND`, `SF_APPEND`).
    pub append_only: bool,
}

#[cfg(any(test, feature = "testing"))]
impl Stat {
    /// A regular file of four bytes, for tests to vary.
    pub fn sample() -> Self {
        Self {
            file_type: FileType::Regular,
            mode: 0o600,
            uid: 1,
            gid: 1,
            size: 4,
            nlink: 1,
            id: FileId { dev: 1, ino: 7 },
            rdev: 0,
            mtime: (100, 0),
            ctime: (100, 0),
            mount: 1,
            immutable: false,
            append_only: false,
        }
    }
}
