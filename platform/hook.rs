//! A program of the person's that is started when something happens, with a few words on its standard input.
//!
//! Promise: whoever calls [`Hook::run`] never waits; no shell reads the words, and no argument or variable holds them. At
//! most [`MOST`] of the programs run at a time and as many wait; each is waited for, and after [`LIMIT`], or when the hook is
//! dropped, it is killed with its process group.
//! Limit: the program has the rights and the environment of whoever started us. What leaves its process group outlives it.
//! Source: pipe(7), "Pipe capacity": at least a page, so that [`MAX_INPUT`] bytes never make the writer wait.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Access, access, stat};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::ambient;
use crate::dir::{FsError, on};
use crate::stat::FileType;

/// The most that run at a time, and the most that wait.
pub const MOST: usize = 3;
/// The most bytes of input.
pub const MAX_INPUT: usize = 4096;
/// The longest a program may run.
pub const LIMIT: Duration = Duration::from_secs(60 * 60);
/// How often we look whether one has ended, while any runs.
const LOOK: Duration = Duration::from_millis(100);

/// Why a program cannot be a hook.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HookError {
    /// Nothing is there, or the way there cannot be looked at.
    #[error("cannot find the program")]
    Find(#[source] FsError),
    /// It is no file that we may execute.
    #[error("{} is no program", .path.as_os_str().as_bytes().escape_ascii())]
    NoProgram {
        /// Where it really lies.
        path: PathBuf,
    },
    /// It lies where programs must not come from.
    #[error("{} lies below {}", .path.as_os_str().as_bytes().escape_ascii(), .below.as_os_str().as_bytes().escape_ascii())]
    Forbidden {
        /// Where it really lies.
        path: PathBuf,
        /// The directory.
        below: PathBuf,
    },
    /// The thread could not be started.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
}

/// The real path of the program at `path`, unless it lies below one of the `forbidden` directories, by whatever names either is
/// reached: whoever may write there could put another program in its place. Limit: a hard link from there is not known as such.
pub fn find(path: &Path, forbidden: &[PathBuf]) -> Result<PathBuf, HookError> {
    let path = ambient::resolve(path).map_err(HookError::Find)?;
    let kind = ambient::kind(&path).map_err(HookError::Find)?;
    if kind != Some(FileType::Regular) || access(&path, Access::EXEC_OK).is_err() {
        return Err(HookError::NoProgram { path });
    }
    // Looked at and not opened: a directory above may be one that we may pass through and not list.
    let identity = |directory: &Path| {
        let stat = stat(directory).map(|stat| (stat.st_dev, stat.st_ino));
        stat.map_err(|errno| HookError::Find(on("stat", directory.as_os_str().as_bytes())(errno.into())))
    };
    for below in forbidden {
        let forbidden = identity(below)?;
        for above in path.ancestors().skip(1) {
            if identity(above)? == forbidden {
                return Err(HookError::Forbidden { path, below: below.clone() });
            }
        }
    }
    Ok(path)
}

/// Starts the program again and again.
#[derive(Debug)]
#[must_use]
pub struct Hook(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Vec<u8>>,
    /// Leaders of process groups, not yet waited for: so their numbers cannot mean others.
    running: Vec<(Child, Instant)>,
    closed: bool,
}

impl Hook {
    /// A hook that starts `program`, a path from [`find`], in `directory`.
    pub fn start(program: PathBuf, directory: PathBuf) -> Result<Self, HookError> {
        Self::start_with(program, directory, LIMIT)
    }

    fn start_with(program: PathBuf, directory: PathBuf, limit: Duration) -> Result<Self, HookError> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let work = move || theirs.work(&program, &directory, limit);
        thread::Builder::new().name("hook".to_owned()).spawn(work).map_err(HookError::Thread)?;
        Ok(Self(shared))
    }

    /// Lets the program run once with this input; `false` if that is too long, or too many wait already.
    pub fn run(&self, input: &[u8]) -> bool {
        let mut state = self.0.state();
        let has_room = input.len() <= MAX_INPUT && state.waiting.len() < MOST;
        if has_room {
            state.waiting.push_back(input.to_vec());
            self.0.changed.notify_one();
        }
        has_room
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.closed = true;
        state.running.iter().for_each(|(child, _)| kill(child));
        self.0.changed.notify_one();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, program: &Path, directory: &Path, limit: Duration) {
        let mut state = self.state();
        while !state.closed {
            for (child, since) in &state.running {
                if since.elapsed() >= limit {
                    kill(child);
                }
            }
            state.running.retain_mut(|(child, _)| matches!(child.try_wait(), Ok(None)));
            while state.running.len() < MOST {
                let Some(input) = state.waiting.pop_front() else { break };
                // Under the lock, so that a drop meanwhile finds the child to kill.
                if let Ok(child) = spawn(program, directory, &input) {
                    state.running.push((child, Instant::now()));
                }
            }
            state = if state.running.is_empty() {
                self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
            } else {
                self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0
            };
        }
        let running = std::mem::take(&mut state.running);
        drop(state);
        for (mut child, _) in running {
            let _it_was_killed = child.wait();
        }
    }
}

