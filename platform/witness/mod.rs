//! Who did it: names processes while they can be seen, remembers what they did to covered files, and says how sure that is.
//!
//! Promise: nothing here waits for another process. [`Witness::identify`] reads no more than takes no lock of the process,
//! so that one held in open(2) cannot hold the reader up. What the kernel does not prove is not called certain: see
//! [`Ledger`] for files and names, [`Lives`] for numbers.
//! Limit: a number alone names a process only while the kernel's feed of forks and execs has no gap; without the feed, what
//! a process did by name is at most likely.
//! Source: proc(5), fanotify(7) `FAN_REPORT_PIDFD`, drivers/connector/cn_proc.c.

mod feed;
mod holders;
mod ledger;
#[cfg(test)]
mod ledger_tests;
mod lives;
#[cfg(test)]
mod lives_tests;

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::clock::{Clock, Moment, SystemClock};
use crate::event::{Names, Place};
use crate::host::{self, Connector};
use crate::opening::Access;
use crate::openings::{Identify, Opener};
use crate::process::{self, Process, Running};
use crate::stat::FileId;
use crate::writer::{Account, Certainty, Mark, Program, Writer};

pub use feed::Received;
pub use holders::{Holder, Holders, holders};

use feed::Feed;
use ledger::{Ledger, Trace, Who};
use lives::{Image, Life, LifeId, Lives, MOST_ANCESTORS, Wanted};

/// What hears of every process, for [`Witness::new`].
#[derive(Debug)]
pub struct Connection(Connector);

/// Opens it, while there is privilege.
pub fn connector() -> io::Result<Connection> {
    host::Connector::open().map(Connection)
}

/// What is known of processes and of what they did.
pub struct Witness {
    state: Arc<Mutex<State>>,
    feed: Option<Feed>,
    own: u32,
}

#[derive(Default)]
struct State {
    lives: Lives,
    ledger: Ledger,
    /// What is to be read of processes.
    wanted: VecDeque<Wanted>,
    /// Whether the kernel has said that it sends messages.
    is_fed: bool,
    /// Whether every process must be looked for again, as messages were lost.
    is_broken: bool,
    /// Whether the socket cannot be read any more.
    is_deaf: bool,
}

