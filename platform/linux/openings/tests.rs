use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Condvar;
use std::time::{Duration, Instant};

use super::*;
use crate::dir::Dir;
use crate::opening::Access;
use crate::openings::{ByNumber, Openings, group};
use crate::privilege::is_root;

const SOON: Duration = Duration::from_secs(20);

/// What the thread said.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Said {
    Held(HeldId, Box<Opening>),
    Gone(HeldId),
    Broken,
}

/// Writes down what it is told, and rules as it is built to.
struct Book {
    rule: fn(&Opening) -> Ruling,
    pages: Mutex<Vec<Said>>,
    asked: Mutex<Vec<Opening>>,
    written: Condvar,
}

impl Book {
    fn write(&self, said: Said) {
        lock(&self.pages).push(said);
        self.written.notify_all();
    }

    /// What was said at `index`.
    fn page(&self, index: usize) -> Said {
        let (pages, _) = self
            .written
            .wait_timeout_while(lock(&self.pages), SOON, |pages| pages.len() <= index)
            .expect("no holder of this lock panics");
        pages.get(index).unwrap_or_else(|| panic!("nothing more was said: {pages:?}")).clone()
    }

    fn held(&self, index: usize) -> (HeldId, Opening) {
        match self.page(index) {
            Said::Held(id, opening) => (id, *opening),
            other => panic!("{other:?}"),
        }
    }
}

impl Doorkeeper for Book {
    fn rule(&self, opening: &Opening) -> Ruling {
        lock(&self.asked).push(opening.clone());
        (self.rule)(opening)
    }

    fn held(&self, id: HeldId, opening: Opening) {
        self.write(Said::Held(id, Box::new(opening)));
    }

    fn gone(&self, id: HeldId) {
        self.write(Said::Gone(id));
    }

    fn broken(&self) {
        self.write(Said::Broken);
    }
}

fn hold_writers(opening: &Opening) -> Ruling {
    if opening.access == Access::Write { Ruling::Hold } else { Ruling::Pass }
}

struct Lab {
    folder: tempfile::TempDir,
    book: Arc<Book>,
    /// As the guardian would have.
    duplicate: OwnedFd,
    openings: Option<Openings>,
}

impl Lab {
    /// A marked file `.env`; `None` without privilege.
    fn new(rule: fn(&Opening) -> Ruling) -> Option<Self> {
        if !is_root() {
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(".env"), "A=1\n").expect("writes");
        let (pages, asked) = (Mutex::default(), Mutex::default());
        let book = Arc::new(Book { rule, pages, asked, written: Condvar::new() });
        let group = group().expect("root may");
        let duplicate = group.try_clone().expect("duplicates");
        let openings = Openings::start(group, Arc::clone(&book) as Arc<dyn Doorkeeper>, Arc::new(ByNumber));
        let lab = Self { folder, book, duplicate, openings: Some(openings.expect("starts")) };
        lab.mark(".env").expect("marks");
        Some(lab)
    }

    fn openings(&self) -> &Openings {
        self.openings.as_ref().expect("it runs")
    }

    fn mark(&self, name: &str) -> io::Result<()> {
        let dir = Dir::open_ambient(self.folder.path()).expect("opens");
        self.openings().marker().mark(&dir, name.as_bytes())
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join(".env")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.file()).expect("reads")
    }

    /// A process that adds a line.
    fn writer(&self) -> Child {
        shell("echo B=2 >> \"$0\"", &self.file())
    }

    /// What python makes of an open with these flags: nothing or an error.
    fn open_with(&self, call: &str) -> Child {
        let script = format!("import os,sys,ctypes,threading\np=sys.argv[1]\n{call}");
        let mut command = Command::new("/usr/bin/python3");
        command.args(["-I", "-c", &script]).arg(self.file()).stderr(Stdio::null());
        command.spawn().expect("python is there")
    }
}

