//! A home, a repository in it, a place for state, and a `PATH` with a notifier of our own.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use keepwatch::digest::Digest;

use super::watch::Watch;

/// What `.env` holds at the start.
pub const ENV: &[u8] = b"API_TOKEN=baseline\nMODE=dev\n";

/// The program under test.
pub fn keep() -> PathBuf {
    std::env::var_os("KEEP_UNDER_TEST").map_or_else(|| env!("CARGO_BIN_EXE_keep").into(), PathBuf::from)
}

/// What stands for the digest of this content in a question.
pub fn sha(content: &[u8]) -> String {
    format!("sha256 {}", Digest::of(content).short())
}

/// Content nobody has seen yet.
pub fn fresh() -> Vec<u8> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("API_TOKEN=changed-{}\n", NUMBER.fetch_add(1, Ordering::Relaxed)).into_bytes()
}

/// What lies at a path, without following or opening anything but regular files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Nothing.
    Absent,
    /// A regular file: bits and bytes.
    File(u32, Vec<u8>),
    /// Where a symlink points.
    Link(PathBuf),
    /// A directory.
    Directory,
    /// Anything else.
    Other,
}

/// A throw-away home with a repository.
pub struct Sandbox {
    /// Everything lies in here.
    pub base: PathBuf,
    /// The top of the repository.
    pub repo: PathBuf,
    /// `KEEP_STATE_DIR`.
    pub state: PathBuf,
    /// More variables for the program.
    pub variables: Vec<(String, String)>,
    _folder: tempfile::TempDir,
}

impl Sandbox {
    /// A repository with four protected files: `.env`, `package-lock.json`, and git's `config` and `info/exclude`.
    pub fn new() -> Self {
        let this = Self::bare();
        this.make_repository("");
        this.write("README.md", b"# Sample\n");
        this.write(".gitignore", b".env*\n!.env.example\n*.log\nnode_modules/\n");
        this.write("package-lock.json", b"{\"lockfileVersion\": 3}\n");
        this.write(".env", ENV);
        this.chmod(".env", 0o600);
        this
    }

    /// An empty directory that is no repository.
    pub fn bare() -> Self {
        Self::bare_in(&std::env::temp_dir())
    }

    /// The same in this folder.
    pub fn bare_in(folder: &Path) -> Self {
        let folder = tempfile::Builder::new().prefix("keep-").tempdir_in(folder).expect("a folder");
        let base = folder.path().canonicalize().expect("a real path");
        let (repo, state) = (base.join("home/repo"), base.join("state"));
        for path in [&repo, &base.join("bin"), &base.join("run"), &base.join("tmp")] {
            fs::create_dir_all(path).expect("makes");
        }
        Self { base, repo, state, variables: Vec::new(), _folder: folder }
    }

    /// What `git init` makes, below the repository.
    pub fn make_repository(&self, at: &str) {
        let top = self.path(at).join(".git");
        for folder in ["objects/info", "refs/heads", "refs/tags", "info", "hooks"] {
            fs::create_dir_all(top.join(folder)).expect("makes");
        }
        fs::write(top.join("HEAD"), b"ref: refs/heads/main\n").expect("writes");
        fs::write(top.join("config"), b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n").expect("writes");
        fs::write(top.join("info/exclude"), b"# nothing\n").expect("writes");
    }

    /// A path below the repository.
    pub fn path(&self, path: impl AsRef<OsStr>) -> PathBuf {
        let path = Path::new(path.as_ref());
        if path.as_os_str().is_empty() { self.repo.clone() } else { self.repo.join(path) }
    }

    /// Writes in place; makes the file and its directories if they are not there.
    pub fn write(&self, path: impl AsRef<OsStr>, content: &[u8]) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("makes");
        fs::write(path, content).expect("writes");
    }

    /// Writes in place without truncating first, so that content of one length has no third state.
    pub fn overwrite(&self, path: &str, content: &[u8]) {
        let mut file = File::options().write(true).open(self.path(path)).expect("opens");
        file.write_all(content).expect("writes");
        file.set_len(content.len() as u64).expect("cuts");
    }

    /// Writes beside, and renames over.
    pub fn save_by_rename(&self, path: &str, content: &[u8]) {
        let beside = self.base.join("saving");
        fs::write(&beside, content).expect("writes");
        fs::rename(beside, self.path(path)).expect("renames");
    }

