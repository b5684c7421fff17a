//! What [`Dir`] does to single names.

use super::*;
use std::io::{Read, Write};

fn fixture() -> (tempfile::TempDir, Dir) {
    let temp = tempfile::tempdir().expect("a temporary directory");
    let dir = Dir::open_ambient(temp.path()).expect("it exists");
    (temp, dir)
}

fn text(dir: &Dir, name: &[u8]) -> String {
    let mut text = String::new();
    dir.open_read(name).expect("opens").read_to_string(&mut text).expect("reads");
    text
}

fn write(dir: &Dir, name: &[u8], text: &str) {
    dir.create_new(name, 0o600).expect("creates").write_all(text.as_bytes()).expect("writes");
}

#[test]
fn a_rename_in_two_steps_moves_files_symlinks_and_directories_and_overwrites_nothing() {
    let (_temp, dir) = fixture();
    write(&dir, b"f", "file");
    write(&dir, b"taken", "other");
    dir.symlink(b"f", b"l").expect("links");
    dir.make_dir(b"d", 0o700).expect("makes").create_new(b"below", 0o600).expect("creates");
    for name in [&b"f"[..], b"l", b"d"] {
        let error = dir.rename_new_in_two(name, &dir, b"taken").expect_err("the name is taken");
        assert_eq!(error.source.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(text(&dir, b"taken"), "other");
    }
    dir.rename_new_in_two(b"f", &dir, b"f2").expect("renames");
    dir.rename_new_in_two(b"l", &dir, b"l2").expect("renames");
    dir.rename_new_in_two(b"d", &dir, b"d2").expect("renames");
    assert_eq!(text(&dir, b"f2"), "file");
    assert_eq!(dir.stat(b"f2").expect("stats").expect("exists").nlink, 1);
    assert_eq!(dir.read_link(b"l2").expect("reads"), b"f");
    assert!(dir.open_dir(b"d2").expect("opens").stat(b"below").expect("stats").is_some());
    for name in [&b"f"[..], b"l", b"d"] {
        assert_eq!(dir.stat(name).expect("stats"), None);
    }
    let error = dir.rename_new_in_two(b"f", &dir, b"f3").expect_err("it is gone");
    assert_eq!(error.source.kind(), io::ErrorKind::NotFound);
}

#[cfg(feature = "testing")]
#[test]
fn a_crash_anywhere_in_a_rename_in_two_steps_leaves_the_content_under_one_of_the_names() {
    for passes in 0..2 {
        let (_temp, dir) = fixture();
        write(&dir, b"f", "file");
        dir.make_dir(b"d", 0o700).expect("makes").create_new(b"below", 0o600).expect("creates");
        for name in [&b"f"[..], b"d"] {
            let plan = fault::Plan::crash_after(passes);
            dir.rename_new_in_two(name, &dir, b"to").expect_err("the crash");
            drop(plan);
            match name {
                b"f" => assert!([&b"f"[..], b"to"].iter().any(|&name| dir.open_read(name).is_ok())),
                _ => assert!(dir.open_dir(b"d").expect("opens").stat(b"below").expect("stats").is_some()),
            }
            dir.remove_all(b"to").expect("removes");
        }
    }
}

#[test]
fn opening_for_update_creates_once_and_keeps_what_is_there() {
    let (_temp, dir) = fixture();
    dir.open_update(b"f").expect("creates").write_all(b"one").expect("writes");
    dir.open_append(b"f").expect("opens").write_all(b"two").expect("writes");
    assert_eq!(text(&dir, b"f"), "onetwo");
    assert_eq!(dir.stat(b"f").expect("stats").expect("exists").mode, 0o600);
}

#[test]
fn opening_for_update_follows_no_symlink_and_opens_no_fifo() {
    let (temp, dir) = fixture();
    dir.symlink(b"elsewhere", b"l").expect("links");
    let made = std::process::Command::new("mkfifo").arg(temp.path().join("p")).status();
    assert!(made.is_ok_and(|status| status.success()));
    for name in [&b"l"[..], b"p"] {
        assert_eq!(dir.open_update(name).expect_err("refused").source.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(dir.open_append(name).expect_err("refused").source.kind(), io::ErrorKind::InvalidInput);
    }
    assert_eq!(dir.stat(b"elsewhere").expect("stats"), None);
}

#[test]
fn no_descriptor_is_left_non_blocking_and_appending_ones_append() {
    let (_temp, dir) = fixture();
    let created = dir.open_append(b"f").expect("creates");
    let opened = dir.open_append(b"f").expect("opens");
    let read = dir.open_read(b"f").expect("opens");
    for (file, append) in [(&created, true), (&opened, true), (&read, false)] {
        let flags = fs::fcntl_getfl(file).expect("tells");
        assert_eq!((flags.contains(OFlags::NONBLOCK), flags.contains(OFlags::APPEND)), (false, append));
        let closed = rustix::io::fcntl_getfd(file).expect("tells").contains(rustix::io::FdFlags::CLOEXEC);
        assert!(closed, "a child would inherit it");
    }
}

#[test]
fn a_name_too_long_for_the_file_system_is_absent() {
    let (_temp, dir) = fixture();
    assert_eq!(dir.stat(&[b'n'; 300]).expect("stats"), None);
    assert!(dir.create_new(&[b'n'; 300], 0o600).is_err());
}

#[test]
fn names_that_are_no_single_component_reach_no_system_call() {
    let (_temp, dir) = fixture();
    write(&dir, b"f", "kept");
    for name in [&b""[..], b".", b"..", b"a/b", b"/etc", b"nul\0"] {
        let invalid = io::ErrorKind::InvalidInput;
        assert_eq!(dir.stat(name).expect_err("refused").source.kind(), invalid);
        assert_eq!(dir.open_dir(name).expect_err("refused").source.kind(), invalid);
        assert_eq!(dir.open_read(name).expect_err("refused").source.kind(), invalid);
        assert_eq!(dir.create_new(name, 0o600).expect_err("refused").source.kind(), invalid);
        assert_eq!(dir.rename(b"f", &dir, name).expect_err("refused").source.kind(), invalid);
        assert_eq!(dir.rename_new(name, &dir, b"g").expect_err("refused").source.kind(), invalid);
        assert_eq!(dir.exchange(b"f", name).expect_err("refused").source.kind(), invalid);
        assert_eq!(dir.chown(name, 0, 0).expect_err("refused").source.kind(), invalid);
    }
    assert_eq!(text(&dir, b"f"), "kept");
}

#[test]
fn exchanging_swaps_two_names_or_says_that_it_cannot() {
    let (_temp, dir) = fixture();
    write(&dir, b"a", "a");
    write(&dir, b"b", "b");
    match dir.exchange(b"a", b"b") {
        Ok(()) => assert_eq!((text(&dir, b"a"), text(&dir, b"b")), ("b".into(), "a".into())),
        Err(error) => assert!(error.is_unsupported(), "{error:?}"),
    }
    assert!(!dir.exchange(b"a", b"absent").expect_err("one is absent").is_unsupported());
}

#[test]
fn a_plain_file_and_directory_get_the_bits_of_any_other() {
    let (temp, dir) = fixture();
    std::fs::write(temp.path().join("by-std"), "").expect("writes");
    std::fs::create_dir(temp.path().join("dir-by-std")).expect("makes");
    let mode = |name: &[u8]| dir.stat(name).expect("stats").expect("exists").mode;
    dir.create_plain(b"plain").expect("creates");
    assert_eq!(mode(b"plain"), mode(b"by-std"));
    assert_eq!(dir.make_plain_dir(b"d").expect("makes").own_stat().expect("stats").mode, mode(b"dir-by-std"));
    assert_eq!(dir.create_plain(b"plain").expect_err("is there").source.kind(), io::ErrorKind::AlreadyExists);
}

#[test]
fn a_file_without_a_name_gets_one_only_where_nothing_has_it() {
    let (_temp, dir) = fixture();
    for private in [false, true] {
        let Some(file) = dir.create_unnamed(private).expect("creates, or has none") else { return };
        assert!(dir.list().expect("lists").is_empty(), "it has a name");
        crate::file::write_all(&file, b"f", b"content").expect("writes");
        dir.give_name(&file, b"f").expect("has /proc");
        assert_eq!(text(&dir, b"f"), "content");
        let mode = dir.stat(b"f").expect("stats").expect("exists").mode;
        let plain = stat_of(dir.create_plain(b"plain").expect("creates").as_fd()).expect("stats").mode;
        dir.unlink(b"plain").expect("removes");
        assert_eq!(mode, if private { mode & 0o600 } else { plain });
        let other = dir.create_unnamed(private).expect("creates").expect("could before");
        assert_eq!(dir.give_name(&other, b"f").expect_err("taken").source.kind(), io::ErrorKind::AlreadyExists);
        drop(other);
        dir.unlink(b"f").expect("removes");
    }
}

#[test]
fn what_was_listed_is_opened_only_if_it_is_a_regular_file() {
    let (temp, dir) = fixture();
    write(&dir, b"f", "f");
    dir.symlink(b"f", b"link").expect("links");
    dir.make_dir(b"d", 0o700).expect("makes");
    assert!(std::process::Command::new("mkfifo").arg(temp.path().join("p")).status().is_ok_and(|s| s.success()));
    assert_eq!(dir.open_listed(b"f").expect("opens").1, dir.stat(b"f").expect("stats").expect("exists"));
    for name in [&b"link"[..], b"d", b"p", b"absent"] {
        assert!(dir.open_listed(name).is_err(), "{}", name.escape_ascii());
    }
}

#[test]
fn names_of_two_directories_are_exchanged() {
    let (_temp, dir) = fixture();
    let below = dir.make_dir(b"below", 0o700).expect("makes");
    write(&dir, b"a", "a");
    write(&below, b"b", "b");
    match dir.exchange_with(b"a", &below, b"b") {
        Ok(()) => assert_eq!((text(&dir, b"a"), text(&below, b"b")), ("b".into(), "a".into())),
        Err(error) => assert!(error.is_unsupported(), "{error:?}"),
    }
}
