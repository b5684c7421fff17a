//! Desktop notifications: tell the person to look at the terminal. They cannot answer anything.
//!
//! Promise: a notifier that is absent, fails, talks, hangs or starts others costs the caller nothing: [`Notifier::notify`]
//! only leaves a message, a thread does the rest, at most one a second, and what runs for more than [`LIMIT`] is killed
//! with its whole process group.
//! Limit: of several messages within a second only the last is shown; whether the desktop shows anything is not known.

mod command;

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

pub use crate::host::NOTIFIER;
pub use command::{Program, find};

/// The shortest time from one notification to the next.
const PACE: Duration = Duration::from_secs(1);

/// The longest a notifier may run.
const LIMIT: Duration = Duration::from_secs(5);

/// How often we look whether it has ended, while it runs.
const LOOK: Duration = Duration::from_millis(20);

/// What is told; plain text, already escaped for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// The headline.
    pub title: String,
    /// One line below.
    pub body: String,
}

/// Shows notifications, one at a time.
#[derive(Debug)]
#[must_use]
pub struct Notifier(Option<Arc<Shared>>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    next: Option<Notification>,
    /// The leader of the process group that runs, not yet waited for: so its number cannot mean another.
    running: Option<Child>,
    closed: bool,
}

impl Notifier {
    /// Starts the thread; without a program there is none and nothing will be shown.
    pub fn start(program: Option<(Program, PathBuf)>) -> io::Result<Self> {
        Self::start_with(program, LIMIT)
    }

    fn start_with(program: Option<(Program, PathBuf)>, limit: Duration) -> io::Result<Self> {
        let Some((program, path)) = program else { return Ok(Self(None)) };
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        thread::Builder::new().name("notifier".to_owned()).spawn(move || theirs.run(program, &path, limit))?;
        Ok(Self(Some(shared)))
    }

    /// Leaves a notification to be shown, in the place of one that still waits. Returns at once.
    pub fn notify(&self, notification: Notification) {
        if let Some(shared) = &self.0 {
            shared.state().next = Some(notification);
            shared.changed.notify_one();
        }
    }

    /// Waits until what was left is shown, or could not be, at most twice the time that a notifier may take.
    pub fn finish(self) {
        let Some(shared) = &self.0 else { return };
        let until = Instant::now() + 2 * LIMIT;
        let mut state = shared.state();
        while (state.next.is_some() || state.running.is_some()) && Instant::now() < until {
            state = shared.wait(state, LOOK);
        }
    }

    /// Forgets a notification that still waits: what it told of is over.
    pub fn forget(&self) {
        if let Some(shared) = &self.0 {
            shared.state().next = None;
        }
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        if let Some(shared) = &self.0 {
            let mut state = shared.state();
            state.closed = true;
            kill(&mut state);
            shared.changed.notify_one();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, program: Program, path: &Path, limit: Duration) {
        let mut started: Option<Instant> = None;
        let mut state = self.state();
        while !state.closed {
            if state.running.is_some() {
                let over = started.is_none_or(|started| started.elapsed() >= limit);
                if over {
                    kill(&mut state);
                }
                // Once killed it ends; and should it not (a process in the kernel's hands), nobody waits for us.
                if state.running.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None))) {
                    state.running = None;
                    continue;
                }
                state = self.wait(state, LOOK);
                continue;
            }
            let rest = started.map_or(Duration::ZERO, |started| PACE.saturating_sub(started.elapsed()));
            if !rest.is_zero() && state.next.is_some() {
                state = self.wait(state, rest);
                continue;
            }
            match state.next.take() {
                Some(notification) => {
                    started = Some(Instant::now());
                    // Under the lock, so that a drop meanwhile finds the child to kill.
                    state.running = spawn(program, path, &notification).ok();
                }
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
        if let Some(mut child) = state.running.take() {
            drop(state);
            let _it_was_killed = child.wait();
        }
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, most: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner).0
    }
}

fn spawn(program: Program, path: &Path, notification: &Notification) -> io::Result<Child> {
    Command::new(path)
        .args(program.arguments(notification))
        // Not the repository: nothing the notifier looks for relative to it may come from there.
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
}

fn kill(state: &mut State) {
    if let Some(child) = &state.running {
        let _it_may_have_ended = kill_process_group(Pid::from_child(child), Signal::KILL);
    }
}

#[cfg(test)]
mod tests;
