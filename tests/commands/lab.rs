//! A tree, a home and a state folder of their own, what a watch would have left in them, and the program.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use keepwatch::baseline::{ChangeKind, Content, Snapshot};
use keepwatch::digest::Digest;
use keepwatch::gate::control::Control;
use keepwatch::journal::{Event, FileJournal, Journal, Options, Record, RestoreOutcome};
use keepwatch::rules::{Mode, Rule};
use keepwatch::state::StateFolder;
use keepwatch::store::{Objects, Quarantine, QuarantineId, Rejection};
use platform::holder::Holder;
use platform::lock::Lock;
use platform::{Dir, Root};
use serde_json::Value;

pub const AT: &str = "2026-11-30T09:41:07.123Z";
pub const SESSION: &str = "20261130T094100004-4242";

pub struct Lab {
    folder: tempfile::TempDir,
}

/// What a run of the program came to.
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in {:?}; {}", self.out, self.err))
    }
}

impl Lab {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        for name in ["tree", "home"] {
            fs::create_dir(folder.path().join(name)).expect("makes");
        }
        Self { folder }
    }

    /// A path in the tree.
    pub fn at(&self, path: &str) -> PathBuf {
        self.folder.path().canonicalize().expect("resolves").join("tree").join(path)
    }

    pub fn write(&self, path: &str, text: &str) {
        fs::write(self.at(path), text).expect("writes");
    }

    pub fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.at(path)).ok()
    }

    fn top(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub fn has_state(&self) -> bool {
        self.top().exists()
    }

    pub fn owner(&self) -> u32 {
        Dir::open_ambient(self.folder.path()).and_then(|dir| dir.own_stat()).expect("stats").uid
    }

    pub fn state(&self) -> StateFolder {
        let root = Root::open(&self.at("").components().collect::<PathBuf>()).expect("opens");
        StateFolder::open(&self.top(), self.owner(), root.path(), root.id()).expect("opens")
    }

    /// The control folder of a directory, made if it is missing.
    pub fn control(&self, path: &str) -> Control {
        let path: PathBuf = self.at(path).components().collect();
        let root = Root::open(&path).expect("opens");
        Control::open(&self.top(), &root, self.owner()).expect("opens")
    }

    pub fn journal_file(&self) -> PathBuf {
        self.state().path().join("journal.jsonl")
    }

    /// Runs `keep` in the tree.
    pub fn keep(&self, arguments: &[&str]) -> Ran {
        let output = self.command(arguments).output().expect("starts");
        let Output { status, stdout, stderr } = output;
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("is text");
        Ran { code: status.code().expect("ends by itself"), out: text(stdout), err: text(stderr) }
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_keep"));
        command.args(arguments).current_dir(self.at("")).env_clear();
        command.env("HOME", self.folder.path().join("home")).env("KEEP_STATE_DIR", self.top());
        command
    }

    /// Writes entries of one session.
    pub fn journal(&self, events: &[Event]) {
        let opened = FileJournal::open(self.state().dir(), self.owner(), SESSION).expect("opens");
        let mut journal = opened.journal;
        events.iter().for_each(|event| journal.append(AT, event).expect("fits"));
        journal.commit().expect("commits");
    }

    /// What a watch writes that had these files when it started, and was killed after.
    pub fn begin(&self, files: &[(&str, &str)]) {
        let objects = Objects::open(self.state().dir()).expect("opens");
        let mut events = vec![self.session()];
        for (path, text) in files {
            objects.put(text.as_bytes()).expect("puts");
            let snapshot = self.record(text);
            events.push(Event::Baseline { path: (*path).into(), rule: Rule::Secrets, mode: Mode::Restore, snapshot });
        }
        events.push(Event::Sealed { files: files.len() as u64 });
        self.journal(&events);
    }

    pub fn session(&self) -> Event {
        Event::Session {
            command: "watch".into(),
            pid: 4242,
            root: self.at("").to_str().expect("is text").trim_end_matches('/').into(),
            outer_roots: vec![],
            options: Options { max_file_bytes: 1 << 20, contest_limit: 3, ..Options::default() },
            rules: None,
            backend: "poll".into(),
        }
    }

    fn record(&self, text: &str) -> Record {
        let stat = Dir::open_ambient(&self.at("")).and_then(|dir| dir.own_stat()).expect("stats");
        let content = Content::Regular { digest: Digest::of(text.as_bytes()), size: text.len() as u64 };
        Record::of(&Snapshot { content, mode: 0o644, uid: stat.uid, gid: stat.gid, ..Snapshot::absent() })
    }

    pub fn accepted(&self, path: &str, text: &str) -> Event {
        Objects::open(self.state().dir()).expect("opens").put(text.as_bytes()).expect("puts");
        let (kind, snapshot) = (ChangeKind::Modified, self.record(text));
        Event::Accepted { path: path.into(), rule: Rule::Secrets, kind, snapshot, asked: None, writer: None }
    }

    /// Puts a copy of the file into quarantine and removes it.
    pub fn reject(&self, path: &str) -> QuarantineId {
        let quarantine = Quarantine::open(self.state().dir(), 1 << 20).expect("opens");
        let id = quarantine.reserve(AT).expect("reserves");
        let why = Rejection {
            shown: path.into(),
            stored: path.into(),
            rule: Rule::Secrets,
            kind: ChangeKind::Added,
            outcome: Some("rejected".into()),
            session: SESSION.into(),
            rejected_at: AT.into(),
        };
        let parent = self.at(path).parent().expect("has one").to_path_buf();
        let name = path.rsplit('/').next().expect("has one");
        let dir = Dir::open_ambient(&parent).expect("opens");
        quarantine.keep_copy(&id, &why, &dir, name.as_bytes()).expect("keeps").expect("is a file");
        dir.unlink(name.as_bytes()).expect("removes");
        id
    }

    pub fn restored(path: &str) -> Event {
        Event::Restored {
            writer: None,
            path: path.into(),
            rule: Rule::Secrets,
            kind: ChangeKind::Modified,
            outcome: RestoreOutcome::Rejected,
            sha256_after: Some(Digest::of(b"tampered")),
            quarantine: vec![],
            attempts: 1,
        }
    }

    /// Holds the lock as a running watch does.
    pub fn lock(&self) -> Lock {
        let holder = Holder::this_process("keep watch", AT).expect("the system tells");
        Lock::try_acquire(self.state().dir(), b"lock", &holder).expect("is free")
    }
}
