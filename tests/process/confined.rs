//! What a files worker could do that a file's content has taken over: this process confines itself as one does, and then
//! tries everything.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use platform::confine::{self, Axis, ConfineError, Plan};
use platform::probe::{self, Outcome, Target};
use platform::{Dir, RelPath, Root, copy, xattr};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use super::Case;

pub const CASES: &[Case] = &[
    ("a_confined_process_reads_nothing_outside", a_confined_process_reads_nothing_outside),
    ("a_confined_process_writes_nothing_outside", a_confined_process_writes_nothing_outside),
    ("a_confined_process_moves_and_links_nothing_in_or_out", a_confined_process_moves_and_links_nothing_in_or_out),
    ("a_confined_process_changes_no_attribute_outside", a_confined_process_changes_no_attribute_outside),
    ("a_confined_process_runs_nothing", a_confined_process_runs_nothing),
    ("a_confined_process_reaches_no_socket", a_confined_process_reaches_no_socket),
    ("a_confined_process_reaches_no_other_process", a_confined_process_reaches_no_other_process),
    ("a_confined_process_finds_every_door_of_the_kernel_shut", a_confined_process_finds_every_door_of_the_kernel_shut),
    ("a_confined_process_makes_no_device_and_no_pipe", a_confined_process_makes_no_device_and_no_pipe),
    ("a_thread_started_later_is_confined_too", a_thread_started_later_is_confined_too),
    ("what_a_files_worker_needs_works_confined", what_a_files_worker_needs_works_confined),
    ("a_folder_is_reached_whatever_its_name", a_folder_is_reached_whatever_its_name),
    ("a_process_with_other_threads_is_not_confined", a_process_with_other_threads_is_not_confined),
    ("what_it_tries_is_refused_when_confined_and_not_before", what_it_tries_is_refused_when_confined_and_not_before),
];

/// Whether the machine lacks what this is about. `KEEP_EXPECT` names what it is known to have.
pub fn is_lacking() -> bool {
    let support = confine::support();
    let promised = std::env::var("KEEP_EXPECT").unwrap_or_default();
    let promises = |word: &str| promised.split(',').any(|promise| promise == word);
    let mut lacking = false;
    // A system has Seatbelt, or it has the other two.
    let means = if support.seatbelt || promises("seatbelt") {
        vec![("seatbelt", support.seatbelt)]
    } else {
        vec![("landlock", support.landlock.is_some()), ("seccomp", support.filter)]
    };
    for (word, there) in means {
        if !there {
            assert!(!promises(word), "this machine was to have {word}");
            println!("skipped: needs {word}");
            lacking = true;
        }
    }
    lacking
}

/// A folder to be confined to, and what lies beside it.
struct Ground {
    root: Root,
    inside: PathBuf,
    outside: PathBuf,
    /// A handle of the folder beside, which a worker would not have: to see that nothing happened there.
    beside: Dir,
    secret: File,
}

const SECRET: &str = "the secret";

impl Ground {
    fn new(dir: &Path) -> Self {
        let (inside, outside) = (dir.join("inside"), dir.join("outside"));
        for folder in [&inside.join("sub"), &outside] {
            fs::create_dir_all(folder).expect("makes");
        }
        fs::write(inside.join("file"), "content").expect("writes");
        fs::copy("/bin/sh", inside.join("program")).expect("copies");
        fs::write(outside.join("secret"), SECRET).expect("writes");
        symlink("../outside/secret", inside.join("link")).expect("links");
        symlink("/", inside.join("top")).expect("links");
        let secret = File::options().read(true).write(true).open(outside.join("secret")).expect("opens");
        let beside = Dir::open_ambient(&outside).expect("opens");
        Self { root: Root::open(&inside).expect("opens"), inside, outside, beside, secret }
    }