fn shell(script: &str, file: &Path) -> Child {
    Command::new("sh").args(["-c", script]).arg(file).stderr(Stdio::null()).spawn().expect("starts")
}

fn ended(mut child: Child) -> bool {
    let end = Instant::now() + SOON;
    loop {
        if let Some(status) = child.try_wait().expect("waits") {
            return status.success();
        }
        assert!(Instant::now() < end, "it still waits");
        thread::yield_now();
    }
}

fn has_python() -> bool {
    Path::new("/usr/bin/python3").exists()
}

#[test]
fn a_reader_goes_through_and_a_writer_waits_for_the_answer() {
    let Some(lab) = Lab::new(hold_writers) else { return };
    assert!(ended(shell("cat < \"$0\" > /dev/null", &lab.file())));
    for (index, verdict) in [Verdict::Refuse, Verdict::Allow].into_iter().enumerate() {
        let writer = lab.writer();
        let (id, opening) = lab.book.held(index);
        assert_eq!((opening.access, opening.by.program.pid), (Access::Write, writer.id()));
        assert_eq!(opening.path.as_deref(), Some(lab.file().into_os_string().into_vec().as_slice()));
        assert_eq!(lab.text(), "A=1\n", "it waits");
        assert_eq!(lab.openings().waiting(), 1);
        assert_eq!(lab.openings().answer(id, verdict), Answered::Done);
        assert_eq!(lab.openings().answer(id, Verdict::Allow), Answered::Gone, "it was answered");
        assert_eq!(ended(writer), verdict == Verdict::Allow);
    }
    assert_eq!(lab.text(), "A=1\nB=2\n");
    assert_eq!(lock(&lab.book.asked)[0].access, Access::Read);
}

#[test]
fn an_open_that_cuts_the_file_without_writing_is_no_reader() {
    let Some(lab) = Lab::new(hold_writers) else { return };
    if !has_python() {
        return;
    }
    let cutter = lab.open_with("os.open(p, os.O_RDONLY | os.O_TRUNC)");
    let (id, _) = lab.book.held(0);
    assert_eq!(lab.openings().answer(id, Verdict::Refuse), Answered::Done);
    assert!(!ended(cutter));
    assert_eq!(lab.text(), "A=1\n");
}

#[test]
fn among_many_threads_a_reader_is_a_reader_and_a_cutter_is_not() {
    let Some(lab) = Lab::new(hold_writers) else { return };
    if !has_python() {
        return;
    }
    let among = |threads: usize, flags: &str| {
        format!(
            "stop=threading.Event()\n\
             for _ in range({threads}): threading.Thread(target=stop.wait,daemon=True).start()\n\
             def go():\n try: os.open(p, {flags}); done.append(1)\n except OSError: pass\n\
             done=[]; t=threading.Thread(target=go); t.start(); t.join(); stop.set(); sys.exit(0 if done else 1)"
        )
    };
    assert!(ended(lab.open_with(&among(12, "os.O_RDONLY"))));
    let cutter = lab.open_with(&among(12, "os.O_RDONLY | os.O_TRUNC"));
    let (id, _) = lab.book.held(0);
    assert_eq!(lab.openings().answer(id, Verdict::Refuse), Answered::Done);
    assert!(!ended(cutter));
}

#[test]
fn among_more_threads_than_are_looked_at_a_reader_passes_and_with_a_writer_it_waits_unasked() {
    let Some(lab) = Lab::new(hold_writers) else { return };
    if !has_python() {
        return;
    }
    let among = |flags: &str| {
        format!(
            "stop=threading.Event()\n\
             for _ in range(40): threading.Thread(target=stop.wait,daemon=True).start()\n\
             os.open(p, {flags}); os._exit(0)"
        )
    };
    assert!(ended(lab.open_with(&among("os.O_RDONLY"))), "nobody is asked");
    let writer = lab.open_with(&among("os.O_WRONLY"));
    let (id, opening) = lab.book.held(0);
    assert_eq!(opening.access, Access::Write);
    let reader = lab.open_with(&among("os.O_RDONLY"));
    let end = Instant::now() + SOON;
    while lab.openings().waiting() < 2 {
        assert!(Instant::now() < end, "it does not open the file");
        thread::yield_now();
    }
    assert_eq!(lab.openings().answer(id, Verdict::Allow), Answered::Done);
    assert!(ended(writer) && ended(reader));
    let is_asked = |page: &&Said| matches!(page, Said::Held(..));
    assert_eq!(lock(&lab.book.pages).iter().filter(is_asked).count(), 1, "the reader was asked about");
}

