//! The lock on real files: killed at every step, under other people's flags, and with files that are moved away.
//!
//! Where this process may not make files immutable, or the temporary folder cannot have it, they end without a word; the
//! attack tests run on file systems of their own.

use std::os::fd::BorrowedFd;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use platform::fault::Plan;
use platform::flags::{InProcess, change};
use platform::{Dir, FileId, FlagError, Flags, Place, RelPath, Root, flags};

use super::left::{Left, take_off};
use super::objects::{Hindrance, Locks, Outcome};
use super::{JournalPen, Locked, Pen};
use crate::journal::{Event, FileJournal, Journal as _, Object, Replayed};
use crate::roots::Roots;

const FILES: [&str; 3] = [".env", ".git/hooks/pre-commit", "svc/.env"];
const FOLDER: &str = ".git/hooks";

struct Lab {
    folder: tempfile::TempDir,
    tree: Dir,
    roots: Roots,
    state: Dir,
    owner: u32,
}

impl Lab {
    /// `None` where nothing can be made immutable.
    fn new() -> Option<Self> {
        let flags = flags::in_process()?;
        let folder = tempfile::tempdir().expect("a folder");
        let base = Dir::open_ambient(folder.path()).expect("opens");
        let (tree, state) =
            (base.make_dir(b"tree", 0o755).expect("makes"), base.make_dir(b"state", 0o700).expect("makes"));
        for path in FILES {
            let path = folder.path().join("tree").join(path);
            std::fs::create_dir_all(path.parent().expect("has one")).expect("makes");
            std::fs::write(path, b"content\n").expect("writes");
        }
        let roots = Roots::new(vec![Arc::new(Root::open(&folder.path().join("tree")).expect("opens"))]);
        let owner = tree.own_stat().expect("stats").uid;
        let lab = Self { folder, tree, roots, state, owner };
        let probe = lab.tree.create_new(b"probe", 0o600).expect("creates");
        let object: BorrowedFd<'_> = std::os::fd::AsFd::as_fd(&probe);
        flags.set(object).ok()?;
        flags.clear(object).expect("takes it off");
        Some(lab)
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.folder.path().join("tree").join(path)
    }

    /// What is immutable of the files and the folder.
    fn immutable(&self) -> Vec<&'static str> {
        FILES.into_iter().chain([FOLDER]).filter(|path| self.stat(path).is_some_and(|stat| stat.immutable)).collect()
    }

    fn stat(&self, path: &str) -> Option<platform::Stat> {
        self.roots.tree().stat(&relative(path)).expect("stats")
    }

    fn object(&self, path: &str) -> Object {
        Object::of(&self.stat(path).expect("exists"))
    }

    fn open(&self) -> (FileJournal, Replayed) {
        self.try_open().expect("opens")
    }

    fn try_open(&self) -> Result<(FileJournal, Replayed), String> {
        let opened = FileJournal::open(&self.state, self.owner, "s").map_err(|error| error.to_string())?;
        Ok((opened.journal, opened.replayed))
    }

    fn flags(&self) -> Arc<dyn Flags> {
        flags::in_process().expect("asked before")
    }

    fn take_off(&self, flags: Option<&dyn Flags>) -> Left {
        self.try_take_off(flags).expect("not killed")
    }

    fn try_take_off(&self, flags: Option<&dyn Flags>) -> Result<Left, String> {
        let (mut journal, replayed) = self.try_open()?;
        let mut pen = pen(&mut journal);
        let left = take_off(flags, &self.roots, &replayed.flagged, &mut pen);
        pen.now(&[]).map(|()| left)
    }

    /// Locks everything, unlocks one and locks it again, and unlocks everything, as a watch does in its life.
    fn live(&self) -> Result<(), String> {
        let (mut journal, _) = self.try_open()?;
        let mut pen = pen(&mut journal);
        let mut locks = Locks::new(self.flags());
        locks.lock(&self.roots, &all(), &mut pen);
        locks.unlock(&self.roots, [place(FOLDER), place(".env")], &mut pen);
        pen.now(&[])?;
        locks.lock(&self.roots, &all(), &mut pen);
        locks.unlock_all(&self.roots, &mut pen);
        pen.now(&[])
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        clear_below(&self.tree);
    }
}

