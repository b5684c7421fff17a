//! The terminal's modes: raw while a guard is held, as found otherwise.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::getpgrp;
use rustix::termios::{OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetpgrp, tcsetattr};

use super::output::Output;

/// Asks the terminal to put brackets around pasted text, so that one pasted letter is no key either.
const PASTE_ON: &[u8] = b"\x1b[?2004h";
const PASTE_OFF: &[u8] = b"\x1b[?2004l";

/// The modes of one terminal.
#[derive(Debug)]
pub(super) struct Modes {
    input: Arc<OwnedFd>,
    output: Arc<Output>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The modes found; known from the first time in the foreground on.
    found: Option<Termios>,
    /// Whether a guard is held.
    wanted: bool,
    /// Whether the terminal is raw by us.
    raw: bool,
    hooked: bool,
}

/// Keeps the terminal raw; puts its modes back when dropped.
#[derive(Debug)]
#[must_use]
pub struct RawGuard(Arc<Modes>);

impl Drop for RawGuard {
    fn drop(&mut self) {
        self.0.state().wanted = false;
        self.0.leave();
    }
}

/// Whether another process group has the terminal. A terminal that is not our controlling one has no foreground for us.
pub(super) fn in_background(input: &OwnedFd) -> bool {
    tcgetpgrp(input).is_ok_and(|foreground| foreground != getpgrp())
}

impl Modes {
    pub(super) fn new(input: Arc<OwnedFd>, output: Arc<Output>) -> Self {
        Self { input, output, state: Mutex::default() }
    }

    /// Makes the terminal raw, now or when we get it.
    pub(super) fn raw(self: &Arc<Self>) -> io::Result<RawGuard> {
        let mut state = self.state();
        state.wanted = true;
        if !std::mem::replace(&mut state.hooked, true) {
            self.leave_in_a_panic();
        }
        if !in_background(&self.input) {
            self.enter(&mut state)?;
        }
        drop(state);
        Ok(RawGuard(Arc::clone(self)))
    }

    /// Makes the terminal raw again if a guard is held; an error if it is not ours at present.
    pub(super) fn resume(&self) -> io::Result<()> {
        let mut state = self.state();
        if !state.wanted {
            return Ok(());
        }
        if in_background(&self.input) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.enter(&mut state)
    }

    /// Puts the modes back, unless another job has the terminal: its modes are its own.
    pub(super) fn leave(&self) {
        self.leave_from(&mut self.state());
    }

    fn enter(&self, state: &mut State) -> io::Result<()> {
        let found = match state.found.take() {
            Some(found) => found,
            None => tcgetattr(&*self.input)?,
        };
        let mut raw = found.clone();
        raw.make_raw();
        // Output is processed as before: what others print meanwhile (an error of the runtime, a job of the same shell)
        // must not run down the screen in stairs. Our own lines end with CR LF, for which it makes no difference.
        raw.output_modes = found.output_modes;
        state.found = Some(found);
        tcsetattr(&*self.input, OptionalActions::Now, &raw)?;
        state.raw = true;
        // Typed to somebody else, before there was anything to answer.
        let _nothing_to_do = tcflush(&*self.input, QueueSelector::IFlush);
        let _best_effort = self.output.write(PASTE_ON);
        Ok(())
    }

    fn leave_from(&self, state: &mut State) {
        if !state.raw || in_background(&self.input) {
            return;
        }
        let Some(found) = &state.found else { return };
        let _best_effort = self.output.write(PASTE_OFF);
        // Not `Flush` as the action: it would wait until the terminal took all output, and a stopped one never does.
        // Keys meant for a question must not become a command of the shell, so they are thrown away first.
        let _nothing_to_do = tcflush(&*self.input, QueueSelector::IFlush);
        let _nobody_to_tell = tcsetattr(&*self.input, OptionalActions::Now, found);
        state.raw = false;
    }

    fn leave_in_a_panic(self: &Arc<Self>) {
        let (modes, before) = (Arc::downgrade(self), std::panic::take_hook());
        std::panic::set_hook(Box::new(move |panic| {
            // Not `lock`: the panic may come from a holder of it.
            if let Some(modes) = modes.upgrade()
                && let Ok(mut state) = modes.state.try_lock()
            {
                modes.leave_from(&mut state);
            }
            before(panic);
        }));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic while it is held leaves it as true as it was: each field is set after what it tells.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