    /// Sets the bits.
    pub fn chmod(&self, path: &str, mode: u32) {
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(mode)).expect("chmods");
    }

    /// Makes a symlink.
    pub fn link(&self, target: impl AsRef<Path>, path: &str) {
        symlink(target, self.path(path)).expect("links");
    }

    /// What lies at a path.
    pub fn content(&self, path: impl AsRef<OsStr>) -> Content {
        content(&self.path(path))
    }

    /// Whether the accepted `.env` lies there.
    pub fn has_env(&self) -> bool {
        self.content(".env") == Content::File(0o600, ENV.to_vec())
    }

    /// Waits until the path is as wanted.
    pub fn becomes(&self, path: &str, wanted: &Content) {
        super::until(&format!("{path} becomes {wanted:?}"), || self.content(path) == *wanted);
    }

    /// Runs git in the repository.
    pub fn git(&self, words: &[&str]) -> Output {
        let mut command = self.command("git");
        command.args(words).env("GIT_CONFIG_NOSYSTEM", "1").stdin(Stdio::null());
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "n").env(format!("GIT_{who}_EMAIL"), "n@example.org");
        }
        let output = command.output().expect("git runs");
        assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }

    /// A program in the repository, with the variables of this home only.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.environment()).current_dir(&self.repo);
        command
    }

    /// The program under test without a terminal.
    pub fn keep(&self, words: &[&str]) -> Output {
        self.command(keep()).args(words).stdin(Stdio::null()).output().expect("keep runs")
    }

    /// The variables of this home.
    pub fn environment(&self) -> Vec<(String, String)> {
        let text = |path: PathBuf| path.to_str().expect("no odd temporary folder").to_owned();
        let own = |name: &str| text(self.base.join(name));
        let mut all: Vec<(String, String)> = [
            ("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", own("bin"))),
            ("HOME", own("home")),
            ("TMPDIR", own("tmp")),
            ("LANG", "C.UTF-8".to_owned()),
            ("TERM", "xterm-256color".to_owned()),
            ("XDG_CONFIG_HOME", own("home/.config")),
            ("XDG_STATE_HOME", own("home/.local/state")),
            ("XDG_RUNTIME_DIR", own("run")),
            ("KEEP_STATE_DIR", text(self.state.clone())),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        for (name, value) in &self.variables {
            all.retain(|(known, _)| known != name);
            all.push((name.clone(), value.clone()));
        }
        all
    }

    /// Sets a variable for what is started from now on.
    pub fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// A desktop whose notifier notes its words in `notified`, and then does what the line says.
    pub fn desktop(&mut self, then: &str) {
        let notified = self.base.join("notified");
        let script = format!("#!/bin/sh\nprintf '%s|' \"$@\" >>'{0}'\necho >>'{0}'\n{then}\n", notified.display());
        for name in ["notify-send", "osascript"] {
            let path = self.base.join("bin").join(name);
            fs::write(&path, &script).expect("writes");
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("chmods");
        }
        self.set("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere");
    }

    /// What the notifier was told, a line each.
    pub fn notified(&self) -> Vec<String> {
        let text = fs::read_to_string(self.base.join("notified")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The folder of the one root that has been watched.
    pub fn state_folder(&self) -> PathBuf {
        let entries = fs::read_dir(&self.state).expect("there is state");
        let folders: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
        assert_eq!(folders.len(), 1, "{folders:?}");
        folders[0].clone()
    }

    /// The bytes of everything in quarantine.
    pub fn quarantined(&self) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        collect(&self.state_folder().join("quarantine"), &mut found);
        found
    }

    /// The text of the journal.
    pub fn journal(&self) -> String {
        fs::read_to_string(self.state_folder().join("journal.jsonl")).expect("there is a journal")
    }

    /// Names in a folder of the repository that only the program itself would make.
    pub fn temporary_names(&self, at: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(at)).expect("lists");
        let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with(".keep-")).collect()
    }

    /// Starts `keep watch` with these options, and waits for its start line.
    pub fn watch(&self, options: &[&str]) -> Watch {
        let mut watch = self.spawn(options);
        watch.says("undecided changes are restored after");
        watch
    }

    /// Starts `keep watch` with these options.
    pub fn spawn(&self, options: &[&str]) -> Watch {
        Watch::start(self, "exec \"$KEEP\" watch --json \"$@\" >\"$OUT\"", options, 200, 50)
    }

    /// Starts it and expects a refusal with this code, on standard error and as an object. Returns the message.
    pub fn refuses(&self, code: &str, options: &[&str]) -> String {
        let ended = self.spawn(options).finish();
        ended.refused(code)
    }
}

/// What lies at a path, anywhere.
pub fn content(path: &Path) -> Content {
    let Ok(found) = fs::symlink_metadata(path) else { return Content::Absent };
    if found.is_symlink() {
        fs::read_link(path).map_or(Content::Absent, Content::Link)
    } else if found.is_dir() {
        Content::Directory
    } else if found.is_file() {
        fs::read(path).map_or(Content::Absent, |bytes| Content::File(found.permissions().mode() & 0o7777, bytes))
    } else {
        Content::Other
    }
}

fn collect(folder: &Path, found: &mut Vec<Vec<u8>>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        match content(&path) {
            Content::Directory => collect(&path, found),
            Content::File(_, bytes) => found.push(bytes),
            _ => {}
        }
    }
}
