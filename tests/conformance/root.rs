//! No way of reaching a path below a root leaves it, and the fast way agrees with the portable walk.
//!
//! Both ways are given every path of a table; then somebody else renames, mounts and puts FIFOs in the way.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use platform::dir::stat_of;
use platform::root::walk;
use platform::{Dir, FileId, FileType, FsError, RelPath, Root, RootError};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use rustix::fs::{Mode, OFlags};
use tempfile::TempDir;

use crate::meanwhile::meanwhile;

/// How a directory is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Fast,
    Walk,
}

const WAYS: [Way; 2] = [Way::Fast, Way::Walk];

/// What became of an attempt: errors by what they mean, since two ways may say it in different numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reached {
    Object(FileId),
    /// Something above the path is absent, a symlink or no directory.
    NoDirectory,
    /// The name itself is absent.
    Absent,
    /// It is not of the type asked for, and was not opened.
    WrongType,
    Mounted,
    Other(String),
}

fn by_error(error: &FsError) -> Reached {
    let means_no_directory = [libc_errno(rustix::io::Errno::LOOP), libc_errno(rustix::io::Errno::NOTDIR)];
    match error.source.kind() {
        io::ErrorKind::NotFound => Reached::NoDirectory,
        io::ErrorKind::InvalidInput => Reached::WrongType,
        _ if error.errno().is_some_and(|errno| means_no_directory.contains(&errno)) => Reached::NoDirectory,
        _ if error.errno() == Some(libc_errno(rustix::io::Errno::NAMETOOLONG)) => Reached::NoDirectory,
        _ => Reached::Other(format!("{error:?}")),
    }
}

fn libc_errno(errno: rustix::io::Errno) -> i32 {
    errno.raw_os_error()
}

fn open_dir(way: Way, root: &Root, path: &RelPath) -> Result<Dir, Reached> {
    match way {
        Way::Fast => root.open_dir(path).map_err(|error| match error {
            RootError::NoParent { .. } => Reached::NoDirectory,
            RootError::Mounted { .. } => Reached::Mounted,
            RootError::Fs(error) => by_error(&error),
            other => Reached::Other(format!("{other:?}")),
        }),
        Way::Walk => walk::open_dir(root.dir(), path).map_err(|error| by_error(&error)),
    }
}

fn directory(way: Way, root: &Root, path: &RelPath) -> Reached {
    match open_dir(way, root, path) {
        Ok(dir) => Reached::Object(dir.own_stat().expect("an open directory can be looked at").id),
        Err(reached) => reached,
    }
}

fn read(way: Way, root: &Root, path: &RelPath) -> Reached {
    let parent = path.parent().expect("not the root");
    let dir = match open_dir(way, root, &parent) {
        Ok(dir) => dir,
        Err(reached) => return reached,
    };
    match dir.open_read(path.name().expect("not the root")) {
        Ok(file) => Reached::Object(stat_of(file.as_fd()).expect("an open file can be looked at").id),
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => Reached::Absent,
        Err(error) => by_error(&error),
    }
}

fn at(path: impl AsRef<[u8]>) -> RelPath {
    RelPath::parse(path.as_ref()).expect("a normal path")
}

fn id(path: &Path) -> FileId {
    let metadata = fs::symlink_metadata(path).expect("it exists");
    FileId { dev: metadata.dev(), ino: metadata.ino() }
}

