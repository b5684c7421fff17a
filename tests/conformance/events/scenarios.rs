//! What may happen to a covered path, and what a backend has to say then.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use platform::{Dir, Hint, LostCause};

use super::fixture::{Fixture, Watch, leads_to, place};
use super::machine;
use crate::meanwhile::meanwhile;

type Scenario = fn(&Fixture);

macro_rules! scenarios {
    ($($name:ident),* $(,)?) => {
        /// Each scenario and its name.
        pub const ALL: &[(Scenario, &str)] = &[$(($name, stringify!($name))),*];
    };
}

scenarios![
    the_walk_finds_what_is_there_and_marks_it,
    known_places_are_found_first,
    a_file_is_written,
    a_file_is_written_and_not_closed,
    a_file_is_appended_to,
    a_file_is_truncated_by_path,
    a_file_is_emptied_by_opening_it,
    a_file_opened_before_the_start_is_written,
    a_mapped_file_is_closed,
    a_file_is_renamed_over_a_covered_one,
    two_renames_over_are_two_hints,
    a_file_is_renamed_in_and_out,
    two_files_are_exchanged,
    a_file_is_deleted_and_made_again,
    a_hard_link_is_made_elsewhere,
    a_write_through_a_hard_link_elsewhere,
    a_write_through_a_link_that_was_put_in,
    a_symlink_takes_the_place_of_a_file,
    a_directory_takes_the_place_of_a_file_and_back,
    a_fifo_takes_the_place_of_a_file,
    the_bits_of_a_file_change,
    an_attribute_of_a_file_changes,
    directories_are_made_and_written_into_at_once,
    a_populated_directory_is_moved_in,
    a_directory_is_moved_away_and_back,
    a_moved_directory_reports_its_new_place,
    a_directory_is_swapped_for_another,
    a_directory_gives_way_to_a_symlink,
    a_parent_is_removed,
    the_root_is_moved_and_removed,
    names_that_are_not_text,
    an_unreadable_directory_becomes_readable,
    an_unreadable_file_is_written,
    a_deep_directory,
    a_wide_directory,
    a_burst_with_the_reader_stopped,
    a_storm_on_two_decoys,
    directories_churn_while_others_are_covered,
    directories_that_are_gone_are_forgotten,
    a_rescan_tells_everything_again,
    stopping_is_prompt_and_nothing_comes_after,
    what_nobody_asked_for_is_not_told,
];

fn has(hints: &[Hint], wanted: &Hint) -> bool {
    hints.contains(wanted)
}

fn append(path: &Path, text: &str) {
    OpenOptions::new().append(true).open(path).and_then(|mut file| file.write_all(text.as_bytes())).expect("a write");
}

/// A watched tree with `.env` in it.
fn watched(fixture: &Fixture) -> Watch {
    fixture.write(".env", "one");
    fixture.watch()
}

fn the_walk_finds_what_is_there_and_marks_it(fixture: &Fixture) {
    for path in [".env", "a/b/.env.local", "a/config", "a/other", "ignored/.env"] {
        fixture.write(path, "x");
    }
    let mut watch = fixture.watch_from(&[]);
    let hints = watch.walk();
    for path in [".env", "a/b/.env.local", "a/config"] {
        assert!(has(&hints, &Hint::Found(place(path.as_bytes()))), "{path}: {hints:?}");
    }
    assert_eq!(hints.last(), Some(&Hint::Walked { directories: 3 }), "{hints:?}");
    assert_eq!(hints.iter().filter(|hint| matches!(hint, Hint::Found(_))).count(), 3, "{hints:?}");
}

fn known_places_are_found_first(fixture: &Fixture) {
    for index in 0..200 {
        fixture.write(&format!("d{index}/e/.env"), "x");
    }
    fixture.write("x/y/z/config", "x");
    let mut watch = fixture.watch_from(&["x/y/z/config", "x/absent/config", "d7/e/.env"]);
    let hints = watch.walk();
    let at = |path: &str| hints.iter().position(|hint| *hint == Hint::Found(place(path.as_bytes())));
    let known = at("x/y/z/config").expect("found");
    if fixture.backend != "poll" {
        assert!(known < 5, "after {known} others: {:?}", &hints[..known]);
        assert!(at("d7/e/.env").expect("found") < 5);
    }
    assert_eq!(hints.iter().filter(|hint| matches!(hint, Hint::Found(_))).count(), 201);
    fixture.write("x/absent/config", "new");
    watch.told("x/absent/config");
}

