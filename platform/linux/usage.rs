//! How many event groups and marks a process has, from the text /proc shows of its open files.
//!
//! Source: proc_pid_fdinfo(5): a line `inotify wd:…` a watch; `fanotify ino:…`, `fanotify mnt_id:…` or `fanotify sdev:…` a
//! mark. proc_pid_fd(5) for the links.

/// Groups and marks of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Instances or groups.
    pub groups: u64,
    /// Watches or marks.
    pub marks: u64,
}

/// What one user's processes have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// By inotify.
    pub inotify: Count,
    /// By fanotify.
    pub fanotify: Count,
}

/// What an open file is, by the text of its link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// An inotify instance.
    Inotify,
    /// A fanotify group.
    Fanotify,
}

/// The group a link of `/proc/PID/fd` stands for; `None` for every other file.
pub fn group(link: &[u8]) -> Option<Group> {
    match link {
        b"anon_inode:inotify" | b"anon_inode:[inotify]" => Some(Group::Inotify),
        b"anon_inode:[fanotify]" => Some(Group::Fanotify),
        _ => None,
    }
}

impl Usage {
    /// Counts one group with the text of its fdinfo.
    pub fn add(&mut self, group: Group, text: &[u8]) {
        let lines = || text.split(|&byte| byte == b'\n');
        let marks =
            |starts: &[&[u8]]| lines().filter(|line| starts.iter().any(|start| line.starts_with(start))).count();
        let (count, marks) = match group {
            Group::Inotify => (&mut self.inotify, marks(&[b"inotify wd:"])),
            Group::Fanotify => (&mut self.fanotify, marks(&[b"fanotify ino:", b"fanotify mnt_id:", b"fanotify sdev:"])),
        };
        count.groups += 1;
        count.marks += marks as u64;
    }
}

/// The effective user in the text of `/proc/PID/status`.
pub fn effective_user(status: &[u8]) -> Option<u32> {
    let line = status.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"Uid:"))?;
    std::str::from_utf8(line).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_their_marks_are_counted() {
        let mut usage = Usage::default();
        usage.add(Group::Inotify, b"pos:\t0\nflags:\t02004000\ninotify wd:2 ino:3 sdev:1 mask:2\ninotify wd:1 ino:9\n");
        usage.add(Group::Inotify, b"pos:\t0\n");
        let fanotify = b"fanotify flags:10 event-flags:0\nfanotify ino:4f sdev:3 mflags: 0\nfanotify sdev:800013\n";
        usage.add(Group::Fanotify, fanotify);
        assert_eq!(usage.inotify, Count { groups: 2, marks: 2 });
        assert_eq!(usage.fanotify, Count { groups: 1, marks: 2 });
    }

    #[test]
    fn links_and_users_are_told() {
        assert_eq!(group(b"anon_inode:inotify"), Some(Group::Inotify));
        assert_eq!(group(b"anon_inode:[fanotify]"), Some(Group::Fanotify));
        assert_eq!(group(b"/home/anon_inode:inotify"), None);
        assert_eq!(effective_user(b"Name:\tx\nUid:\t1000\t1001\t0\t0\nGid:\t5\t5\t5\t5\n"), Some(1001));
        assert_eq!(effective_user(b"Name:\tUid:\n"), None);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken(text in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
            let mut usage = Usage::default();
            usage.add(Group::Fanotify, &text);
            effective_user(&text);
            proptest::prop_assert_eq!(usage.fanotify.groups, 1);
        }
    }
}
