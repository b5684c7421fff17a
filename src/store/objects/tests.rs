use super::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

struct Lab {
    folder: tempfile::TempDir,
    objects: Objects,
}

fn lab() -> Lab {
    let folder = tempfile::tempdir().expect("a folder");
    let objects = Objects::open(&Dir::open_ambient(folder.path()).expect("opens")).expect("a store");
    Lab { folder, objects }
}

impl Lab {
    fn file_of(&self, digest: Digest) -> std::path::PathBuf {
        let hex = digest.to_string();
        self.folder.path().join("objects").join(&hex[..2]).join(&hex[2..])
    }

    fn source(&self, content: &[u8]) -> File {
        let path = self.folder.path().join("source");
        fs::write(&path, content).expect("writes");
        File::open(path).expect("opens")
    }

    fn top_names(&self) -> usize {
        fs::read_dir(self.folder.path().join("objects")).expect("lists").count()
    }
}

#[test]
fn what_was_put_is_had_back() {
    let lab = lab();
    let digest = lab.objects.put(b"A=1\n").expect("puts");
    assert_eq!(digest, Digest::of(b"A=1\n"));
    assert_eq!(lab.objects.read(digest, 100).expect("reads"), b"A=1\n");
    assert_eq!(lab.objects.put(b"A=1\n").expect("puts again"), digest);
    lab.objects.sync().expect("syncs");
    assert!(lab.objects.contains(digest).expect("looks"));
    assert!(!lab.objects.contains(Digest::of(b"other")).expect("looks"));
    assert!(matches!(lab.objects.read(digest, 3), Err(StoreError::TooLarge { size: 4, max_bytes: 3 })));
}

#[test]
fn files_of_every_size_are_stored_under_the_digest_of_their_bytes() {
    let lab = lab();
    for size in [0, 1, 4096, IN_MEMORY - 1, IN_MEMORY, IN_MEMORY + 1, 3 * IN_MEMORY] {
        let content: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
        let (digest, stored) = lab.objects.put_file(&lab.source(&content), 10 * IN_MEMORY).expect("puts");
        assert_eq!((digest, stored), (Digest::of(&content), size), "{size} bytes");
        assert_eq!(lab.objects.read(digest, size).expect("reads"), content, "{size} bytes");
    }
}

#[test]
fn a_file_over_the_cap_leaves_nothing_behind() {
    let lab = lab();
    let source = lab.source(&vec![1; 1000]);
    assert!(matches!(lab.objects.put_file(&source, 999), Err(StoreError::TooLarge { size: 1000, max_bytes: 999 })));
    assert!(lab.objects.put_file(&source, 1000).is_ok());
    assert_eq!(lab.top_names(), 1);
}

#[test]
fn only_the_owner_may_read_whatever_the_umask() {
    let lab = lab();
    let digest = lab.objects.put(b"secret").expect("puts");
    let file = lab.file_of(digest);
    let mode = |path: &std::path::Path| fs::symlink_metadata(path).expect("stats").permissions().mode() & 0o7777;
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(file.parent().expect("a shelf")), 0o700);
    assert_eq!(mode(&lab.folder.path().join("objects")), 0o700);
}

#[test]
fn a_torn_or_altered_object_is_never_given_and_is_replaced_when_put_again() {
    let lab = lab();
    let digest = lab.objects.put(b"A=1\n").expect("puts");
    for damage in [&b""[..], b"A=2\n", b"A=1\nB=2\n"] {
        fs::write(lab.file_of(digest), damage).expect("damages");
        let corrupt =
            |result: Result<(), StoreError>| matches!(result, Err(StoreError::Corrupt { digest: d }) if d == digest);
        assert!(corrupt(lab.objects.read(digest, 100).map(drop)), "{damage:?}");
        assert!(corrupt(lab.objects.get(digest).map(drop)), "{damage:?}");
        let to = tempfile::tempfile().expect("a file");
        assert!(corrupt(lab.objects.copy_to(digest, &to).map(drop)), "{damage:?}");
        assert!(!lab.objects.contains(digest).expect("looks"));
        lab.objects.put(b"A=1\n").expect("puts");
        assert_eq!(lab.objects.read(digest, 100).expect("reads"), b"A=1\n");
    }
}