struct Fixture {
    _temp: TempDir,
    top: PathBuf,
    outside: PathBuf,
    root: Root,
    /// A directory and a file in it, with names that nobody would choose.
    odd: [&'static [u8]; 2],
}

/// Of a directory and a file: no UTF-8 where the file system takes that, or else control characters at least.
const ODD: [[&[u8]; 2]; 2] = [[b"\xff\x1b[2J\n", b"\xfe"], [b"\x7f\x1b[2J\n", b"\x01"]];

fn odd_path([dir, file]: [&[u8]; 2]) -> Vec<u8> {
    [dir, b"/", file].concat()
}

/// A root with something of everything in it, and a directory beside it that must stay as it is.
fn fixture() -> Fixture {
    let temp = tempfile::tempdir().expect("a temporary directory");
    let (top, outside) = (temp.path().join("root"), temp.path().join("outside"));
    fs::create_dir_all(top.join("a/b/c")).expect("makes");
    fs::create_dir(&outside).expect("makes");
    fs::write(outside.join("secret"), "outside").expect("writes");
    fs::write(top.join("file"), "f").expect("writes");
    fs::write(top.join("a/b/file"), "f").expect("writes");
    for (text, name) in [
        (Path::new("a"), "to-directory"),
        (Path::new("../outside"), "to-outside"),
        (outside.as_path(), "to-absolute"),
        (Path::new("."), "to-itself"),
        (Path::new("loop"), "loop"),
        (Path::new("absent"), "dangling"),
        (Path::new("/proc/self/fd"), "to-magic"),
        (Path::new("/proc/self/root"), "to-magic-root"),
        (Path::new("file"), "to-file"),
    ] {
        symlink(text, top.join(name)).expect("links");
        symlink(text, top.join("a/b").join(name)).expect("links");
    }
    let made = Command::new("mkfifo").arg(top.join("fifo")).status();
    assert!(made.is_ok_and(|status| status.success()));
    drop(UnixListener::bind(top.join("socket")).expect("binds"));
    let takes = |names: &[&[u8]; 2]| fs::create_dir(top.join(OsStr::from_bytes(names[0]))).is_ok();
    let odd = ODD.into_iter().find(takes).expect("the second one is only unusual");
    fs::write(top.join(OsStr::from_bytes(&odd_path(odd))), "f").expect("writes");
    let root = Root::open(&top).expect("opens");
    Fixture { _temp: temp, top, outside, root, odd }
}

#[test]
fn both_ways_open_the_directories_of_the_table_and_no_other() {
    let Fixture { top, root, odd, .. } = &fixture();
    let found = |path: &str| Reached::Object(id(&top.join(path)));
    let mut table: Vec<(Vec<u8>, Reached)> = vec![
        (b"".into(), found("")),
        (b"a".into(), found("a")),
        (b"a/b".into(), found("a/b")),
        (b"a/b/c".into(), found("a/b/c")),
        (odd[0].into(), Reached::Object(id(&top.join(OsStr::from_bytes(odd[0]))))),
        (vec![b'n'; 300], Reached::NoDirectory),
        ([&b"a/"[..], &[b'n'; 300], b"/b"].concat(), Reached::NoDirectory),
    ];
    for name in ["to-directory", "to-outside", "to-absolute", "to-itself", "loop", "dangling", "to-magic"] {
        for path in [name.to_owned(), format!("{name}/b"), format!("a/b/{name}"), format!("a/b/{name}/secret/c")] {
            table.push((path.into_bytes(), Reached::NoDirectory));
        }
    }
    for path in
        ["to-magic/0", "to-magic-root", "to-magic-root/tmp", "file", "file/x", "fifo", "fifo/x", "socket", "no", "no/x"]
    {
        table.push((path.into(), Reached::NoDirectory));
    }
    for (path, expected) in table {
        for way in WAYS {
            assert_eq!(directory(way, root, &at(&path)), expected, "{way:?} {}", path.escape_ascii());
        }
    }
}

#[test]
fn both_ways_read_the_regular_files_of_the_table_and_no_other() {
    let Fixture { top, root, odd, .. } = &fixture();
    let found = |path: &str| Reached::Object(id(&top.join(path)));
    let odd = odd_path(*odd);
    let table: Vec<(&[u8], Reached)> = vec![
        (b"file", found("file")),
        (b"a/b/file", found("a/b/file")),
        (&odd, Reached::Object(id(&top.join(OsStr::from_bytes(&odd))))),
        (b"no", Reached::Absent),
        (b"a/no", Reached::Absent),
        (b"no/file", Reached::NoDirectory),
        (b"file/x", Reached::NoDirectory),
        (b"a", Reached::WrongType),
        (b"fifo", Reached::WrongType),
        (b"socket", Reached::WrongType),
        (b"to-file", Reached::WrongType),
        (b"dangling", Reached::WrongType),
        (b"to-directory/b/file", Reached::NoDirectory),
        (b"to-outside/secret", Reached::NoDirectory),
        (b"to-absolute/secret", Reached::NoDirectory),
        (b"to-magic/0", Reached::NoDirectory),
        (b"to-magic-root/etc/passwd", Reached::NoDirectory),
        (b"a/b/to-itself/file", Reached::NoDirectory),
    ];
    for (path, expected) in table {
        for way in WAYS {
            assert_eq!(read(way, root, &at(path)), expected, "{way:?} {}", path.escape_ascii());
        }
    }
}

#[test]
fn a_file_seen_before_is_opened_while_it_is_the_same_and_by_no_other_way() {
    let Fixture { top, outside, root, .. } = &fixture();
    let seen = |path: &str| root.stat(&at(path)).expect("looks").expect("is there");
    for path in ["file", "a/b/file"] {
        let stat = seen(path);
        let mut text = String::new();
        let mut file = root.open_unchanged(&at(path), &stat).expect("opens").expect("is the same");
        file.read_to_string(&mut text).expect("reads");
        assert_eq!(text, "f");
        let walked = walk::open_file(root.dir(), &at(path)).expect("opens");
        assert_eq!(stat_of(walked.as_fd()).expect("looks"), stat);
        fs::set_permissions(top.join(path), fs::Permissions::from_mode(0o640)).expect("changes");
        assert!(root.open_unchanged(&at(path), &stat).expect("opens").is_none(), "{path} has another mode");
    }
    // Whatever it is compared with, what lies behind a link or is no file is not given.
    let inside = seen("file");
    let elsewhere = Root::open(outside).expect("opens").stat(&at("secret")).expect("looks").expect("is there");
    for path in ["to-file", "to-itself/file", "to-directory/b/file", "to-outside/secret", "to-absolute/secret", "no"] {
        for stat in [inside, elsewhere] {
            assert!(root.open_unchanged(&at(path), &stat).expect("is no fault").is_none(), "{path}");
            walk::open_file(root.dir(), &at(path)).expect_err("leads nowhere");
        }
    }
    for path in ["fifo", "a"] {
        assert!(root.open_unchanged(&at(path), &inside).expect("does not wait").is_none(), "{path}");
    }
}

/// One component of a path: what is there, and what is not.
fn component() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec![
        "a",
        "b",
        "c",
        "file",
        "no",
        "to-directory",
        "to-outside",
        "to-absolute",
        "to-itself",
        "loop",
        "to-magic",
        "fifo",
        "secret",
    ])
}

