//! What mounting does to a watched tree; for root only.

use std::fs;
use std::io::Write;
use std::path::Path;

use platform::{Hint, LostCause};

use super::fixture::{Fixture, leads_to, place, watch_tree};
use super::machine::{self, Mounted};

fn append(path: &Path) {
    fs::OpenOptions::new().append(true).open(path).and_then(|mut file| file.write_all(b"x")).expect("a write");
}

/// The backends that learn of mounts when they happen.
fn marking() -> impl Iterator<Item = &'static str> {
    machine::backends().into_iter().filter(|backend| *backend != "poll")
}

#[test]
fn a_mount_over_a_covered_directory_is_told_and_not_entered() {
    for backend in marking() {
        let fixture = Fixture::new(backend, &std::env::temp_dir());
        fixture.write("d/.env", "x");
        fs::write(fixture.outside.join(".env"), "another").expect("a file");
        let mut watch = fixture.watch();
        let Some(mounted) = Mounted::bind(&fixture.outside, &fixture.at("d")) else { return };
        watch.lost(&LostCause::Mounted);
        watch.until("the covered directory's end", |hint| leads_to(hint, &place(b"d/.env")));
        drop(mounted);
        watch.lost(&LostCause::Unmounted);
        watch.until(
            "the directory below",
            |hint| matches!(hint, Hint::Touched { place: found, .. } if *found == place(b"d/.env")),
        );
        watch.forget();
        append(&fixture.at("d/.env"));
        watch.told("d/.env");
    }
}

#[test]
fn a_mount_that_was_there_at_the_start_is_covered_under_both_names() {
    for backend in marking() {
        let fixture = Fixture::new(backend, &std::env::temp_dir());
        fixture.write("d/e/.env", "x");
        fs::create_dir(fixture.at("again")).expect("a directory");
        let Some(_mounted) = Mounted::bind(&fixture.at("d"), &fixture.at("again")) else { return };
        let mut watch = fixture.watch();
        append(&fixture.at("d/e/.env"));
        watch.told_all(["d/e/.env".to_owned(), "again/e/.env".to_owned()]);
        fixture.write("again/e/config", "x");
        watch.told_all(["d/e/config".to_owned(), "again/e/config".to_owned()]);
    }
}

#[test]
fn a_tree_mounted_below_itself_is_walked_once() {
    for backend in machine::backends() {
        let fixture = Fixture::new(backend, &std::env::temp_dir());
        fixture.write("loop/keep", "x");
        fixture.write(".env", "x");
        let Some(_mounted) = Mounted::bind(&fixture.tree, &fixture.at("loop")) else { return };
        let hints = fixture.watch_from(&[]).walk();
        assert_eq!(hints.iter().filter(|hint| matches!(hint, Hint::Found(_))).count(), 1, "{backend}: {hints:?}");
    }
}

#[test]
fn a_change_that_copies_up_from_a_lower_layer_is_told() {
    let Some(mounted) = Mounted::overlay() else { return };
    for backend in machine::backends() {
        let tree = mounted.path().join(backend);
        let mut watch = watch_tree(backend, &tree, &[]);
        let hints = watch.walk();
        assert!(hints.contains(&Hint::Found(place(b"old/deep/.env"))), "{backend}: {hints:?}");
        append(&tree.join("old/deep/.env"));
        watch.told("old/deep/.env");
        watch.forget();
        fs::write(tree.join("old/deep/config"), "new").expect("a file");
        watch.told("old/deep/config");
        fs::create_dir(tree.join("old/deep/made")).expect("a directory");
        fs::write(tree.join("old/deep/made/.env"), "new").expect("a file");
        watch.told("old/deep/made/.env");
        watch.forget();
        append(&tree.join("old/deep/.env"));
        watch.told("old/deep/.env");
    }
}

#[test]
fn a_tree_that_spans_file_systems_is_covered_on_each() {
    for backend in marking() {
        let fixture = Fixture::new(backend, &std::env::temp_dir());
        let other = tempfile::tempdir_in("/dev/shm").expect("a directory");
        fixture.write("here/.env", "x");
        fs::create_dir_all(fixture.at("there")).expect("a directory");
        fs::create_dir_all(other.path().join("d/e")).expect("a directory");
        fs::write(other.path().join("d/e/.env"), "x").expect("a file");
        let Some(_mounted) = Mounted::bind(other.path(), &fixture.at("there")) else { return };
        let mut watch = fixture.watch();
        for side in ["here", "there"] {
            for turn in 0..2 {
                let at = |path: &str| format!("{side}/{path}");
                fixture.write(&at("new/deep/.env"), "made");
                watch.told(at("new/deep/.env"));
                watch.forget();
                append(&fixture.at(at("new/deep/.env")));
                watch.told(at("new/deep/.env"));
                watch.forget();
                fs::rename(fixture.at(at("new")), fixture.at(at("moved"))).expect("a rename");
                watch.told_all([at("new/deep/.env"), at("moved/deep/.env")]);
                fs::remove_dir_all(fixture.at(at("moved"))).expect("a removal");
                let moved = place(at("moved").as_bytes());
                let is_gone = |hint: &Hint| matches!(hint, Hint::Vanished { place, .. } if *place == moved);
                watch.until("the directory's end", is_gone);
                watch.forget();
                // What was there is another directory now, perhaps with the same number.
                fs::create_dir(fixture.at(at("moved"))).expect("a directory");
                fixture.write(&at("moved/config"), "x");
                watch.told(at("moved/config"));
                fs::remove_dir_all(fixture.at(at("moved"))).expect("a removal");
                watch.until(&format!("the end of turn {turn}"), is_gone);
                watch.forget();
            }
        }
        append(&fixture.at("there/d/e/.env"));
        watch.told("there/d/e/.env");
    }
}

#[test]
fn a_file_mounted_over_a_covered_one_is_marked_where_it_lies() {
    let elsewhere = tempfile::tempdir_in("/dev/shm").expect("a directory");
    let source = elsewhere.path().join("source");
    for backend in marking() {
        let fixture = Fixture::new(backend, &std::env::temp_dir());
        fixture.write(".env", "x");
        fs::write(&source, "another").expect("a file");
        let Some(_mounted) = Mounted::bind(&source, &fixture.at(".env")) else { return };
        let mut watch = fixture.watch();
        append(&source);
        watch.told(".env");
    }
}

#[test]
fn a_subvolume_is_covered_like_a_directory() {
    let Some(mounted) = Mounted::image("btrfs") else { return };
    let subvolume = |path: &Path| {
        let made = machine::run(std::process::Command::new("btrfs").args(["subvolume", "create"]).arg(path));
        assert!(made, "{}", path.display());
    };
    for backend in machine::backends() {
        let fixture = Fixture::new(backend, mounted.path());
        subvolume(&fixture.at("before"));
        fixture.write("before/d/.env", "x");
        let mut watch = fixture.watch();
        append(&fixture.at("before/d/.env"));
        watch.told("before/d/.env");
        fixture.write("before/d/config", "x");
        watch.told("before/d/config");
        subvolume(&fixture.at("later"));
        fixture.write("later/d/.env", "x");
        watch.told("later/d/.env");
        watch.forget();
        append(&fixture.at("later/d/.env"));
        watch.told("later/d/.env");
    }
}
