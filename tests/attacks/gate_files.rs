//! Attacks on the file tools of the gate: links swapped while they work, special files, mounts, and names that move.
//!
//! What needs root or mounts is left out where those are missing, and fails if `KEEP_EXPECT` names it (`mounts`).

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use keepwatch::gate::files::{Answer, Change, Files, Job, is_unfinished};
use keepwatch::gate::tools::request::{
    FileList, FileMove, FileRead, FileRemove, FileSearch, FileStat, FileWrite, Unit,
};
use platform::{Dir, Root};

use crate::support::{Mounted, is_root, meanwhile, skip};

/// `O_NONBLOCK`: opening a FIFO for writing then fails if nobody reads.
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;

const CANARY: &str = "canary-outside";

struct Lab {
    temp: tempfile::TempDir,
    files: Files,
}

fn lab() -> Lab {
    let memory = Path::new("/dev/shm");
    let temp = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.expect("a folder");
    for folder in ["root", "outside"] {
        fs::create_dir(temp.path().join(folder)).expect("makes");
    }
    fs::write(temp.path().join("outside/f"), CANARY).expect("writes");
    let root = Root::open(&temp.path().join("root")).expect("opens");
    Lab { files: Files::new(Arc::new(root)), temp }
}

fn write(path: &str, content: &str) -> Change {
    Change::Write(FileWrite { path: path.into(), content: content.into() })
}

fn remove(path: &str) -> Change {
    Change::Remove(FileRemove { path: path.into() })
}

fn relocate(from: &str, to: &str) -> Change {
    Change::Move(FileMove { from: from.into(), to: to.into(), overwrite: true })
}

fn read(path: &str) -> Job {
    Job::Read(FileRead { path: path.into(), offset: 0, limit: None, unit: Unit::Bytes })
}

fn search(contains: &str) -> Job {
    let contains = Some(contains.to_owned());
    Job::Search(FileSearch { pattern: "*".into(), path: None, contains, regex: false, all: true })
}

impl Lab {
    fn path(&self, path: &str) -> PathBuf {
        self.temp.path().join("root").join(path)
    }

    fn act(&mut self, change: Change) -> Answer {
        match self.files.run(Job::Prepare(change.clone())) {
            Answer::Prepared(prepared) => self.files.run(Job::Act { change, state: prepared.state }),
            other => other,
        }
    }

    fn outside_is_unharmed(&self) {
        let names: Vec<_> = fs::read_dir(self.temp.path().join("outside"))
            .expect("lists")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        assert_eq!(names, ["f"]);
        assert_eq!(fs::read_to_string(self.temp.path().join("outside/f")).expect("reads"), CANARY);
    }

    fn nothing_unfinished(&self, folder: &str) {
        for entry in fs::read_dir(self.path(folder)).expect("lists") {
            let name = entry.expect("an entry").file_name();
            assert!(!is_unfinished(name.as_encoded_bytes()), "{name:?} was left");
        }
    }
}

#[test]
fn a_folder_and_a_file_exchanged_for_links_to_the_outside_never_lead_there() {
    let mut lab = lab();
    fs::create_dir_all(lab.path("d")).expect("makes");
    fs::write(lab.path("d/f"), "inside").expect("writes");
    symlink(lab.temp.path().join("outside"), lab.path("d.swap")).expect("links");
    fs::write(lab.path("f"), "inside").expect("writes");
    symlink("../outside/f", lab.path("f.swap")).expect("links");
    let dir = Dir::open_ambient(&lab.path("")).expect("opens");
    let mut swaps = 0;
    let swap = || {
        let _ = dir.exchange(b"d", b"d.swap");
        let _ = dir.exchange(b"f", b"f.swap");
        swaps += 1;
    };
    let mut succeeded = [0; 5];
    meanwhile(swap, || {
        let over = std::time::Instant::now() + std::time::Duration::from_secs(3);
        while std::time::Instant::now() < over {
            let answers = [
                lab.act(write("d/f", "inside")),
                lab.files.run(read("d/f")),
                lab.files.run(read("f")),
                lab.act(relocate("d/f", "d/g")),
                lab.act(remove("d/g")),
            ];
            for (answer, count) in answers.iter().zip(&mut succeeded) {
                assert!(!format!("{answer:?}").contains(CANARY), "{answer:?}");
                *count += u64::from(matches!(answer, Answer::Done(_)));
            }
            let found = lab.files.run(search(CANARY));
            let Answer::Done(found) = found else { panic!("{found:?}") };
            assert_eq!(found["hits"], serde_json::json!([]));
            lab.outside_is_unharmed();
        }
    });
    assert!(swaps > 500, "only {swaps} exchanges");
    assert!(succeeded.iter().all(|&count| count > 0), "the race was never won, so it was not raced: {succeeded:?}");
    // Whoever was in the middle of the exchange when it ended.
    let folder = if lab.path("d").is_symlink() { "d.swap" } else { "d" };
    lab.nothing_unfinished(folder);
}

