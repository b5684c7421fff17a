//! The guardian's own side: what it does while the watch lives, and what when it does not.
//!
//! One thread, which sleeps in poll(2). Nothing in here opens a file or waits for anybody but the watch.

use std::collections::BTreeMap;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{IFlags, fstat, ioctl_getflags, ioctl_setflags};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg, send};

use super::super::openings::{ask_lease, respond};
use super::super::records;
use super::super::sys::{fanotify as sys, fork};
use super::cage::{self, Bounds, CageError, Inherited};
use crate::clock::{Clock, Moment, SystemClock};
use crate::flags::FlagError;
use crate::guardian::message::{Reply, Request};
use crate::guardian::note::Book;
use crate::guardian::vigil::{self, Vigil};
use crate::guardian::{OnDeath, Settings};
use crate::openings::access::Lease;
use crate::stat::{FileId, FileType};

/// Events read at once; each takes two descriptors.
const AT_ONCE: usize = 32;
const EVENT: usize = 24 + 8;
/// After the watch's end, who comes later than that finds the marks gone.
const LAST: Duration = Duration::from_secs(1);
/// How long whoever was refused may take to let go of a file, and how often it is looked whether it has.
const DOUBT: Duration = Duration::from_millis(50);
const AGAIN: Duration = Duration::from_millis(2);
const MOST_DOUBTFUL: usize = 16;
/// Events read before the watch is listened to again.
const IN_A_ROW: usize = 32;

/// Is the guardian of the process `watch`, until that ends. In the new process, first thing.
pub(super) fn be(inherited: &Inherited<BorrowedFd<'_>>, settings: Settings, watch: u32) -> ! {
    let code = catch_unwind(AssertUnwindSafe(|| {
        let bounds = Bounds::read();
        match cage::keep_only(inherited, bounds) {
            Ok(kept) => guard(kept, settings, watch, bounds),
            Err(error) => refuse(inherited.socket, &error),
        }
    }));
    fork::end(code.unwrap_or(1))
}

/// Says why there is no guardian.
fn refuse(socket: BorrowedFd<'_>, error: &CageError) -> i32 {
    say(socket, &Reply::Unfit(error.to_string()));
    1
}

