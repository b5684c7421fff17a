//! The witness and real processes: writers that exit at once, renames, programs begun in between, numbers.
//!
//! A permission group and a group for names stand for the ones a watch has; both need root.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::records;
use super::sys::descriptors::told;
use super::sys::fanotify as sys;
use crate::clock::{Clock, Moment, SystemClock};
use crate::event::{Names, Place};
use crate::opening::Access;
use crate::privilege::is_root;
use crate::process;
use crate::relpath::RelPath;
use crate::stat::FileId;
use crate::witness::{self, Witness};
use crate::writer::{Account, Certainty, Mark, Writer};

fn place() -> Place {
    Place::tree(RelPath::parse(b".env").expect("a path"))
}

fn id(path: &Path) -> FileId {
    let stat = fs::metadata(path).expect("is there");
    FileId { dev: stat.dev(), ino: stat.ino() }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain for: {what}");
        std::thread::yield_now();
    }
}

/// A folder with a file that is watched as a privileged watch does it.
struct Watched {
    folder: tempfile::TempDir,
    witness: Arc<Witness>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watched {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join(".env");
        fs::write(&file, "A=1\n").expect("writes");
        let witness = Witness::new(Some(witness::connector().expect("root may")));
        let opens =
            sys::init(libc::FAN_CLASS_CONTENT | libc::FAN_CLOEXEC | libc::FAN_NONBLOCK | libc::FAN_REPORT_PIDFD);
        let opens = opens.expect("root may");
        let names =
            sys::init(libc::FAN_CLASS_NOTIF | libc::FAN_CLOEXEC | libc::FAN_NONBLOCK | libc::FAN_REPORT_DFID_NAME);
        let names = names.expect("root may");
        let dir = fs::File::open(folder.path()).expect("opens");
        mark_open(&opens, &dir);
        let mask = libc::FAN_MOVED_TO | libc::FAN_CREATE | libc::FAN_MODIFY | libc::FAN_CLOSE_WRITE | libc::FAN_ATTRIB;
        let mask = mask | libc::FAN_EVENT_ON_CHILD;
        sys::mark(names.as_fd(), libc::FAN_MARK_ADD, mask, dir.as_fd(), None).expect("marks");
        let stop = Arc::new(AtomicBool::new(false));
        let work = Reader { opens, names, dir, witness: Arc::clone(&witness), stop: Arc::clone(&stop) };
        let thread = std::thread::spawn(move || work.run());
        let watched = Self { folder, witness, stop, thread: Some(thread) };
        // Every process is known, and so since before the queue of events was last seen empty; until then who did something is
        // likely at most.
        until("the feed", || {
            let by = watched.change(&mut shell("echo 1 > \"$1\"", &watched.file()));
            by.is_some_and(|writer| writer.certainty == Certainty::Certain && !writer.ancestors.is_empty())
        });
        watched.settle();
        watched
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join(".env")
    }

    fn settle(&self) {
        let object = Some(id(&self.file()));
        let before = self.witness.mark(&place(), object, &|| true);
        self.witness.settled(&place(), object, before);
    }

    fn writer(&self) -> Option<Writer> {
        self.witness.writer(&place(), Some(id(&self.file())))
    }

    /// Who did what this command does, and has ended when it is asked.
    fn change(&self, command: &mut Command) -> Option<Writer> {
        self.settle();
        assert!(command.status().expect("starts").success());
        let deadline = Instant::now() + Duration::from_secs(5);
        while self.writer().is_none() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        self.catch_up();
        self.writer()
    }

    /// Waits until all events so far have been read.
    fn catch_up(&self) {
        let (read, write) = (self.folder.path().join("seen"), self.folder.path().join("see"));
        fs::write(&write, "").expect("writes");
        fs::rename(write, &read).expect("renames");
        until("the events", || !read.exists());
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("ends");
        }
    }
}

fn mark_open(opens: &OwnedFd, dir: &fs::File) {
    sys::mark(opens.as_fd(), libc::FAN_MARK_ADD, libc::FAN_OPEN_PERM, dir.as_fd(), Some(c".env")).expect("marks");
}

