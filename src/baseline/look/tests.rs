use super::*;
use meanwhile::meanwhile;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;

#[path = "../../../tests/support/meanwhile.rs"]
mod meanwhile;

struct Lab {
    folder: tempfile::TempDir,
    root: Root,
}

fn lab() -> Lab {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("tree")).expect("makes");
    let root = Root::open(&folder.path().join("tree")).expect("opens");
    Lab { folder, root }
}

fn rel(path: &str) -> RelPath {
    RelPath::parse(path.as_bytes()).expect("a valid path")
}

impl Lab {
    fn path(&self, path: &str) -> std::path::PathBuf {
        self.folder.path().join("tree").join(path)
    }

    fn look(&self, path: &str) -> Look {
        look(&self.root, &rel(path), 1 << 20).expect("looks")
    }
}

#[test]
fn a_regular_file_is_described_by_bytes_bits_and_owner() {
    let lab = lab();
    fs::write(lab.path(".env"), b"A=1\n").expect("writes");
    fs::set_permissions(lab.path(".env"), fs::Permissions::from_mode(0o4751)).expect("chmods");
    let look = lab.look(".env");
    let metadata = fs::metadata(lab.path(".env")).expect("stats");
    assert_eq!(look.snapshot.content, Content::Regular { digest: Digest::of(b"A=1\n"), size: 4 });
    assert_eq!((look.snapshot.mode, look.snapshot.uid, look.snapshot.gid), (0o4751, metadata.uid(), metadata.gid()));
    assert_eq!((look.bytes.as_deref(), look.unstable), (Some(&b"A=1\n"[..]), false));
    assert_eq!(look.snapshot.id().map(|id| id.ino), Some(metadata.ino()));
}

#[test]
fn sizes_around_every_limit_give_the_right_digest_and_bytes_only_when_small() {
    let lab = lab();
    let store = Objects::open(&Dir::open_ambient(lab.folder.path()).expect("opens")).expect("a store");
    for size in [0, 1, SHOWN_BYTES - 1, SHOWN_BYTES, SHOWN_BYTES + 1, 300_000] {
        let content: Vec<u8> = (0..size).map(|at| (at % 253) as u8).collect();
        fs::write(lab.path("f"), &content).expect("writes");
        let looked = look(&lab.root, &rel("f"), size).expect("looks");
        assert_eq!(looked.snapshot.content, Content::Regular { digest: Digest::of(&content), size });
        assert_eq!(looked.bytes.is_some(), size <= SHOWN_BYTES, "{size}");
        let stored = look_and_store(&lab.root, &rel("f"), size, &store).expect("looks");
        assert!(stored.snapshot.same(&looked.snapshot));
        assert_eq!(store.read(Digest::of(&content), size).expect("is stored"), content);
        if size > 0 {
            let error = look(&lab.root, &rel("f"), size - 1).expect_err("refuses");
            assert!(matches!(error, LookError::TooLarge { size: found, .. } if found == size), "{error}");
        }
    }
}

#[test]
fn other_types_are_named_and_never_opened() {
    let lab = lab();
    fs::create_dir(lab.path("directory")).expect("makes");
    symlink("../outside", lab.path("link")).expect("links");
    let _listener = UnixListener::bind(lab.path("socket")).expect("binds");
    let made = std::process::Command::new("mkfifo").arg(lab.path("fifo")).status().expect("runs");
    assert!(made.success());
    assert_eq!(lab.look("directory").snapshot.content, Content::Directory);
    assert_eq!(lab.look("link").snapshot.content, Content::Symlink { text: b"../outside".to_vec() });
    assert_eq!(lab.look("socket").snapshot.content, Content::Socket);
    // Opening it would wait for a writer for ever.
    assert_eq!(lab.look("fifo").snapshot.content, Content::Fifo);
}

#[test]
fn nothing_there_and_nothing_reachable_are_both_absent() {
    let lab = lab();
    fs::create_dir(lab.folder.path().join("outside")).expect("makes");
    fs::write(lab.folder.path().join("outside/.env"), b"OUTSIDE=1\n").expect("writes");
    symlink("../outside", lab.path("link")).expect("links");
    fs::write(lab.path("file"), b"").expect("writes");
    for path in [".env", "gone/.env", "link/.env", "file/.env"] {
        assert!(lab.look(path).snapshot.is_absent(), "{path}");
    }
}

#[test]
fn a_link_and_the_attributes_of_a_file_are_stored_with_it() {
    let lab = lab();
    let store = Objects::open(&Dir::open_ambient(lab.folder.path()).expect("opens")).expect("a store");
    symlink("target", lab.path("link")).expect("links");
    look_and_store(&lab.root, &rel("link"), 100, &store).expect("looks");
    assert_eq!(store.read(Digest::of(b"target"), 100).expect("is stored"), b"target");
    fs::write(lab.path("f"), b"").expect("writes");
    let attributes = [(b"user.note".to_vec(), b"kept".to_vec())].into();
    xattr::set_all(&File::open(lab.path("f")).expect("opens"), &attributes).expect("sets");
    let looked = look_and_store(&lab.root, &rel("f"), 100, &store).expect("looks");
    assert_eq!(looked.snapshot.xattrs, attributes);
    let bytes = crate::store::serialize_attributes(&attributes);
    assert_eq!(store.read(Digest::of(&bytes), 1000).expect("is stored"), bytes);
}

#[test]
fn what_changed_just_before_is_never_taken_for_older() {
    let lab = lab();
    fs::write(lab.path("f"), b"one").expect("writes");
    let stat = lab.look("f").snapshot.stat.expect("is there");
    let (seconds, nanos) = stat.ctime;
    let changed = SystemTime::UNIX_EPOCH + Duration::new(u64::try_from(seconds).expect("after 1970"), nanos);
    assert!(!is_older(&stat, changed));
    assert!(!is_older(&stat, changed + Duration::from_millis(10)));
    assert!(is_older(&stat, changed + Duration::from_secs(1)));
}

#[test]
fn a_file_that_never_holds_still_is_taken_and_said_to_be_unstable() {
    use std::io::{Seek as _, Write as _};
    const SIZE: usize = 128 << 10;
    let lab = lab();
    fs::write(lab.path("f"), [b'a'; SIZE]).expect("writes");
    let mut file = fs::OpenOptions::new().write(true).open(lab.path("f")).expect("opens");
    let mut contents = [b'a', b'b'].map(|byte| vec![byte; SIZE]).into_iter().cycle();
    let write = || {
        file.rewind().expect("rewinds");
        file.write_all(&contents.next().expect("a cycle")).expect("writes");
    };
    let size = |look: &Look| match look.snapshot.content {
        Content::Regular { size, .. } => size,
        ref other => panic!("{other:?}"),
    };
    meanwhile(write, || {
        let deadline = std::time::Instant::now() + Duration::from_secs(40);
        // It may be still for once: between two writes, or when the writer does not get its turn.
        while !(0..20).any(|_| {
            let looked = lab.look("f");
            assert_eq!(size(&looked), SIZE as u64);
            looked.unstable
        }) {
            assert!(std::time::Instant::now() < deadline, "it was never said to be unstable");
        }
    });
    let looked = lab.look("f");
    let Content::Regular { digest, .. } = looked.snapshot.content else { panic!("a regular file") };
    assert!(!looked.unstable && [b'a', b'b'].map(|byte| Digest::of(&[byte; SIZE])).contains(&digest));
}
