//! The files worker as a process: what it has, how it ends, and what comes of that.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use keepwatch::gate::files::{Answer, Change, Files, Job};
use keepwatch::gate::tools::request::{
    FileList, FileMove, FileRead, FileRemove, FileSearch, FileStat, FileWrite, Unit,
};
use keepwatch::gate::worker::{self, FilesWorker, Handler, Settings, WorkerError};
use platform::confine::{self, Plan};
use platform::{Root, process};
use rustix::process::{Pid, Signal, kill_process};

use super::confined::is_lacking;
use super::{Case, own_program};

pub const CASES: &[Case] = &[
    ("a_worker_has_nothing_but_its_channel_and_the_folder", a_worker_has_nothing_but_its_channel_and_the_folder),
    ("every_file_tool_works_in_a_confined_worker", every_file_tool_works_in_a_confined_worker),
    ("a_link_out_of_the_root_leads_a_worker_nowhere", a_link_out_of_the_root_leads_a_worker_nowhere),
    (
        "a_worker_that_dies_within_a_job_is_an_error_and_the_next_job_has_another",
        a_worker_that_dies_within_a_job_is_an_error_and_the_next_job_has_another,
    ),
    ("a_worker_that_hangs_is_ended_when_its_time_is_over", a_worker_that_hangs_is_ended_when_its_time_is_over),
    ("a_worker_killed_between_two_jobs_costs_no_job", a_worker_killed_between_two_jobs_costs_no_job),
    ("a_worker_ends_when_its_gate_is_killed", a_worker_ends_when_its_gate_is_killed),
    ("a_worker_outlives_the_thread_that_started_it", a_worker_outlives_the_thread_that_started_it),
    ("a_worker_is_gone_when_it_is_dropped", a_worker_is_gone_when_it_is_dropped),
    ("a_worker_that_can_read_what_it_must_not_does_not_start", a_worker_that_can_read_what_it_must_not_does_not_start),
    ("a_process_nobody_started_as_a_worker_is_none", a_process_nobody_started_as_a_worker_is_none),
];

/// Does what the product's worker does, but for three paths.
struct Scripted(Files);

impl Handler for Scripted {
    fn handle(&mut self, job: Job) -> Answer {
        match &job {
            Job::Read(FileRead { path, .. }) if path == "die" => std::process::abort(),
            Job::Read(FileRead { path, .. }) if path == "panic" => panic!("as told"),
            Job::Read(FileRead { path, .. }) if path == "hang" => loop {
                std::thread::park();
            },
            _ => self.0.run(job),
        }
    }
}

/// Is a files worker.
pub fn be() -> ExitCode {
    match worker::serve(|root| Scripted(Files::new(root))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(2),
    }
}

/// Is a gate whose worker is busy, and never ends by itself.
pub fn be_a_gate(dir: &Path) -> ! {
    let mut worker = start(dir, Settings::default());
    println!("{}", worker.pid().expect("runs"));
    let answer = worker.run(&read("hang"));
    unreachable!("we are killed first: {answer:?}");
}

fn start(dir: &Path, settings: Settings) -> FilesWorker {
    fs::create_dir_all(dir.join("root")).expect("makes");
    fs::write(dir.join("root/file"), "content").expect("writes");
    let root = Root::open(&dir.join("root")).expect("opens");
    FilesWorker::start_with(&root, Settings { best_effort: true, ..settings }).expect("starts")
}

fn read(path: &str) -> Job {
    Job::Read(FileRead { path: path.into(), offset: 0, limit: None, unit: Unit::Bytes })
}

fn works(worker: &mut FilesWorker) {
    match worker.run(&read("file")) {
        Ok(Answer::Done(result)) => assert_eq!(result["content"], "content"),
        other => panic!("{other:?}"),
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        std::thread::yield_now();
    }
}