fn a_file_is_written(fixture: &Fixture) {
    let mut watch = watched(fixture);
    fixture.write(".env", "two");
    watch.told(".env");
}

fn a_file_is_written_and_not_closed(fixture: &Fixture) {
    let mut watch = watched(fixture);
    let mut file = OpenOptions::new().write(true).open(fixture.at(".env")).expect("the file");
    file.write_all(b"two").expect("a write");
    watch.told(".env");
    drop(file);
}

fn a_file_is_appended_to(fixture: &Fixture) {
    let mut watch = watched(fixture);
    append(&fixture.at(".env"), "more");
    watch.told(".env");
}

fn a_file_is_truncated_by_path(fixture: &Fixture) {
    let mut watch = watched(fixture);
    // Without a descriptor, so that no close follows.
    let status = std::process::Command::new("truncate").arg("-s0").arg(fixture.at(".env")).status();
    assert!(status.expect("truncate").success());
    watch.told(".env");
}

fn a_file_is_emptied_by_opening_it(fixture: &Fixture) {
    let mut watch = watched(fixture);
    let file = OpenOptions::new().write(true).truncate(true).open(fixture.at(".env")).expect("the file");
    watch.told(".env");
    drop(file);
}

fn a_file_opened_before_the_start_is_written(fixture: &Fixture) {
    fixture.write(".env", "one");
    let mut file = OpenOptions::new().write(true).open(fixture.at(".env")).expect("the file");
    let mut watch = fixture.watch();
    file.write_all(b"two").expect("a write");
    watch.told(".env");
}

fn a_mapped_file_is_closed(fixture: &Fixture) {
    // A store raises nothing; the close for writing, long after, does. Polling sees the times.
    let mut watch = watched(fixture);
    let mut file = OpenOptions::new().read(true).write(true).open(fixture.at(".env")).expect("the file");
    file.seek(std::io::SeekFrom::End(0)).expect("a seek");
    if fixture.backend == "poll" {
        file.write_all(b"x").expect("a write");
    }
    drop(file);
    watch.told(".env");
}

fn a_file_is_renamed_over_a_covered_one(fixture: &Fixture) {
    let mut watch = watched(fixture);
    fixture.write("new", "two");
    fs::rename(fixture.at("new"), fixture.at(".env")).expect("a rename");
    watch.told(".env");
    watch.forget();
    append(&fixture.at(".env"), "the new file is marked");
    watch.told(".env");
}

fn two_renames_over_are_two_hints(fixture: &Fixture) {
    let mut watch = watched(fixture);
    for index in 0..2 {
        let new = fixture.outside.join("new");
        fs::write(&new, format!("{index}")).expect("a file");
        fs::rename(&new, fixture.at(".env")).expect("a rename");
        watch.told(".env");
    }
}

fn a_file_is_renamed_in_and_out(fixture: &Fixture) {
    let mut watch = watched(fixture);
    fs::rename(fixture.at(".env"), fixture.outside.join("out")).expect("a rename");
    watch.told(".env");
    watch.forget();
    fs::rename(fixture.outside.join("out"), fixture.at(".env.local")).expect("a rename");
    watch.told(".env.local");
    watch.forget();
    append(&fixture.at(".env.local"), "x");
    watch.told(".env.local");
}

fn two_files_are_exchanged(fixture: &Fixture) {
    fixture.write("other", "two");
    let mut watch = watched(fixture);
    let dir = Dir::open_ambient(&fixture.tree).expect("the tree");
    dir.exchange(b".env", b"other").expect("an exchange");
    watch.told(".env");
    watch.forget();
    append(&fixture.at(".env"), "x");
    watch.told(".env");
}

fn a_file_is_deleted_and_made_again(fixture: &Fixture) {
    let mut watch = watched(fixture);
    fs::remove_file(fixture.at(".env")).expect("a removal");
    watch.told(".env");
    watch.forget();
    fixture.write(".env", "one");
    watch.told(".env");
    for index in 0..50 {
        fs::remove_file(fixture.at(".env")).expect("a removal");
        fixture.write(".env", &format!("{index}"));
    }
    watch.told(".env");
    barrier(fixture, &mut watch);
    append(&fixture.at(".env"), "the last one is marked");
    watch.told(".env");
}