#[test]
fn both_ways_agree_on_any_path() {
    let Fixture { root, .. } = &fixture();
    let config = ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() };
    let paths = proptest::collection::vec(component(), 1..6);
    let checked = TestRunner::new(config).run(&paths, |components| {
        let path = at(components.join("/"));
        prop_assert_eq!(directory(Way::Fast, root, &path), directory(Way::Walk, root, &path));
        prop_assert_eq!(read(Way::Fast, root, &path), read(Way::Walk, root, &path));
        Ok(())
    });
    checked.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_directory_that_may_be_passed_but_not_listed_is_a_way_all_the_same() {
    let Fixture { top, root, .. } = &fixture();
    let closed = [top.join("a"), top.join("a/b")];
    for dir in closed.iter().rev() {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o300)).expect("chmods");
    }
    let expected = [Reached::Object(id(&top.join("a/b"))), Reached::Object(id(&top.join("a/b/file")))];
    for way in WAYS {
        assert_eq!(directory(way, root, &at("a/b")), expected[0], "{way:?}");
        assert_eq!(read(way, root, &at("a/b/file")), expected[1], "{way:?}");
    }
    let dir = root.open_dir(&at("a/b")).expect("opens");
    dir.create_new(b"new", 0o600).expect("what is done by name works");
    dir.rename(b"new", &dir, b"newer").expect("what is done by name works");
    platform::xattr::read_dir(&dir).expect("attributes are not lost on us");
    if !platform::privilege::is_root() {
        assert!(dir.list().is_err(), "listing it is not allowed");
    }
    // Otherwise the fixture could not be removed.
    for dir in &closed {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).expect("chmods");
    }
}

