//! What changes a whole process, or depends on all of it: privilege, tracing, umask, open descriptors, confinement.
//!
//! Giving up root must happen before there is a second thread, which the usual test harness starts for every test. So
//! this program is its own harness: each case runs in a process of its own.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests arrange files and time themselves, and say what they pass over"
)]

mod confined;
#[path = "../support/tally.rs"]
mod tally;
mod worker;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};

use platform::holder::Holder;
use platform::lock::{Lock, LockError};
use platform::privilege::{self, PrivilegeError};
use platform::{Dir, Privileged, RelPath, Root, Wanted, process, xattr};

use tally::Tally;

/// `nobody` on every Linux; elsewhere just a number.
const NOBODY: u32 = 65_534;

/// A case: what it shows, and how, given an empty directory that everybody can enter.
type Case = (&'static str, fn(&Path));

const CASES: &[Case] = &[
    ("root_given_up_is_gone_for_good", root_given_up_is_gone_for_good),
    (
        "capabilities_of_the_programs_file_are_given_up_for_good",
        capabilities_of_the_programs_file_are_given_up_for_good,
    ),
    ("the_groups_are_those_of_the_user_and_none_of_roots", the_groups_are_those_of_the_user_and_none_of_roots),
    ("nothing_is_gained_by_running_it_again", nothing_is_gained_by_running_it_again),
    ("root_is_not_given_up_while_other_threads_run", root_is_not_given_up_while_other_threads_run),
    (
        "a_hardened_process_refuses_its_own_user_and_still_opens_files",
        a_hardened_process_refuses_its_own_user_and_still_opens_files,
    ),
    ("the_bits_are_exact_whatever_the_umask", the_bits_are_exact_whatever_the_umask),
    ("no_operation_leaves_a_descriptor_behind", no_operation_leaves_a_descriptor_behind),
    ("a_killed_holder_loses_the_lock_though_its_child_lives", a_killed_holder_loses_the_lock_though_its_child_lives),
];

/// All of them.
fn cases() -> impl Iterator<Item = &'static Case> {
    CASES.iter().chain(confined::CASES).chain(worker::CASES)
}

/// Without arguments, or with a filter as `cargo test` passes it: runs the cases. With `--case NAME DIR`: is one. With
/// `--hold DIR`: holds the lock there, starts a child that outlives us, says its number and waits. With
/// `--gate DIR`: is a gate with a busy worker. With the one argument of a files worker: is one.
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name, dir] = arguments.as_slice()
        && flag == "--case"
    {
        let (_, case) = cases().find(|(case, _)| case == name).expect("a case of the list");
        case(Path::new(dir));
        return ExitCode::SUCCESS;
    }
    if let [flag, dir] = arguments.as_slice()
        && flag == "--hold"
    {
        hold(Path::new(dir));
    }
    if let [flag, dir] = arguments.as_slice()
        && flag == "--gate"
    {
        worker::be_a_gate(Path::new(dir));
    }
    if arguments == [keepwatch::gate::worker::ARGUMENT] {
        return worker::be();
    }
    let filter = arguments.iter().find(|argument| !argument.starts_with('-'));
    let mut tally = Tally::default();
    for (name, _) in cases().filter(|(name, _)| filter.is_none_or(|filter| name.contains(filter.as_str()))) {
        let temp = tempfile::tempdir().expect("a temporary directory");
        fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o755)).expect("chmods");
        // An ordinary user may not be able to reach the program where it was built.
        let program = temp.path().join("program");
        fs::copy(own_program(), &program).expect("copies");
        tally.told(name, start(&program, name, temp.path()));
    }
    tally.end()
}

fn own_program() -> PathBuf {
    std::env::current_exe().expect("the system tells")
}

/// Runs a case in a process of its own.
fn start(program: &Path, name: &str, dir: &Path) -> Output {
    Command::new(program).args(["--case", name]).arg(dir).output().expect("starts")
}

fn stdout_of(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().expect("starts");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn root_given_up_is_gone_for_good(dir: &Path) {
    if !privilege::is_root() {
        assert!(matches!(privilege::drop_to(NOBODY, NOBODY), Err(PrivilegeError::NotRoot)));
        return;
    }
    let secret = dir.join("secret");
    fs::write(&secret, "root's").expect("writes");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).expect("chmods");
    privilege::drop_to(NOBODY, NOBODY).expect("drops");
    assert!(fs::read(&secret).is_err(), "nobody reads what is root's");
    assert!(chown(dir, Some(NOBODY), None).is_err());
    assert!(matches!(privilege::drop_to(NOBODY, NOBODY), Err(PrivilegeError::NotRoot)));
    assert_eq!(stdout_of("id", &["-u"]), "65534", "what a program we start is");
    if let Ok(status) = fs::read_to_string("/proc/self/status") {
        for line in ["CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000"] {
            assert!(status.contains(line), "{status}");
        }
        assert!(status.contains("CapAmb:\t0000000000000000") && status.contains("NoNewPrivs:\t1"), "{status}");
        // Whatever `fs.suid_dumpable` says: what /proc shows of a process that can be traced is its user's.
        let owner = |path: &str| std::os::unix::fs::MetadataExt::uid(&fs::metadata(path).expect("stats"));
        assert_eq!(owner("/proc/self/environ"), 0, "it can be traced already");
    }
}