fn spawn(program: &Path, directory: &Path, input: &[u8]) -> io::Result<Child> {
    let mut child = Command::new(program)
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not want to read is none of our business.
        let _unread = stdin.write_all(input);
    }
    Ok(child)
}

fn kill(child: &Child) {
    let _it_may_have_ended = kill_process_group(Pid::from_child(child), Signal::KILL);
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            Self(tempfile::tempdir().expect("a temporary directory"))
        }

        fn path(&self) -> PathBuf {
            self.0.path().canonicalize().expect("a real path")
        }

        fn script(&self, body: &str) -> PathBuf {
            let path = self.path().join("program");
            fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
            path
        }

        fn log(&self) -> String {
            fs::read_to_string(self.path().join("log")).unwrap_or_default()
        }
    }

    fn eventually(what: &str, mut probe: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(9);
        while !probe() {
            assert!(Instant::now() < deadline, "{what} did not happen");
            thread::park_timeout(Duration::from_millis(5));
        }
    }

    #[test]
    fn the_words_reach_the_program_on_its_input_and_no_shell() {
        let folder = Folder::new();
        let program = folder.script("[ $# = 0 ] && cat >> log; echo . >> log");
        let hook = Hook::start(program, folder.path()).expect("a thread");
        assert!(hook.run(b"$(touch injected); `id`"));
        eventually("the program", || folder.log().ends_with(".\n"));
        assert_eq!(folder.log(), "$(touch injected); `id`.\n");
        assert!(!folder.path().join("injected").exists());
        assert!(!hook.run(&[b'x'; MAX_INPUT + 1]), "more than a pipe holds for sure");
    }

    #[test]
    fn the_most_words_do_not_make_us_wait_for_a_program_that_reads_none() {
        let folder = Folder::new();
        let hook = Hook::start(folder.script("echo started >> log; exec sleep 60"), folder.path()).expect("a thread");
        for n in 1..=MOST {
            assert!(hook.run(&[b'x'; MAX_INPUT]));
            eventually("the program", || folder.log().lines().count() == n);
        }
        for _ in 0..MOST {
            assert!(hook.run(b"waits"));
        }
        assert!(!hook.run(b"one too many"));
        let dropping = Instant::now();
        drop(hook);
        assert!(dropping.elapsed() < Duration::from_millis(500), "drop waited");
        assert_eq!(folder.log().lines().count(), MOST, "those that waited were not started");
    }

    #[test]
    fn a_program_that_runs_too_long_makes_room_for_the_next() {
        let folder = Folder::new();
        let program = folder.script("cat >> log; exec sleep 60");
        let hook = Hook::start_with(program, folder.path(), Duration::from_millis(300)).expect("a thread");
        for n in 1..=MOST + 1 {
            eventually("room", || hook.run(b"x"));
            eventually("the program", || folder.log().len() == n);
        }
    }

    #[test]
    fn only_a_program_outside_the_forbidden_directories_is_taken() {
        let (folder, root) = (Folder::new(), Folder::new());
        let (good, bad) = (folder.script(""), root.script(""));
        assert_eq!(find(&good, &[root.path()]).expect("a program"), good);
        assert!(matches!(find(&bad, &[root.path()]), Err(HookError::Forbidden { .. })));
        std::os::unix::fs::symlink(&bad, folder.path().join("link")).expect("linked");
        assert!(matches!(find(&folder.path().join("link"), &[root.path()]), Err(HookError::Forbidden { .. })));
        std::os::unix::fs::symlink(root.path(), folder.path().join("alias")).expect("linked");
        let alias = [folder.path().join("alias")];
        assert!(matches!(find(&bad, &alias), Err(HookError::Forbidden { .. })), "by another name");
        assert!(matches!(find(&good, &[folder.path().join("gone")]), Err(HookError::Find(_))));
        fs::set_permissions(&good, fs::Permissions::from_mode(0o644)).expect("not executable");
        assert!(matches!(find(&good, &[]), Err(HookError::NoProgram { .. })));
        assert!(matches!(find(&folder.path(), &[]), Err(HookError::NoProgram { .. })));
        assert!(matches!(find(&folder.path().join("absent"), &[]), Err(HookError::Find(_))));
    }
}
