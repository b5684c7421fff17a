//! What giving up root and refusing to be traced really do, seen from outside and inside.
//!
//! Both change a whole process for good and must happen before it has a second thread, which the usual test harness
//! starts for every test. So this program is its own harness: each case runs in a process of its own.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use platform::privilege::{self, PrivilegeError};
use platform::{Root, process, xattr};

/// `nobody` on every Linux; elsewhere just a number.
const NOBODY: u32 = 65_534;

/// A case: what it shows, and how, given an empty directory that everybody can enter.
type Case = (&'static str, fn(&Path));

const CASES: [Case; 4] = [
    ("root_given_up_is_gone_for_good", root_given_up_is_gone_for_good),
    ("the_groups_are_those_of_the_user_and_none_of_roots", the_groups_are_those_of_the_user_and_none_of_roots),
    ("root_is_not_given_up_while_other_threads_run", root_is_not_given_up_while_other_threads_run),
    (
        "a_hardened_process_refuses_its_own_user_and_still_opens_files",
        a_hardened_process_refuses_its_own_user_and_still_opens_files,
    ),
];

/// Without arguments, or with a filter as `cargo test` passes it: runs the cases. With `--case NAME DIR`: is one.
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name, dir] = arguments.as_slice()
        && flag == "--case"
    {
        let (_, case) = CASES.iter().find(|(case, _)| case == name).expect("a case of the list");
        case(Path::new(dir));
        return ExitCode::SUCCESS;
    }
    let filter = arguments.iter().find(|argument| !argument.starts_with('-'));
    let mut failed = 0;
    for (name, _) in CASES.iter().filter(|(name, _)| filter.is_none_or(|filter| name.contains(filter.as_str()))) {
        let temp = tempfile::tempdir().expect("a temporary directory");
        fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o755)).expect("chmods");
        // An ordinary user may not be able to reach the program where it was built.
        let program = temp.path().join("program");
        fs::copy(own_program(), &program).expect("copies");
        let output = start(&program, name, temp.path());
        println!("test {name} ... {}", if output.is_ok() { "ok" } else { "FAILED" });
        if let Err(text) = output {
            println!("{text}");
            failed += 1;
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn own_program() -> PathBuf {
    std::env::current_exe().expect("the system tells")
}

/// Runs a case in a process of its own; the error is what it printed.
fn start(program: &Path, name: &str, dir: &Path) -> Result<(), String> {
    let output = Command::new(program).args(["--case", name]).arg(dir).output().expect("starts");
    let text = [output.stdout, output.stderr].concat();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&text).into_owned()) }
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
        start(&own_program(), name, dir).unwrap_or_else(|text| panic!("{text}"));
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