/// Lets the folder be removed, whatever became of the test.
fn clear_below(dir: &Dir) {
    let _ = change(std::os::fd::AsFd::as_fd(dir), false);
    for entry in dir.list().unwrap_or_default() {
        if let Ok(below) = dir.open_dir(&entry.name) {
            clear_below(&below);
        } else if let Ok(file) = dir.open_read(&entry.name) {
            let _ = change(std::os::fd::AsFd::as_fd(&file), false);
        }
    }
}

fn pen(journal: &mut FileJournal) -> JournalPen<'_> {
    JournalPen { journal, at: std::time::SystemTime::UNIX_EPOCH }
}

fn relative(path: &str) -> RelPath {
    RelPath::parse(path.as_bytes()).expect("a path")
}

fn place(path: &str) -> Place {
    Place::tree(relative(path))
}

fn all() -> Vec<Place> {
    FILES.into_iter().chain([FOLDER]).map(place).collect()
}

#[test]
fn killed_at_any_step_what_is_immutable_is_in_the_journal_and_the_next_start_takes_it_off() {
    let Some(lab) = Lab::new() else { return };
    let steps = {
        let plan = Plan::count();
        lab.live().expect("lives");
        plan.passed()
    };
    assert!(steps > 16, "only {steps} steps");
    assert_eq!(lab.immutable(), [""; 0]);
    for step in 0..=steps {
        let plan = Plan::crash_after(step);
        let _killed = lab.live();
        drop(plan);
        let immutable: Vec<Object> = lab.immutable().into_iter().map(|path| lab.object(path)).collect();
        let (_, replayed) = lab.open();
        assert!(immutable.iter().all(|object| replayed.flagged.contains_key(object)), "killed at step {step}");
        let left = lab.take_off(Some(&*lab.flags()));
        assert_eq!((lab.immutable(), left.still, left.missing), (vec![], vec![], vec![]), "killed at step {step}");
        assert!(lab.open().1.flagged.is_empty(), "killed at step {step}");
    }
}

#[test]
fn killed_at_any_step_of_taking_flags_off_the_next_start_takes_off_the_rest() {
    let Some(lab) = Lab::new() else { return };
    let crashed = || {
        let (mut journal, _) = lab.open();
        let mut locks = Locks::new(lab.flags());
        locks.lock(&lab.roots, &all(), &mut pen(&mut journal));
        assert_eq!(lab.immutable().len(), 4);
    };
    crashed();
    let steps = {
        let plan = Plan::count();
        lab.take_off(Some(&*lab.flags()));
        plan.passed()
    };
    for step in 0..=steps {
        crashed();
        let plan = Plan::crash_after(step);
        let _killed = lab.try_take_off(Some(&*lab.flags()));
        drop(plan);
        lab.take_off(Some(&*lab.flags()));
        assert_eq!(lab.immutable(), [""; 0], "killed at step {step}");
        assert!(lab.open().1.flagged.is_empty(), "killed at step {step}");
    }
}

#[test]
fn a_flag_of_somebody_else_is_left_alone_at_the_start_and_at_the_end() {
    let Some(lab) = Lab::new() else { return };
    let file = lab.tree.open_read(b".env").expect("opens");
    change(std::os::fd::AsFd::as_fd(&file), true).expect("sets");
    let (mut journal, _) = lab.open();
    let mut locks = Locks::new(lab.flags());
    let Outcome { locked, refused } = locks.lock(&lab.roots, &all(), &mut pen(&mut journal));
    assert_eq!(refused, [(place(".env"), Hindrance::Foreign)]);
    assert_eq!((locked.len(), locks.count()), (3, Locked { files: 2, folders: 1 }));
    assert_eq!(locks.unlock_all(&lab.roots, &mut pen(&mut journal)), []);
    assert_eq!(lab.immutable(), [".env"]);
}