#[test]
fn a_stat_never_follows_and_a_parent_that_is_no_directory_is_absence() {
    let Fixture { root, .. } = &fixture();
    let table: [(&str, Option<FileType>); 11] = [
        ("file", Some(FileType::Regular)),
        ("a", Some(FileType::Directory)),
        ("to-directory", Some(FileType::Symlink)),
        ("dangling", Some(FileType::Symlink)),
        ("fifo", Some(FileType::Fifo)),
        ("socket", Some(FileType::Socket)),
        ("no", None),
        ("to-outside/secret", None),
        ("to-directory/b", None),
        ("file/x", None),
        ("loop/x", None),
    ];
    for (path, expected) in table {
        assert_eq!(root.stat(&at(path)).expect("can be told").map(|stat| stat.file_type), expected, "{path}");
    }
    assert_eq!(root.stat(&RelPath::root()).expect("can be told").map(|stat| stat.id), Some(root.id()));
}

#[test]
fn a_path_that_could_lead_upwards_cannot_even_be_written() {
    for path in ["..", "a/..", "../outside/secret", "/etc/passwd", "a/./b", "a//b", ""] {
        assert!(RelPath::parse(path.as_bytes()).is_err() || path.is_empty(), "{path}");
    }
    let Fixture { root, .. } = &fixture();
    assert!(matches!(root.parent(&RelPath::root()), Err(RootError::IsRoot)));
    assert!(root.dir().open_dir(b"..").is_err());
    assert!(root.dir().open_read(b"../outside/secret").is_err());
}

#[test]
fn a_path_longer_than_the_kernel_takes_at_once_is_reached_name_by_name() {
    let Fixture { root, .. } = &fixture();
    let (mut dir, mut path) = (root.dir().try_clone().expect("duplicates"), RelPath::root());
    for level in 0..25_u8 {
        let name = [b'a' + level; 200];
        dir = dir.make_dir(&name, 0o700).expect("makes");
        path = path.join(&name);
    }
    dir.create_new(b".env", 0o600).expect("creates").write_all(b"deep").expect("writes");
    assert!(path.as_bytes().len() > 4096, "longer than PATH_MAX");
    let expected = Reached::Object(dir.own_stat().expect("looks").id);
    for way in WAYS {
        assert_eq!(directory(way, root, &path), expected, "{way:?}");
    }
    let mut text = String::new();
    root.open_read(&path.join(b".env")).expect("opens").read_to_string(&mut text).expect("reads");
    assert_eq!(text, "deep");
    root.dir().remove_all(&[b'a'; 200]).expect("removes what no other tool can name");
    assert_eq!(root.stat(&path.join(b".env")).expect("can be told"), None);
}

#[test]
fn a_fifo_is_never_opened_so_that_its_writer_finds_no_reader() {
    let Fixture { top, root, .. } = &fixture();
    let mut tries = 0_u32;
    let write = || {
        let open = rustix::fs::open(top.join("fifo"), OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty());
        assert_eq!(open.err(), Some(rustix::io::Errno::NXIO), "somebody had it open for reading");
        tries += 1;
    };
    meanwhile(write, || {
        for _ in 0..10_000 {
            for way in WAYS {
                assert_eq!(read(way, root, &at("fifo")), Reached::WrongType);
            }
            let error = root.dir().open_update(b"fifo").expect_err("refused");
            assert_eq!(error.source.kind(), io::ErrorKind::InvalidInput);
        }
    });
    assert!(tries > 1000, "only {tries} tries");
}

#[test]
fn a_device_is_refused_before_its_driver_hears_of_it() {
    let dev = Root::open(Path::new("/dev")).expect("opens");
    assert!(fs::metadata("/dev/zero").expect("exists").file_type().is_char_device());
    let error = dev.dir().open_read(b"zero").expect_err("refused");
    assert_eq!(error.source.kind(), io::ErrorKind::InvalidInput);
}

/// A mount that goes when this does.
struct Mount(PathBuf);