/// Processes to be read at most; of further ones nothing is known.
const MOST_WANTED: usize = 4096;

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // A panic of another thread leaves traces half noted at worst: less is known, nothing more is claimed.
    state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Witness {
    /// A witness that hears of processes by this, if there is one.
    pub fn new(connector: Option<Connection>) -> Arc<Self> {
        let state = Arc::new(Mutex::new(State::default()));
        // Where not every process is seen, the number of one that is seen proves nothing.
        let feed = connector.filter(|_| process::all_are_seen());
        let feed = feed.and_then(|Connection(connector)| Feed::start(connector, Arc::clone(&state)).ok());
        Arc::new(Self { state, feed, own: process::own_pid() })
    }

    /// The state, once every message sent until now is taken.
    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = lock(&self.state);
        if let Some(feed) = &self.feed {
            feed.drain(&mut state);
        }
        state
    }

    /// Names the process with this number. With a descriptor of it, it is certain that it is the one, if it has not ended.
    pub fn identify(&self, pid: u32, pidfd: Option<BorrowedFd<'_>>) -> Writer {
        self.look(&Opener { pid, pidfd, process: process::inspect(pid).ok().flatten() }).1
    }

    /// What the feed proves is not read again: what runs since the last exec, and who made whom.
    fn look(&self, opener: &Opener<'_>) -> (Who, Writer) {
        let pid = opener.pid;
        let Some(process) = opener.process.as_ref().filter(|_| pid != 0) else {
            return (Who { pid, started: None, life: None }, unknown(pid));
        };
        let started = process.start_time;
        let is_top = process.leads_a_terminal(pid);
        let (who, known, mut ancestors, unread) = {
            let state = self.state();
            let who = who(&state.lives, pid, Some(started));
            let life = who.life.filter(|_| !is_top);
            let of = |(id, _)| (programs(&state.lives, id), state.lives.unread_above(id));
            let (ancestors, unread) = life.map(of).unwrap_or_default();
            (who, state.lives.runs(pid, started).cloned(), ancestors, unread)
        };
        let image = known.unwrap_or_else(|| {
            let found = image(pid, process);
            if let Some((life, execs)) = who.life {
                self.note(Wanted { life, execs }, process, found.clone());
            }
            found
        });
        if let (Some((id, _)), false) = (who.life, unread.is_empty()) {
            for wanted in unread {
                let pid = wanted.life.pid;
                if let Ok(Some(process)) = process::inspect(pid) {
                    self.note(wanted, &process, self::image(pid, &process));
                }
            }
            ancestors = programs(&self.state().lives, id);
        }
        if ancestors.is_empty() && !is_top {
            ancestors = above(process.parent);
        }
        let (uid, cgroup) = (process::user(pid, opener.pidfd), process::control_group(pid));
        let Image { exe, argv0, is_elsewhere, .. } = image;
        let is_elsewhere = is_elsewhere == Some(true);
        let name = process.name.clone();
        let program = Program { pid, started: Some(started), name, exe, argv0, is_elsewhere, uid, cgroup };
        // At the end: nobody else can have had the number while all this was read.
        let is_it = opener.pidfd.is_some_and(is_alive);
        let certainty = if is_it { Certainty::Certain } else { Certainty::Likely };
        (who, Writer { program, ancestors, certainty })
    }

    /// Notes what was read of a process, unless the feed tells that it is another one, or another program, by now.
    fn note(&self, wanted: Wanted, process: &Process, image: Image) {
        self.state().lives.read(wanted, process.start_time, image, SystemClock.now());
    }

    /// Notes that a process opens an object; it is named by [`Witness::identify`] and waits in open(2) meanwhile.
    pub fn opened(&self, object: FileId, by: &Writer, access: Access, _at: Moment) {
        if access == Access::Read || by.program.pid == self.own {
            return;
        }
        let mut state = self.state();
        let who = who(&state.lives, by.program.pid, by.program.started);
        let trace = if by.certainty == Certainty::Certain { Trace::Opened } else { Trace::Held };
        state.ledger.file(object, who, trace, by.clone());
    }

    /// Who had the number when something happened after `since`.
    fn who_had(&self, pid: u32, since: Moment) -> (Who, Trace, Writer) {
        let state = self.state();
        let Some((who, trace, life)) = state.lives.trace(pid, since) else {
            drop(state);
            let (who, writer) = self.look(&number(pid));
            return (who, Trace::Did { process: false, program: false }, writer);
        };
        let told = life.image().map(|(image, is_read)| (program(life, image), is_read));
        let has_begun_another = life.execs > 0;
        let ancestors = programs(&state.lives, life.id);
        drop(state);
        if let Some((program, true)) = told {
            let certain = matches!(trace, Trace::Did { program: true, .. });
            let certainty = if certain { Certainty::Certain } else { Certainty::Likely };
            return (who, trace, stand(Writer { program, ancestors, certainty }));
        }
        // It has not been read yet; perhaps it still can be.
        let (now, writer) = self.look(&number(pid));
        if now.life == who.life && writer.certainty != Certainty::Unknown {
            return (now, trace, writer);
        }
        match told {
            // It ran what its parent ran when it was made.
            Some((program, _)) if !has_begun_another => {
                (who, trace, Writer { program, ancestors, certainty: Certainty::Likely })
            }
            // What it ran is not known, but who had it run.
            _ => {
                let certainty = if ancestors.is_empty() { Certainty::Unknown } else { Certainty::Likely };
                (who, trace, Writer { ancestors, certainty, ..unknown(pid) })
            }
        }
    }
}

impl Names for Witness {
    fn named(&self, place: &Place, pid: u32, empty_since: Moment) {
        if pid == self.own {
            return;
        }
        let (who, trace, writer) = self.who_had(pid, empty_since);
        lock(&self.state).ledger.name(place, who, trace, writer);
    }

    fn lost(&self) {
        self.missed();
    }
}

impl Identify for Witness {
    fn identify(&self, opener: &Opener<'_>) -> Writer {
        self.look(opener).1
    }

    fn opened(&self, object: FileId, by: &Writer, access: Access, at: Moment) {
        Witness::opened(self, object, by, access, at);
    }
}

impl Account for Witness {
    fn opener(&self, pid: u32, at: Moment) -> Writer {
        let (_, _, mut writer) = self.who_had(pid, at);
        writer.certainty = writer.certainty.min(Certainty::Likely);
        // One that began later has the number of another.
        let is_it = writer.program.started.is_none_or(|started| process::began_by(started, at));
        if is_it { writer } else { unknown(pid) }
    }

    fn writer(&self, place: &Place, object: Option<FileId>) -> Option<Writer> {
        let state = lock(&self.state);
        let mut writer = state.ledger.writer(place, object)?;
        if writer.program.argv0.is_none() {
            // It is read by a thread of its own, and may have come since.
            let life = state.lives.last(writer.program.pid).filter(|life| life.started == writer.program.started);
            let image = life.and_then(|life| life.image()).filter(|(image, _)| image.exe == writer.program.exe);
            writer.program.argv0 = image.and_then(|(image, _)| image.argv0.clone());
        }
        Some(writer)
    }

