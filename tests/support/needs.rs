//! What a test needs of the machine, and what happens where that is missing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Ends a test that this machine cannot run: with a line that says so, or as a failure if `KEEP_EXPECT` names it.
pub fn skip(needs: &str) {
    let promised = std::env::var("KEEP_EXPECT").unwrap_or_default();
    assert!(!promised.split(',').any(|word| word == needs), "this machine was to have {needs}");
    println!("skipped: needs {needs}");
}

/// Whether we are root, to whom permissions mean nothing.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The interpreter for what cannot be done without system calls of one's own.
const PYTHON: &str = "/usr/bin/python3";

/// Whether there is one.
pub fn has_python() -> bool {
    Path::new(PYTHON).exists()
}

/// Runs a few lines of Python with these arguments.
pub fn python(script: &str, arguments: &[&Path]) -> Command {
    let mut command = Command::new(PYTHON);
    command.args(["-I", "-c", script]).args(arguments);
    command
}

/// Runs the test it stands in again as nobody, if we are root: permissions do not stop root. Whether to go on here.
macro_rules! goes_on_as_an_ordinary_user {
    () => {{
        fn here() {}
        $crate::support::goes_on(std::any::type_name_of_val(&here))
    }};
}
pub(crate) use goes_on_as_an_ordinary_user;

/// What is behind the macro; `here` is the path of a function in the test.
pub fn goes_on(here: &str) -> bool {
    if !is_root() {
        return true;
    }
    // The way to the programs may be closed to others.
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("chmods");
    let copy = |from: PathBuf, name: &str| {
        let to = folder.path().join(name);
        fs::copy(from, &to).expect("copies");
        to
    };
    let tests = copy(std::env::current_exe().expect("has a path"), "tests");
    let keep = copy(super::sandbox::keep(), "keep");
    let (_program, test) = here.split_once("::").expect("a path");
    let test = test.strip_suffix("::here").expect("a function in a test");
    let ran = Command::new(tests)
        .args(["--exact", test, "--nocapture"])
        .env("KEEP_UNDER_TEST", keep)
        .env_remove("TMPDIR")
        .uid(65_534)
        .gid(65_534)
        .current_dir("/")
        .output()
        .expect("runs");
    let said = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
    false
}

/// A file system mounted for the time of a test.
pub struct Mounted(pub PathBuf);

impl Mounted {
    /// `mount ARGUMENTS… WHERE`; `None` where that is not allowed.
    pub fn new(arguments: &[&str], at: &Path) -> Option<Self> {
        let done = Command::new("mount").args(arguments).arg(at).output();
        done.is_ok_and(|done| done.status.success()).then(|| Self(at.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}