impl Mount {
    /// `None` if this process may not mount; a failure if the machine is said to allow it.
    fn try_new(arguments: &[&std::ffi::OsStr], target: &Path) -> Option<Self> {
        let done = Command::new("mount").args(arguments).arg(target).output();
        if done.as_ref().is_ok_and(|output| output.status.success()) {
            return Some(Self(target.to_path_buf()));
        }
        let expected = std::env::var("KEEP_EXPECT").unwrap_or_default();
        assert!(!expected.split(',').any(|what| what == "mounts"), "mounts are expected to work here: {done:?}");
        None
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn what_is_mounted_after_the_start_is_neither_entered_nor_read_nor_removed() {
    let Fixture { top, outside, root, .. } = &fixture();
    let (tmpfs, bind) = (["-t", "tmpfs", "none"].map(std::ffi::OsStr::new), std::ffi::OsStr::new("--bind"));
    let (secret, file) = (outside.join("secret"), top.join("file"));
    let Some(_over_file) = Mount::try_new(&[bind, secret.as_os_str()], &file) else { return };
    assert!(matches!(root.stat(&at("file")), Err(RootError::Mounted { .. })), "a bind mount of the same file system");
    assert!(matches!(root.open_read(&at("file")), Err(RootError::Mounted { .. })));

    root.admit_present(&at("file")).expect("something is there");
    assert_eq!(root.stat(&at("file")).expect("it is admitted").map(|stat| stat.id), Some(id(&secret)));

    let _over_directory = Mount::try_new(&tmpfs, &top.join("a/b")).expect("the first one worked");
    fs::create_dir(top.join("a/b/c")).expect("makes");
    fs::write(top.join("a/b/file"), "mounted").expect("writes");
    assert_eq!(directory(Way::Fast, root, &at("a/b")), Reached::Mounted);
    assert_eq!(directory(Way::Fast, root, &at("a/b/c")), Reached::Mounted);
    assert!(matches!(root.open_read(&at("a/b/file")), Err(RootError::Mounted { .. })));
    assert!(matches!(root.stat(&at("a/b")), Err(RootError::Mounted { .. })));
    assert!(matches!(root.stat(&at("a/b/no")), Err(RootError::Mounted { .. })), "absence there says nothing of here");
    assert!(root.dir().remove_all(b"a").is_err());
    assert_eq!(fs::read(top.join("a/b/file")).expect("reads"), b"mounted", "it was removed through the mount");

    let mount = root.open_any_dir(&at("a/b")).expect("opens").own_stat().expect("looks").mount;
    root.admit_mount(mount);
    assert_eq!(directory(Way::Fast, root, &at("a/b")), Reached::Object(id(&top.join("a/b"))));
}

#[test]
fn a_mount_that_takes_the_place_of_an_admitted_one_is_another_mount() {
    let Fixture { top, root, .. } = &fixture();
    let tmpfs = ["-t", "tmpfs", "none"].map(std::ffi::OsStr::new);
    let Some(first) = Mount::try_new(&tmpfs, &top.join("a")) else { return };
    let mount = root.open_any_dir(&at("a")).expect("opens").own_stat().expect("looks").mount;
    root.admit_mount(mount);
    drop(first);
    let _second = Mount::try_new(&tmpfs, &top.join("a")).expect("the first one worked");
    assert_eq!(directory(Way::Fast, root, &at("a")), Reached::Mounted);
}

#[test]
fn a_racing_renamer_gets_not_one_escape() {
    // By each of the two ways.
    const ROUNDS: u32 = 50_000;
    let Fixture { top, outside, root, .. } = &fixture();
    fs::create_dir_all(top.join("victim/sub")).expect("makes");
    fs::create_dir_all(outside.join("sub")).expect("makes");
    for name in ["secret", "sub/secret"] {
        fs::write(top.join("victim").join(name), "inside").expect("writes");
        fs::write(outside.join(name), "outside").expect("writes");
    }
    // Two traps: the directory becomes a symlink to the one outside, and a file one to the file outside.
    symlink(outside, top.join("trap")).expect("links");
    symlink(outside.join("sub/secret"), top.join("victim/sub/trap")).expect("links");
    let before = tree(outside);
    let ids = [id(&top.join("victim")), id(&top.join("victim/sub")), id(&top.join("victim/sub/secret"))];
    let (by_directory, by_file) = (root.dir(), root.open_dir(&at("victim/sub")).expect("opens"));

    let swap = |dir: &Dir, name: &[u8]| dir.exchange(name, b"trap").expect("both names exist at every moment");
    let (mut reached, mut missed) = ([0_u32; 2], [0_u32; 2]);
    let race = || {
        for round in 0..ROUNDS {
            for (way, index) in [(Way::Fast, 0), (Way::Walk, 1)] {
                if let Ok(dir) = open_dir(way, root, &at("victim")) {
                    assert_eq!(dir.own_stat().expect("looks").id, ids[0], "{way:?} {round}: another directory");
                }
                let Ok(sub) = open_dir(way, root, &at("victim/sub")) else {
                    missed[index] += 1;
                    continue;
                };
                reached[index] += 1;
                assert_eq!(sub.own_stat().expect("looks").id, ids[1], "{way:?} {round}: another directory");
                if let Ok(file) = sub.open_read(b"secret") {
                    assert_eq!(stat_of(file.as_fd()).expect("looks").id, ids[2], "{way:?} {round}: another file");
                }
                if round % 8 == 0 {
                    sub.create_new(b"new", 0o600).expect("the directory is ours");
                    sub.rename(b"new", &sub, b"renamed").expect("the directory is ours");
                    sub.unlink(b"renamed").expect("the directory is ours");
                }
            }
            match root.open_read(&at("victim/sub/secret")) {
                Ok(file) => assert_eq!(stat_of(file.as_fd()).expect("looks").id, ids[2], "{round}: another file"),
                Err(RootError::NoParent { .. } | RootError::Fs(_)) => {}
                Err(other) => panic!("{round}: {other:?}"),
            }
            if let Some(stat) = root.stat(&at("victim/sub")).expect("can be told") {
                assert_eq!(stat.id, ids[1], "{round}: another directory");
            }
        }
    };
    meanwhile(|| swap(by_directory, b"victim"), || meanwhile(|| swap(&by_file, b"secret"), race));
    assert_eq!(tree(outside), before, "something outside was changed");
    for count in reached.into_iter().chain(missed) {
        assert!(count > ROUNDS / 100, "the race was not run: {reached:?} reached, {missed:?} missed");
    }
}

#[test]
fn removing_a_tree_that_is_being_swapped_removes_nothing_outside() {
    let Fixture { top, outside, root, .. } = &fixture();
    fs::create_dir(outside.join("sub")).expect("makes");
    fs::write(outside.join("sub/secret"), "outside").expect("writes");
    let before = tree(outside);
    symlink(outside, top.join("trap")).expect("links");
    // Fails whenever one of the two is gone.
    let swap = || drop(root.dir().exchange(b"victim", b"trap"));
    meanwhile(swap, || {
        for _ in 0..2_000 {
            let _ = fs::create_dir_all(top.join("victim/sub"));
            let _ = root.dir().remove_all(b"victim");
            let _ = symlink(outside, top.join("trap"));
        }
    });
    // `create_dir_all` follows the symlink, but what it would make there exists.
    assert_eq!(tree(outside), before, "something outside was removed");
}

/// Every path below with its identity, bits, times and content.
/// Path, identity, bits, time and content of one object.
type Found = (PathBuf, FileId, u32, (i64, i64), Vec<u8>);

fn tree(top: &Path) -> Vec<Found> {
    let mut found = Vec::new();
    let mut left = vec![top.to_path_buf()];
    while let Some(path) = left.pop() {
        let metadata = fs::symlink_metadata(&path).expect("it exists");
        let content = if metadata.is_file() { fs::read(&path).expect("reads") } else { Vec::new() };
        if metadata.is_dir() {
            left.extend(fs::read_dir(&path).expect("lists").map(|entry| entry.expect("lists").path()));
        }
        found.push((path.clone(), id(&path), metadata.mode(), (metadata.mtime(), metadata.mtime_nsec()), content));
    }
    found.sort();
    found
}