struct Reader {
    opens: OwnedFd,
    names: OwnedFd,
    dir: fs::File,
    witness: Arc<Witness>,
    stop: Arc<AtomicBool>,
}

impl Reader {
    fn run(&self) {
        let mut buffer = vec![0; 65536];
        let mut empty = SystemClock.now();
        while !self.stop.load(Ordering::Acquire) {
            let mut fds = [PollFd::new(&self.opens, PollFlags::IN), PollFd::new(&self.names, PollFlags::IN)];
            poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 20_000_000 })).expect("polls");
            self.answer(&mut buffer);
            empty = self.tell(&mut buffer, empty);
        }
    }

    fn answer(&self, buffer: &mut [u8]) {
        let Ok(length) = rustix::io::read(&self.opens, &mut *buffer) else { return };
        let mut rest = &buffer[..length];
        while rest.len() >= 24 {
            let length = u32::from_ne_bytes(rest[..4].try_into().expect("four bytes")) as usize;
            let event = records::fanotify(&rest[..length]).next().expect("one").expect("well formed");
            let fd = told(event.fd).expect("a descriptor");
            let pidfd = i32::from_ne_bytes(rest[length - 4..length].try_into().expect("four bytes"));
            let pidfd = told(pidfd);
            rest = &rest[length..];
            let stat = rustix::fs::fstat(&fd).expect("is open");
            let writer = self.witness.identify(event.pid.unsigned_abs(), pidfd.as_ref().map(AsFd::as_fd));
            let object = FileId { dev: stat.st_dev, ino: stat.st_ino };
            self.witness.opened(object, &writer, Access::Write, SystemClock.now());
            let response = [fd.as_raw_fd().to_ne_bytes(), libc::FAN_ALLOW.to_ne_bytes()].concat();
            rustix::io::write(&self.opens, &response).expect("answers");
        }
    }

    fn tell(&self, buffer: &mut [u8], empty: Moment) -> Moment {
        let before = SystemClock.now();
        let Ok(length) = rustix::io::read(&self.names, &mut *buffer) else { return before };
        let mut seen = false;
        for event in records::fanotify(&buffer[..length]) {
            let event = event.expect("well formed");
            for object in event.objects() {
                let object = object.expect("well formed");
                seen |= object.name == b"seen" && event.mask & libc::FAN_MOVED_TO != 0;
                if object.name == b".env" {
                    if event.mask & (libc::FAN_MOVED_TO | libc::FAN_CREATE) != 0 {
                        mark_open(&self.opens, &self.dir);
                    }
                    self.witness.named(&place(), event.pid.unsigned_abs(), empty);
                }
            }
        }
        if seen {
            rustix::fs::unlinkat(&self.dir, "seen", rustix::fs::AtFlags::empty()).expect("removes");
        }
        empty
    }
}

fn shell(script: &str, file: &Path) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).arg("sh").arg(file);
    command
}

/// How many of each certainty, and whether the process was ever another than the one that was started.
fn count(watched: &Watched, times: usize, mut command: impl FnMut(usize) -> Command) -> [usize; 3] {
    let mut counts = [0; 3];
    for number in 0..times {
        watched.settle();
        let mut child = command(number).stdin(Stdio::null()).spawn().expect("starts");
        let pid = child.id();
        assert!(child.wait().expect("ends").success());
        watched.catch_up();
        let writer = watched.writer().expect("somebody did it");
        counts[writer.certainty as usize] += 1;
        if writer.certainty == Certainty::Certain {
            assert_eq!(writer.program.pid, pid, "a wrong certain one: {writer:?}");
            assert!(writer.program.exe.as_deref().is_some_and(|exe| exe.starts_with(b"/")), "{writer:?}");
        }
    }
    counts
}

/// How many of a row, in a test that is to end soon.
const ROW: usize = 200;

