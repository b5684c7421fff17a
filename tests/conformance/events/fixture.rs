//! A tree to watch, a backend that watches it, and what it has said.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use platform::backends::{self, Equipment, backends};
use platform::event::{EventSource, Subscription, WatchSet};
use platform::privileged::MarkGroups;
use platform::{Dir, Hint, Interest, LostCause, Place, Privileged, RelPath, Root, RootId, Wanted};

/// How long a hint may take before it counts as missed. Far more than it takes, for slow and busy machines.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// Covers `.env` and its like, `config`, and names that end in `secret`; enters all but `ignored`.
pub struct TestInterest;

impl Interest for TestInterest {
    fn covers(&self, _root: RootId, _dir: &RelPath, name: &[u8]) -> bool {
        name.starts_with(b".env") || name == b"config" || name.ends_with(b"secret")
    }

    fn enters(&self, _root: RootId, dir: &RelPath) -> bool {
        dir.components().all(|name| name != b"ignored")
    }

    fn first(&self, _root: RootId, dir: &RelPath) -> bool {
        dir.name() == Some(b".git")
    }
}

/// Two empty directories on one file system: the tree, and a place outside it.
pub struct Fixture {
    pub backend: &'static str,
    pub tree: PathBuf,
    pub outside: PathBuf,
    _dir: tempfile::TempDir,
}

impl Fixture {
    pub fn new(backend: &'static str, on: &Path) -> Self {
        let dir = tempfile::Builder::new().prefix("keep-events").tempdir_in(on).expect("a directory");
        let (tree, outside) = (dir.path().join("tree"), dir.path().join("outside"));
        fs::create_dir(&tree).expect("a tree");
        fs::create_dir(&outside).expect("a place outside");
        Self { backend, tree, outside, _dir: dir }
    }

    /// A path in the tree.
    pub fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        self.tree.join(path)
    }

    pub fn write(&self, path: &str, content: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, content).expect("a file");
    }

    /// Starts the backend and waits for the end of its first walk.
    pub fn watch(&self) -> Watch {
        let mut watch = self.watch_from(&[]);
        watch.walk();
        watch
    }

    /// Starts the backend with places known from before.
    pub fn watch_from(&self, known: &[&str]) -> Watch {
        watch_tree(self.backend, &self.tree, known)
    }
}

/// Starts a backend on a tree.
pub fn watch_tree(backend: &str, tree: &Path, known: &[&str]) -> Watch {
    let root = Arc::new(Root::open(tree).expect("the tree"));
    let set = WatchSet {
        roots: vec![root],
        interest: Arc::new(TestInterest),
        known: known.iter().map(|path| place(path.as_bytes())).collect(),
        interval: Duration::from_millis(20),
    };
    let (sender, hints) = channel();
    let gate = Arc::new(Gate::default());
    let pass = Arc::clone(&gate);
    let sink = Box::new(move |hint| {
        pass.pass();
        sender.send(hint).is_ok()
    });
    let subscription = source(backend, tree).start(set, sink).expect("the backend starts");
    Watch { subscription: Some(subscription), hints, gate, tree: tree.to_owned() }
}

/// The strongest backend with privilege, opened for the file system of the tree.
pub const PRIVILEGED: &str = "privileged";
/// The same, opened for another file system.
pub const ELSEWHERE: &str = "privileged-elsewhere";

/// What was opened before privilege was given up.
pub static READY: Mutex<Vec<MarkGroups>> = Mutex::new(Vec::new());

/// The backend with this name for a tree.
pub fn source(name: &str, tree: &Path) -> Box<dyn EventSource> {
    let sources = match name {
        PRIVILEGED => with_privilege(tree),
        ELSEWHERE => with_privilege(Path::new("/proc")),
        name => return backends().into_iter().find(|source| source.name() == name).expect("a backend of this system"),
    };
    sources.into_iter().next().expect("the strongest")
}

fn with_privilege(dir: &Path) -> Vec<Box<dyn EventSource>> {
    let ready = READY.lock().expect("no panic in here").pop();
    let groups = ready.or_else(|| groups(dir)).expect("root may have them");
    backends::with_privilege(Equipment { groups, marker: None, names: None })
}