#[test]
fn something_else_under_an_objects_name_is_not_followed_and_gives_way() {
    let lab = lab();
    let digest = lab.objects.put(b"A=1\n").expect("puts");
    let (file, outside) = (lab.file_of(digest), lab.folder.path().join("outside"));
    fs::write(&outside, b"A=1\n").expect("writes");

    fs::remove_file(&file).expect("removes");
    symlink(&outside, &file).expect("links");
    assert!(matches!(lab.objects.read(digest, 100), Err(StoreError::Corrupt { .. })));
    lab.objects.put(b"A=1\n").expect("puts");
    assert!(fs::symlink_metadata(&file).expect("stats").is_file());

    fs::remove_file(&file).expect("removes");
    fs::create_dir_all(file.join("deep")).expect("makes");
    lab.objects.put(b"A=1\n").expect("puts");
    assert_eq!(lab.objects.read(digest, 100).expect("reads"), b"A=1\n");
    assert_eq!(fs::read(&outside).expect("reads"), b"A=1\n");
}

#[test]
fn retain_keeps_what_is_wanted_and_clears_what_was_left_half_written() {
    let lab = lab();
    let kept = lab.objects.put(b"kept").expect("puts");
    let gone = lab.objects.put(b"gone").expect("puts");
    fs::write(lab.folder.path().join("objects/new-0123456789ab"), b"half").expect("writes");
    assert_eq!(lab.objects.retain(&BTreeSet::from([kept])).expect("retains"), 1);
    assert_eq!(lab.objects.read(kept, 10).expect("reads"), b"kept");
    assert!(matches!(lab.objects.read(gone, 10), Err(StoreError::Missing { .. })));
    assert!(!lab.folder.path().join("objects/new-0123456789ab").exists());
}

#[test]
fn many_objects_are_synced_as_one() {
    let lab = lab();
    for number in 0..2 * SYNCED_SINGLY {
        lab.objects.put(format!("{number}").as_bytes()).expect("puts");
    }
    let plan = platform::fault::Plan::count();
    lab.objects.sync().expect("syncs");
    let many = plan.passed();
    // Where there is no call for a whole file system, each is synced by itself.
    let at_once =
        platform::durable::sync_file_system(&Dir::open_ambient(lab.folder.path()).expect("opens")).expect("asks");
    assert!(many < SYNCED_SINGLY as u64 || !at_once, "{many} steps");
    let many = plan.passed();
    lab.objects.sync().expect("syncs");
    assert_eq!(plan.passed(), many, "nothing was new");
}

#[test]
fn a_crash_at_any_step_of_a_put_leaves_the_whole_object_or_none() {
    let lab = lab();
    let content = vec![7; 400 * 1024];
    for passes in 0.. {
        let plan = platform::fault::Plan::crash_after(passes);
        let put = lab.objects.put_file(&lab.source(&content), 1 << 20);
        let crashed = platform::fault::crashed();
        drop(plan);
        match lab.objects.read(Digest::of(&content), 1 << 20) {
            Ok(read) => assert!(read == content, "after {passes} steps"),
            Err(StoreError::Missing { .. }) => assert!(put.is_err(), "after {passes} steps"),
            Err(error) => panic!("after {passes} steps: {error}"),
        }
        lab.objects.retain(&BTreeSet::new()).expect("clears");
        if !crashed {
            assert!(put.is_ok());
            return;
        }
    }
}

#[test]
fn a_write_that_fails_at_its_start_or_in_its_middle_names_the_file_and_leaves_none() {
    let lab = lab();
    let mut failed_writes = 0;
    for passes in 0.. {
        let plan = platform::fault::Plan::fail_after(passes, 28);
        let put = lab.objects.put(b"A=1\nB=2\n");
        drop(plan);
        match put {
            Ok(_) => break,
            Err(StoreError::Fs(error)) if error.operation == "write" => {
                assert!(error.path.to_string_lossy().starts_with(UNFINISHED), "{error:?}");
                assert_eq!(error.errno(), Some(28));
                failed_writes += 1;
            }
            Err(error) => assert!(!matches!(error, StoreError::Bytes { .. }), "{error:?} names no file"),
        }
        assert!(!lab.file_of(Digest::of(b"A=1\nB=2\n")).exists(), "after {passes} steps");
    }
    assert_eq!(failed_writes, 2);
}