#[test]
fn writers_that_open_and_exit_at_once_are_certain() {
    if !is_root() {
        return;
    }
    let watched = Watched::new();
    let [_, likely, certain] =
        count(&watched, ROW, |number| shell(&format!("echo {number} > \"$1\""), &watched.file()));
    // Beside other tests; how many it is of many on a machine of its own, the bench says.
    assert!(certain * 100 >= ROW * 99, "{certain} certain, {likely} likely of {ROW}");
}

#[test]
fn renames_by_processes_that_exit_at_once_are_likely_at_least() {
    if !is_root() {
        return;
    }
    let watched = Watched::new();
    let new = watched.folder.path().join("new");
    let [unknown, ..] = count(&watched, ROW, |number| {
        fs::write(&new, number.to_string()).expect("writes");
        let mut command = Command::new("mv");
        command.arg(&new).arg(watched.file());
        command
    });
    assert!(unknown * 100 <= ROW * 5, "{unknown} unknown of {ROW}");
}

#[test]
fn a_program_is_called_certain_only_if_it_and_none_before_it_did_it() {
    if !is_root() {
        return;
    }
    let watched = Watched::new();
    let until_told = |script: &str| {
        watched.settle();
        let mut child = shell(script, &watched.file()).stdin(Stdio::piped()).spawn().expect("starts");
        // It has been read, and the queue was empty since.
        until("its program", || watched.witness.identify(child.id(), None).program.argv0.is_some());
        let deadline = Instant::now() + Duration::from_millis(60);
        until("the next round of the reader", || Instant::now() >= deadline);
        drop(child.stdin.take());
        let status = child.wait().expect("ends");
        assert!(status.success());
        until("somebody", || watched.writer().is_some());
        (child.id(), watched.writer().expect("just seen"))
    };
    let (pid, writer) = until_told("read line; exec 3>&-; chmod 600 \"$1\"");
    assert_ne!(writer.program.pid, pid, "a child of it did it");
    assert!(writer.certainty < Certainty::Certain || writer.program.name == b"chmod", "{writer:?}");
    // On a busy machine it may have ended before it could be read.
    let mut told = (0..20).map(|_| until_told("read line; exec chmod 640 \"$1\""));
    let (pid, writer) = told.find(|(_, writer)| writer.program.exe.is_some()).expect("one of twenty is read in time");
    // Certain only if the queue was seen empty after it had begun that program.
    assert_eq!((writer.program.pid, writer.program.name.as_slice()), (pid, &b"chmod"[..]), "{writer:?}");
}

#[test]
fn the_processes_above_are_named_up_to_whoever_started_them() {
    if !is_root() {
        return;
    }
    let watched = Watched::new();
    let writer = watched.change(&mut shell("(echo 2 > \"$1\"; :); :", &watched.file())).expect("somebody");
    assert_eq!((writer.program.name.as_slice(), writer.certainty), (&b"sh"[..], Certainty::Certain), "{writer:?}");
    assert_eq!(writer.program.uid, Some(0));
    let own = process::own_pid();
    assert!(writer.ancestors.iter().any(|above| above.pid == own), "{writer:?}");
    assert!(writer.ancestors.len() <= 16);
}

/// A python program that changes the file, each time it is told to, and between two changes does what it is told to.
struct Changer {
    child: std::process::Child,
    out: std::io::BufReader<std::process::ChildStdout>,
}