#[test]
fn what_openat2_is_for_is_told_by_the_lease_alone() {
    let Some(lab) = Lab::new(hold_writers) else { return };
    if !has_python() {
        return;
    }
    let call = |flags: u32| {
        format!(
            "how=(ctypes.c_uint64*3)({flags},0,0)\n\
             n=ctypes.CDLL(None).syscall(437,-100,p.encode(),ctypes.byref(how),24)\n\
             sys.exit(0 if n>=0 else 1)"
        )
    };
    assert!(ended(lab.open_with(&call(0))), "it reads: nobody is asked");
    let opener = lab.open_with(&call(1));
    let (id, opening) = lab.book.held(0);
    assert_eq!(opening.access, Access::Write);
    assert_eq!(lab.openings().answer(id, Verdict::Allow), Answered::Done);
    assert!(ended(opener));
}

#[test]
fn what_nobody_answers_is_refused_when_its_time_is_up() {
    let Some(lab) = Lab::new(hold_writers) else { return };
    lab.openings().answer_within(Duration::from_millis(30));
    let writer = lab.writer();
    let (id, _) = lab.book.held(0);
    assert!(!ended(writer), "it is refused");
    assert_eq!(lab.book.page(1), Said::Gone(id));
    assert_eq!(lab.openings().answer(id, Verdict::Allow), Answered::Gone, "it was answered");
    assert_eq!(lab.text(), "A=1\n");
}

#[test]
fn who_has_a_lease_on_the_file_keeps_nobody_waiting() {
    use std::io::Read as _;
    let Some(lab) = Lab::new(|_| Ruling::Pass) else { return };
    if !has_python() {
        return;
    }
    fs::write(lab.folder.path().join("other"), "").expect("writes");
    lab.mark("other").expect("marks");
    let script = "import fcntl,os,signal,sys\nsignal.signal(signal.SIGIO,signal.SIG_IGN)\nf=os.open(sys.argv[1],os.O_RDWR)\n\
                  while True:\n try: fcntl.fcntl(f,fcntl.F_SETLEASE,fcntl.F_WRLCK); break\n except BlockingIOError: pass\n\
                  print('leased',flush=True)\nsys.stdin.read()";
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-I", "-c", script]).arg(lab.file()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut holder = command.spawn().expect("python is there");
    holder.stdout.as_mut().expect("piped").read_exact(&mut [0; 6]).expect("it has the lease");
    let begun = Instant::now();
    let opener = shell("cat < \"$0\" > /dev/null", &lab.file());
    assert!(!ended(opener), "the kernel cannot open it for us");
    assert!(ended(shell("cat < \"$0\" > /dev/null", &lab.folder.path().join("other"))));
    // A lease lasts 45 s (fs.lease-break-time).
    assert!(begun.elapsed() < SOON);
    drop(holder.stdin.take());
    holder.wait().expect("ends");
}

#[test]
fn our_own_opens_go_through_from_every_thread_while_others_wait() {
    let Some(lab) = Lab::new(|_| Ruling::Hold) else { return };
    let writer = lab.writer();
    let (id, _) = lab.book.held(0);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..200 {
                    assert_eq!(fs::read(lab.file()).expect("reads"), b"A=1\n");
                    fs::File::options().write(true).open(lab.file()).expect("opens for writing");
                }
            });
        }
    });
    assert_eq!(lock(&lab.book.asked).len(), 1, "nobody was asked about ours");
    assert_eq!(lab.openings().answer(id, Verdict::Refuse), Answered::Done);
    assert!(!ended(writer));
}