    /// Confines this process to the folder, as a files worker is.
    fn confined(dir: &Path) -> Option<Self> {
        if is_lacking() {
            return None;
        }
        let ground = Self::new(dir);
        assert_eq!(fs::read_to_string(ground.inside.join("link")).expect("reads"), SECRET, "the point of this test");
        let plan = Plan::new(confine::support());
        assert!(plan.is_whole(), "{:?}", plan.missing());
        confine::confine(&plan, ground.root.dir()).expect("confines");
        Some(ground)
    }

    /// What the calls of [`probe`] are aimed at.
    fn probed(&self, probe: impl FnOnce(Target<'_>) -> Vec<Outcome>) -> Vec<Outcome> {
        let outside = c(&self.outside.join("secret"));
        let free = c(&self.inside.join("free"));
        let program = File::open(self.inside.join("program")).expect("opens");
        let target = Target { outside: &outside, free: &free, program: program.as_fd(), process: parent() };
        probe(target)
    }

    /// That the folder beside is as it was.
    fn nothing_happened(&mut self) {
        for name in [&b"new"[..], b"got", b"folder"] {
            assert!(self.beside.stat(name).expect("stats").is_none(), "{}", name.escape_ascii());
        }
        let mut text = String::new();
        self.secret.read_to_string(&mut text).expect("reads");
        assert_eq!(text, SECRET);
        let stat = self.beside.stat(b"secret").expect("stats").expect("is there");
        assert_eq!(stat.id.ino, self.secret.metadata().expect("stats").ino());
    }
}

fn c(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("has no NUL")
}

fn refused<T>(what: &str, done: io::Result<T>) {
    match done {
        Ok(_) => panic!("{what} was done"),
        Err(error) => {
            // Landlock says EACCES, and EXDEV of what would cross its border; the filter and Seatbelt say EPERM.
            let errno = Errno::from_io_error(&error).expect("the system said no");
            assert!([Errno::ACCESS, Errno::XDEV, Errno::PERM].contains(&errno), "{what}: {errno}");
        }
    }
}

/// That each of the calls was refused by the filter, or what it aims at by Landlock.
fn all_refused(outcomes: Vec<Outcome>) {
    for (name, done) in outcomes {
        refused(name, done);
    }
}

fn parent() -> u32 {
    std::os::unix::process::parent_id()
}

fn a_confined_process_reads_nothing_outside(dir: &Path) {
    let Some(mut ground) = Ground::confined(dir) else { return };
    let own = std::process::id();
    let paths = [
        ground.outside.join("secret"),
        ground.inside.join("link"),
        ground.inside.join("../outside/secret"),
        ground.inside.join("top/etc/passwd"),
        "/etc/passwd".into(),
        "/proc/self/environ".into(),
        "/proc/self/maps".into(),
        "/proc/self/root/etc/passwd".into(),
        format!("/proc/{own}/cwd/Cargo.toml").into(),
        format!("/proc/{}/mem", parent()).into(),
        "/dev/zero".into(),
    ];
    for path in paths.into_iter().filter(|path| path.symlink_metadata().is_ok()) {
        refused(&format!("reading {}", path.display()), File::open(&path));
    }
    for path in [Path::new("/"), dir, &ground.outside, &ground.inside.join("top"), Path::new("/proc")] {
        refused(&format!("listing {}", path.display()), fs::read_dir(path));
    }
    let by_handle = rustix::fs::openat(ground.root.dir(), "../outside/secret", OFlags::RDONLY, Mode::empty());
    refused("reading by a handle", by_handle.map_err(io::Error::from));
    ground.nothing_happened();
}

fn a_confined_process_writes_nothing_outside(dir: &Path) {
    let Some(mut ground) = Ground::confined(dir) else { return };
    let secret = ground.outside.join("secret");
    refused("making a file", File::create_new(ground.outside.join("new")));
    refused("writing", File::options().write(true).open(&secret));
    refused("appending", File::options().append(true).open(&secret));
    refused("emptying", File::create(&secret));
    refused("writing through a link", File::options().write(true).open(ground.inside.join("link")));
    refused("removing", rustix::fs::unlinkat(CWD, &secret, AtFlags::empty()).map_err(io::Error::from));
    all_refused(ground.probed(probe::files));
    refused("removing by a handle", ground.beside.unlink(b"secret").map_err(|error| error.source));
    refused("making by a handle", ground.beside.create_new(b"new", 0o600).map_err(|error| error.source));
    refused("making a folder", ground.beside.make_dir(b"folder", 0o700).map_err(|error| error.source));
    refused("/dev/null", File::options().write(true).open("/dev/null"));
    ground.nothing_happened();
}

fn a_confined_process_moves_and_links_nothing_in_or_out(dir: &Path) {
    let Some(mut ground) = Ground::confined(dir) else { return };
    let (root, beside) = (ground.root.dir(), &ground.beside);
    let crossing = |done: rustix::io::Result<()>| done.map_err(io::Error::from);
    refused("moving in", beside.rename(b"secret", root, b"got").map_err(|error| error.source));
    refused("moving out", root.rename(b"file", beside, b"got").map_err(|error| error.source));
    refused("moving over", root.rename(b"file", beside, b"secret").map_err(|error| error.source));
    refused("linking in", crossing(rustix::fs::linkat(beside, "secret", root, "got", AtFlags::empty())));
    refused("linking out", crossing(rustix::fs::linkat(root, "file", beside, "got", AtFlags::empty())));
    refused("moving the folder itself", crossing(rustix::fs::renameat(CWD, &ground.inside, CWD, dir.join("moved"))));
    assert!(root.stat(b"got").expect("stats").is_none());
    assert!(root.stat(b"file").expect("stats").is_some());
    ground.nothing_happened();
}

fn a_confined_process_changes_no_attribute_outside(dir: &Path) {
    let Some(mut ground) = Ground::confined(dir) else { return };
    let before = ground.secret.metadata().expect("stats");
    all_refused(ground.probed(probe::attributes));
    let after = ground.secret.metadata().expect("stats");
    assert_eq!((after.mode(), after.uid(), after.ctime_nsec()), (before.mode(), before.uid(), before.ctime_nsec()));
    ground.nothing_happened();
}

fn a_confined_process_runs_nothing(dir: &Path) {
    let mut programs: Vec<PathBuf> = ["/bin/true", "/usr/bin/true", "/proc/self/exe"].map(PathBuf::from).into();
    // A name that leads to nothing is refused for another reason.
    programs.retain(|path| path.symlink_metadata().is_ok());
    let Some(ground) = Ground::confined(dir) else { return };
    programs.push(ground.inside.join("program"));
    for program in &programs {
        refused("a child", Command::new(program).spawn());
        let error = Command::new(program).exec();
        assert_eq!(Errno::from_io_error(&error), Some(Errno::PERM), "{}", program.display());
    }
    all_refused(ground.probed(probe::programs));
}

fn a_confined_process_reaches_no_socket(dir: &Path) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
    let port = listener.local_addr().expect("has an address");
    let path = dir.join("socket");
    let _local = UnixListener::bind(&path).expect("binds");
    let within = dir.join("inside/socket");
    fs::create_dir_all(dir.join("inside")).expect("makes");
    let _within = UnixListener::bind(&within).expect("binds");
    let (mut one, other) = UnixStream::pair().expect("makes");
    // Seatbelt looks at where a socket leads and not at the call that makes one.
    let is_filtered = confine::support().filter;
    let Some(_ground) = Ground::confined(dir) else { return };
    refused("connecting", TcpStream::connect(port));
    refused("listening", TcpListener::bind("127.0.0.1:0"));
    refused("UDP", UdpSocket::bind("127.0.0.1:0"));
    refused("a local socket", UnixStream::connect(&path));
    refused("a socket in the folder", UnixStream::connect(&within));
    all_refused(probe::sockets(other.as_fd()));
    if is_filtered {
        refused("a pair", UnixStream::pair());
        refused("accepting", listener.accept());
    }
    // What is open stays open: the channel of a worker is such a socket, written to as a file.
    File::from(std::os::fd::OwnedFd::from(other)).write_all(b"x").expect("writes");
    if is_filtered {
        refused("receiving as from a socket", one.read(&mut [0]));
    }
}

