//! Whether git has gone to another branch or commit while files are locked.
//!
//! Nobody hears what the kernel refuses: git writes the files it may, leaves the locked ones as they were, and goes on to the
//! new branch. That it did is seen by its `HEAD`. Limit: a look at each sweep, in the tree's own `.git` folder; a working
//! tree whose git directory lies elsewhere has none there.

use std::io::Read as _;

use platform::{RelPath, Root, Stat};

/// A `HEAD` is no longer: a reference's name, or a commit's.
const LONGEST: u64 = 4096;

/// What `HEAD` was when it was last looked at.
#[derive(Debug, Default)]
pub(super) struct Branch {
    seen: Option<(Stat, Vec<u8>)>,
}

impl Branch {
    /// Looks, and says whether it names something else than at the last look.
    pub(super) fn has_changed(&mut self, root: &Root) -> bool {
        let head = RelPath::parse(b".git/HEAD").expect("a path");
        let Ok(Some(stat)) = root.stat(&head) else { return false };
        if self.seen.as_ref().is_some_and(|(seen, _)| *seen == stat) {
            return false;
        }
        let mut text = Vec::new();
        let Ok(file) = root.open_read(&head) else { return false };
        if file.take(LONGEST).read_to_end(&mut text).is_err() {
            return false;
        }
        let before = self.seen.replace((stat, text.clone()));
        before.is_some_and(|(_, before)| before != text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_name_in_head_is_another_branch_and_the_same_one_written_again_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let head = folder.path().join(".git/HEAD");
        let root = Root::open(folder.path()).expect("opens");
        let mut branch = Branch::default();
        assert!(!branch.has_changed(&root), "there is no repository");
        std::fs::create_dir(folder.path().join(".git")).expect("makes");
        // Beside and renamed, as git does it: another object each time.
        let mut write = |text: &str| {
            let beside = folder.path().join("beside");
            std::fs::write(&beside, text).expect("writes");
            std::fs::rename(&beside, &head).expect("renames");
            branch.has_changed(&root)
        };
        assert!(!write("ref: refs/heads/main\n"), "the first look");
        assert!(!write("ref: refs/heads/main\n"));
        assert!(write("ref: refs/heads/side\n"));
        assert!(write("0123456789abcdef0123456789abcdef01234567\n"));
    }
}