#[test]
fn a_reader_who_comes_while_a_writer_waits_goes_through_when_that_is_refused() {
    let Some(lab) = Lab::new(hold_writers) else { return };
    let writer = lab.writer();
    let (id, _) = lab.book.held(0);
    let mut readers = [(); 3].map(|()| shell("cat < \"$0\" > /dev/null", &lab.file()));
    let second = lab.writer();
    let (second_id, opening) = lab.book.held(1);
    assert_eq!(opening.by.program.pid, second.id(), "a reader was taken for a writer");
    assert_eq!(lab.openings().answer(id, Verdict::Refuse), Answered::Done);
    assert!(readers.iter_mut().all(|reader| reader.try_wait().expect("waits").is_none()), "one more is held");
    assert_eq!(lab.openings().answer(second_id, Verdict::Refuse), Answered::Done);
    assert!(readers.map(ended).iter().all(|&done| done));
    assert!(!ended(writer) && !ended(second));
    assert_eq!(lock(&lab.book.pages).len(), 2, "nobody else was held");
}

#[test]
fn a_reader_put_aside_goes_through_at_the_end() {
    let Some(mut lab) = Lab::new(hold_writers) else { return };
    let writer = lab.writer();
    lab.book.held(0);
    let reader = shell("cat < \"$0\" > /dev/null", &lab.file());
    let end = Instant::now() + SOON;
    while lab.openings().waiting() < 2 {
        assert!(Instant::now() < end, "it was not put aside");
        thread::yield_now();
    }
    drop(lab.openings.take());
    assert!(ended(reader) && !ended(writer));
}

#[test]
fn a_held_opener_that_is_killed_is_gone_and_can_not_be_answered() {
    let Some(lab) = Lab::new(hold_writers) else { return };
    let mut writer = lab.writer();
    let (id, _) = lab.book.held(0);
    writer.kill().expect("kills");
    writer.wait().expect("ends");
    assert_eq!(lab.book.page(1), Said::Gone(id));
    assert_eq!(lab.openings().answer(id, Verdict::Allow), Answered::Gone);
    assert_eq!(lab.openings().waiting(), 0);
}

#[test]
fn signals_with_a_handler_leave_a_held_opener_held() {
    let Some(lab) = Lab::new(hold_writers) else { return };
    // The shell's own redirection is held, with handlers in force.
    let writer = shell("trap : TERM INT HUP USR1; echo B=2 >> \"$0\"", &lab.file());
    let (id, _) = lab.book.held(0);
    for signal in ["TERM", "INT", "HUP", "USR1", "STOP", "CONT"] {
        let sent = Command::new("kill").args(["-s", signal, &writer.id().to_string()]).status();
        assert!(sent.expect("runs").success());
    }
    assert_eq!((lab.openings().waiting(), lab.text().as_str()), (1, "A=1\n"));
    assert_eq!(lab.openings().answer(id, Verdict::Refuse), Answered::Done);
    ended(writer);
    assert_eq!(lab.text(), "A=1\n");
}

#[test]
fn who_hears_is_told_when_somebody_waits_and_when_nobody_does() {
    let Some(lab) = Lab::new(hold_writers) else { return };
    let told = Arc::new(Mutex::new(Vec::new()));
    let hear = Arc::clone(&told);
    lab.openings().notice(Box::new(move |waits| lock(&hear).push(waits)));
    let writers = [lab.writer(), lab.writer()];
    let ids = [lab.book.held(0).0, lab.book.held(1).0];
    assert_eq!(*lock(&told), [true]);
    for id in ids {
        assert_eq!(lab.openings().answer(id, Verdict::Refuse), Answered::Done);
    }
    assert_eq!(*lock(&told), [true, false]);
    assert_eq!(writers.map(ended), [false; 2]);
}