#[test]
fn only_the_very_object_of_the_journal_is_unlocked() {
    let Some(lab) = Lab::new() else { return };
    let (mut journal, _) = lab.open();
    let known = lab.object(".env");
    for id in [
        Object { ino: known.ino + (1 << 40), ..known },
        Object { uid: known.uid + 1, ..known },
        Object { dev: 1, ..known },
    ] {
        journal.append("then", &Event::Flagged { path: ".env".into(), id }).expect("fits");
    }
    journal.commit().expect("commits");
    drop(journal);
    let file = lab.tree.open_read(b".env").expect("opens");
    change(std::os::fd::AsFd::as_fd(&file), true).expect("sets");
    let left = lab.take_off(Some(&*lab.flags()));
    assert_eq!((left.missing.len(), lab.immutable()), (3, vec![".env"]));
    assert!(lab.open().1.flagged.is_empty());
}

#[test]
fn a_link_in_the_place_of_a_locked_file_is_not_followed() {
    let Some(lab) = Lab::new() else { return };
    let (mut journal, _) = lab.open();
    let target = lab.folder.path().join("outside");
    std::fs::write(&target, b"x").expect("writes");
    let outside = Dir::open_ambient(lab.folder.path()).expect("opens");
    let object = Object::of(&outside.stat(b"outside").expect("stats").expect("exists"));
    let file = outside.open_read(b"outside").expect("opens");
    change(std::os::fd::AsFd::as_fd(&file), true).expect("sets");
    symlink(&target, lab.path("link")).expect("links");
    let Outcome { locked, refused } =
        Locks::new(lab.flags()).lock(&lab.roots, &[place("link")], &mut pen(&mut journal));
    assert_eq!((locked, refused), (vec![], vec![(place("link"), Hindrance::Gone)]));
    journal.append("then", &Event::Flagged { path: "link".into(), id: object }).expect("fits");
    journal.commit().expect("commits");
    lab.take_off(Some(&*lab.flags()));
    assert!(outside.stat(b"outside").expect("stats").expect("exists").immutable, "the target was unlocked");
    change(std::os::fd::AsFd::as_fd(&file), false).expect("takes it off");
}

#[test]
fn what_was_moved_away_with_its_folder_is_unlocked_where_it_is() {
    let Some(lab) = Lab::new() else { return };
    let moves: [(&str, &Path, &str); 2] =
        [(".git", &lab.path("elsewhere"), "elsewhere/hooks"), ("svc", &lab.folder.path().join("out"), "")];
    // At the end of the watch that locked it.
    let (mut journal, _) = lab.open();
    let mut locks = Locks::new(lab.flags());
    locks.lock(&lab.roots, &all(), &mut pen(&mut journal));
    for (from, to, _) in moves {
        std::fs::rename(lab.path(from), to).expect("a folder above a locked one can be moved");
    }
    assert_eq!(locks.unlock_all(&lab.roots, &mut pen(&mut journal)), [], "it is kept open, so it is found anywhere");
    drop(journal);
    for (from, to, _) in moves {
        std::fs::rename(to, lab.path(from)).expect("moves back");
    }
    assert_eq!(lab.immutable(), [""; 0]);
    // At the next start.
    let (mut journal, _) = lab.open();
    let mut locks = Locks::new(lab.flags());
    locks.lock(&lab.roots, &all(), &mut pen(&mut journal));
    drop((locks, journal));
    for (from, to, _) in moves {
        std::fs::rename(lab.path(from), to).expect("moves");
    }
    let left = lab.take_off(Some(&*lab.flags()));
    assert_eq!(left.missing.len(), 1, "what is out of the tree is named");
    assert!(left.missing[0].0 == "svc/.env" && left.still.is_empty());
    for (from, to, _) in moves {
        std::fs::rename(to, lab.path(from)).expect("moves back");
    }
    assert_eq!(lab.immutable(), ["svc/.env"]);
    assert!(lab.open().1.flagged.is_empty());
}