/// Sets `CAP_SYS_ADMIN` on a program, permitted and effective (capabilities(7), `struct vfs_cap_data`).
#[cfg(target_os = "linux")]
fn set_capability(program: &Path) {
    let value: Vec<u8> = [0x0200_0001_u32, 1 << 21, 0, 0, 0].into_iter().flat_map(u32::to_le_bytes).collect();
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(program, "security.capability", &value, flags).expect("root sets it");
}

#[cfg(not(target_os = "linux"))]
fn set_capability(_program: &Path) {}

fn capabilities_of_the_programs_file_are_given_up_for_good(dir: &Path) {
    if privilege::is_root() {
        assert!(matches!(privilege::drop_capabilities(), Err(PrivilegeError::Root)));
        let program = dir.join("capped");
        fs::copy(own_program(), &program).expect("copies");
        set_capability(&program);
        let mut command = Command::new(&program);
        command.args(["--case", "capabilities_of_the_programs_file_are_given_up_for_good"]).arg(dir);
        let output = command.uid(NOBODY).gid(NOBODY).output().expect("starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let here = Dir::open_ambient(dir).expect("opens");
    let status = || fs::read_to_string("/proc/self/status").unwrap_or_default();
    let open = || Privileged::open(&here, Wanted::ALL).expect("nothing fails");
    if !dir.join("capped").exists() || !cfg!(target_os = "linux") {
        let before = status().lines().find(|line| line.starts_with("NoNewPrivs")).map(str::to_owned);
        privilege::drop_capabilities().expect("there are none");
        assert!(open().is_none());
        let after = status().lines().find(|line| line.starts_with("NoNewPrivs")).map(str::to_owned);
        assert_eq!(before, after, "who has none is left as it is");
        return;
    }
    let (stop, wait) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || wait.recv());
    assert!(matches!(privilege::drop_capabilities(), Err(PrivilegeError::Threads { count: 2 })));
    drop(stop);
    assert!(other.join().expect("does not panic").is_err());
    let opened = open().expect("the point of this test");
    assert!(opened.groups.is_some() && opened.openings.is_some());
    // The other thread may be in the list for a moment after it was waited for.
    while fs::read_dir("/proc/self/task").expect("lists").count() > 1 {
        std::thread::yield_now();
    }
    privilege::drop_capabilities().expect("drops");
    for line in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert!(status().contains(&format!("{line}:\t0000000000000000")), "{}", status());
    }
    assert!(status().contains("NoNewPrivs:\t1"), "{}", status());
    assert!(open().is_none());
    let again = Command::new(own_program()).args(["--case", "nothing_is_gained_by_running_it_again"]).arg(dir).output();
    assert!(again.expect("starts").status.success(), "its file has the capability still");
}

fn nothing_is_gained_by_running_it_again(dir: &Path) {
    if !privilege::is_root() {
        assert!(
            Privileged::open(&Dir::open_ambient(dir).expect("opens"), Wanted::ALL).expect("nothing fails").is_none()
        );
    }
}

fn the_groups_are_those_of_the_user_and_none_of_roots(_dir: &Path) {
    if !privilege::is_root() {
        return;
    }
    let expected = stdout_of("id", &["-G", "nobody"]);
    let gid = stdout_of("id", &["-g", "nobody"]).parse().expect("a number");
    let uid = stdout_of("id", &["-u", "nobody"]).parse().expect("a number");
    privilege::drop_to(uid, gid).expect("drops");
    let sorted = |text: String| {
        let mut groups: Vec<String> = text.split(' ').map(str::to_owned).collect();
        groups.sort();
        groups
    };
    assert_eq!(sorted(stdout_of("id", &["-G"])), sorted(expected));
}

fn root_is_not_given_up_while_other_threads_run(_dir: &Path) {
    if !privilege::is_root() {
        return;
    }
    let (stop, wait) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || wait.recv());
    let refused = privilege::drop_to(NOBODY, NOBODY);
    assert!(matches!(refused, Err(PrivilegeError::Threads { count: 2 })), "{refused:?}");
    drop(stop);
    assert!(other.join().expect("does not panic").is_err());
    assert!(privilege::is_root(), "nothing has happened");
}

/// Whether another process of our user can read our environment; the check is the one made for our memory.
fn others_can_look() -> bool {
    let environment = format!("/proc/{}/environ", process::own_pid());
    Command::new("cat").arg(environment).stdout(Stdio::null()).stderr(Stdio::null()).status().expect("starts").success()
}