#[test]
fn at_the_end_who_waits_is_refused_and_no_mark_is_left_though_the_group_stays_open() {
    let Some(mut lab) = Lab::new(hold_writers) else { return };
    let marker = lab.openings().marker();
    let writer = lab.writer();
    lab.book.held(0);
    drop(lab.openings.take());
    assert!(!ended(writer));
    assert!(ended(lab.writer()), "nobody reads, and nobody waits");
    let info = format!("/proc/self/fdinfo/{}", lab.duplicate.as_raw_fd());
    assert!(!fs::read_to_string(info).expect("reads").contains("fanotify ino:"));
    let dir = Dir::open_ambient(lab.folder.path()).expect("opens");
    let late = marker.mark(&dir, b".env").expect_err("it has ended");
    assert_eq!(late.kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn a_panic_of_whoever_rules_refuses_and_leaves_nobody_waiting() {
    let Some(lab) = Lab::new(|opening| match opening.access {
        Access::Write if opening.by.program.name.starts_with(b"keep-panics") => panic!("as the test wants"),
        _ => Ruling::Hold,
    }) else {
        return;
    };
    if !has_python() {
        return;
    }
    let before = lab.writer();
    lab.book.held(0);
    let opener = lab.open_with("open('/proc/self/comm','w').write('keep-panics')\nos.open(p, os.O_WRONLY)");
    assert!(!ended(opener));
    assert!(!ended(before), "what waited is refused, too");
    assert_eq!(lab.book.page(1), Said::Broken);
    assert!(ended(lab.writer()), "no mark is left");
}

#[test]
fn only_regular_files_are_marked_and_links_are_not_followed() {
    let Some(lab) = Lab::new(|_| Ruling::Hold) else { return };
    let other = lab.folder.path().join("other");
    fs::write(&other, "").expect("writes");
    symlink("other", lab.folder.path().join("link")).expect("links");
    fs::create_dir(lab.folder.path().join("folder")).expect("makes");
    for name in ["link", "folder", "absent"] {
        lab.mark(name).expect("it is no error");
    }
    assert!(ended(shell("echo x >> \"$0\"", &other)));
    assert!(ended(shell("ls \"$0\" > /dev/null", lab.folder.path())));
    for _ in 0..3 {
        lab.mark(".env").expect("it is marked already");
    }
}

/// An empty group of control groups of our own, below the one we are in.
struct ControlGroup(PathBuf);

impl ControlGroup {
    fn new() -> Option<Self> {
        let tops = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(PathBuf::from);
        let top = tops.into_iter().find(|top| top.join("cgroup.procs").exists())?;
        let group = top.join(format!("keep-test-{}", std::process::id()));
        fs::create_dir(&group).ok()?;
        Some(Self(group))
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn files_of_the_kernel_are_not_marked_whoever_owns_them() {
    let Some(lab) = Lab::new(|_| Ruling::Pass) else { return };
    let Some(group) = ControlGroup::new() else { return };
    let marks = || {
        let info = format!("/proc/self/fdinfo/{}", lab.duplicate.as_raw_fd());
        fs::read_to_string(info).expect("reads").matches("fanotify ino:").count()
    };
    let before = marks();
    let dir = Dir::open_ambient(&group.0).expect("opens");
    lab.openings().marker().mark(&dir, b"cgroup.procs").expect("it is no error");
    assert_eq!((marks(), before), (1, 1));
}

#[test]
fn a_running_program_is_held_like_a_reader() {
    let Some(lab) = Lab::new(|_| Ruling::Pass) else { return };
    let program = lab.folder.path().join("hook");
    fs::copy("/bin/true", &program).expect("copies");
    lab.mark("hook").expect("marks");
    assert!(Command::new(&program).status().expect("runs").success());
    let asked = lock(&lab.book.asked);
    assert_eq!(asked.iter().map(|opening| opening.access).collect::<Vec<_>>(), [Access::Read]);
}
