//! Signals become values, on a thread of their own.
//!
//! Promise: while [`Signals`] lives, none of these signals ends or stops us by itself, however often it comes: what it
//! means is decided by whoever gets it. Limit: equal signals that come close together may be told once (signal(7));
//! SIGKILL and SIGSTOP cannot be caught at all. SIGPIPE is ignored by the runtime of the language already.
//! Source: signal(7), "Standard signals"; the handler only writes to a socket (signal-safety(7)).

use std::io;
use std::thread;

use signal_hook::iterator::{Handle, Signals as Queue};

/// What we were told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Signal {
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP: the terminal is gone, or somebody says so.
    HangUp,
    /// SIGQUIT.
    Quit,
    /// SIGWINCH: the terminal has another size.
    Resized,
    /// SIGTSTP: stop, but put the terminal's modes back first ([`crate::Terminal::suspend`]).
    Suspend,
    /// SIGCONT: we go on after a stop.
    Continued,
}

impl Signal {
    const ALL: [Signal; 7] = [
        Signal::Interrupt,
        Signal::Terminate,
        Signal::HangUp,
        Signal::Quit,
        Signal::Resized,
        Signal::Suspend,
        Signal::Continued,
    ];

    /// Its name, as reports give it.
    pub const fn name(self) -> &'static str {
        match self {
            Signal::Interrupt => "SIGINT",
            Signal::Terminate => "SIGTERM",
            Signal::HangUp => "SIGHUP",
            Signal::Quit => "SIGQUIT",
            Signal::Resized => "SIGWINCH",
            Signal::Suspend => "SIGTSTP",
            Signal::Continued => "SIGCONT",
        }
    }

    const fn number(self) -> libc::c_int {
        match self {
            Signal::Interrupt => libc::SIGINT,
            Signal::Terminate => libc::SIGTERM,
            Signal::HangUp => libc::SIGHUP,
            Signal::Quit => libc::SIGQUIT,
            Signal::Resized => libc::SIGWINCH,
            Signal::Suspend => libc::SIGTSTP,
            Signal::Continued => libc::SIGCONT,
        }
    }
}

/// Why signals cannot be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignalsError {
    /// The handlers could not be installed.
    #[error("cannot install signal handlers")]
    Handlers(#[source] io::Error),
    /// The thread could not be started.
    #[error("cannot start the thread that takes signals")]
    Thread(#[source] io::Error),
}

/// Takes signals until it is dropped; after that they do nothing.
#[derive(Debug)]
#[must_use]
pub struct Signals(Handle);

impl Signals {
    /// Calls `out` for every signal, from a thread of its own. A signal ignored since before we were started, as
    /// `nohup` does with SIGHUP, is taken all the same: what is pending is better put back than kept.
    pub fn start(out: Box<dyn Fn(Signal) + Send>) -> Result<Self, SignalsError> {
        let mut queue = Queue::new(Signal::ALL.map(Signal::number)).map_err(SignalsError::Handlers)?;
        let handle = queue.handle();
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                for number in queue.forever() {
                    if let Some(signal) = Signal::ALL.into_iter().find(|signal| signal.number() == number) {
                        out(signal);
                    }
                }
            })
            .map_err(SignalsError::Thread)?;
        Ok(Self(handle))
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn every_signal_is_told_and_none_ends_us() {
        let (sender, told) = channel();
        let signals = Signals::start(Box::new(move |signal| {
            let _the_test_may_be_over = sender.send(signal);
        }))
        .expect("handlers");
        for _ in 0..2 {
            for signal in Signal::ALL {
                signal_hook::low_level::raise(signal.number()).expect("raised");
                let next = told.recv_timeout(Duration::from_secs(5)).expect("told within 5 s");
                assert_eq!(next.name(), signal.name());
            }
        }
        drop(signals);
        signal_hook::low_level::raise(libc::SIGINT).expect("raised");
        assert!(told.recv_timeout(Duration::from_secs(5)).is_err(), "the thread has ended");
    }
}
