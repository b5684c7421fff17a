//! The user database as text: /etc/passwd and /etc/group.
//!
//! Limit: users of a directory service (LDAP, SSSD) are not in these files. Without their groups a process has less
//! authority, never more. Source: passwd(5), group(5).

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// A line of the user database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: Vec<u8>,
    /// The number.
    pub uid: u32,
    /// The main group.
    pub gid: u32,
    /// The home directory.
    pub home: PathBuf,
}

/// The first user with this number in the text of /etc/passwd.
pub fn find_user(passwd: &[u8], uid: u32) -> Option<User> {
    passwd.split(|&byte| byte == b'\n').filter_map(user).find(|user| user.uid == uid)
}

fn user(line: &[u8]) -> Option<User> {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b':').collect();
    let &[name, _password, uid, gid, _about, home, ..] = fields.as_slice() else { return None };
    // `+` and `-` lines include other sources and name no user; a home that is no absolute path is none.
    if name.is_empty() || matches!(name[0], b'+' | b'-' | b'#') || !home.starts_with(b"/") {
        return None;
    }
    let home = PathBuf::from(OsStr::from_bytes(home));
    Some(User { name: name.to_vec(), uid: number(uid)?, gid: number(gid)?, home })
}

/// The groups of a user: the main one, and those of the text of /etc/group that list the name.
pub fn groups_of(group: &[u8], user: &[u8], main: u32) -> BTreeSet<u32> {
    let listed = group.split(|&byte| byte == b'\n').filter_map(|line| {
        let fields: Vec<&[u8]> = line.split(|&byte| byte == b':').collect();
        let &[name, _password, gid, members] = fields.as_slice() else { return None };
        let lists = members.split(|&byte| byte == b',').any(|member| !member.is_empty() && member == user);
        if lists && !matches!(name.first(), None | Some(b'+' | b'-' | b'#')) { number(gid) } else { None }
    });
    listed.chain([main]).collect()
}

/// Digits only: `u32::from_str` would also take `+0`.
fn number(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // The highest number means "no change" to chown(2) and setresuid(2), so nobody can have it.
    std::str::from_utf8(digits).ok()?.parse().ok().filter(|&id| id != u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PASSWD: &[u8] = b"root:x:0:0:root:/root:/bin/bash\n# a comment\n+@nis::::::\n\nbroken:x:1000\n\
        ann:x:1000:1000:Ann,,,:/home/ann:/bin/zsh\nalias:x:1000:1001::/home/alias:/bin/sh\nnohome:x:1001:1001:::/bin/sh\n\
        odd:x:+1002:1002::/home/odd:/bin/sh\n\xff:x:1003:1003::/home/\xff:/bin/sh";
    const GROUP: &[u8] = b"root:x:0:\ndocker:x:998:bob,ann\nanna:x:997:anna\nann:x:1000:\n+:x:0:ann\nbad:x:x:ann\n\
        wheel:x:10:ann\n";

    #[test]
    fn the_first_good_line_with_the_number_counts() {
        let ann = find_user(PASSWD, 1000).expect("is there");
        let home = PathBuf::from("/home/ann");
        assert_eq!(ann, User { name: b"ann".to_vec(), uid: 1000, gid: 1000, home });
        assert_eq!(find_user(PASSWD, 0).expect("is there").name, b"root");
        assert_eq!(find_user(PASSWD, 1003).expect("names are bytes").name, b"\xff");
    }

    #[test]
    fn lines_that_name_no_user_are_nobody() {
        for uid in [1001, 1002, 7] {
            assert_eq!(find_user(PASSWD, uid), None);
        }
    }

    #[test]
    fn groups_are_the_main_one_and_those_that_list_the_whole_name() {
        assert_eq!(groups_of(GROUP, b"ann", 1000), BTreeSet::from([10, 998, 1000]));
        assert_eq!(groups_of(GROUP, b"bob", 5), BTreeSet::from([5, 998]));
        assert_eq!(groups_of(GROUP, b"", 5), BTreeSet::from([5]));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parsers_panic(text in proptest::collection::vec(any::<u8>(), 0..200), uid in any::<u32>()) {
            let _ = find_user(&text, uid);
            prop_assert!(groups_of(&text, b"ann", uid).contains(&uid));
        }
    }
}
