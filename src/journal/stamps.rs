//! What is known of a regular file that was not read, as the journal holds it: enough to tell later whether it is still that.
//!
//! Limit: the device is left out, since its number may be another after a reboot; the path lies in the root all the same.

use platform::{FileId, FileType, Stat};
use serde::{Deserialize, Serialize};

use super::record::{from_octal, octal};

/// Identity, stamps and attributes of a regular file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stamps {
    /// Inode number.
    pub inode: u64,
    /// Size in bytes.
    pub size: u64,
    /// Time of last content change: seconds and nanoseconds.
    pub mtime: (i64, u32),
    /// Time of last change of content or attributes.
    pub ctime: (i64, u32),
    /// Permission bits.
    #[serde(serialize_with = "octal", deserialize_with = "from_octal")]
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Whether the file system refuses every change.
    pub immutable: bool,
    /// Whether only appending is allowed.
    pub append_only: bool,
}

impl Stamps {
    /// The stamps of a regular file; `None` for anything else.
    pub fn of(stat: &Stat) -> Option<Self> {
        (stat.file_type == FileType::Regular).then_some(Self {
            inode: stat.id.ino,
            size: stat.size,
            mtime: stat.mtime,
            ctime: stat.ctime,
            mode: stat.mode,
            uid: stat.uid,
            gid: stat.gid,
            immutable: stat.immutable,
            append_only: stat.append_only,
        })
    }

    /// What the file's look was then, if it is on the device and mount on which `now` is.
    pub fn stat(&self, now: &Stat) -> Stat {
        Stat {
            file_type: FileType::Regular,
            mode: self.mode,
            uid: self.uid,
            gid: self.gid,
            size: self.size,
            nlink: 1,
            id: FileId { dev: now.id.dev, ino: self.inode },
            rdev: 0,
            mtime: self.mtime,
            ctime: self.ctime,
            mount: now.mount,
            immutable: self.immutable,
            append_only: self.append_only,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::is_unwritten;

    #[test]
    fn what_comes_back_is_the_same_file_wherever_its_device_is_now() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        std::fs::write(&path, b"one").expect("writes");
        let dir = platform::Dir::open_ambient(folder.path()).expect("opens");
        let stat = dir.stat(b"f").expect("stats").expect("is there");
        let stamps = Stamps::of(&stat).expect("a file");
        let text = serde_json::to_string(&stamps).expect("is JSON");
        assert_eq!(serde_json::from_str::<Stamps>(&text).expect("is read"), stamps);
        let elsewhere = Stat { id: FileId { dev: stat.id.dev + 1, ..stat.id }, mount: stat.mount + 1, ..stat };
        assert!(is_unwritten(&stamps.stat(&elsewhere), &elsewhere));
        assert!(!is_unwritten(&stamps.stat(&elsewhere), &Stat { size: 4, ..elsewhere }));
        assert_eq!(Stamps::of(&dir.own_stat().expect("stats")), None);
    }
}