impl Changer {
    fn start(watched: &Watched, script: &str) -> Self {
        watched.settle();
        let script = format!(
            "import os,sys,ctypes\np=sys.argv[1]\n\
             def change(): os.close(os.open(p, os.O_WRONLY)); os.chmod(p, 0o666)\n\
             def say(what): os.write(1, (what + '\\n').encode()); os.read(0, 1)\n{script}"
        );
        let mut command = Command::new("/usr/bin/python3");
        command.args(["-I", "-c", &script]).arg(watched.file()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("starts");
        let out = std::io::BufReader::new(child.stdout.take().expect("piped"));
        Self { child, out }
    }

    /// What it says next, and who did what it has done before.
    fn next(&mut self, watched: &Watched) -> (String, Writer) {
        use std::io::BufRead as _;
        let mut line = String::new();
        self.out.read_line(&mut line).expect("reads");
        watched.catch_up();
        let writer = watched.writer().expect("it did something");
        watched.settle();
        (line.trim_end().to_owned(), writer)
    }

    fn go_on(&mut self) {
        use std::io::Write as _;
        self.child.stdin.as_mut().expect("piped").write_all(b"x").expect("it reads");
    }
}

impl Drop for Changer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn has_python() -> bool {
    Path::new("/usr/bin/python3").exists()
}

#[test]
fn what_is_not_read_again_is_seen_when_it_is_another() {
    if !is_root() || !has_python() {
        return;
    }
    let watched = Watched::new();
    // Twice as it is, then as another user, then as another program with the same number.
    let mut changer = Changer::start(
        &watched,
        "for _ in range(2): change(); say('same')\n\
         os.chown(p, 65534, 65534); os.chmod(os.path.dirname(p), 0o777); os.setuid(65534); change(); say('user')\n\
         os.execv('/bin/sh', ['sh', '-c', 'echo 1 > \"$1\"; echo exec; read line', 'sh', p])",
    );
    let pid = changer.child.id();
    let programs: [(&str, &[u8], u32); 4] =
        [("same", b"python", 0), ("same", b"python", 0), ("user", b"python", 65_534), ("exec", b"sh", 65_534)];
    for (step, name, user) in programs {
        let (said, writer) = changer.next(&watched);
        assert_eq!(
            (said.as_str(), writer.program.pid, writer.certainty),
            (step, pid, Certainty::Certain),
            "{writer:?}"
        );
        let exe = writer.program.exe.as_deref().expect("it runs a file");
        assert!(
            exe.windows(name.len()).any(|part| part == name) || name == b"sh" && exe.ends_with(b"sh"),
            "{step}: {writer:?}"
        );
        assert!(name != b"sh" || !String::from_utf8_lossy(exe).contains("python"), "{step}: {writer:?}");
        assert_eq!(writer.program.uid, Some(user), "{step}");
        assert!(!writer.program.is_elsewhere, "{writer:?}");
        assert_eq!(writer.ancestors.first().map(|above| above.pid), Some(process::own_pid()), "{writer:?}");
        changer.go_on();
    }
}

#[test]
fn who_made_a_process_is_named_above_it_when_it_has_gone_and_nobody_else_is() {
    if !is_root() || !has_python() {
        return;
    }
    let watched = Watched::new();
    let mut changer = Changer::start(
        &watched,
        "r,w=os.pipe(); maker=os.getpid()\n\
         if os.fork():\n os.close(w); os.read(r, 1); os._exit(0)\n\
         os.close(r); change(); say(str(os.getpid())); os.close(w)\n\
         while os.getppid() == maker: pass\n\
         change(); say(str(os.getppid()))",
    );
    let maker = changer.child.id();
    let above = |writer: &Writer| writer.ancestors.first().map(|above| above.pid);
    let (pid, first) = changer.next(&watched);
    assert_eq!((first.program.pid.to_string(), above(&first)), (pid.clone(), Some(maker)), "{first:?}");
    changer.go_on();
    let (_, second) = changer.next(&watched);
    assert_eq!((second.program.pid.to_string(), second.certainty), (pid, Certainty::Certain), "{second:?}");
    assert_eq!(above(&second), Some(maker), "{second:?}");
    changer.go_on();
}

#[test]
fn a_process_whose_first_thread_has_ended_is_named_by_the_file_it_runs() {
    if !is_root() || !has_python() {
        return;
    }
    let watched = Watched::new();
    let call = if cfg!(target_arch = "x86_64") { 60 } else { 93 };
    let mut changer = Changer::start(
        &watched,
        &format!(
            "import threading\nlibc=ctypes.CDLL(None); main=os.getpid()\n\
             def state(): return open(f'/proc/{{main}}/task/{{main}}/stat').read().rsplit(')', 1)[1].split()[0]\n\
             def go():\n while state() != 'Z': pass\n change(); say('zombie'); os._exit(0)\n\
             threading.Thread(target=go).start()\n\
             libc.prctl(15, b'git'); libc.syscall({call}, 0)"
        ),
    );
    let (said, writer) = changer.next(&watched);
    assert_eq!((said.as_str(), writer.program.name.as_slice()), ("zombie", &b"git"[..]), "{writer:?}");
    let is_python = |exe: Option<&[u8]>| exe.is_some_and(|exe| String::from_utf8_lossy(exe).contains("python"));
    assert!(is_python(writer.program.exe.as_deref()), "{writer:?}");
    // Also by who has not heard of it before.
    let found = process::running(changer.child.id()).expect("we may look").expect("it runs");
    assert!(is_python(found.exe.as_deref()) && !found.process.ended, "{found:?}");
    changer.go_on();
}

#[test]
fn who_holds_a_file_from_before_is_found_and_keeps_others_from_being_certain() {
    if !is_root() {
        return;
    }
    let watched = Watched::new();
    let mut holder = shell("exec 3>>\"$1\"; read line", &watched.file()).stdin(Stdio::piped()).spawn().expect("starts");
    let of = BTreeSet::from([id(&watched.file())]);
    let mut found = Vec::new();
    until("the holder", || {
        found = witness::holders(&of, Duration::from_secs(20)).found;
        !found.is_empty()
    });
    assert_eq!(found.iter().map(|found| found.by.program.pid).collect::<Vec<_>>(), [holder.id()]);
    assert_eq!((found[0].by.program.name.as_slice(), found[0].is_mapped), (&b"sh"[..], false));
    watched.witness.held(found[0].object, Some(&found[0].by));
    let object = Some(id(&watched.file()));
    let before = watched.witness.mark(&place(), object, &|| false);
    assert!(!before.is_closed);
    watched.witness.settled(&place(), object, before);
    assert!(shell("echo 3 > \"$1\"", &watched.file()).status().expect("starts").success());
    until("somebody", || watched.writer().is_some_and(|writer| writer.program.pid != holder.id()));
    assert_eq!(watched.writer().map(|writer| writer.certainty), Some(Certainty::Likely));
    drop(holder.stdin.take());
    holder.wait().expect("ends");
    watched.catch_up();
    let before = watched.witness.mark(&place(), object, &|| true);
    watched.witness.settled(&place(), object, before);
    assert_eq!(watched.writer(), None);
}

#[test]
fn nobody_writes_only_while_nobody_has_the_file_open_or_mapped_for_writing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    fs::write(&path, "content").expect("writes");
    let nobody = || crate::file::is_open_for_writing(&fs::File::open(&path).expect("opens")) == Some(false);
    // A program that another test starts has our descriptors until it runs.
    until("nobody writes", nobody);
    let reader = fs::File::open(&path).expect("opens");
    until("nobody writes, one reads", nobody);
    let writer = fs::File::options().append(true).open(&path).expect("opens");
    assert!(!nobody());
    drop((reader, writer));
    until("nobody writes any more", nobody);
}

#[test]
fn a_witness_without_a_feed_knows_what_it_sees_and_claims_no_more() {
    let witness = Witness::new(None);
    let own = witness.identify(process::own_pid(), None);
    assert_eq!(own.certainty, Certainty::Likely);
    assert_eq!(own.program.started, process::start_time(process::own_pid()).expect("we may look"));
    assert_eq!(witness.identify(0, None).certainty, Certainty::Unknown);
    let mut child = Command::new("true").spawn().expect("starts");
    let pid = child.id();
    child.wait().expect("ends");
    witness.named(&place(), pid, SystemClock.now());
    let told = witness.writer(&place(), None).expect("a number is known");
    assert_eq!((told.program.pid, told.certainty), (pid, Certainty::Unknown));
    let before: Mark = witness.mark(&place(), None, &|| true);
    witness.settled(&place(), None, before);
    assert_eq!(witness.writer(&place(), None), None);
}