    fn mark(&self, place: &Place, object: Option<FileId>, is_closed: &dyn Fn() -> bool) -> Mark {
        let (number, knows) = {
            let state = lock(&self.state);
            (state.ledger.number(), state.ledger.knows(place, object))
        };
        Mark { number, is_closed: !knows || is_closed() }
    }

    fn settled(&self, place: &Place, object: Option<FileId>, before: Mark) {
        lock(&self.state).ledger.settle(place, object, before);
    }

    fn held(&self, object: FileId, by: Option<&Writer>) {
        let mut state = self.state();
        match by {
            Some(by) => {
                let who = who(&state.lives, by.program.pid, by.program.started);
                let mut writer = by.clone();
                writer.certainty = writer.certainty.min(Certainty::Likely);
                state.ledger.file(object, who, Trace::Held, writer);
            }
            None => state.ledger.stranger(object),
        }
    }

    fn missed(&self) {
        lock(&self.state).ledger.lose();
    }
}

/// A process of which no more than its number was told.
fn number(pid: u32) -> Opener<'static> {
    Opener { pid, pidfd: None, process: process::inspect(pid).ok().flatten() }
}

/// Which process of the feed one is that was read a moment ago.
fn who(lives: &Lives, pid: u32, started: Option<u64>) -> Who {
    let life = lives.last(pid).filter(|life| life.started.is_none() || life.started == started);
    Who { pid, started, life: life.map(|life| (life.id, life.execs)) }
}

/// A process of which only the number is known, or not even that.
fn unknown(pid: u32) -> Writer {
    Writer::unknown(pid)
}

fn program(life: &Life, image: &Image) -> Program {
    let Image { name, exe, argv0, is_elsewhere, .. } = image.clone();
    let is_elsewhere = is_elsewhere == Some(true);
    Program { started: life.started, name, exe, argv0, is_elsewhere, ..Program::unknown(life.id.pid) }
}

/// Adds what is no part of a program's image.
fn stand(mut writer: Writer) -> Writer {
    let Program { pid, started, .. } = writer.program;
    let (uid, cgroup) = (process::user(pid, None), process::control_group(pid));
    // Read after the fact: only if it is the same process still.
    if started.is_some() && process::start_time(pid).ok().flatten() == started {
        (writer.program.uid, writer.program.cgroup) = (uid, cgroup);
    }
    writer
}

/// What the processes above one ran, as far as the feed tells.
fn programs(lives: &Lives, id: LifeId) -> Vec<Program> {
    let known = lives.above(id).into_iter().filter_map(|life| Some((life, life.image()?.0)));
    known.map(|(life, image)| program(life, image)).collect()
}

/// What the process runs, as it is now.
fn image(pid: u32, process: &Process) -> Image {
    Image {
        name: process.name.clone(),
        exe: process::program_file(pid, process),
        argv0: None,
        is_top: process.leads_a_terminal(pid),
        is_elsewhere: process::is_elsewhere(pid),
    }
}

/// The process that has the number now, as far as it takes no other's word.
fn describe(pid: u32) -> Option<Writer> {
    let process = if pid == 0 { None } else { process::inspect(pid).ok().flatten() }?;
    let Image { name, exe, is_elsewhere, is_top, .. } = image(pid, &process);
    let (uid, cgroup) = (process::user(pid, None), process::control_group(pid));
    let (started, is_elsewhere) = (Some(process.start_time), is_elsewhere == Some(true));
    let program = Program { pid, started, name, exe, argv0: None, is_elsewhere, uid, cgroup };
    let ancestors = if is_top { Vec::new() } else { above(process.parent) };
    Some(Writer { program, ancestors, certainty: Certainty::Likely })
}

/// The processes from `pid` upwards, as they are now.
fn above(mut pid: u32) -> Vec<Program> {
    let mut found = Vec::new();
    while pid > 1 && found.len() < MOST_ANCESTORS {
        let Ok(Some(Running { process, exe })) = process::running(pid) else { break };
        let is_top = process.leads_a_terminal(pid);
        let started = Some(process.start_time);
        found.push(Program { started, name: process.name, exe, ..Program::unknown(pid) });
        if is_top {
            break;
        }
        pid = process.parent;
    }
    found
}

/// Whether the process of the descriptor has not ended: it becomes readable when it does.
fn is_alive(pidfd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(pidfd, PollFlags::IN)];
    matches!(poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(0))
}
