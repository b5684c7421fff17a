use super::super::about::Rejection;
use super::*;
use crate::baseline::ChangeKind;
use crate::rules::Rule;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

struct Lab {
    folder: tempfile::TempDir,
    tree: Dir,
    quarantine: Quarantine,
}

fn lab() -> Lab {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("tree")).expect("makes");
    fs::create_dir(folder.path().join("state")).expect("makes");
    let open = |name: &str| Dir::open_ambient(&folder.path().join(name)).expect("opens");
    let quarantine = Quarantine::open(&open("state"), 1000).expect("a quarantine");
    Lab { tree: open("tree"), quarantine, folder }
}

fn why(path: &str) -> Rejection {
    Rejection {
        shown: crate::text::escaped(path.as_bytes()),
        stored: crate::text::encode(path.as_bytes()),
        rule: Rule::Secrets,
        kind: ChangeKind::Modified,
        outcome: None,
        session: "s1".into(),
        rejected_at: "2026-11-30T09:41:07.123Z".into(),
    }
}

impl Lab {
    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join("tree").join(name)
    }

    fn take(&self, name: &str) -> (QuarantineId, Option<Held>) {
        let id = self.quarantine.reserve("2026-11-30T09:41:07.123Z").expect("reserves");
        let held = self.quarantine.take(&id, &why(name), &self.tree, name.as_bytes()).expect("takes");
        (id, held)
    }

    fn content(&self, id: &QuarantineId) -> Vec<u8> {
        let mut content = Vec::new();
        self.quarantine.content(id).expect("has content").read_to_end(&mut content).expect("reads");
        content
    }
}

#[test]
fn names_sort_by_time_and_are_never_given_twice() {
    let lab = lab();
    let moments = ["2026-11-30T09:41:07.123Z", "2026-11-30T09:41:07.123Z", "2026-11-30T09:41:08.001Z"];
    let ids = moments.map(|at| lab.quarantine.reserve(at).expect("reserves"));
    assert_eq!(ids[0].as_str(), "20261130T094107123Z-00000");
    assert!(ids[0] < ids[1] && ids[1] < ids[2]);
    assert_eq!(QuarantineId::parse(ids[2].as_str()).as_ref(), Some(&ids[2]));
    for hostile in ["", "../../etc", "a", "2026\u{1b}", "."] {
        assert_eq!(QuarantineId::parse(hostile), None, "{hostile:?}");
    }
}

#[test]
fn what_was_taken_is_gone_from_its_place_and_had_back_with_its_bits_but_no_set_id() {
    let lab = lab();
    fs::write(lab.path("f"), b"A=1\n").expect("writes");
    fs::set_permissions(lab.path("f"), fs::Permissions::from_mode(0o4750)).expect("chmods");
    let (id, held) = lab.take("f");
    assert_eq!(held, Some(Held::Copied));
    assert!(!lab.path("f").exists());
    assert_eq!(lab.content(&id), b"A=1\n");
    lab.quarantine.put_back(&id, &lab.tree, b"f", IfTaken::Refuse).expect("puts back");
    assert_eq!(fs::read(lab.path("f")).expect("reads"), b"A=1\n");
    assert_eq!(fs::metadata(lab.path("f")).expect("stats").permissions().mode() & 0o7777, 0o750);
    assert_eq!(lab.content(&id), b"A=1\n", "a copy stays");
}

#[test]
fn nothing_is_overwritten_without_being_told() {
    let lab = lab();
    fs::write(lab.path("f"), b"old").expect("writes");
    let (id, _) = lab.take("f");
    fs::write(lab.path("f"), b"new").expect("writes");
    assert!(lab.quarantine.put_back(&id, &lab.tree, b"f", IfTaken::Refuse).is_err());
    assert_eq!(fs::read(lab.path("f")).expect("reads"), b"new");
    assert_eq!(lab.tree.list().expect("lists").len(), 1, "no temporary name is left");
    lab.quarantine.put_back(&id, &lab.tree, b"f", IfTaken::Replace).expect("puts back");
    assert_eq!(fs::read(lab.path("f")).expect("reads"), b"old");
}

#[test]
fn directories_and_large_files_are_moved_whole_and_come_back_whole() {
    let lab = lab();
    fs::create_dir_all(lab.path("d/deep")).expect("makes");
    fs::write(lab.path("d/deep/f"), b"inner").expect("writes");
    symlink("/", lab.path("d/link")).expect("links");
    fs::write(lab.path("large"), vec![1; 1001]).expect("writes");
    for name in ["d", "large"] {
        let (id, held) = lab.take(name);
        assert_eq!(held, Some(Held::Moved), "{name}");
        assert!(!lab.path(name).exists());
        lab.quarantine.put_back(&id, &lab.tree, name.as_bytes(), IfTaken::Refuse).expect("puts back");
        let again = lab.quarantine.put_back(&id, &lab.tree, b"twice", IfTaken::Refuse);
        assert!(matches!(again, Err(QuarantineError::NoContent { .. })), "what was moved is there once");
    }
    assert_eq!(fs::read(lab.path("d/deep/f")).expect("reads"), b"inner");
}

#[test]
fn a_link_is_kept_by_its_text_and_never_followed() {
    let lab = lab();
    fs::write(lab.folder.path().join("outside"), b"OUTSIDE").expect("writes");
    symlink("../outside", lab.path("link")).expect("links");
    let (id, held) = lab.take("link");
    assert_eq!((held, lab.content(&id)), (Some(Held::Copied), b"../outside".to_vec()));
    lab.quarantine.put_back(&id, &lab.tree, b"link", IfTaken::Refuse).expect("puts back");
    assert_eq!(fs::read_link(lab.path("link")).expect("reads").to_str(), Some("../outside"));
}