#[test]
fn a_file_renamed_into_place_during_a_write_is_replaced_only_if_it_was_asked_about() {
    let mut lab = lab();
    fs::write(lab.path("f"), "0").expect("writes");
    let (path, fresh) = (lab.path("f"), lab.path("fresh"));
    let mut number = 0_u64;
    let meddle = || {
        number += 1;
        fs::write(&fresh, format!("somebody {number}")).expect("writes");
        fs::rename(&fresh, &path).expect("renames");
    };
    let mut refused = 0;
    meanwhile(meddle, || {
        for round in 0..2000 {
            let change = write("f", &format!("agent {round}"));
            match lab.act(change) {
                Answer::Done(_) => {}
                Answer::Failed(_) | Answer::Stale => refused += 1,
                other => panic!("{other:?}"),
            }
        }
    });
    assert!(refused > 0, "nothing ever came in between, so it was not raced");
    lab.nothing_unfinished("");
    let mut names: Vec<_> =
        fs::read_dir(lab.path("")).expect("lists").map(|e| e.expect("an entry").file_name()).collect();
    names.retain(|name| name != "fresh");
    assert_eq!(names, ["f"]);
}

#[test]
fn links_of_the_kernel_and_links_to_the_outside_are_refused_by_every_tool() {
    let mut lab = lab();
    fs::write(lab.path("inside"), "inside").expect("writes");
    for (name, text) in [
        ("proc", "/proc/self/root"),
        ("fd", "/proc/self/fd/0"),
        ("exe", "/proc/self/exe"),
        ("null", "/dev/null"),
        ("up", ".."),
        ("out", "../outside"),
        ("round", "round"),
    ] {
        symlink(text, lab.path(name)).expect("links");
    }
    let before = fs::read_dir(lab.path("")).expect("lists").count();
    for path in ["proc", "proc/etc/passwd", "fd", "exe", "null", "up/outside/f", "out/f", "out/new", "round", "up"] {
        let stat = Job::Stat(FileStat { path: path.into() });
        let list = Job::List(FileList { path: Some(path.into()) });
        let mut answers = vec![lab.files.run(read(path)), lab.files.run(stat), lab.files.run(list)];
        answers.push(lab.act(write(path, "agent")));
        answers.push(lab.act(relocate("inside", &format!("{path}/below"))));
        if path.contains('/') {
            answers.push(lab.act(remove(path)));
            answers.push(lab.act(relocate(path, "stolen")));
        }
        for answer in answers {
            let Answer::Failed(why) = answer else { panic!("{path}: {answer:?}") };
            assert!(!why.contains(CANARY), "{why}");
        }
    }
    lab.outside_is_unharmed();
    assert_eq!(fs::read_dir(lab.path("")).expect("lists").count(), before);
}

#[test]
fn what_is_no_file_is_neither_opened_nor_touched() {
    let mut lab = lab();
    fs::write(lab.path("plain"), "needle").expect("writes");
    assert!(Command::new("mkfifo").arg(lab.path("fifo")).status().is_ok_and(|status| status.success()));
    let _listener = std::os::unix::net::UnixListener::bind(lab.path("socket")).expect("binds");
    let mut names = vec!["fifo", "socket"];
    if is_root()
        && Command::new("mknod").arg(lab.path("device")).args(["c", "1", "3"]).status().is_ok_and(|s| s.success())
    {
        names.push("device");
    }
    for name in names {
        for answer in [
            lab.files.run(read(name)),
            lab.act(write(name, "agent")),
            lab.act(remove(name)),
            lab.act(relocate(name, "elsewhere")),
            lab.act(relocate("plain", name)),
        ] {
            assert!(matches!(answer, Answer::Failed(_)), "{name}: {answer:?}");
        }
        assert!(matches!(lab.files.run(Job::Stat(FileStat { path: name.into() })), Answer::Done(_)));
    }
    let Answer::Done(found) = lab.files.run(search("needle")) else { panic!("searches") };
    assert_eq!(found["hits"].as_array().expect("a list").len(), 1);
    // Nobody has the FIFO open for reading: then this cannot open it either.
    let opened = fs::OpenOptions::new().write(true).custom_flags(NONBLOCK).open(lab.path("fifo"));
    assert_eq!(opened.expect_err("nobody reads").raw_os_error(), Some(6));
}