#[test]
fn without_privilege_what_is_left_is_named_and_stays_in_the_journal() {
    let Some(lab) = Lab::new() else { return };
    let (mut journal, _) = lab.open();
    let mut locks = Locks::new(lab.flags());
    locks.lock(&lab.roots, &all(), &mut pen(&mut journal));
    // Somebody has unlocked one by hand.
    let env = lab.tree.open_read(b".env").expect("opens");
    change(std::os::fd::AsFd::as_fd(&env), false).expect("takes it off");
    drop((locks, journal));
    let left = lab.take_off(None);
    assert_eq!((left.off, left.still.len(), left.objects.len()), (vec![".env".to_owned()], 3, 3));
    assert_eq!((lab.open().1.flagged.len(), lab.immutable().len()), (3, 3));
    lab.take_off(Some(&*lab.flags()));
    assert_eq!(lab.immutable(), [""; 0]);
}

#[test]
fn what_somebody_unlocked_is_locked_again_if_it_is_the_same_object() {
    let Some(lab) = Lab::new() else { return };
    let (mut journal, _) = lab.open();
    let mut locks = Locks::new(lab.flags());
    locks.lock(&lab.roots, &all(), &mut pen(&mut journal));
    assert_eq!(locks.set_again(&lab.roots, &place(".env")), Ok(false), "it is locked");
    let file = lab.tree.open_read(b".env").expect("opens");
    change(std::os::fd::AsFd::as_fd(&file), false).expect("takes it off");
    assert_eq!(locks.set_again(&lab.roots, &place(".env")), Ok(true));
    assert_eq!(lab.immutable().len(), 4);
    change(std::os::fd::AsFd::as_fd(&file), false).expect("takes it off");
    std::fs::rename(lab.path(".env"), lab.path("old")).expect("moves");
    std::fs::write(lab.path(".env"), b"another\n").expect("writes");
    assert_eq!(locks.set_again(&lab.roots, &place(".env")), Ok(false), "that is another object");
    assert!(!lab.stat(".env").expect("exists").immutable);
}

#[test]
fn objects_of_another_user_and_without_the_flag_are_refused_and_the_journal_says_that_they_are_not_locked() {
    struct Cannot;
    impl Flags for Cannot {
        fn set(&self, _: BorrowedFd<'_>) -> Result<(), FlagError> {
            Err(FlagError::Unsupported)
        }
        fn clear(&self, _: BorrowedFd<'_>) -> Result<(), FlagError> {
            Ok(())
        }
    }
    let Some(lab) = Lab::new() else { return };
    let (mut journal, _) = lab.open();
    for (flags, hindrance) in [
        (Arc::new(Cannot) as Arc<dyn Flags>, Hindrance::Unsupported),
        (Arc::new(InProcess::new(Some(lab.owner + 1))), Hindrance::NotOurs),
    ] {
        let mut locks = Locks::new(flags);
        let Outcome { locked, refused } = locks.lock(&lab.roots, &all(), &mut pen(&mut journal));
        assert!(locked.is_empty() && refused.len() == 4 && refused.iter().all(|(_, why)| *why == hindrance));
        assert_eq!(locks.count(), Locked::default());
    }
    pen(&mut journal).now(&[]).expect("commits");
    drop(journal);
    assert!(lab.open().1.flagged.is_empty());
}

#[test]
fn what_cannot_be_written_down_is_not_locked() {
    struct Dry;
    impl Pen for Dry {
        fn now(&mut self, _: &[Event]) -> Result<(), String> {
            Err("the disk is full".to_owned())
        }
        fn soon(&mut self, event: Event) {
            panic!("nothing was set: {event:?}");
        }
    }
    let Some(lab) = Lab::new() else { return };
    let Outcome { locked, refused } = Locks::new(lab.flags()).lock(&lab.roots, &all(), &mut Dry);
    assert_eq!((locked, refused.len(), lab.immutable()), (vec![], 4, vec![]));
    assert_eq!(refused[0].1, Hindrance::Failed("the disk is full".to_owned()));
}

#[test]
fn so_much_as_is_locked_is_said() {
    let said = |files, folders| Locked { files, folders }.to_string();
    assert_eq!(said(12, 1), "locked: 12 files, 1 folder");
    assert_eq!(said(1, 0), "locked: 1 file");
    assert_eq!(said(0, 2), "locked: 2 folders");
    assert_eq!(said(0, 0), "locked: nothing");
    assert_eq!(FileId { dev: 1, ino: 2 }, Object { dev: 1, ino: 2, uid: 3 }.id());
}