fn status(pid: u32, field: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

fn a_worker_has_nothing_but_its_channel_and_the_folder(dir: &Path) {
    // Inherited by every child of ours that does not close it.
    fs::write(dir.join("open"), "").expect("writes");
    let open = fs::File::open(dir.join("open")).expect("opens");
    let _inherited = rustix::io::dup(&open).expect("duplicates");
    let worker = start(dir, Settings::default());
    let pid = worker.pid().expect("runs");
    if !Path::new("/proc/self/fd").exists() {
        return;
    }
    let command = fs::read(format!("/proc/{pid}/cmdline")).expect("reads");
    assert_eq!(command, b"keep\0files-worker\0");
    assert_eq!(status(pid, "NoNewPrivs").as_deref(), Some("1"));
    if !is_lacking() {
        assert_eq!(status(pid, "Seccomp").as_deref(), Some("2"));
    }
    // chown, dac_override, dac_read_search, fowner, fsetid; of a user none.
    let kept = if platform::privilege::is_root() { 0b1_1111 } else { 0 };
    for set in ["CapPrm", "CapEff"] {
        let capabilities = u64::from_str_radix(&status(pid, set).expect("is told"), 16).expect("a number");
        assert_eq!(capabilities & !kept, 0, "{set}");
    }
    for set in ["CapInh", "CapAmb"] {
        assert_eq!(status(pid, set).as_deref(), Some("0000000000000000"), "{set}");
    }
    // It is closed to its own user, so only root can look on.
    if !platform::privilege::is_root() {
        assert!(fs::read_dir(format!("/proc/{pid}/fd")).is_err(), "its user can look into it");
        return;
    }
    assert_eq!(fs::read(format!("/proc/{pid}/environ")).expect("reads"), b"");
    let mut open: Vec<String> = fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("lists")
        .map(|entry| fs::read_link(entry.expect("lists").path()).expect("reads").display().to_string())
        .map(|target| target.split(':').next().unwrap_or_default().to_owned())
        .collect();
    open.sort();
    open.dedup();
    let folder = dir.join("root").display().to_string();
    let mut expected = ["/dev/null".to_owned(), folder, "socket".to_owned()];
    expected.sort();
    assert_eq!(open, expected);
    assert_eq!(fs::read_link(format!("/proc/{pid}/cwd")).expect("reads"), Path::new("/"));
    let session = rustix::process::getsid(Pid::from_raw(pid as i32)).expect("has one");
    assert_eq!(session.as_raw_nonzero().get(), pid as i32, "it has the terminal's session");
}

/// Prepares a change, then does it.
fn change(worker: &mut FilesWorker, change: Change) -> serde_json::Map<String, serde_json::Value> {
    let prepared = match worker.run(&Job::Prepare(change.clone())).expect("answers") {
        Answer::Prepared(prepared) => prepared,
        other => panic!("{change:?}: {other:?}"),
    };
    done(worker, &Job::Act { change, state: prepared.state })
}

fn done(worker: &mut FilesWorker, job: &Job) -> serde_json::Map<String, serde_json::Value> {
    match worker.run(job).expect("answers") {
        Answer::Done(result) => result,
        other => panic!("{other:?}"),
    }
}

fn every_file_tool_works_in_a_confined_worker(dir: &Path) {
    let mut worker = start(dir, Settings::default());
    let at = |path: &str| dir.join("root").join(path);
    let write = |path: &str, content: &str| Change::Write(FileWrite { path: path.into(), content: content.into() });
    change(&mut worker, write("new/below/a.txt", "one\n"));
    assert_eq!(fs::read_to_string(at("new/below/a.txt")).expect("reads"), "one\n");
    fs::set_permissions(at("file"), fs::Permissions::from_mode(0o640)).expect("chmods");
    change(&mut worker, write("file", "two\n"));
    assert_eq!(fs::read_to_string(at("file")).expect("reads"), "two\n");
    assert_eq!(fs::metadata(at("file")).expect("stats").permissions().mode() & 0o7777, 0o640, "it keeps its bits");
    let most = "\u{1}".repeat(16 << 20);
    change(&mut worker, write("most", &most));
    assert_eq!(fs::metadata(at("most")).expect("stats").len(), 16 << 20);

    let list = done(&mut worker, &Job::List(FileList { path: Some("new".into()) }));
    assert!(serde_json::to_string(&list).expect("is JSON").contains("below"), "{list:?}");
    done(&mut worker, &Job::Stat(FileStat { path: "file".into() }));
    let search = |pattern: &str, contains: Option<&str>| {
        Job::Search(FileSearch {
            pattern: pattern.into(),
            path: None,
            contains: contains.map(str::to_owned),
            regex: contains.is_some(),
            all: false,
        })
    };
    for job in [search("*.txt", None), search("*.txt", Some("o.e"))] {
        let found = done(&mut worker, &job);
        assert!(serde_json::to_string(&found).expect("is JSON").contains("a.txt"), "{found:?}");
    }
    let moved =
        |from: &str, to: &str, overwrite| Change::Move(FileMove { from: from.into(), to: to.into(), overwrite });
    change(&mut worker, moved("new/below/a.txt", "a.txt", false));
    change(&mut worker, moved("a.txt", "file", true));
    assert_eq!(fs::read_to_string(at("file")).expect("reads"), "one\n");
    for path in ["new/below", "most"] {
        change(&mut worker, Change::Remove(FileRemove { path: path.into() }));
        assert!(!at(path).exists(), "{path}");
    }
    is_held(&worker);
}

/// That all is held that this system can hold.
fn is_held(worker: &FilesWorker) {
    if !is_lacking() {
        let plan = Plan::new(confine::support());
        assert!(plan.is_whole() && worker.missing().len() == plan.missing().len(), "{:?}", worker.missing());
    }
}

fn a_link_out_of_the_root_leads_a_worker_nowhere(dir: &Path) {
    let mut worker = start(dir, Settings::default());
    fs::write(dir.join("secret"), "the secret").expect("writes");
    std::os::unix::fs::symlink("../secret", dir.join("root/link")).expect("links");
    std::os::unix::fs::symlink(dir.join("secret"), dir.join("root/long")).expect("links");
    for path in ["link", "long"] {
        let answer = worker.run(&read(path)).expect("answers");
        assert!(matches!(&answer, Answer::Failed(why) if !why.contains("the secret")), "{path}: {answer:?}");
    }
    works(&mut worker);
}

fn a_worker_that_dies_within_a_job_is_an_error_and_the_next_job_has_another(dir: &Path) {
    let mut worker = start(dir, Settings::default());
    for end in ["die", "panic"] {
        works(&mut worker);
        let before = worker.pid().expect("runs");
        let error = worker.run(&read(end)).expect_err("it died");
        assert!(matches!(error, WorkerError::Gone(_)), "{error:?}");
        assert!(!process::exists(before), "it is not gone");
        works(&mut worker);
        assert_ne!(worker.pid(), Some(before));
    }
    is_held(&worker);
    if !is_lacking() && confine::support().filter {
        let pid = worker.pid().expect("runs");
        assert_eq!(status(pid, "Seccomp").as_deref(), Some("2"), "the next one is confined as well");
    }
}

fn a_worker_that_hangs_is_ended_when_its_time_is_over(dir: &Path) {
    let time_limit = Duration::from_millis(200);
    let mut worker = start(dir, Settings { time_limit, ..Settings::default() });
    let before = worker.pid().expect("runs");
    let error = worker.run(&read("hang")).expect_err("it hangs");
    assert!(matches!(error, WorkerError::TimedOut { limit } if limit == time_limit), "{error:?}");
    assert!(!process::exists(before), "it is not gone");
    works(&mut worker);
}

fn a_worker_killed_between_two_jobs_costs_no_job(dir: &Path) {
    let mut worker = start(dir, Settings::default());
    for _ in 0..3 {
        works(&mut worker);
        let pid = worker.pid().expect("runs");
        kill_process(Pid::from_raw(pid as i32).expect("a number"), Signal::KILL).expect("kills");
        until("its end", || !process::exists(pid));
        works(&mut worker);
    }
}

fn a_worker_ends_when_its_gate_is_killed(dir: &Path) {
    // Where there is Seatbelt there is no signal for it: a worker ends when it next reads.
    if is_lacking() || confine::support().seatbelt {
        return;
    }
    let mut gate = Command::new(own_program())
        .arg("--gate")
        .arg(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut lines = BufReader::new(gate.stdout.take().expect("piped")).lines();
    let pid: u32 = lines.next().expect("it says it").expect("reads").parse().expect("a number");
    let start = process::start_time(pid).expect("reads").expect("runs");
    gate.kill().expect("kills");
    gate.wait().expect("ends");
    until("the worker's end", || !process::is_alive(pid, start));
}

fn a_worker_outlives_the_thread_that_started_it(dir: &Path) {
    let dir = dir.to_owned();
    let mut worker = std::thread::spawn(move || start(&dir, Settings::default())).join().expect("does not panic");
    let pid = worker.pid();
    works(&mut worker);
    assert_eq!(worker.pid(), pid, "it is another one");
}

fn a_worker_is_gone_when_it_is_dropped(dir: &Path) {
    let worker = start(dir, Settings::default());
    let pid = worker.pid().expect("runs");
    drop(worker);
    assert!(!process::exists(pid));
}

fn a_worker_that_can_read_what_it_must_not_does_not_start(dir: &Path) {
    if is_lacking() {
        return;
    }
    drop(start(dir, Settings { outside: vec![dir.to_owned(), dir.join("program")], ..Settings::default() }));
    let root = Root::open(&dir.join("root")).expect("opens");
    let settings = Settings { outside: vec![dir.join("root/file")], ..Settings::default() };
    let refused = FilesWorker::start_with(&root, settings);
    assert!(matches!(&refused, Err(WorkerError::Refused { why }) if why.contains("read file")), "{refused:?}");
}

fn a_process_nobody_started_as_a_worker_is_none(_dir: &Path) {
    for input in [Stdio::null(), Stdio::piped()] {
        let started = Command::new(own_program()).arg(worker::ARGUMENT).stdin(input).output().expect("starts");
        assert_eq!(started.status.code(), Some(2));
    }
}