fn a_hardened_process_refuses_its_own_user_and_still_opens_files(dir: &Path) {
    if privilege::is_root() {
        // Root may look into every process, so go on as nobody. A process that changed its user cannot be traced anyway;
        // a program it starts can.
        fs::write(dir.join("file"), "content").expect("writes");
        chown(dir.join("file"), Some(NOBODY), Some(NOBODY)).expect("chowns");
        privilege::drop_to(NOBODY, NOBODY).expect("drops");
        let name = "a_hardened_process_refuses_its_own_user_and_still_opens_files";
        let output = start(&own_program(), name, dir);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&[output.stdout, output.stderr].concat()));
        return;
    }
    if !dir.join("file").exists() {
        fs::write(dir.join("file"), "content").expect("writes");
    }
    let has_proc = Path::new("/proc/self/environ").exists();
    assert!(!has_proc || others_can_look(), "the point of this test");
    privilege::harden().expect("hardens");
    assert!(!others_can_look());
    // Our own files in /proc are root's now; opening by /proc/self/fd must not depend on that.
    let root = Root::open(dir).expect("opens");
    let mut text = String::new();
    root.dir().open_read(b"file").expect("opens").read_to_string(&mut text).expect("reads");
    assert_eq!(text, "content");
    root.dir().open_update(b"file").expect("opens");
    xattr::read_name(root.dir(), b"file").expect("reads");
    assert!(process::start_time(process::own_pid()).expect("reads").is_some());
}

fn the_bits_are_exact_whatever_the_umask(dir: &Path) {
    let root = Root::open(dir).expect("opens");
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o277));
    let file = root.dir().create_new(b"exact", 0o6755).map(drop);
    let update = root.dir().open_update(b"own").map(drop);
    let made = root.dir().make_dir(b"made", 0o1777).map(drop);
    rustix::process::umask(before);
    file.and(update).and(made).expect("all of them are made");
    let mode = |name: &[u8]| root.dir().stat(name).expect("stats").expect("exists").mode;
    assert_eq!([mode(b"exact"), mode(b"own"), mode(b"made")], [0o6755, 0o600, 0o1777]);
}

fn no_operation_leaves_a_descriptor_behind(dir: &Path) {
    let own = Path::new("/proc/self/fd");
    if !own.exists() {
        return;
    }
    let open = || fs::read_dir(own).expect("lists").count();
    std::os::unix::fs::symlink("/", dir.join("link")).expect("links");
    fs::create_dir_all(dir.join("a/b/c")).expect("makes");
    let root = Root::open(dir).expect("opens");
    let holder = Holder::this_process("test", "now").expect("the system tells");
    let before = open();
    for _ in 0..100 {
        for path in ["a/b/c", "a/no/c", "link/etc", "program/x", "no"] {
            let path = RelPath::parse(path.as_bytes()).expect("a normal path");
            let _ = (root.open_dir(&path), root.stat(&path), root.open_read(&path));
            let _ = platform::root::walk::open_dir(root.dir(), &path);
        }
        let _ = (root.dir().open_read(b"link"), root.dir().open_update(b"a"), root.dir().create_new(b"a", 0o600));
        let _ = (xattr::read_name(root.dir(), b"link"), xattr::read_dir(root.dir()), root.dir().list());
        let _lock = Lock::try_acquire(root.dir(), b"lock", &holder).expect("it is free");
        Lock::try_acquire(root.dir(), b"lock", &holder).expect_err("it is held");
        root.dir().make_dir(b"tree", 0o700).expect("makes").make_dir(b"below", 0o700).expect("makes");
        root.dir().remove_all(b"tree").expect("removes");
    }
    assert_eq!(open(), before);
}

fn hold(dir: &Path) -> ! {
    let dir = Dir::open_ambient(dir).expect("opens");
    let holder = Holder::this_process("the holder", "now").expect("the system tells");
    let _lock = Lock::try_acquire(&dir, b"lock", &holder).expect("it is free");
    let mut child = Command::new("cat").spawn().expect("starts");
    println!("{}", child.id());
    child.wait().expect("ends");
    unreachable!("we are killed first");
}

fn a_killed_holder_loses_the_lock_though_its_child_lives(dir: &Path) {
    let mut holder = Command::new(own_program())
        .arg("--hold")
        .arg(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut lines = BufReader::new(holder.stdout.take().expect("piped")).lines();
    let mut line = || lines.next().expect("there is one more").expect("reads");
    let child: u32 = line().parse().expect("the number of its child");
    // An echo shows that the child runs its program: until then it has our descriptors, as after any fork.
    let mut input = holder.stdin.take().expect("piped");
    input.write_all(b"echo\n").expect("writes");
    assert_eq!(line(), "echo");
    let open = Dir::open_ambient(dir).expect("opens");
    let us = Holder::this_process("the test", "now").expect("the system tells");
    match Lock::try_acquire(&open, b"lock", &us) {
        Err(LockError::Held { holder: known }) => {
            assert_eq!((known.pid, known.command.as_deref()), (Some(holder.id()), Some("the holder")));
        }
        other => panic!("expected it to be held: {other:?}"),
    }
    // The child's input stays open, so that it goes on when the holder is gone.
    holder.kill().expect("kills");
    holder.wait().expect("ends");
    assert!(process::exists(child), "the point of this test");
    Lock::try_acquire(&open, b"lock", &us).expect("a dead holder holds nothing");
    drop(input);
}
