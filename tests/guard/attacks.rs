//! Ways round a mark on a file's inode.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use platform::openings::{ByNumber, Openings, group};
use platform::{Access, Answered, Dir, Doorkeeper, HeldId, Opening, Ruling, Verdict};

use crate::openers::{SOON, opened};
use crate::{Case, put};

pub const CASES: &[Case] = &[
    ("a_write_through_a_bind_mount_is_held", a_write_through_a_bind_mount_is_held),
    ("a_write_from_an_own_mount_namespace_is_held", a_write_from_an_own_mount_namespace_is_held),
    ("a_write_from_another_pid_namespace_is_held", a_write_from_another_pid_namespace_is_held),
    ("a_write_through_a_hard_link_elsewhere_is_held", a_write_through_a_hard_link_elsewhere_is_held),
    ("a_write_by_file_handle_is_held", a_write_by_file_handle_is_held),
    ("a_write_through_a_path_descriptor_is_held", a_write_through_a_path_descriptor_is_held),
    ("a_thousand_opens_of_one_file_by_one_process_wait_each", a_thousand_opens_of_one_file_by_one_process_wait_each),
];

struct Door(Mutex<Sender<(HeldId, Opening)>>);

impl Doorkeeper for Door {
    fn rule(&self, opening: &Opening) -> Ruling {
        if opening.access == Access::Write { Ruling::Hold } else { Ruling::Pass }
    }

    fn held(&self, id: HeldId, opening: Opening) {
        let _ = self.0.lock().expect("nobody panics").send((id, opening));
    }

    fn gone(&self, _id: HeldId) {}
}

struct Lab {
    openings: Openings,
    hear: Receiver<(HeldId, Opening)>,
    file: PathBuf,
    dir: PathBuf,
}

impl Lab {
    fn new(dir: &Path) -> Self {
        let (held, hear) = channel();
        let door = Arc::new(Door(Mutex::new(held)));
        let openings = Openings::start(group().expect("root may"), door, Arc::new(ByNumber)).expect("starts");
        fs::create_dir(dir.join("sub")).expect("makes");
        let (folder, file) = (dir.join("sub"), dir.join("sub/.env"));
        put(&file, "A=1\n");
        openings.marker().mark(&Dir::open_ambient(&folder).expect("opens"), b".env").expect("marks");
        Self { openings, hear, file, dir: dir.to_owned() }
    }

    /// Refuses one, and shows that nothing was written.
    fn refuses(&self, writer: Child) -> Opening {
        let (id, opening) = self.hear.recv_timeout(SOON).expect("it is held");
        assert_eq!(self.openings.answer(id, Verdict::Refuse), Answered::Done);
        assert!(!opened(writer), "it was refused");
        assert_eq!(fs::read_to_string(&self.file).expect("reads"), "A=1\n");
        opening
    }
}

/// Whether the machine lets us: the attacks that need a tool say so where it is missing.
fn shell(script: &str, lab: &Lab) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(&lab.file).arg(&lab.dir).stderr(Stdio::null()).stdout(Stdio::null());
    command.spawn().expect("starts")
}

fn works(script: &str, lab: &Lab) -> bool {
    let works = opened(shell(script, lab));
    if !works {
        println!("skipped: needs {script}");
    }
    works
}

fn a_write_through_a_bind_mount_is_held(dir: &Path) {
    let lab = Lab::new(dir);
    fs::create_dir(dir.join("other")).expect("makes");
    if works("mount --bind \"$1/sub\" \"$1/other\"", &lab) {
        lab.refuses(shell("echo B=2 >> \"$1/other/.env\"", &lab));
        assert!(works("umount \"$1/other\"", &lab));
    }
}

fn a_write_from_an_own_mount_namespace_is_held(dir: &Path) {
    let lab = Lab::new(dir);
    if works("setpriv --reuid 65534 --regid 65534 --clear-groups unshare -Urm true", &lab) {
        let script = "exec setpriv --reuid 65534 --regid 65534 --clear-groups \
                      unshare -Urm sh -c 'mount -t tmpfs x /mnt && echo B=2 >> \"$0\"' \"$0\"";
        lab.refuses(shell(script, &lab));
    }
}