fn a_hard_link_is_made_elsewhere(fixture: &Fixture) {
    let mut watch = watched(fixture);
    fs::hard_link(fixture.at(".env"), fixture.outside.join("alias")).expect("a link");
    watch.told(".env");
}

fn a_write_through_a_hard_link_elsewhere(fixture: &Fixture) {
    fixture.write(".env", "one");
    fs::hard_link(fixture.at(".env"), fixture.outside.join("alias")).expect("a link");
    fs::hard_link(fixture.at(".env"), fixture.at("config")).expect("a link");
    let mut watch = fixture.watch();
    append(&fixture.outside.join("alias"), "x");
    watch.told_all([".env".to_owned(), "config".to_owned()]);
}

fn a_write_through_a_link_that_was_put_in(fixture: &Fixture) {
    let mut watch = watched(fixture);
    let own = fixture.outside.join("own");
    fs::write(&own, "mine").expect("a file");
    fs::remove_file(fixture.at(".env")).expect("a removal");
    fs::hard_link(&own, fixture.at(".env")).expect("a link");
    watch.told(".env");
    barrier(fixture, &mut watch);
    append(&own, "later");
    watch.told(".env");
}

/// Waits until what came before has been answered.
fn barrier(fixture: &Fixture, watch: &mut Watch) {
    fixture.write(".env.barrier", "x");
    watch.until("the barrier", |hint| leads_to(hint, &place(b".env.barrier")));
    fs::remove_file(fixture.at(".env.barrier")).expect("a removal");
    watch.until("the barrier's end", |hint| leads_to(hint, &place(b".env.barrier")));
    watch.rescan();
    watch.walk();
    watch.forget();
}

fn a_symlink_takes_the_place_of_a_file(fixture: &Fixture) {
    let mut watch = watched(fixture);
    fs::write(fixture.outside.join("target"), "two").expect("a file");
    symlink(fixture.outside.join("target"), fixture.at("link")).expect("a link");
    fs::rename(fixture.at("link"), fixture.at(".env")).expect("a rename");
    watch.told(".env");
    barrier(fixture, &mut watch);
    fs::remove_file(fixture.at(".env")).expect("a removal");
    watch.told(".env");
}

fn a_directory_takes_the_place_of_a_file_and_back(fixture: &Fixture) {
    let mut watch = watched(fixture);
    fs::remove_file(fixture.at(".env")).expect("a removal");
    fs::create_dir(fixture.at(".env")).expect("a directory");
    watch.told(".env");
    barrier(fixture, &mut watch);
    fs::remove_dir(fixture.at(".env")).expect("a removal");
    fixture.write(".env", "one");
    watch.told(".env");
    barrier(fixture, &mut watch);
    append(&fixture.at(".env"), "x");
    watch.told(".env");
}

fn a_fifo_takes_the_place_of_a_file(fixture: &Fixture) {
    let mut watch = watched(fixture);
    fs::remove_file(fixture.at(".env")).expect("a removal");
    let status = std::process::Command::new("mkfifo").arg(fixture.at(".env")).status();
    assert!(status.expect("mkfifo").success());
    watch.told(".env");
    barrier(fixture, &mut watch);
    fs::set_permissions(fixture.at(".env"), fs::Permissions::from_mode(0o600)).expect("a chmod");
    watch.told(".env");
}

fn the_bits_of_a_file_change(fixture: &Fixture) {
    let mut watch = watched(fixture);
    fs::set_permissions(fixture.at(".env"), fs::Permissions::from_mode(0o755)).expect("a chmod");
    watch.told(".env");
}

fn an_attribute_of_a_file_changes(fixture: &Fixture) {
    let mut watch = watched(fixture);
    let flags = rustix::fs::XattrFlags::empty();
    match rustix::fs::setxattr(fixture.at(".env"), "user.keep", b"x", flags) {
        Ok(()) => {
            watch.told(".env");
        }
        Err(rustix::io::Errno::OPNOTSUPP) => {}
        Err(errno) => panic!("setxattr: {errno}"),
    }
}

fn directories_are_made_and_written_into_at_once(fixture: &Fixture) {
    let mut watch = watched(fixture);
    let rounds = if fixture.backend == "poll" { 50 } else { 1000 };
    for index in 0..rounds {
        fixture.write(&format!("n{index}/b/c/d/.env"), "x");
    }
    watch.told_all((0..rounds).map(|index| format!("n{index}/b/c/d/.env")));
    for index in 0..rounds {
        append(&fixture.at(format!("n{index}/b/c/d/.env")), "x");
    }
    watch.told_all((0..rounds).map(|index| format!("n{index}/b/c/d/.env")));
}

