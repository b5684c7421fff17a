//! A program that would pass for another one in the question about its own open.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{Sandbox, Watch, has_python, is_root, python, skip};

/// A watch that holds opens, if this machine lets it.
fn holding(lab: &Sandbox) -> Option<Watch> {
    if !is_root() {
        skip("privileged");
        return None;
    }
    Some(lab.watch(&["--hold", "--decision-timeout", "300"]))
}

fn start(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts")
}

#[test]
fn a_program_that_ends_its_first_thread_is_asked_about_by_the_file_it_runs() {
    if !has_python() {
        return;
    }
    let lab = Sandbox::new();
    let Some(mut watch) = holding(&lab) else { return };
    // The line of the process is that of its first thread, which has no program any more, and a name that it chose.
    let call = if cfg!(target_arch = "x86_64") { 60 } else { 93 };
    let script = format!(
        "import ctypes, os, sys, threading\n\
         libc = ctypes.CDLL(None)\n\
         first = f'/proc/{{os.getpid()}}/task/{{os.getpid()}}/stat'\n\
         def go():\n\
         \twhile open(first).read().rsplit(')', 1)[1].split()[0] != 'Z': pass\n\
         \ttry: os.open(sys.argv[1], os.O_WRONLY)\n\
         \tfinally: os._exit(0)\n\
         threading.Thread(target=go).start()\n\
         libc.prctl(15, b'git')\n\
         libc.syscall({call}, 0)\n"
    );
    let mut program = start(&mut python(&script, &[&lab.path(".env")]));
    watch.says(" wants to write .env (secrets)");
    assert!(!watch.has_said("git wants to write"), "{}", watch.text());
    watch.says("keep watch: python3");
    watch.answers(b"r", ".env not opened for writing by python3");
    program.wait().expect("ends");
    watch.stop();
}

#[test]
fn a_program_at_anothers_path_in_a_mount_namespace_of_its_own_is_said_to_live_elsewhere() {
    let lab = Sandbox::new();
    let Some(mut watch) = holding(&lab) else { return };
    let git = Path::new("/usr/bin/git");
    if !git.exists() {
        return skip("git");
    }
    fs::copy("/bin/dd", lab.path("evil")).expect("copies");
    let script = format!("mount --bind evil {0} && exec {0} if=/dev/null of=.env", git.display());
    let mut command = lab.command("unshare");
    let mut program = start(command.args(["-m", "sh", "-c", &script]));
    watch.says(&format!(", {} in another mount namespace)", git.display()));
    watch.says("keep watch: git in another mount namespace wants to write .env (secrets)");
    watch.answers(b"r", ".env not opened for writing by git in another mount namespace (refused)");
    assert!(!program.wait().expect("ends").success());
    let report = watch.stop().report();
    assert_eq!(report["held"][0]["writer"]["other_mounts"], true, "{report}");
}