#[test]
fn a_copy_is_told_from_what_came_after_it() {
    let lab = lab();
    fs::write(lab.path("f"), b"one").expect("writes");
    let id = lab.quarantine.reserve("2026-11-30T09:41:07.123Z").expect("reserves");
    let copied = lab.quarantine.keep_copy(&id, &why("f"), &lab.tree, b"f").expect("copies").expect("is a file");
    assert!(lab.quarantine.is_still(copied, &lab.tree, b"f"));
    fs::OpenOptions::new().append(true).open(lab.path("f")).expect("opens").write_all(b"two").expect("writes");
    assert!(!lab.quarantine.is_still(copied, &lab.tree, b"f"), "more was written");
    fs::write(lab.path("g"), b"one").expect("writes");
    assert!(!lab.quarantine.is_still(copied, &lab.tree, b"g"), "the same bytes in another file");
}

#[test]
fn a_damaged_copy_is_not_given() {
    let lab = lab();
    fs::write(lab.path("f"), b"one").expect("writes");
    let (id, _) = lab.take("f");
    let content = lab.folder.path().join("state/quarantine").join(id.as_str()).join("content");
    fs::write(content, b"two").expect("damages");
    assert!(matches!(lab.quarantine.content(&id), Err(QuarantineError::Corrupt { .. })));
    assert!(matches!(
        lab.quarantine.put_back(&id, &lab.tree, b"f", IfTaken::Refuse),
        Err(QuarantineError::Corrupt { .. })
    ));
}

#[test]
fn a_listing_is_in_order_of_time_and_leaves_unfinished_places_out() {
    let lab = lab();
    for name in ["\u{1b}[2J\u{202e}.env", "b"] {
        fs::write(lab.path(name), name).expect("writes");
        lab.take(name);
    }
    let empty = lab.quarantine.reserve("2026-11-30T09:41:07.123Z").expect("reserves");
    let listed = lab.quarantine.list().expect("lists");
    let shown: Vec<&str> = listed.iter().map(|about| about.rejection.shown.as_str()).collect();
    assert_eq!(shown, ["\\x1b[2J\\u{202e}.env", "b"]);
    lab.quarantine.tidy().expect("tidies");
    assert!(!lab.folder.path().join("state/quarantine").join(empty.as_str()).exists());
    assert_eq!(lab.quarantine.list().expect("lists").len(), 2);
}

#[test]
fn a_place_in_use_is_not_released() {
    let lab = lab();
    fs::write(lab.path("f"), b"one").expect("writes");
    let (id, _) = lab.take("f");
    lab.quarantine.release(&id);
    assert_eq!(lab.content(&id), b"one");
}

#[test]
fn a_crash_at_any_step_of_taking_leaves_the_content_here_or_there() {
    for name in ["f", "d"] {
        for passes in 0.. {
            let lab = lab();
            fs::write(lab.path("f"), b"inner").expect("writes");
            fs::create_dir(lab.path("d")).expect("makes");
            fs::write(lab.path("d/f"), b"inner").expect("writes");
            let id = lab.quarantine.reserve("2026-11-30T09:41:07.123Z").expect("reserves");
            let plan = platform::fault::Plan::crash_after(passes);
            let taken = lab.quarantine.take(&id, &why(name), &lab.tree, name.as_bytes());
            let crash = platform::fault::crashed();
            drop(plan);
            lab.quarantine.tidy().expect("tidies");
            let place = lab.folder.path().join("state/quarantine").join(id.as_str());
            let kept = [place.join("content"), place.join("content/f"), lab.path(name), lab.path(name).join("f")];
            assert!(
                kept.iter().any(|path| fs::read(path).is_ok_and(|read| read == b"inner")),
                "{name}: {passes} steps"
            );
            if !lab.path(name).exists() {
                assert!(lab.quarantine.about(&id).is_ok(), "{name}: {passes} steps: it is here without a description");
            }
            if !crash {
                assert!(taken.is_ok());
                break;
            }
        }
    }
}

#[test]
fn what_is_left_aside_is_known_as_it_was_left_and_not_by_its_name() {
    let lab = lab();
    let leave = |name: &str| {
        fs::write(lab.path(name), b"rejected").expect("writes");
        let id = lab.quarantine.reserve("2026-11-30T09:41:07.123Z").expect("reserves");
        // No way into the quarantine.
        let place = lab.folder.path().join("state/quarantine").join(id.as_str());
        fs::remove_dir(&place).expect("removes");
        fs::write(&place, b"in the way").expect("writes");
        let held = lab.quarantine.take(&id, &why(name), &lab.tree, name.as_bytes()).expect("takes");
        match held {
            Some(Held::Aside { name }) => name,
            other => panic!("{other:?}"),
        }
    };
    let is_left = |name: &[u8]| {
        let stat = lab.tree.stat(name).expect("stats");
        stat.is_some() && lab.quarantine.left_as(name) == stat
    };
    let (one, two) = (leave("one"), leave("two"));
    assert!(is_left(&one) && is_left(&two));
    fs::write(lab.path("f"), b"f").expect("writes");
    assert!(!is_left(b"f"));
    assert!(!is_left(format!("{ASIDE}20261130T094107123Z-00009").as_bytes()));
    let path = |name: &[u8]| lab.path(std::str::from_utf8(name).expect("text"));
    // Another object under the name, and other bytes in the same one.
    fs::rename(lab.path("f"), path(&one)).expect("renames");
    fs::write(path(&two), b"hidden").expect("writes");
    assert!(!is_left(&one) && !is_left(&two));
}