fn a_populated_directory_is_moved_in(fixture: &Fixture) {
    let mut watch = watched(fixture);
    fs::create_dir_all(fixture.outside.join("d/e")).expect("a directory");
    fs::write(fixture.outside.join("d/e/.env"), "x").expect("a file");
    fs::rename(fixture.outside.join("d"), fixture.at("d")).expect("a rename");
    let seen = watch.told("d/e/.env");
    assert!(fixture.backend == "poll" || has(&seen, &Hint::Appeared(place(b"d"))), "{seen:?}");
    watch.forget();
    append(&fixture.at("d/e/.env"), "x");
    watch.told("d/e/.env");
}

fn a_directory_is_moved_away_and_back(fixture: &Fixture) {
    fixture.write("d/e/.env", "x");
    let mut watch = fixture.watch();
    fs::rename(fixture.at("d"), fixture.outside.join("d")).expect("a rename");
    watch.told("d/e/.env");
    fs::rename(fixture.outside.join("d"), fixture.at("d")).expect("a rename");
    barrier(fixture, &mut watch);
    append(&fixture.at("d/e/.env"), "x");
    watch.told("d/e/.env");
    barrier(fixture, &mut watch);
    fs::rename(fixture.at("d"), fixture.at("f")).expect("a rename");
    fs::rename(fixture.at("f"), fixture.at("d")).expect("a rename");
    watch.forget();
    barrier(fixture, &mut watch);
    fixture.write("d/e/config", "x");
    watch.told("d/e/config");
}

fn a_moved_directory_reports_its_new_place(fixture: &Fixture) {
    fixture.write("d/e/.env", "x");
    let mut watch = fixture.watch();
    fs::rename(fixture.at("d"), fixture.at("f")).expect("a rename");
    watch.told_all(["d/e/.env".to_owned(), "f/e/.env".to_owned()]);
    barrier(fixture, &mut watch);
    append(&fixture.at("f/e/.env"), "x");
    let seen = watch.told("f/e/.env");
    assert!(!seen.iter().any(|hint| leads_to(hint, &place(b"d/e/.env"))), "the old name: {seen:?}");
    fixture.write("f/e/config", "x");
    let seen = watch.told("f/e/config");
    assert!(!seen.iter().any(|hint| leads_to(hint, &place(b"d/e/config"))), "the old name: {seen:?}");
}

fn a_directory_is_swapped_for_another(fixture: &Fixture) {
    fixture.write("d/.env", "x");
    let mut watch = fixture.watch();
    for _ in 0..20 {
        fs::rename(fixture.at("d"), fixture.outside.join("d.old")).expect("a rename");
        fixture.write("d/.env", "another");
        watch.told("d/.env");
        barrier(fixture, &mut watch);
        append(&fixture.at("d/.env"), "x");
        watch.told("d/.env");
        fs::remove_dir_all(fixture.outside.join("d.old")).expect("a removal");
    }
}

fn a_directory_gives_way_to_a_symlink(fixture: &Fixture) {
    fixture.write("d/.env", "x");
    let mut watch = fixture.watch();
    fs::rename(fixture.at("d"), fixture.outside.join("d")).expect("a rename");
    symlink(fixture.outside.join("d"), fixture.at("d")).expect("a link");
    watch.told("d/.env");
    barrier(fixture, &mut watch);
    fs::remove_file(fixture.at("d")).expect("a removal");
    fixture.write("d/.env", "y");
    watch.told("d/.env");
}

fn a_parent_is_removed(fixture: &Fixture) {
    fixture.write("a/b/c/.env", "x");
    let mut watch = fixture.watch();
    fs::remove_dir_all(fixture.at("a")).expect("a removal");
    watch.told("a/b/c/.env");
    fixture.write("a/b/c/.env", "y");
    watch.until("the new file", |hint| {
        *hint == Hint::Appeared(place(b"a/b/c")) || leads_to(hint, &place(b"a/b/c/.env"))
    });
    barrier(fixture, &mut watch);
    append(&fixture.at("a/b/c/.env"), "x");
    watch.told("a/b/c/.env");
}

