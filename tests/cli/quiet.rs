//! What a watch with privilege does while nothing happens: of its threads, those that read for others sleep.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use crate::support::{Sandbox, Watch, has_python, is_root, python, sha, skip, until};

/// Maps a file, and stores into the mapping when it is told to: that raises no event.
const STORES: &str = "
import mmap, sys
with open(sys.argv[1], 'r+b') as file:
    memory = mmap.mmap(file.fileno(), 0)
print('mapped', flush=True)
sys.stdin.readline()
memory[2:3] = b'2'
";

/// How often a thread of the watch has gone to sleep by itself.
fn sleeps(watch: &Watch, name: &str) -> u64 {
    let folder = format!("/proc/{}/task", watch.pid().as_raw_nonzero());
    let threads = fs::read_dir(folder).expect("it runs").flatten().map(|entry| entry.path());
    let is_it = |thread: &std::path::PathBuf| {
        fs::read_to_string(thread.join("comm")).is_ok_and(|found| found.trim_end() == name)
    };
    let thread = threads.into_iter().find(is_it).expect("it has such a thread");
    let status = fs::read_to_string(thread.join("status")).expect("it runs");
    let line =
        status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).expect("the kernel counts");
    line.trim().parse().expect("a number")
}

#[test]
fn reading_accepted_files_again_asks_nobody_and_finds_what_raises_no_event() {
    if !is_root() || !has_python() {
        return skip("root");
    }
    let lab = Sandbox::new();
    for number in 0..20 {
        lab.write(format!(".env.{number}"), b"A=1\n");
    }
    let mut storing = python(STORES, &[&lab.path(".env.7")]);
    let mut storing = storing.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
    let mut said = [0; 7];
    std::io::Read::read_exact(storing.stdout.as_mut().expect("piped"), &mut said).expect("it maps the file");
    let mut watch = lab.watch(&["--watch-interval-ms", "50"]);
    if !watch.has_said("names the writer") {
        drop(storing.stdin.take());
        storing.wait().expect("ends");
        return skip("permission events");
    }
    // Each file is opened once more, and then through ten rounds in a row none of them.
    until("rounds without an open", || {
        let (before, first) = (sleeps(&watch, "openings"), sleeps(&watch, "keep"));
        until("ten rounds", || sleeps(&watch, "keep") >= first + 10);
        sleeps(&watch, "openings") == before
    });
    storing.stdin.take().expect("piped").write_all(b"\n").expect("it listens");
    assert!(storing.wait().expect("ends").success());
    watch.asks(".env.7", "secrets", "modified", &sha(b"A=2\n"));
    watch.stop();
}
