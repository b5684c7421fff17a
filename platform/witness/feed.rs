//! The thread that hears of processes, and the one that reads their arguments.
//!
//! Promise: what a program is, is read at once when it begins; nothing wakes while nothing happens, nor for every fork and
//! exit: whoever asks takes all messages there are before. A lost message breaks what is known, and everything is looked for
//! again. The second thread may be held up by a process that wants to; nobody
//! waits for it, and it ends by itself.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::clock::{Clock, SystemClock};
use crate::host::Connector;
use crate::linux::process_events::{ProcessEvent, process_events};
use crate::process;
use crate::unix::pipe;

use super::lives::Wanted;
use super::{MOST_WANTED, State, image, lock};

/// What a read of the connector came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// So many bytes of messages.
    Messages(usize),
    /// Messages were dropped.
    Dropped,
    /// Nothing is there.
    Nothing,
}

/// Arguments that wait to be read, at most; of further ones nothing is known.
const MOST_WORDS: usize = 256;

/// The running threads; dropping it ends the first and waits for that.
pub(super) struct Feed {
    connector: Arc<Connector>,
    wake: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Feed {
    pub(super) fn start(connector: Connector, state: Arc<Mutex<State>>) -> io::Result<Self> {
        let connector = Arc::new(connector);
        let (wait, wake) = pipe()?;
        let (words, wanted) = sync_channel(MOST_WORDS);
        let naming = Arc::clone(&state);
        std::thread::Builder::new().name("arguments".to_owned()).spawn(move || read_words(&wanted, &naming))?;
        let work = Work { connector: Arc::clone(&connector), wait, state, words };
        let thread = std::thread::Builder::new().name("processes".to_owned()).spawn(move || work.run())?;
        Ok(Self { connector, wake: Some(wake), thread: Some(thread) })
    }

    /// Takes every message that was sent until now.
    pub(super) fn drain(&self, state: &mut State) {
        let wanted = state.wanted.len();
        drain(&self.connector, state);
        if (state.wanted.len() > wanted || state.is_broken)
            && let Some(wake) = &self.wake
        {
            // A full pipe wakes just as well.
            let _ = rustix::io::write(wake, &[0]);
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn drain(connector: &Connector, state: &mut State) {
    // Each message is a read of its own, of less than a hundred bytes.
    let mut buffer = [0; 1024];
    loop {
        let length = match connector.receive(&mut buffer) {
            Ok(Received::Messages(length)) => length,
            Ok(Received::Nothing) => return,
            // What is left in the queue came after what was dropped, and goes on counting.
            Ok(Received::Dropped) => {
                state.lose();
                continue;
            }
            Err(_) => {
                (state.is_fed, state.is_deaf) = (false, true);
                return state.lose();
            }
        };
        let now = SystemClock.now();
        for event in process_events(&buffer[..length]) {
            match event {
                Ok(ProcessEvent::Fork { parent, child }) => state.lives.fork(parent, child, now),
                Ok(ProcessEvent::Exec(pid)) => {
                    let wanted = state.lives.exec(pid);
                    state.want(wanted);
                }
                Ok(ProcessEvent::Exit(pid)) => state.lives.exit(pid, now),
                Ok(ProcessEvent::Answer(0)) if !state.is_fed => {
                    state.is_fed = true;
                    state.lose();
                }
                Ok(ProcessEvent::Answer(_)) => {}
                Err(_) => state.lose(),
            }
        }
    }
}

impl State {
    /// What was known of processes does not count any more; they are looked for again if there is a feed.
    fn lose(&mut self) {
        self.lives.gap();
        self.wanted.clear();
        self.is_broken = self.is_fed;
    }

    fn want(&mut self, wanted: Wanted) {
        if self.wanted.len() < MOST_WANTED {
            self.wanted.push_back(wanted);
        }
    }
}

struct Work {
    connector: Arc<Connector>,
    wait: OwnedFd,
    state: Arc<Mutex<State>>,
    words: SyncSender<Wanted>,
}

impl Work {
    fn run(&self) {
        loop {
            let mut fds = [
                PollFd::new(&self.wait, PollFlags::IN),
                PollFd::from_borrowed_fd(self.connector.bell(), PollFlags::IN),
            ];
            // A loss that was noticed while something was read is not rung for.
            let at_once = lock(&self.state).is_broken.then_some(Timespec { tv_sec: 0, tv_nsec: 0 });
            match poll(&mut fds, at_once.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return lock(&self.state).lives.gap(),
            }
            if fds[0].revents().contains(PollFlags::HUP) {
                return;
            }
            if fds[0].revents().contains(PollFlags::IN) {
                let mut bytes = [0; 64];
                let _ = rustix::io::read(&self.wait, &mut bytes);
            }
            self.connector.answer_bell();
            let broken = {
                let mut state = lock(&self.state);
                drain(&self.connector, &mut state);
                if state.is_deaf {
                    return;
                }
                std::mem::take(&mut state.is_broken)
            };
            if broken {
                self.look_for_all();
            }
            while let Some((wanted, known)) = self.next() {
                self.read(wanted, known);
            }
        }
    }

    /// What is to be read next, and how many processes have been told of until now.
    fn next(&self) -> Option<(Wanted, u64)> {
        let mut state = lock(&self.state);
        let known = state.lives.serial();
        state.wanted.pop_front().map(|wanted| (wanted, known))
    }

    /// Looks for every process there is. Those that begin meanwhile are told of.
    fn look_for_all(&self) {
        let Ok(pids) = process::numbers() else { return };
        let mut state = lock(&self.state);
        drain(&self.connector, &mut state);
        if !state.is_broken {
            let wanted = state.lives.present(&pids, SystemClock.now());
            wanted.into_iter().for_each(|wanted| state.want(wanted));
        }
    }

    fn read(&self, wanted: Wanted, known: u64) {
        let pid = wanted.life.pid;
        let Ok(Some(process)) = process::inspect(pid) else { return };
        let image = image(pid, &process);
        let mut state = lock(&self.state);
        // Whoever had the number of its parent before is out of it once that one's end is taken.
        drain(&self.connector, &mut state);
        state.lives.read(wanted, process.start_time, image, SystemClock.now());
        state.lives.found_below(wanted.life, process.parent, known);
        drop(state);
        // A full queue means that somebody holds the reader up: then there are no first words.
        let _ = self.words.try_send(wanted);
    }
}

/// Reads the first words of arguments until nobody asks any more.
fn read_words(wanted: &Receiver<Wanted>, state: &Mutex<State>) {
    for wanted in wanted {
        if let Some(word) = process::first_argument(wanted.life.pid) {
            lock(state).lives.named(wanted, word);
        }
    }
}