/// What is opened with privilege for a tree; `None` where there is none.
pub fn groups(dir: &Path) -> Option<MarkGroups> {
    let dir = Dir::open_ambient(dir).expect("a directory");
    let wanted = Wanted { events: true, ..Wanted::default() };
    Privileged::open(&dir, wanted).expect("there are groups left").and_then(|opened| opened.groups)
}

pub fn place(path: &[u8]) -> Place {
    Place::tree(RelPath::parse(path).expect("a relative path"))
}

/// Lets a test hold the backend's thread in its sink.
#[derive(Default)]
struct Gate {
    shut: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn pass(&self) {
        let shut = self.shut.lock().expect("no panic in here");
        drop(self.opened.wait_while(shut, |shut| *shut).expect("no panic in here"));
    }

    fn set(&self, shut: bool) {
        *self.shut.lock().expect("no panic in here") = shut;
        self.opened.notify_all();
    }
}

/// A running backend.
pub struct Watch {
    subscription: Option<Box<dyn Subscription>>,
    pub hints: Receiver<Hint>,
    gate: Arc<Gate>,
    tree: PathBuf,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.gate.set(false);
    }
}

/// Whether the hint makes its reader look at the place.
pub fn leads_to(hint: &Hint, wanted: &Place) -> bool {
    match hint {
        Hint::Touched { place, .. } => place == wanted,
        Hint::Vanished { place, .. } => place.root == wanted.root && wanted.path.is_below(&place.path),
        _ => false,
    }
}

impl Watch {
    /// What is said until the walk is over.
    pub fn walk(&mut self) -> Vec<Hint> {
        self.until("the end of the walk", |hint| matches!(hint, Hint::Walked { .. }))
    }

    /// Waits for a hint; what came up to it is returned.
    pub fn until(&mut self, what: &str, wanted: impl Fn(&Hint) -> bool) -> Vec<Hint> {
        let end = Instant::now() + DEADLINE;
        let mut seen = Vec::new();
        loop {
            match self.hints.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(hint) => {
                    let enough = wanted(&hint);
                    seen.push(hint);
                    if enough {
                        return seen;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    let tail = &seen[seen.len().saturating_sub(20)..];
                    panic!("missed: {what} in {}; {} hints came, the last: {tail:?}", self.tree.display(), seen.len())
                }
                Err(RecvTimeoutError::Disconnected) => panic!("the backend ended before {what}; before: {seen:?}"),
            }
        }
    }

    /// Waits for a hint to look at the path. Nothing may have been lost.
    pub fn told(&mut self, path: impl AsRef<OsStr>) -> Vec<Hint> {
        let place = place(path.as_ref().as_bytes());
        let seen = self.until(&format!("{place:?}"), |hint| leads_to(hint, &place));
        assert!(!seen.iter().any(|hint| matches!(hint, Hint::Lost(_) | Hint::Broken(_))), "{seen:?}");
        seen
    }

    /// The same for several, in any order.
    pub fn told_all(&mut self, paths: impl IntoIterator<Item = String>) {
        let mut missing: HashSet<Place> = paths.into_iter().map(|path| place(path.as_bytes())).collect();
        let end = Instant::now() + DEADLINE;
        while !missing.is_empty() {
            match self.hints.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(Hint::Touched { place, .. }) => {
                    missing.remove(&place);
                }
                Ok(Hint::Vanished { place, .. }) => missing.retain(|wanted| !wanted.path.is_below(&place.path)),
                Ok(Hint::Lost(cause)) => panic!("lost: {cause:?}"),
                Ok(_) => {}
                Err(_) => panic!("missed {} places, such as {:?}", missing.len(), missing.iter().next()),
            }
        }
    }

    pub fn lost(&mut self, wanted: &LostCause) -> Vec<Hint> {
        self.until(&format!("lost: {wanted:?}"), |hint| matches!(hint, Hint::Lost(cause) if cause == wanted))
    }

    /// Forgets what was said so far; what the last change causes further may still come.
    pub fn forget(&mut self) {
        while self.hints.try_recv().is_ok() {}
    }

    /// Holds the backend's thread at its next hint, and makes it have one by changing `path`.
    pub fn hold(&mut self, change: impl FnOnce()) {
        self.gate.set(true);
        change();
    }

    pub fn release(&mut self) {
        self.gate.set(false);
    }

    pub fn rescan(&mut self) {
        self.subscription.as_ref().expect("it runs").rescan();
    }

    /// Ends the backend.
    pub fn stop(&mut self) {
        self.subscription = None;
    }
}