fn say(socket: BorrowedFd<'_>, reply: &Reply) {
    // A watch that does not take it is gone, or asked for nothing.
    let _ = send(socket, &reply.encode(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
}

fn guard(kept: Inherited<OwnedFd>, settings: Settings, watch: u32, bounds: Bounds) -> i32 {
    if let Err(error) = cage::enter(settings, watch, kept.socket.as_fd()) {
        return refuse(kept.socket.as_fd(), &error);
    }
    say(kept.socket.as_fd(), &Reply::Ready);
    let (vigil, book, doubtful) = (Vigil::default(), Book::default(), Vec::new());
    let mut guard =
        Guard { kept, settings, watch, bounds, flagged: BTreeMap::new(), has_begun: false, vigil, book, doubtful };
    // An error of ours ends the guarding, and not by letting anything through.
    let _ = catch_unwind(AssertUnwindSafe(|| guard.watch()));
    guard.end();
    let Inherited { group, socket, watch, stat, notes, others } = guard.kept;
    // The watch hears by that that all is done which it has to wait for.
    drop((socket, notes));
    // Whoever comes from now on is let through, even while this or one of the others is waited for in here.
    drop(group);
    drop((watch, stat, others));
    0
}

/// An open that looks like a writer's, perhaps since another is.
struct Doubtful {
    file: OwnedFd,
    process: Option<OwnedFd>,
    pid: u32,
    until: Moment,
}

struct Guard {
    kept: Inherited<OwnedFd>,
    settings: Settings,
    watch: u32,
    bounds: Bounds,
    /// What it made immutable, kept open to undo it.
    flagged: BTreeMap<FileId, OwnedFd>,
    has_begun: bool,
    vigil: Vigil,
    /// What it answered in the place of a stopped watch, to be told.
    book: Book,
    doubtful: Vec<Doubtful>,
}

impl Guard {
    /// Until the watch ends.
    fn watch(&mut self) {
        loop {
            let now = SystemClock.now();
            let again = (!self.doubtful.is_empty()).then(|| now + AGAIN);
            let wakes_at = [self.vigil.wakes_at(), again].into_iter().flatten().min();
            let time = wakes_at.map(|at| to_timespec(at.since(now)));
            let notes = if self.book.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
            let mut waited = [
                PollFd::new(&self.kept.socket, PollFlags::IN),
                PollFd::new(&self.kept.watch, PollFlags::IN),
                PollFd::new(&self.kept.notes, notes),
                PollFd::new(&self.kept.group, PollFlags::IN),
            ];
            let count = if self.vigil.listens() { 4 } else { 3 };
            match poll(&mut waited[..count], time.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            let [socket, watch, notes, group] = waited.map(|waited| waited.revents());
            if !watch.is_empty() {
                return;
            }
            if !socket.is_empty() && !self.listen() {
                return;
            }
            if !notes.is_empty() && !self.hear_notes() {
                return;
            }
            let is_unread = if count == 4 { !group.is_empty() } else { self.is_unread() };
            let stat = self.kept.stat.as_fd();
            let duty = self.vigil.step(is_unread, || is_stopped(stat), SystemClock.now());
            self.look_again();
            if duty.relieve {
                for _ in 0..IN_A_ROW {
                    if !self.answer_unread(true) {
                        break;
                    }
                }
            }
            if duty.settle {
                self.answer_read(true);
            }
            let notes = self.kept.notes.as_fd();
            // What a stopped watch has no room for is told when it goes on.
            self.book.tell(|packet| send(notes, packet, SendFlags::DONTWAIT | SendFlags::NOSIGNAL).is_ok());
        }
    }

    /// Hears whether opens wait. `false`: the watch has closed its end.
    fn hear_notes(&mut self) -> bool {
        loop {
            let mut packet = [0; 8];
            let mut ancillary = RecvAncillaryBuffer::default();
            let packets = &mut [IoSliceMut::new(&mut packet)];
            let length = match recvmsg(&self.kept.notes, packets, &mut ancillary, RecvFlags::DONTWAIT) {
                Ok(received) if received.bytes > 0 => received.bytes,
                Err(Errno::AGAIN | Errno::INTR) => return true,
                Ok(_) | Err(_) => return false,
            };
            if let Some(Request::Waits(waits)) = Request::decode(&packet[..length]) {
                self.vigil.waits(waits, SystemClock.now());
            }
        }
    }

    fn is_unread(&self) -> bool {
        let mut waited = [PollFd::new(&self.kept.group, PollFlags::IN)];
        poll(&mut waited, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
    }

    /// Hears one message. `false`: the watch has closed its end.
    fn listen(&mut self) -> bool {
        let mut packet = [0; 8];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let length = match recvmsg(&self.kept.socket, &mut [IoSliceMut::new(&mut packet)], &mut ancillary, flags) {
            // No message of ours is empty, so that nothing read is the end.
            Ok(received) if received.bytes > 0 => received.bytes,
            Ok(_) => return false,
            Err(Errno::AGAIN | Errno::INTR) => return true,
            Err(_) => return false,
        };
        let object = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        let done = match (Request::decode(&packet[..length]), object) {
            (Some(Request::Begin), _) => {
                self.has_begun = true;
                Ok(())
            }
            (Some(Request::Set), Some(object)) => self.set(object),
            (Some(Request::Clear), Some(object)) => self.clear(&object),
            (Some(Request::ClearEarlier), Some(object)) => self.clear_earlier(&object),
            (Some(Request::Waits(_)), _) | (Some(_), None) | (None, _) => Err(FlagError::Failed(Errno::INVAL.into())),
        };
        say(self.kept.socket.as_fd(), &Reply::Done(done));
        true
    }

    /// The object, if it is one that may be flagged.
    fn admit(&self, object: &OwnedFd) -> Result<FileId, FlagError> {
        let stat = fstat(object).map_err(failed)?;
        let is_kind = matches!(FileType::from_mode(stat.st_mode), FileType::Regular | FileType::Directory);
        let is_ours = self.settings.user == 0 || self.settings.user == stat.st_uid;
        if self.settings.may_flag && is_kind && is_ours {
            Ok(FileId { dev: stat.st_dev, ino: stat.st_ino })
        } else {
            Err(FlagError::NotOurs)
        }
    }

    fn set(&mut self, object: OwnedFd) -> Result<(), FlagError> {
        let id = self.admit(&object)?;
        let flags = ioctl_getflags(&object).map_err(failed)?;
        if flags.contains(IFlags::IMMUTABLE) {
            return if self.flagged.contains_key(&id) { Ok(()) } else { Err(FlagError::Already) };
        }
        if !self.flagged.contains_key(&id) && self.flagged.len() >= self.bounds.most_flagged {
            return Err(FlagError::Failed(Errno::MFILE.into()));
        }
        ioctl_setflags(&object, flags | IFlags::IMMUTABLE).map_err(failed)?;
        self.flagged.insert(id, object);
        Ok(())
    }

    fn clear(&mut self, object: &OwnedFd) -> Result<(), FlagError> {
        let id = self.admit(object)?;
        let flagged = self.flagged.get(&id).ok_or(FlagError::NotOurs)?;
        take_off(flagged)?;
        self.flagged.remove(&id);
        Ok(())
    }

    fn clear_earlier(&self, object: &OwnedFd) -> Result<(), FlagError> {
        self.admit(object)?;
        if self.has_begun { Err(FlagError::NotOurs) } else { take_off(object) }
    }

    /// Answers those doubtful ones of which it is known by now.
    fn look_again(&mut self) {
        let now = SystemClock.now();
        for doubtful in std::mem::take(&mut self.doubtful) {
            match ask_lease(doubtful.file.as_fd()) {
                Lease::Writer if now < doubtful.until => self.doubtful.push(doubtful),
                lease => self.relieve(doubtful.file, doubtful.process, doubtful.pid, lease == Lease::NoWriter),
            }
        }
    }

    fn answer(&self, file: OwnedFd, process: Option<OwnedFd>, allow: bool) -> bool {
        let is_answered = respond(self.kept.group.as_fd(), file.as_raw_fd(), allow);
        drop((file, process));
        is_answered
    }

    /// Answers in the place of the watch, which is to hear of a refusal.
    fn relieve(&mut self, file: OwnedFd, process: Option<OwnedFd>, pid: u32, allow: bool) {
        let object = fstat(&file).map(|stat| FileId { dev: stat.st_dev, ino: stat.st_ino });
        if self.answer(file, process, allow) && !allow {
            self.book.turned_away(object.unwrap_or(FileId { dev: 0, ino: 0 }), pid, SystemClock.now());
        }
    }

    /// Answers some of what nobody has read. `false`: nothing is left.
    fn answer_unread(&mut self, lives: bool) -> bool {
        let mut buffer = [0; AT_ONCE * EVENT];
        let length = match rustix::io::read(&self.kept.group, &mut buffer) {
            Ok(0) => return false,
            Ok(length) => length,
            Err(Errno::INTR) => return true,
            Err(_) => return false,
        };
        for event in records::fanotify(&buffer[..length]).flatten() {
            let process = event.process().and_then(sys::take);
            let Some(file) = sys::take(event.fd) else { continue };
            // A process of a part of the system that we do not see has no number.
            let pid = u32::try_from(event.pid).unwrap_or(0);
            match self.settings.on_death {
                OnDeath::Refuse if !lives => {
                    self.answer(file, process, false);
                }
                // The watch itself, that was stopped on its way into a file, may do what it likes.
                OnDeath::Refuse if pid != self.watch => match ask_lease(file.as_fd()) {
                    Lease::Writer if self.doubtful.len() < MOST_DOUBTFUL => {
                        self.doubtful.push(Doubtful { file, process, pid, until: SystemClock.now() + DOUBT });
                        // What the watch keeps waiting makes readers look like writers.
                        self.answer_read(true);
                    }
                    lease => self.relieve(file, process, pid, lease == Lease::NoWriter),
                },
                OnDeath::Refuse | OnDeath::Allow => {
                    self.answer(file, process, true);
                }
            }
        }
        true
    }

    /// Answers what the watch has read, whatever it was: of that only the numbers are known, and those are all of them. A
    /// watch that lives is told which.
    fn answer_read(&mut self, lives: bool) {
        for number in 0..self.bounds.first {
            // Most of them are no event's.
            while respond(self.kept.group.as_fd(), number, self.settings.on_death == OnDeath::Allow) {
                if lives {
                    self.book.settled(number);
                }
            }
        }
    }

    /// The watch is gone: refuses what waits. What it had set stays: to be killed must unlock nothing. It is in the watch's
    /// journal, by which the next start takes it off.
    fn end(&mut self) {
        let refuses = self.settings.on_death == OnDeath::Refuse;
        if refuses {
            self.answer_read(false);
        }
        let last = SystemClock.now() + LAST;
        for doubtful in std::mem::take(&mut self.doubtful) {
            self.answer(doubtful.file, doubtful.process, false);
        }
        while refuses && self.answer_unread(false) && SystemClock.now() < last {}
    }
}

fn take_off(object: &OwnedFd) -> Result<(), FlagError> {
    let flags = ioctl_getflags(object).map_err(failed)?;
    if flags.contains(IFlags::IMMUTABLE) {
        ioctl_setflags(object, flags - IFlags::IMMUTABLE).map_err(failed)?;
    }
    Ok(())
}

fn failed(errno: Errno) -> FlagError {
    match errno {
        Errno::NOTTY | Errno::OPNOTSUPP | Errno::NOSYS => FlagError::Unsupported,
        errno => FlagError::Failed(errno.into()),
    }
}

/// How the watch is. What cannot be read is a watch that has ended, which is told otherwise.
fn is_stopped(stat: BorrowedFd<'_>) -> bool {
    let mut line = [0; 512];
    rustix::io::pread(stat, &mut line, 0).is_ok_and(|length| vigil::is_stopped(&line[..length]))
}

fn to_timespec(time: Duration) -> Timespec {
    // Rounded up, or the last part of a millisecond would be waited for in a loop.
    let time = time + Duration::from_millis(1);
    Timespec { tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX), tv_nsec: time.subsec_nanos().into() }
}
