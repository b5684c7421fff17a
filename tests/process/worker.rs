//! The files worker as a process: what it has, how it ends, and what comes of that.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use keepwatch::gate::files::{Answer, Job};
use keepwatch::gate::tools::request::{FileRead, Unit};
use keepwatch::gate::worker::{self, FilesWorker, Handler, Settings, WorkerError};
use platform::{RelPath, Root, process};
use rustix::process::{Pid, Signal, kill_process};

use super::confined::is_lacking;
use super::{Case, own_program};

pub const CASES: &[Case] = &[
    ("a_worker_has_nothing_but_its_channel_and_the_folder", a_worker_has_nothing_but_its_channel_and_the_folder),
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

/// Does what a job's path says: the product has no such thing.
struct Scripted(Arc<Root>);

impl Handler for Scripted {
    fn handle(&mut self, job: Job) -> Answer {
        let Job::Read(FileRead { path, .. }) = job else { return Answer::Failed("no such job".into()) };
        match path.as_str() {
            "die" => std::process::abort(),
            "panic" => panic!("as told"),
            "hang" => loop {
                std::thread::park();
            },
            path => {
                let mut text = String::new();
                let path = RelPath::parse(path.as_bytes()).expect("a normal path");
                let read = self.0.open_read(&path).map(|mut file| file.read_to_string(&mut text));
                match read {
                    Ok(Ok(_)) => Answer::Done([("content".to_owned(), text.into())].into_iter().collect()),
                    other => Answer::Failed(format!("{other:?}")),
                }
            }
        }
    }
}

/// Is a files worker.
pub fn be() -> ExitCode {
    if worker::serve(Scripted).is_ok() { ExitCode::SUCCESS } else { ExitCode::from(2) }
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
    if !is_lacking() {
        let pid = worker.pid().expect("runs");
        assert_eq!(status(pid, "Seccomp").as_deref(), Some("2"), "the next one is confined as well");
        assert!(worker.missing().is_empty(), "{:?}", worker.missing());
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
    if is_lacking() {
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