fn a_confined_process_reaches_no_other_process(dir: &Path) {
    let Some(ground) = Ground::confined(dir) else { return };
    all_refused(ground.probed(probe::processes));
}

fn a_confined_process_finds_every_door_of_the_kernel_shut(dir: &Path) {
    let Some(_ground) = Ground::confined(dir) else { return };
    for (name, done) in probe::kernel() {
        let error = done.expect_err(name);
        assert_eq!(Errno::from_io_error(&error), Some(Errno::PERM), "{name}");
    }
}

fn a_confined_process_makes_no_device_and_no_pipe(dir: &Path) {
    fs::create_dir_all(dir.join("inside")).expect("makes");
    assert!(Command::new("mkfifo").arg(dir.join("inside/fifo")).status().expect("starts").success());
    let is_filtered = confine::support().filter;
    let Some(ground) = Ground::confined(dir) else { return };
    all_refused(ground.probed(probe::special));
    // To Seatbelt that is the removal of one name in the folder and the making of another of a type that may not be made;
    // which of the two it asks about is its own affair.
    if !is_filtered {
        return;
    }
    let sub = ground.root.open_dir(&RelPath::parse(b"sub").expect("is one name")).expect("opens");
    refused("moving a FIFO", ground.root.dir().rename(b"fifo", &sub, b"fifo").map_err(|error| error.source));
}

