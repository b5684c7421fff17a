//! The extended attributes that macOS itself gives a meaning: which are part of a file, which are not, and why.
//!
//! Promise: pure; what is not named here belongs to whoever wrote the file and is part of it.
//! Limit: Apple adds names with each release; one that the system writes on its own and that is missing here shows as a
//! change of the file, and refuses to be put back.
//! Source: xattr(1), sys/xattr.h, copyfile(3), xnu's bsd/vfs/vfs_xattr.c.

/// What an attribute is to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Compared, and set again by a restore.
    Kept,
    /// Neither.
    Ignored,
}

/// A name, or with `*` the beginning of names; what it is to us; why.
pub type Row = (&'static str, Standing, &'static str);

/// The name under which the kernel keeps an access list in file systems that have attributes only. It refuses it to
/// attribute calls; here the calls of acl(3) stand behind it.
pub const ACCESS_LIST: &str = "com.apple.system.Security";

/// The table.
pub const TABLE: [Row; 14] = [
    (ACCESS_LIST, Standing::Kept, "an access list: who else may write"),
    ("com.apple.FinderInfo", Standing::Kept, "type, creator and flags of the Finder; the owner's to set"),
    ("com.apple.ResourceFork", Standing::Kept, "a second content of the file"),
    ("com.apple.TextEncoding", Standing::Kept, "how an editor reads the file"),
    ("com.apple.metadata:*", Standing::Kept, "where it was fetched from, tags: written by programs for the owner"),
    ("com.apple.quarantine", Standing::Kept, "without it Gatekeeper does not ask before the file is run"),
    ("com.apple.decmpfs", Standing::Ignored, "how the content is compressed; hidden, and gone with the next write"),
    ("com.apple.fileprovider.*", Standing::Ignored, "what a cloud's daemon notes for itself, at any time"),
    ("com.apple.genstore.*", Standing::Ignored, "what the daemon of document versions notes for itself"),
    ("com.apple.lastuseddate#PS", Standing::Ignored, "written when the file is opened in the Finder"),
    (
        "com.apple.macl",
        Standing::Ignored,
        "which programs the user let in; nobody but the kernel may write or remove it",
    ),
    ("com.apple.provenance", Standing::Ignored, "which program wrote the file; the kernel sets it, and nobody may"),
    ("com.apple.rootless", Standing::Ignored, "protection of the system's own files; nobody may set it"),
    ("com.apple.system.*", Standing::Ignored, "the kernel's own; refused to every call on attributes"),
];

/// What an attribute is to us; the first row that fits counts.
pub fn standing(name: &[u8]) -> Standing {
    TABLE.iter().find(|row| fits(row, name)).map_or(Standing::Kept, |row| row.1)
}

fn fits(row: &Row, name: &[u8]) -> bool {
    match row.0.strip_suffix('*') {
        Some(start) => name.starts_with(start.as_bytes()),
        None => name == row.0.as_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_and_their_programs_set_is_kept() {
        for name in [
            "com.apple.quarantine",
            "com.apple.ResourceFork",
            "com.apple.FinderInfo",
            "com.apple.metadata:kMDItemWhereFroms",
            "com.apple.metadata:_kMDItemUserTags",
            "com.apple.system.Security",
            "org.example.note",
            "user.x",
            "com.apple.provenance.of.mine",
        ] {
            assert_eq!(standing(name.as_bytes()), Standing::Kept, "{name}");
        }
    }

    #[test]
    fn what_the_system_writes_and_refuses_to_give_back_is_ignored() {
        for name in [
            "com.apple.provenance",
            "com.apple.rootless",
            "com.apple.macl",
            "com.apple.lastuseddate#PS",
            "com.apple.fileprovider.fpfs#P",
            "com.apple.system.other",
        ] {
            assert_eq!(standing(name.as_bytes()), Standing::Ignored, "{name}");
        }
    }

    #[test]
    fn every_row_says_why_and_none_is_hidden_by_one_before_it() {
        for (at, (name, _, why)) in TABLE.iter().enumerate() {
            assert!(!why.is_empty(), "{name}");
            let example = name.replace('*', "x");
            assert_eq!(TABLE.iter().position(|row| fits(row, example.as_bytes())), Some(at), "{name}");
        }
    }
}
