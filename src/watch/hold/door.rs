//! Which opens are held, said on the thread that reads them.
//!
//! Promise: nothing here waits, and nothing is opened. An object that is accepted somewhere is known by itself, whatever
//! name it is opened by; what is not accepted yet is known by its name. While the baseline moves, or where the kernel
//! gives no name, the open is held and the core thread tells.
//! Limit: what the rules only report is never held: nobody is asked about it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use platform::{Access, Doorkeeper, HeldId, Opening, Place, RelPath, RootId, Ruling};

use crate::baseline::{Found, Index};
use crate::roots::Roots;
use crate::rules::set::RuleSet;
use crate::rules::{Class, Mode, Rule};
use crate::watch::inbox::Post;

use super::Trouble;

/// Which opens are asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Those for writing.
    Writes,
    /// Those for writing, and those of secrets for reading.
    ReadsToo,
}

impl Manner {
    /// Whether an open of such a file for this is asked about.
    pub fn holds(self, class: Class, access: Access) -> bool {
        let is_for_it = match access {
            Access::Write => true,
            Access::Read => self == Manner::ReadsToo && class.rule == Rule::Secrets,
        };
        class.mode == Mode::Restore && is_for_it
    }
}

/// Tells which protected path an object is.
#[derive(Clone)]
pub struct Sight {
    /// The accepted ones.
    pub index: Index,
    /// The tree and the folders outside it.
    pub roots: Roots,
    /// What is protected.
    pub rules: Arc<RuleSet>,
    /// Which opens are asked about.
    pub manner: Manner,
}

/// What an opened object is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sighted {
    /// This protected path.
    Protected(Place, Class),
    /// None.
    Free,
    /// It cannot be told just now.
    Unclear,
}

impl Sight {
    /// What the opened object is.
    pub fn find(&self, opening: &Opening) -> Sighted {
        match self.index.find(opening.object) {
            Found::Known(place, class) => Sighted::Protected(place, class),
            Found::Unknown => match &opening.path {
                Some(path) => self.by_name(path),
                None => Sighted::Unclear,
            },
            Found::Busy => match opening.path.as_deref().map(|path| self.by_name(path)) {
                Some(found @ Sighted::Protected(..)) => found,
                // It may be another name of an accepted object.
                _ => Sighted::Unclear,
            },
        }
    }

    fn by_name(&self, path: &[u8]) -> Sighted {
        let path = Path::new(OsStr::from_bytes(path));
        let below = self.roots.all().iter().enumerate().filter_map(|(number, root)| {
            let below = path.strip_prefix(root.path()).ok()?;
            let root = RootId(u16::try_from(number).ok()?);
            Some(Place { root, path: RelPath::parse(below.as_os_str().as_bytes()).ok()? })
        });
        let classes = below.filter_map(|place| self.rules.classify(&place).map(|class| (place, class)));
        // A folder outside the tree may also lie in it: what is restored counts.
        match classes.max_by_key(|(_, class)| class.mode == Mode::Restore) {
            Some((place, class)) => Sighted::Protected(place, class),
            None => Sighted::Free,
        }
    }
}

/// The doorkeeper of a watch.
pub struct Door {
    /// What it goes by, once that is known; nothing is marked before.
    sight: OnceLock<Sight>,
    post: Post,
}

impl Door {
    /// One that lets everything pass until it is told what to hold, and leaves that with the core thread.
    pub fn new(post: Post) -> Self {
        Self { sight: OnceLock::new(), post }
    }

    /// Goes by this from now on.
    pub fn close(&self, sight: Sight) {
        let _it_was_closed_already = self.sight.set(sight);
    }
}

impl Doorkeeper for Door {
    fn rule(&self, opening: &Opening) -> Ruling {
        let Some(sight) = self.sight.get() else { return Ruling::Pass };
        match sight.find(opening) {
            Sighted::Protected(_, class) if sight.manner.holds(class, opening.access) => Ruling::Hold,
            // Reads of most files are nobody's question, whichever file this is.
            Sighted::Unclear if opening.access == Access::Write || sight.manner == Manner::ReadsToo => Ruling::Hold,
            Sighted::Protected(..) | Sighted::Free | Sighted::Unclear => Ruling::Pass,
        }
    }

    fn held(&self, id: HeldId, opening: Opening) {
        self.post.held(id, opening);
    }

    fn gone(&self, id: HeldId) {
        self.post.held_is_gone(id);
    }