fn the_root_is_moved_and_removed(fixture: &Fixture) {
    let mut watch = watched(fixture);
    let moved = fixture.outside.join("moved");
    fs::rename(&fixture.tree, &moved).expect("a rename");
    if fixture.backend != "poll" {
        watch.until("the root's leaving", |hint| leads_to(hint, &place(b"")));
    }
    append(&moved.join(".env"), "x");
    watch.told(".env");
    fs::remove_dir_all(&moved).expect("a removal");
    watch.told(".env");
    // What a test's end expects to remove.
    fs::create_dir(&fixture.tree).expect("a directory");
}

fn names_that_are_not_text(fixture: &Fixture) {
    let name = OsStr::from_bytes(b"\xff\x1b\n\xfesecret");
    let dir = OsStr::from_bytes(b"\xc3\x28");
    // APFS and HFS+ take UTF-8 only.
    if fs::write(fixture.at(name), "x").and_then(|()| fs::remove_file(fixture.at(name))).is_err() {
        return println!("passed over: this file system takes no such names");
    }
    let mut watch = watched(fixture);
    fs::write(fixture.at(name), "x").expect("a file");
    watch.told(name);
    fs::create_dir(fixture.at(dir)).expect("a directory");
    let path = Path::new(dir).join(name);
    fs::write(fixture.at(&path), "x").expect("a file");
    watch.told(&path);
}

fn an_unreadable_directory_becomes_readable(fixture: &Fixture) {
    fixture.write("d/e/.env", "x");
    let shut = |mode| fs::set_permissions(fixture.at("d"), fs::Permissions::from_mode(mode)).expect("a chmod");
    shut(0o000);
    let mut watch = fixture.watch_from(&[]);
    let hints = watch.walk();
    if machine::is_root() {
        assert!(has(&hints, &Hint::Found(place(b"d/e/.env"))), "{hints:?}");
        shut(0o755);
        return;
    }
    assert!(has(&hints, &Hint::Lost(LostCause::Unreadable(place(b"d")))), "{hints:?}");
    shut(0o755);
    watch.told("d/e/.env");
    watch.forget();
    append(&fixture.at("d/e/.env"), "x");
    watch.told("d/e/.env");
}

fn an_unreadable_file_is_written(fixture: &Fixture) {
    fixture.write(".env", "x");
    let mut file = OpenOptions::new().append(true).open(fixture.at(".env")).expect("the file");
    fs::set_permissions(fixture.at(".env"), fs::Permissions::from_mode(0o200)).expect("a chmod");
    let mut watch = fixture.watch();
    file.write_all(b"y").expect("a write");
    watch.told(".env");
}

fn a_deep_directory(fixture: &Fixture) {
    // Longer than PATH_MAX: no call may take the whole path.
    let mut watch = watched(fixture);
    let mut dir = Dir::open_ambient(&fixture.tree).expect("the tree");
    let name = [b'n'; 200];
    let mut path = Vec::new();
    for _ in 0..25 {
        dir = dir.make_dir(&name, 0o755).expect("a directory");
        path.extend_from_slice(&name);
        path.push(b'/');
    }
    dir.create_new(b".env", 0o644).expect("a file");
    path.extend_from_slice(b".env");
    watch.told(OsStr::from_bytes(&path));
    watch.forget();
    append_in(&dir, b".env");
    watch.told(OsStr::from_bytes(&path));
    Dir::open_ambient(&fixture.tree).expect("the tree").remove_all(&name).expect("a removal");
}

fn append_in(dir: &Dir, name: &[u8]) {
    dir.open_append(name).expect("the file").write_all(b"x").expect("a write");
}

fn a_wide_directory(fixture: &Fixture) {
    let mut watch = watched(fixture);
    for index in 0..3000 {
        fs::create_dir(fixture.at(format!("w{index}"))).expect("a directory");
    }
    fixture.write("w2999/.env", "x");
    watch.told("w2999/.env");
    fixture.write("w0/.env", "x");
    watch.told("w0/.env");
}

