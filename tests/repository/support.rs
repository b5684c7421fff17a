//! A repository in a directory of its own, with git's settings kept apart from the machine's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use keepwatch::git::{self, GitView, Sources};
use keepwatch::rules::{Class, Flags, Rules, assemble, file};
use platform::{Place, RelPath, Root};

pub struct Lab {
    _temp: tempfile::TempDir,
    pub home: PathBuf,
    pub repo: PathBuf,
}

impl Lab {
    /// A directory without a repository.
    pub fn bare() -> Self {
        let temp = tempfile::tempdir().expect("a directory");
        let home = temp.path().canonicalize().expect("a real path");
        let repo = home.join("repo");
        fs::create_dir(&repo).expect("a directory");
        Self { _temp: temp, home, repo }
    }

    /// An empty repository.
    pub fn new() -> Self {
        let lab = Self::bare();
        lab.git(&["init", "-q"]);
        lab
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.args(words).current_dir(&self.repo).env_clear().env("PATH", std::env::var_os("PATH").expect("a PATH"));
        command.env("HOME", &self.home).env("GIT_CONFIG_NOSYSTEM", "1");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "n").env(format!("GIT_{who}_EMAIL"), "n@example.org");
        }
        command
    }

    pub fn git(&self, words: &[&str]) -> Output {
        let output = self.command(words).stdin(Stdio::null()).output().expect("git runs");
        assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.repo.join(path);
        fs::create_dir_all(path.parent().expect("not the root")).expect("directories");
        fs::write(path, content).expect("a file");
    }

    pub fn sources(&self) -> Sources {
        Sources { home: Some(self.home.clone()), ..Sources::default() }
    }

    pub fn view(&self) -> GitView {
        let repository = git::discover(&self.repo).expect("no error").expect("a repository");
        let tree = Root::open(&repository.top).expect("a root");
        let rules = file::read(tree.dir()).expect("readable");
        git::read(&repository, &std::sync::Arc::new(tree), &self.sources(), rules.as_deref())
    }

    pub fn rules(&self) -> Rules {
        assemble(file::RuleFile::default(), Flags::default(), Some(self.view()))
    }
}

pub fn path(text: &str) -> RelPath {
    RelPath::parse(text.as_bytes()).expect("a path")
}

pub fn classify(rules: &Rules, place: &str) -> Option<Class> {
    rules.set.classify(&Place::tree(path(place)))
}

/// Whether an absolute path outside the tree is covered by one of the external roots.
pub fn covered_outside(rules: &Rules, wanted: &Path) -> bool {
    rules.set.external_roots().iter().enumerate().any(|(index, root)| {
        let Ok(below) = wanted.strip_prefix(root) else { return false };
        let below = path(below.to_str().expect("plain names"));
        let root = platform::RootId(u16::try_from(index + 1).expect("few"));
        rules.set.classify(&Place { root, path: below }).is_some()
    })
}
