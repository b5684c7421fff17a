//! File systems by the number statfs(2) gives.
//!
//! Limit: ext2, ext3 and ext4 share one number; so do all of FUSE.
//! Source: linux/magic.h, and the file systems' own sources for those that are not in it.

use crate::machine::{FileSystem, Kind};

const KNOWN: [(u32, &str, Kind); 30] = [
    (0xef53, "ext4", Kind::Local),
    (0x9123_683e, "btrfs", Kind::Local),
    (0x5846_5342, "xfs", Kind::Local),
    (0xf2f5_2010, "f2fs", Kind::Local),
    (0xca45_1a4e, "bcachefs", Kind::Local),
    (0x2fc1_2fc1, "zfs", Kind::Local),
    (0x0102_1994, "tmpfs", Kind::Local),
    (0x8584_58f6, "ramfs", Kind::Local),
    (0x4d44, "vfat", Kind::Local),
    (0x2011_bab0, "exfat", Kind::Local),
    (0x7366_746e, "ntfs3", Kind::Local),
    (0x3153_464a, "jfs", Kind::Local),
    (0x5265_4973, "reiserfs", Kind::Local),
    (0x3434, "nilfs2", Kind::Local),
    (0x482b, "hfsplus", Kind::Local),
    (0x2405_1905, "ubifs", Kind::Local),
    (0x1501_3346, "udf", Kind::Local),
    (0x794c_7630, "overlay", Kind::Layered),
    (0x6175_6673, "aufs", Kind::Layered),
    (0xf15f, "ecryptfs", Kind::Layered),
    (0x6969, "nfs", Kind::Network),
    (0x517b, "smb", Kind::Network),
    (0xff53_4d42, "cifs", Kind::Network),
    (0xfe53_4d42, "smb2", Kind::Network),
    (0x0102_1997, "9p", Kind::Network),
    (0x00c3_6400, "ceph", Kind::Network),
    (0x5346_414f, "afs", Kind::Network),
    (0x7461_636f, "ocfs2", Kind::Network),
    (0x786f_4256, "vboxsf", Kind::Network),
    (0x6573_5546, "fuse", Kind::UserSpace),
];

/// The file system with this number.
pub fn by_number(number: u32) -> FileSystem {
    match KNOWN.iter().find(|(known, ..)| *known == number) {
        Some(&(_, name, kind)) => FileSystem { name: name.to_owned(), kind },
        None => FileSystem { name: format!("{number:#x}"), kind: Kind::Unknown },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_name_each_and_unknown_ones_are_shown() {
        for (index, (number, name, _)) in KNOWN.iter().enumerate() {
            assert!(KNOWN[..index].iter().all(|(other, known, _)| other != number && known != name), "{name}");
        }
        assert_eq!(by_number(0x6969), FileSystem { name: "nfs".into(), kind: Kind::Network });
        // cgroup2, sysfs, proc, debugfs.
        for of_the_kernel in [0x6367_7270, 0x6265_6572, 0x9fa0, 0x6462_6720] {
            assert!(!by_number(of_the_kernel).kind.holds_own_files());
        }
        assert_eq!(by_number(0xbad), FileSystem { name: "0xbad".into(), kind: Kind::Unknown });
    }
}