fn a_thread_started_later_is_confined_too(dir: &Path) {
    let Some(mut ground) = Ground::confined(dir) else { return };
    let secret = ground.outside.join("secret");
    std::thread::spawn(move || {
        refused("reading", File::open(secret));
        refused("a socket", UdpSocket::bind("127.0.0.1:0"));
        let parent = rustix::process::Pid::from_raw(parent() as i32).expect("a number");
        refused("a signal", rustix::process::test_kill_process(parent).map_err(io::Error::from));
    })
    .join()
    .expect("does not panic");
    ground.nothing_happened();
}

fn what_a_files_worker_needs_works_confined(dir: &Path) {
    let Some(ground) = Ground::confined(dir) else { return };
    let root = ground.root.dir();
    let path = |text: &str| RelPath::parse(text.as_bytes()).expect("a normal path");
    let mut made = root.create_new(b"new", 0o640).expect("makes");
    made.write_all(b"12345").expect("writes");
    made.sync_all().expect("syncs");
    made.set_len(3).expect("cuts");
    made.set_permissions(fs::Permissions::from_mode(0o600)).expect("chmods");
    std::os::unix::fs::fchown(&made, Some(rustix::process::geteuid().as_raw()), None).expect("chowns");
    made.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("sets the time");
    root.sync().expect("syncs");
    let sub = ground.root.open_dir(&path("sub")).expect("opens");
    root.rename(b"new", &sub, b"moved").expect("moves between folders");
    sub.rename_new(b"moved", root, b"back").expect("moves where nothing is");
    root.rename(b"link", &sub, b"link").expect("moves a symlink");
    root.exchange(b"back", b"file").expect("exchanges");
    let mut text = String::new();
    ground.root.open_read(&path("file")).expect("opens").read_to_string(&mut text).expect("reads");
    assert_eq!(text, "123");
    let from = ground.root.open_read(&path("file")).expect("opens");
    let to = root.create_new(b"copy", 0o600).expect("makes");
    assert_eq!(copy::copy(&from, &to, 100).expect("copies"), 3);
    xattr::set_all(&to, &xattr::read_file(&from).expect("reads")).expect("sets");
    root.make_dir(b"a", 0o755).expect("makes").make_dir(b"b", 0o755).expect("makes");
    assert!(root.list().expect("lists").len() >= 5);
    root.remove_all(b"a").expect("removes");
    root.unlink(b"copy").expect("removes");
    assert_eq!(sub.read_link(b"link").expect("reads"), b"../outside/secret");
    let threads: Vec<_> = (0..4_u64)
        .map(|at| std::thread::Builder::new().name(format!("walk {at}")).spawn(move || at * 2).expect("starts"))
        .collect();
    assert_eq!(threads.into_iter().map(|thread| thread.join().expect("ends")).sum::<u64>(), 12);
    let much = vec![1_u8; 300 << 20];
    assert_eq!(much.iter().step_by(4096).map(|&byte| u64::from(byte)).sum::<u64>(), (300 << 20) / 4096);
    assert!(std::thread::available_parallelism().is_ok());
    let table: std::collections::HashMap<_, _> = [(1, 2)].into();
    assert_eq!(table[&1], 2);
    assert!(std::panic::catch_unwind(|| panic!("is caught")).is_err());
    assert!(std::time::SystemTime::now() > std::time::SystemTime::UNIX_EPOCH);
}