fn a_write_from_another_pid_namespace_is_held(dir: &Path) {
    let lab = Lab::new(dir);
    if works("unshare -pf true", &lab) {
        let writer = shell("exec unshare -pf --kill-child sh -c 'echo B=2 >> \"$0\"' \"$0\"", &lab);
        let unshare = writer.id();
        let opening = lab.refuses(writer);
        assert!(opening.by.program.pid > 0 && opening.by.program.pid != unshare, "its number here, not there");
    }
}

fn a_write_through_a_hard_link_elsewhere_is_held(dir: &Path) {
    let lab = Lab::new(dir);
    fs::hard_link(&lab.file, dir.join("link")).expect("links");
    let opening = lab.refuses(shell("echo B=2 >> \"$1/link\"", &lab));
    assert!(opening.path.expect("it has a name").ends_with(b"/link"));
    // One made before the mark is the same inode; one renamed later as well.
    fs::rename(dir.join("link"), dir.join("renamed")).expect("renames");
    lab.refuses(shell("echo B=2 >> \"$1/renamed\"", &lab));
}

fn python(script: &str, lab: &Lab) -> Option<Child> {
    if !Path::new("/usr/bin/python3").exists() {
        println!("skipped: needs python");
        return None;
    }
    let mut command = Command::new("/usr/bin/python3");
    let script = format!("import os,sys,ctypes\np=sys.argv[1]\nlibc=ctypes.CDLL(None,use_errno=True)\n{script}");
    command.args(["-I", "-c", &script]).arg(&lab.file).stderr(Stdio::null());
    Some(command.spawn().expect("starts"))
}

fn a_write_by_file_handle_is_held(dir: &Path) {
    let lab = Lab::new(dir);
    // name_to_handle_at(2), open_by_handle_at(2).
    let script = "h=(ctypes.c_ubyte*136)(128)\nm=ctypes.c_int()\n\
                  assert libc.name_to_handle_at(-100,p.encode(),h,ctypes.byref(m),0)==0\n\
                  d=os.open(os.path.dirname(p),os.O_RDONLY)\n\
                  f=libc.open_by_handle_at(d,h,os.O_WRONLY)\n\
                  sys.exit(0 if f>=0 and os.write(f,b'X') else 1)";
    if let Some(writer) = python(script, &lab) {
        lab.refuses(writer);
    }
}

fn a_write_through_a_path_descriptor_is_held(dir: &Path) {
    let lab = Lab::new(dir);
    let script = "f=os.open(p,os.O_PATH)\nos.write(os.open('/proc/self/fd/%d'%f,os.O_WRONLY),b'X')";
    if let Some(writer) = python(script, &lab) {
        lab.refuses(writer);
    }
}

fn a_thousand_opens_of_one_file_by_one_process_wait_each(dir: &Path) {
    const COUNT: usize = 1000;
    let lab = Lab::new(dir);
    let script = "import threading\nthreading.stack_size(65536)\ndone=[]\n\
                  def go():\n try: os.open(p,os.O_WRONLY); done.append(1)\n except PermissionError: pass\n\
                  ts=[threading.Thread(target=go) for _ in range(1000)]\n[t.start() for t in ts]\n[t.join() for t in ts]\n\
                  sys.exit(1 if not done else 0)";
    let Some(writer) = python(script, &lab) else { return };
    let held: Vec<_> = (0..COUNT).map(|_| lab.hear.recv_timeout(SOON).expect("it is held").0).collect();
    assert_eq!(lab.openings.waiting(), COUNT);
    assert!(
        fs::read(&lab.file).is_ok() && fs::OpenOptions::new().append(true).open(&lab.file).is_ok(),
        "ours go through"
    );
    for id in held {
        assert_eq!(lab.openings.answer(id, Verdict::Refuse), Answered::Done);
    }
    assert!(!opened(writer));
}