    fn relieved(&self, id: HeldId) {
        self.post.held_is_relieved(id);
    }

    fn crowded(&self) {
        self.post.held_trouble(Trouble::Crowded);
    }

    fn broken(&self) {
        self.post.held_trouble(Trouble::Broken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::{Baseline, Caps, Row, Snapshot};
    use crate::rules::set::Parts;
    use crate::watch::hold::tests::{node, opening};
    use crate::watch::inbox::inbox;
    use platform::{FileId, Root, Stat};

    struct Lab {
        folder: tempfile::TempDir,
        baseline: Baseline,
        sight: Sight,
    }

    fn lab(manner: Manner) -> Lab {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().canonicalize().expect("resolves");
        let roots = Roots::new(vec![Arc::new(Root::open(&path).expect("opens"))]);
        let index = Index::default();
        let baseline = Baseline::indexed(Caps::default(), index.clone());
        let rules = Arc::new(RuleSet::new(Parts::default()));
        Lab { folder, baseline, sight: Sight { index, roots, rules, manner } }
    }

    impl Lab {
        fn accept(&mut self, path: &str, ino: u64) {
            let place = Place::tree(RelPath::parse(path.as_bytes()).expect("a path"));
            let class = self.sight.rules.classify(&place).expect("it is protected");
            let stat = Stat { id: FileId { dev: 1, ino }, ..Stat::sample() };
            let snapshot = Snapshot { stat: Some(stat), ..Snapshot::absent() };
            self.baseline.accept(place, Row { class, snapshot }).expect("there is room");
        }

        fn rule(&self, path: Option<&str>, ino: u64, access: Access) -> Ruling {
            let (post, _inbox) = inbox();
            let top = self.folder.path().canonicalize().expect("resolves");
            let path = path.map(|path| top.join(path).as_os_str().as_bytes().to_vec());
            let opening = Opening { path, access, ..opening(ino, node(1)) };
            let door = Door::new(post);
            assert_eq!(door.rule(&opening), Ruling::Pass, "nothing is protected yet");
            door.close(self.sight.clone());
            door.rule(&opening)
        }
    }

    #[test]
    fn opens_for_writing_are_held_and_reads_pass_unless_they_are_asked_for() {
        let mut writes = lab(Manner::Writes);
        writes.accept(".env", 7);
        assert_eq!(writes.rule(Some(".env"), 7, Access::Write), Ruling::Hold);
        assert_eq!(writes.rule(Some(".env"), 7, Access::Read), Ruling::Pass);
        let mut reads = lab(Manner::ReadsToo);
        reads.accept(".env", 7);
        reads.accept("CLAUDE.md", 8);
        assert_eq!(reads.rule(Some(".env"), 7, Access::Read), Ruling::Hold);
        assert_eq!(reads.rule(Some("CLAUDE.md"), 8, Access::Read), Ruling::Pass, "no secret");
        assert_eq!(reads.rule(Some("CLAUDE.md"), 8, Access::Write), Ruling::Hold);
    }

    #[test]
    fn an_accepted_object_is_held_under_whatever_name() {
        let mut lab = lab(Manner::Writes);
        lab.accept(".env", 7);
        for name in [Some("src/harmless.txt"), Some(".env (deleted)"), None] {
            assert_eq!(lab.rule(name, 7, Access::Write), Ruling::Hold, "{name:?}");
        }
    }

    #[test]
    fn what_is_not_accepted_is_told_by_its_name_and_what_has_none_is_left_to_the_core() {
        let lab = lab(Manner::Writes);
        assert_eq!(lab.rule(Some("new/.env"), 9, Access::Write), Ruling::Hold);
        assert_eq!(lab.rule(Some("src/main.rs"), 9, Access::Write), Ruling::Pass);
        assert_eq!(lab.rule(Some("../.env"), 9, Access::Write), Ruling::Pass, "outside the tree");
        assert_eq!(lab.rule(None, 9, Access::Write), Ruling::Hold);
        assert_eq!(lab.rule(None, 9, Access::Read), Ruling::Pass);
    }

    #[test]
    fn what_is_only_reported_passes() {
        let mut lab = lab(Manner::ReadsToo);
        lab.accept("Cargo.lock", 7);
        assert_eq!(lab.rule(Some("Cargo.lock"), 7, Access::Write), Ruling::Pass);
    }
}