#[test]
fn a_hard_link_from_outside_is_read_and_its_other_name_is_never_written() {
    let mut lab = lab();
    fs::hard_link(lab.temp.path().join("outside/f"), lab.path("shared")).expect("links");
    assert!(matches!(lab.files.run(read("shared")), Answer::Done(_)), "whoever linked it could read it");
    assert!(matches!(lab.act(write("shared", "agent")), Answer::Done(_)));
    lab.outside_is_unharmed();
    assert_eq!(fs::read_to_string(lab.path("shared")).expect("reads"), "agent");
}

#[test]
fn another_file_system_in_the_way_is_not_entered() {
    let mut lab = lab();
    for folder in ["mounted", "bound"] {
        fs::create_dir(lab.path(folder)).expect("makes");
    }
    fs::write(lab.path("file"), "inside").expect("writes");
    let Some(_first) = Mounted::new(&["-t", "tmpfs", "none"], &lab.path("mounted")) else { return skip("mounts") };
    let outside = lab.temp.path().join("outside");
    let outside = outside.to_str().expect("text");
    let _second = Mounted::new(&["--bind", outside], &lab.path("bound")).expect("the first one worked");
    let _third = Mounted::new(&["--bind", &format!("{outside}/f")], &lab.path("file")).expect("the first one worked");
    for path in ["mounted/x", "bound/f", "file"] {
        for answer in [
            lab.files.run(read(path)),
            lab.act(write(path, "agent")),
            lab.act(remove(path)),
            lab.act(relocate(path, "stolen")),
        ] {
            assert!(matches!(answer, Answer::Failed(_)), "{path}: {answer:?}");
        }
    }
    let Answer::Done(found) = lab.files.run(search(CANARY)) else { panic!("searches") };
    assert_eq!(found["hits"], serde_json::json!([]));
    lab.outside_is_unharmed();
}

#[test]
fn hostile_names_are_shown_escaped_and_cannot_be_asked_for() {
    let mut lab = lab();
    for name in ["a\x1b]0;owned\x07b", "a\u{202e}b", "a\nb"] {
        fs::write(lab.path(name), "x").expect("writes");
        for answer in [lab.files.run(read(name)), lab.act(write(name, "agent")), lab.act(remove(name))] {
            let Answer::Failed(why) = answer else { panic!("{name:?}: {answer:?}") };
            assert!(!why.chars().any(keepwatch::text::is_hidden), "{why:?}");
        }
    }
    for job in [Job::List(FileList { path: None }), search("x")] {
        let Answer::Done(answer) = lab.files.run(job) else { panic!("lists") };
        let text = serde_json::to_string(&answer).expect("JSON");
        assert!(!text.contains("\\u001b") && !text.chars().any(keepwatch::text::is_hidden), "{text}");
    }
}

#[test]
fn a_full_disk_leaves_the_old_content_and_no_rubbish() {
    let memory = tempfile::tempdir().expect("a folder");
    let Some(mounted) = Mounted::new(&["-t", "tmpfs", "-o", "size=1m", "tmpfs"], memory.path()) else {
        return skip("mounts");
    };
    let root = mounted.0.clone();
    fs::write(root.join("f"), "old").expect("writes");
    let mut filler = fs::File::create(root.join("filler")).expect("creates");
    while filler.write_all(&[1; 4096]).is_ok() {}
    let mut files = Files::new(Arc::new(Root::open(&root).expect("opens")));
    for change in [write("f", &"new".repeat(100_000)), write("a/b/f", &"new".repeat(100_000))] {
        let Answer::Prepared(prepared) = files.run(Job::Prepare(change.clone())) else { panic!("prepares") };
        let answer = files.run(Job::Act { change, state: prepared.state });
        let Answer::Failed(why) = answer else { panic!("{answer:?}") };
        assert!(why.contains("No space"), "{why}");
    }
    let mut names: Vec<_> = fs::read_dir(&root).expect("lists").map(|e| e.expect("an entry").file_name()).collect();
    names.sort();
    assert_eq!(names, ["f", "filler"]);
    assert_eq!(fs::read_to_string(root.join("f")).expect("reads"), "old");
}
