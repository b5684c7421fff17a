//! Reading accepted files again, round after round, without opening them each time.
//!
//! Where every open of a protected file waits for our answer, our own do, too: two threads wake up for each. So a file that
//! was read once stays open, and is read through that, as long as the path leads to this very object.
//! Promise: what is read is what an open of the path would read at that moment: the path is looked up in every round, and an
//! object that is kept open keeps its number to itself. Nothing is kept where that could be another matter (a network file
//! system, one in user space, a layered one), nor on a mount of its own, which could not be unmounted.
//! Limit: a file that was replaced is held on to until the next round. Who wants a write lease on a kept file is refused it.
//! Source: open(2); fcntl(2), "Leases"; umount(2) `EBUSY`.

use std::collections::BTreeMap;
use std::fs::File;

use platform::machine::{self, Kind};
use platform::{FileId, Place, Root, Stat};

use crate::baseline::holds;
use crate::digest::Digest;

/// Files kept open at once: twice what is read within two rounds. A larger set is read in turn, so that none would be read again
/// soon.
const MOST: usize = 128;

/// What a file is expected to be.
#[derive(Debug, Clone, Copy)]
pub struct Accepted<'a> {
    /// By every field.
    pub stat: &'a Stat,
    /// Its content.
    pub digest: Digest,
    /// The size of that.
    pub size: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Rereading {
    open: BTreeMap<Place, (FileId, File)>,
    keeps: bool,
}

impl Rereading {
    /// Files are kept open if opening them takes more than a system call.
    pub fn new(opens_wait: bool) -> Self {
        Self { open: BTreeMap::new(), keeps: opens_wait }
    }

    /// Whether the file has the accepted stamps and, read again, the accepted content.
    pub fn is_the_same(&mut self, root: &Root, place: &Place, accepted: Accepted<'_>) -> bool {
        let Accepted { stat, digest, size } = accepted;
        if let Some((id, file)) = self.open.get(place) {
            let leads_there = *id == stat.id && matches!(root.stat(&place.path), Ok(Some(now)) if now == *stat);
            if leads_there && holds(file, digest, size) {
                return true;
            }
            self.open.remove(place);
        }
        // Whatever else it is, a whole look tells.
        let Ok(Some(file)) = root.open_unchanged(&place.path, stat) else { return false };
        let same = holds(&file, digest, size);
        if same && self.keeps && self.open.len() < MOST && is_plain(root, stat) {
            self.open.insert(place.clone(), (stat.id, file));
        }
        same
    }

    /// Closes what is not asked about any more.
    pub fn keep_only(&mut self, is_known: impl Fn(&Place) -> bool) {
        self.open.retain(|place, _| is_known(place));
    }
}

/// Whether the file lies on the root's own mount, and that is a file system of this machine alone.
fn is_plain(root: &Root, stat: &Stat) -> bool {
    root.dir().own_stat().is_ok_and(|own| own.mount == stat.mount)
        && machine::file_system(root.dir()).is_ok_and(|found| found.kind == Kind::Local)
}

#[cfg(test)]
mod tests {
    use super::*;
    use platform::RelPath;
    use std::fs;

    struct Lab {
        folder: tempfile::TempDir,
        root: Root,
        place: Place,
        rereading: Rereading,
    }

    impl Lab {
        fn new(opens_wait: bool) -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            fs::write(folder.path().join(".env"), b"one").expect("writes");
            let root = Root::open(folder.path()).expect("opens");
            let place = Place::tree(RelPath::parse(b".env").expect("a path"));
            Self { folder, root, place, rereading: Rereading::new(opens_wait) }
        }

        fn stat(&self) -> Stat {
            self.root.stat(&self.place.path).expect("can be looked at").expect("is there")
        }

        fn is(&mut self, stat: &Stat, content: &[u8]) -> bool {
            let accepted = Accepted { stat, digest: Digest::of(content), size: content.len() as u64 };
            self.rereading.is_the_same(&self.root, &self.place, accepted)
        }

        /// On a file system that counts as this machine's own.
        fn keeps(&self) -> bool {
            is_plain(&self.root, &self.stat())
        }
    }

    #[test]
    fn a_file_that_is_kept_open_is_read_again_and_told_from_any_other() {
        let mut lab = Lab::new(true);
        let first = lab.stat();
        assert!(lab.is(&first, b"one") && lab.is(&first, b"one"));
        assert_eq!(lab.rereading.open.len(), usize::from(lab.keeps()));
        // Written in place: the stamps tell, and where they are taken for accepted the content does.
        fs::write(lab.folder.path().join(".env"), b"two").expect("writes");
        let second = lab.stat();
        assert!(!lab.is(&first, b"one"));
        assert!(!lab.is(&second, b"one"));
        assert!(lab.is(&second, b"two") && !lab.is(&second, b"one") && lab.is(&second, b"two"));
        // Replaced: what is kept open still holds what was accepted, and the path does not.
        fs::write(lab.folder.path().join("new"), b"six").expect("writes");
        fs::rename(lab.folder.path().join("new"), lab.folder.path().join(".env")).expect("renames");
        let third = lab.stat();
        assert!(!lab.is(&second, b"two"));
        assert!(!lab.is(&third, b"two"));
        assert!(lab.is(&third, b"six"));
        // Replaced by the same, and accepted again: the new one is read.
        fs::write(lab.folder.path().join("new"), b"six").expect("writes");
        fs::rename(lab.folder.path().join("new"), lab.folder.path().join(".env")).expect("renames");
        let fourth = lab.stat();
        assert!(lab.is(&fourth, b"six"));
        fs::remove_file(lab.folder.path().join(".env")).expect("removes");
        assert!(!lab.is(&fourth, b"six"));
        assert!(lab.rereading.open.is_empty());
    }

    #[test]
    fn nothing_is_kept_where_opens_do_not_wait_or_nobody_asks_any_more() {
        let mut lab = Lab::new(false);
        let stat = lab.stat();
        assert!(lab.is(&stat, b"one"));
        assert!(lab.rereading.open.is_empty());
        let mut lab = Lab::new(true);
        let stat = lab.stat();
        assert!(lab.is(&stat, b"one"));
        lab.rereading.keep_only(|_| false);
        assert!(lab.rereading.open.is_empty());
    }

    #[test]
    fn no_more_are_kept_open_than_are_read_soon() {
        let mut lab = Lab::new(true);
        let keeps = lab.keeps();
        for number in 0..MOST + 5 {
            let name = format!("{number}");
            fs::write(lab.folder.path().join(&name), b"x").expect("writes");
            lab.place = Place::tree(RelPath::parse(name.as_bytes()).expect("a path"));
            let stat = lab.stat();
            assert!(lab.is(&stat, b"x"));
        }
        assert_eq!(lab.rereading.open.len(), if keeps { MOST } else { 0 });
    }
}
