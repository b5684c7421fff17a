//! The channel for what is no request, in the watch: what it says without waiting, and what it hears of the guardian.
//!
//! Promise: nothing blocks but the thread that hears; of whether opens wait, the guardian learns the last that was said, at
//! the latest when it takes something again.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::guardian::Word;
use crate::guardian::message::Request;
use crate::guardian::note::{LONGEST, Note};

/// See the module.
#[derive(Debug)]
pub(super) struct Notes {
    socket: OwnedFd,
    /// Wakes the thread that hears.
    wake: OwnedFd,
    /// What the guardian has not taken yet.
    unsaid: Mutex<Option<bool>>,
    is_ending: AtomicBool,
}

impl Notes {
    pub(super) fn new(socket: OwnedFd) -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { socket, wake, unsaid: Mutex::new(None), is_ending: AtomicBool::new(false) })
    }

    /// Says whether opens wait, now or, if it is not taken, as soon as it is.
    pub(super) fn say(&self, waits: bool) {
        let mut unsaid = self.unsaid();
        *unsaid = Some(waits);
        self.go_on_saying(&mut unsaid);
        if unsaid.is_some() {
            self.ring();
        }
    }

    /// Whether the guardian has taken all of it.
    pub(super) fn is_said(&self) -> bool {
        self.unsaid().is_none()
    }

    fn unsaid(&self) -> MutexGuard<'_, Option<bool>> {
        self.unsaid.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn go_on_saying(&self, unsaid: &mut Option<bool>) {
        let Some(waits) = *unsaid else { return };
        match send(&self.socket, &Request::Waits(waits).encode(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => {}
            // If it is gone, that is told elsewhere.
            Ok(_) | Err(_) => *unsaid = None,
        }
    }

    fn ring(&self) {
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// Has the thread end.
    pub(super) fn end(&self) {
        self.is_ending.store(true, Ordering::Release);
        self.ring();
    }

    /// Waits until the guardian has let go of its end, but not longer than this.
    pub(super) fn wait_for_its_end(&self, longest: &Timespec) {
        // Not for what it may still say: only for the end, which is told unasked (poll(2), `POLLHUP`).
        let mut waited = [PollFd::new(&self.socket, PollFlags::empty())];
        let _ = retry_on_intr(|| poll(&mut waited, Some(longest)));
    }

    /// Hears until the guardian, of this process, or we are to end.
    pub(super) fn hear(
        notes: Arc<Self>,
        process: OwnedFd,
        hear: Box<dyn Fn(Word) + Send>,
    ) -> io::Result<JoinHandle<()>> {
        thread::Builder::new().name("guardian".into()).spawn(move || {
            let mut is_open = true;
            while notes.hear_some(&process, &mut is_open, &*hear) {}
        })
    }

    /// `false`: there is nothing more to hear.
    fn hear_some(&self, process: &OwnedFd, is_open: &mut bool, hear: &dyn Fn(Word)) -> bool {
        let unsaid = self.unsaid().is_some();
        let events = if unsaid { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let mut waited = [
            PollFd::new(process, PollFlags::IN),
            PollFd::new(&self.wake, PollFlags::IN),
            PollFd::new(&self.socket, events),
        ];
        let count = if *is_open { 3 } else { 2 };
        if retry_on_intr(|| poll(&mut waited[..count], None)).is_err() {
            return false;
        }
        let [ended, woken, socket] = waited.map(|waited| waited.revents());
        if !woken.is_empty() {
            let _ = rustix::io::read(&self.wake, &mut [0; 8]);
            if self.is_ending.load(Ordering::Acquire) {
                return false;
            }
        }
        if *is_open && !socket.is_empty() {
            *is_open = self.take_notes(hear);
            self.go_on_saying(&mut self.unsaid());
        }
        if !ended.is_empty() {
            hear(Word::Ended);
            return false;
        }
        true
    }

    /// Takes what there is. `false`: there will be nothing more.
    fn take_notes(&self, hear: &dyn Fn(Word)) -> bool {
        let mut packet = [0; LONGEST];
        loop {
            match recv(&self.socket, &mut packet, RecvFlags::DONTWAIT) {
                Ok((_, length @ 1..)) => {
                    if let Some(note) = Note::decode(&packet[..length.min(LONGEST)]) {
                        hear(Word::Note(note));
                    }
                }
                Err(Errno::AGAIN) => return true,
                Err(Errno::INTR) => {}
                Ok(_) | Err(_) => return false,
            }
        }
    }
}
