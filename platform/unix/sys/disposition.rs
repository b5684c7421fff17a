//! What the kernel does with a signal that no handler takes: sigaction(2).

#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::ptr;

use libc::c_int;

/// What happens without a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disposition {
    /// The signal's default: for `SIGTSTP`, the process stops.
    Default,
    /// Nothing; and the process is told by an error instead (`EIO` when it reads a terminal in the background).
    Ignore,
}

/// What was in force before.
pub(crate) struct Saved(libc::sigaction);

/// Sets the disposition of a signal for the whole process and returns the one before, be it a handler.
pub(crate) fn set(signal: c_int, disposition: Disposition) -> io::Result<Saved> {
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: all-zero bytes are a valid `sigaction`: no flags, an empty mask, no handler (`SIG_DFL` is zero).
    let mut wanted: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    wanted.sa_sigaction = match disposition {
        Disposition::Default => libc::SIG_DFL,
        Disposition::Ignore => libc::SIG_IGN,
    };
    // SAFETY: both pointers are to live values of the right type; no handler is installed, so nothing of ours can be
    // called in a signal's context.
    if unsafe { libc::sigaction(signal, &wanted, before.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so the kernel filled it; it was zeroed before.
    Ok(Saved(unsafe { before.assume_init() }))
}

/// Puts back what [`set`] returned for the same signal.
pub(crate) fn restore(signal: c_int, saved: &Saved) -> io::Result<()> {
    // SAFETY: `saved` came from sigaction(2) of this process, so its handler, if any, is one that was installed before.
    if unsafe { libc::sigaction(signal, &saved.0, ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