fn a_folder_is_reached_whatever_its_name(dir: &Path) {
    // What could end a literal of a profile, begin a clause of it, or be read as something else.
    let odd = dir.join("o\u{308}ÿ \"quoted\" \\x41 \\\\ (allow default)\n;# \u{1}\u{7f}");
    fs::create_dir(&odd).expect("makes");
    let Some(mut ground) = Ground::confined(&odd) else { return };
    ground.root.dir().create_new(b"new", 0o600).expect("makes").write_all(b"x").expect("writes");
    assert_eq!(fs::read(ground.inside.join("file")).expect("reads by path, too"), b"content");
    refused("reading", File::open(ground.outside.join("secret")));
    refused("listing", fs::read_dir(dir));
    ground.nothing_happened();
}

fn a_process_with_other_threads_is_not_confined(dir: &Path) {
    let ground = Ground::new(dir);
    let (stop, wait) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || wait.recv());
    let refused = confine::confine(&Plan::new(confine::support()), ground.root.dir());
    if confine::support().is_expected {
        assert!(matches!(refused, Err(ConfineError::Threads { count: 2 })), "{refused:?}");
    }
    drop(stop);
    assert!(other.join().expect("does not panic").is_err());
    assert_eq!(fs::read_to_string(ground.outside.join("secret")).expect("reads"), SECRET, "nothing has happened");
}

fn what_it_tries_is_refused_when_confined_and_not_before(dir: &Path) {
    if is_lacking() {
        return;
    }
    let ground = Ground::new(dir);
    let absent = dir.join("absent");
    let outside = [ground.outside.clone(), ground.outside.join("secret"), absent];
    let before = confine::attempts(ground.root.dir(), &outside);
    // io_uring may be closed to everybody by a setting of the system's.
    let mut open = before.iter().filter(|attempt| attempt.axis != Axis::Kernel);
    assert!(open.all(|attempt| !attempt.was_refused), "{before:#?}");
    let plan = Plan::new(confine::support());
    confine::confine(&plan, ground.root.dir()).expect("confines");
    let after = confine::attempts(ground.root.dir(), &outside);
    assert!(after.iter().all(|attempt| attempt.was_refused), "{after:#?}");
    assert_eq!(before.len(), after.len());
    assert_eq!(confine::unproven(&plan, &before).map(|attempt| attempt.what.as_str()), Some("list /"));
    assert_eq!(
        after.iter().filter(|attempt| attempt.what.ends_with("outside") || attempt.what.ends_with("secret")).count(),
        2
    );
}