fn a_burst_with_the_reader_stopped(fixture: &Fixture) {
    fixture.write("d/.env", "one");
    let mut watch = watched(fixture);
    watch.hold(|| fixture.write(".env", "two"));
    for index in 0..40_000 {
        fs::File::create(fixture.at(format!("d/f{index}"))).expect("a file");
    }
    fixture.write("d/made/in/the/burst/.env", "x");
    fixture.write("d/.env", "changed in the burst");
    watch.release();
    if fixture.backend == "poll" {
        watch.told_all(["d/.env".to_owned(), "d/made/in/the/burst/.env".to_owned()]);
    } else {
        watch.lost(&LostCause::Overflow);
        watch.until("what was made in the burst", |hint| leads_to(hint, &place(b"d/made/in/the/burst/.env")));
    }
    append(&fixture.at("d/made/in/the/burst/.env"), "covered now");
    watch.until("its change", |hint| leads_to(hint, &place(b"d/made/in/the/burst/.env")));
    fixture.write("d/made/later/.env", "x");
    watch.until("a later one", |hint| leads_to(hint, &place(b"d/made/later/.env")));
}

fn a_storm_on_two_decoys(fixture: &Fixture) {
    fixture.write("decoy1", "x");
    fixture.write("decoy2", "x");
    let mut watch = watched(fixture);
    watch.hold(|| fixture.write(".env", "two"));
    let decoys =
        ["decoy1", "decoy2"].map(|name| OpenOptions::new().write(true).open(fixture.at(name)).expect("a decoy"));
    for index in 0..20_000 {
        decoys[index % 2].set_len(index as u64 % 7).expect("a truncation");
    }
    fixture.write("config", "new");
    watch.release();
    watch.told("config");
}

fn directories_churn_while_others_are_covered(fixture: &Fixture) {
    let mut watch = watched(fixture);
    let churn = fixture.at("churn");
    let make_and_remove = || {
        fs::create_dir_all(churn.join("a/b")).expect("a directory");
        fs::remove_dir_all(&churn).expect("a removal");
    };
    meanwhile(make_and_remove, || {
        for index in 0..100 {
            let path = format!("kept{index}/deep/.env");
            fixture.write(&path, "x");
            watch.until("a file beside the churn", |hint| leads_to(hint, &place(path.as_bytes())));
        }
    });
}

fn directories_that_are_gone_are_forgotten(fixture: &Fixture) {
    fixture.write("stays/.env", "x");
    let mut watch = watched(fixture);
    for round in 0..3 {
        let name = |index: usize| format!("r{round}-{index}");
        for index in 0..100 {
            fs::create_dir_all(fixture.at(name(index)).join("e")).expect("directories");
        }
        let last = format!("{}/e/.env", name(99));
        fixture.write(&last, "x");
        watch.told(&last);
        fs::rename(fixture.at(name(0)), fixture.outside.join(name(0))).expect("a rename");
        for index in 1..100 {
            fs::remove_dir_all(fixture.at(name(index))).expect("a removal");
        }
        let gone = place(name(99).as_bytes());
        watch.until("its end", |hint| matches!(hint, Hint::Vanished { place, .. } if *place == gone));
    }
    // What is told of names comes in order: when this is, so is all before it.
    fixture.write("new.secret", "x");
    watch.told("new.secret");
    watch.rescan();
    let hints = watch.walk();
    assert_eq!(hints.last(), Some(&Hint::Walked { directories: 2 }), "the tree and `stays`");
}

fn a_rescan_tells_everything_again(fixture: &Fixture) {
    fixture.write("a/config", "x");
    let mut watch = watched(fixture);
    watch.rescan();
    watch.told_all([".env".to_owned(), "a/config".to_owned()]);
}

fn stopping_is_prompt_and_nothing_comes_after(fixture: &Fixture) {
    for index in 0..300 {
        fixture.write(&format!("d{index}/.env"), "x");
    }
    let mut watch = fixture.watch_from(&[]);
    let begin = Instant::now();
    watch.stop();
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
    watch.forget();
    fixture.write(".env", "after the end");
    // Another one sees that change, and the first still says nothing.
    fixture.watch();
    assert!(watch.hints.try_recv().is_err());
}

fn what_nobody_asked_for_is_not_told(fixture: &Fixture) {
    fixture.write("ignored/.env", "x");
    let mut watch = watched(fixture);
    fixture.write("other", "x");
    fixture.write("ignored/.env", "y");
    fs::read(fixture.at(".env")).expect("a mere reading");
    fixture.write("config", "x");
    let seen = watch.told("config");
    let others: Vec<_> = seen.iter().filter(|hint| !leads_to(hint, &place(b"config"))).collect();
    // Polling looks once more at what had just been written.
    assert!(fixture.backend == "poll" || others.is_empty(), "{others:?}");
}
