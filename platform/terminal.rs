//! The person's terminal: the only place where questions are asked and answered.
//!
//! Promise: writing never blocks, whatever the terminal does (Ctrl-S, a window that hangs, a dead reader): output goes to
//! an open file description of our own, which is non-blocking, so that the shell's is not changed. The modes found at the
//! start are put back when the guard is dropped, in a panic, and around a stop.
//! Limit: bytes that the kernel took may still not be on the glass. Whoever may write into the terminal's input queue
//! (TIOCSTI, the terminal program itself; see [`scriptable`]) types like a person.
//! Source: termios(3), tty_ioctl(4), credentials(7) on sessions and process groups. Not crossterm's raw mode: it keeps the
//! modes in a global, knows one terminal only, and turns output processing off, which we need (see [`Modes::enter`]).

mod backlog;
mod input;
mod modes;
mod output;
mod scriptable;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::{isatty, tcgetwinsize};

pub use backlog::WriteState;
pub use input::InputEvent;
pub use modes::RawGuard;
pub use scriptable::scriptable;

use crate::unix::sys::disposition::{self, Disposition};
use backlog::Backlog;
use modes::Modes;
use output::Output;

/// Why there is no terminal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TerminalError {
    /// Standard input is something else.
    #[error("standard input is not a terminal")]
    NotATerminal,
    /// A descriptor could not be duplicated.
    #[error("cannot keep standard input open")]
    Duplicate(#[source] io::Error),
    /// The modes could not be read or set.
    #[error("cannot set the terminal's modes")]
    Modes(#[source] io::Error),
    /// A signal's disposition could not be set.
    #[error("cannot set what signal {signal} does")]
    Disposition {
        /// Its number.
        signal: i32,
        /// Why.
        source: io::Error,
    },
    /// The thread that reads keys could not be started.
    #[error("cannot start the thread that reads keys")]
    Thread(#[source] io::Error),
}

/// The terminal on standard input.
#[derive(Debug)]
pub struct Terminal {
    input: Arc<OwnedFd>,
    output: Arc<Output>,
    modes: Arc<Modes>,
    backlog: Mutex<Backlog>,
    wake: Arc<input::Wake>,
}

impl Terminal {
    /// Opens the terminal that is standard input.
    ///
    /// # Errors
    /// - [`TerminalError::NotATerminal`]: standard input is no terminal; another one on standard error does not count.
    /// - [`TerminalError::Duplicate`]: no descriptor is left.
    pub fn open() -> Result<Self, TerminalError> {
        let input = io::stdin().as_fd().try_clone_to_owned().map_err(TerminalError::Duplicate)?;
        Self::on(input)
    }

    /// Takes a terminal by one of its descriptors.
    pub(crate) fn on(input: OwnedFd) -> Result<Self, TerminalError> {
        if !isatty(&input) {
            return Err(TerminalError::NotATerminal);
        }
        let input = Arc::new(input);
        let output = Arc::new(Output::reopen(&input).map_err(TerminalError::Duplicate)?);
        Ok(Self {
            modes: Arc::new(Modes::new(Arc::clone(&input), Arc::clone(&output))),
            backlog: Mutex::new(Backlog::default()),
            wake: Arc::new(input::Wake::new().map_err(TerminalError::Duplicate)?),
            input,
            output,
        })
    }

    /// Reads keys one by one from now on, without echo, until the guard is dropped. Whatever was typed before is thrown
    /// away. In the background this waits until the shell gives us the terminal ([`InputEvent::Foreground`]).
    pub fn raw(&self) -> Result<RawGuard, TerminalError> {
        // Ignored, because the default would stop us, and with us the guarding of the files: when we read or set modes in
        // the background (tty_check_change and job_control in the kernel). With SIGTTIN ignored, a read gives EIO.
        for signal in [libc::SIGTTOU, libc::SIGTTIN] {
            disposition::set(signal, Disposition::Ignore)
                .map_err(|source| TerminalError::Disposition { signal, source })?;
        }
        self.modes.raw().map_err(TerminalError::Modes)
    }

    /// Columns and rows; 80 and 24 if the terminal does not know.
    pub fn size(&self) -> (u16, u16) {
        match tcgetwinsize(&self.input) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
            _ => (80, 24),
        }
    }

    /// Writes, or keeps for later what the terminal does not take now. Never blocks.
    pub fn write(&self, bytes: &[u8]) -> WriteState {
        let mut backlog = self.backlog();
        backlog.push(bytes);
        backlog.drain(|bytes| self.output.write(bytes))
    }

    /// Like [`Terminal::write`], for bytes that need not be written if others come before the terminal took them.
    pub fn write_passing(&self, bytes: &[u8]) -> WriteState {
        let mut backlog = self.backlog();
        backlog.push_passing(bytes);
        backlog.drain(|bytes| self.output.write(bytes))
    }

    /// Tries again to write what the terminal did not take. To be called every few milliseconds while it is pending.
    pub fn flush_pending(&self) -> WriteState {
        self.backlog().drain(|bytes| self.output.write(bytes))
    }

    /// Whether the terminal took everything: only then what was written last can be read by the person.
    pub fn is_clear(&self) -> bool {
        self.backlog().is_empty()
    }

    /// Calls `out` from a thread of its own with whatever is typed, until the terminal hangs up.
    pub fn spawn_input(&self, out: Box<dyn Fn(InputEvent) + Send>) -> Result<(), TerminalError> {
        let (fd, wake) = (Arc::clone(&self.input), Arc::clone(&self.wake));
        std::thread::Builder::new()
            .name("keys".to_owned())
            .spawn(move || input::read(&fd, &wake, &*out))
            .map(drop)
            .map_err(TerminalError::Thread)
    }

    /// Stops this job as Ctrl-Z does, with the terminal's own modes; returns when it goes on, raw again if it was before.
    /// When there is no shell to continue us (an orphaned process group), nothing stops. Afterwards everything must be
    /// compared and the question drawn anew, as after SIGCONT.
    pub fn suspend(&self) -> Result<(), TerminalError> {
        // What the terminal does not take before the stop stays for afterwards.
        let _pending_or_not = self.flush_pending();
        self.modes.leave();
        let signal = libc::SIGTSTP;
        let failed = |source| TerminalError::Disposition { signal, source };
        // The others of the job first, while we ignore it; then ourselves, by a signal to this very thread: that is
        // delivered before `raise` returns (raise(3)), so the handler can be put back right after. The kernel discards a
        // default SIGTSTP in an orphaned process group, where nobody could ever continue us; SIGSTOP would not be.
        let handler = disposition::set(signal, Disposition::Ignore).map_err(failed)?;
        let others = kill_current_process_group(Signal::TSTP);
        let stopped = disposition::set(signal, Disposition::Default)
            .and_then(|_| signal_hook::low_level::raise(signal))
            .and(others.map_err(io::Error::from));
        disposition::restore(signal, &handler).and(stopped).map_err(failed)?;
        self.resume();
        Ok(())
    }

    /// Goes on after a stop (SIGCONT) or back in the foreground: raw again, if a guard is held and the terminal is ours.
    pub fn resume(&self) {
        if self.modes.resume().is_err() {
            // In the background, or no terminal any more: the thread that reads keys finds out which.
            self.wake.ring();
        }
    }

    fn backlog(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock().expect("no holder of this lock panics")
    }
}

#[cfg(test)]
mod tests;
