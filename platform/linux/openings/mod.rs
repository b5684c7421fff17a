//! Reading permission events, and answering them.
//!
//! The order in every path: answer first, close then, since the answer goes by the number of the descriptor.
//! A held writer has its file open for writing as far as a lease can tell, so that a reader who comes while it waits looks
//! like another: it is put aside until nobody is held on that file, and looked at again. Its registers alone would not do:
//! with io_uring an open is made at the end of some other call, with that call's registers (io_uring/openclose.c).
//! Source: fanotify(7), epoll(7).

mod marking;
mod registers;
mod trial;

pub(crate) use trial::try_holding;

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fmt, fs};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::fs::CWD;
use rustix::io::{Errno, retry_on_intr};

use self::marking::identity;
use self::registers::{FEW_THREADS, MOST_THREADS};
use super::files::path_of;
use super::process::stat_line;
use super::sys::{fanotify as sys, lease};
use super::{numbers, records};
use crate::clock::{Clock, Moment, SystemClock};
use crate::opening::{Access, Answered, Doorkeeper, HeldId, Marker, Opening, Ruling, Verdict};
use crate::openings::access::{Lease, Told, access};
use crate::openings::elsewhere::Elsewhere;
use crate::openings::table::{Admission, Table};
use crate::openings::{Identify, Opener, OpeningsError, Relief};
use crate::process::{self, own_pid};
use crate::stat::FileId;
use crate::unix::sys::disposition::{self, Disposition};

/// Room for this many events at once: each takes two descriptors while it is looked at.
const AT_ONCE: usize = 32;
/// An event with a process's descriptor: `struct fanotify_event_metadata` and one record of information.
const EVENT: usize = 24 + 8;

/// How long whoever was answered may take to let go of the file.
const LETTING_GO: Duration = Duration::from_millis(50);
/// How often it is looked whether it has.
const RETRY: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
/// Openers put aside at once.
const MOST_ASIDE: usize = 128;

/// What an epoll event speaks of, where it is no held open: those count from one.
const GROUP: u64 = u64::MAX;
const WAKE: u64 = u64::MAX - 1;

pub(crate) fn permission_group() -> io::Result<OwnedFd> {
    // An event more than a limited queue holds would let its open pass. Whoever fills this queue needs a waiting thread for
    // each event, so that it is bounded by the number of those.
    let queue = libc::FAN_UNLIMITED_QUEUE | libc::FAN_NONBLOCK;
    sys::init(libc::FAN_CLASS_CONTENT | libc::FAN_CLOEXEC | libc::FAN_REPORT_PIDFD | queue)
}

/// Answers an event by the number of its descriptor. `false`: nothing waits under this number.
pub(super) fn respond(group: BorrowedFd<'_>, number: i32, allow: bool) -> bool {
    retry_on_intr(|| rustix::io::write(group, &records::answer(number, allow))).is_ok()
}

/// What the kernel says of writers of the file.
pub(super) fn ask_lease(file: BorrowedFd<'_>) -> Lease {
    match lease::try_read_lease(file) {
        Ok(()) => Lease::NoWriter,
        Err(error) if Errno::from_io_error(&error) == Some(Errno::AGAIN) => Lease::Writer,
        Err(_) => Lease::Unknown,
    }
}

/// The group of opens, which is the guardian's, too, and what it has answered.
#[derive(Debug)]
struct Group {
    file: OwnedFd,
    elsewhere: Mutex<Elsewhere>,
}

impl AsFd for Group {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Group {
    /// Answers by the number. `false`: the guardian did.
    fn answer(&self, number: i32, allow: bool) -> bool {
        let is_answered = respond(self.as_fd(), number, allow);
        if !is_answered {
            lock(&self.elsewhere).found(number);
        }
        is_answered
    }
}

/// A descriptor from an event, whose open waits until it is answered: at the latest when this is dropped, by a refusal, so
/// that no early return and no panic leaves anybody waiting.
#[derive(Debug)]
struct Waiting {
    group: Arc<Group>,
    /// Its number is what an answer goes by.
    file: OwnedFd,
    is_answered: bool,
}

impl Waiting {
    /// `false`: the guardian did it before.
    fn answer(mut self, allow: bool) -> bool {
        self.is_answered = true;
        self.group.answer(self.file.as_raw_fd(), allow)
    }

    /// Whether it is told that the guardian has answered it.
    fn is_answered_elsewhere(&self) -> bool {
        lock(&self.group.elsewhere).is_answered(self.file.as_raw_fd())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.is_answered {
            self.group.answer(self.file.as_raw_fd(), false);
        }
    }
}

/// An open that was looked at, and what belongs to it.
#[derive(Debug)]
struct Held {
    waiting: Waiting,
    process: Option<OwnedFd>,
    opening: Opening,
}

type Hear = Box<dyn Fn(bool) + Send + Sync>;

/// What the thread and those who answer and mark have in common.
struct Shared {
    group: Arc<Group>,
    ready: OwnedFd,
    wake: OwnedFd,
    held: Mutex<Table<Held>>,
    hear: Mutex<Option<Hear>>,
    witness: Arc<dyn Identify>,
    /// Whose files are marked; of anybody, if `None`.
    owner: Option<u32>,
    /// No mark is put on any more. Held while one is.
    ended: Mutex<bool>,
    /// The thread is to end.
    is_ending: AtomicBool,
    /// How many openers the thread has put aside.
    aside: AtomicUsize,
    /// How long an open may wait for its answer; for ever, if `None`.
    longest: Mutex<Option<Duration>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic can leave nothing half done in there but an open that waits, and that is answered as the thread ends.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Answers, tells who keeps account if it goes through, and lets go of the descriptors.
    fn settle(&self, held: Held, allow: bool) -> bool {
        let Opening { object, by, access, at, .. } = &held.opening;
        if allow {
            // Before it can write.
            self.witness.opened(*object, by, *access, *at);
        }
        held.waiting.answer(allow)
    }

    /// Takes one out of the table; `None` if it is not there any more.
    fn take(&self, id: HeldId) -> Option<Held> {
        let mut table = lock(&self.held);
        let held = table.take(id)?;
        if table.is_empty() {
            self.tell(false);
        }
        drop(table);
        if self.aside.load(Ordering::Acquire) > 0 {
            self.wake();
        }
        if let Some(process) = &held.process {
            // A child that was just forked may have the descriptor, too; closing ours would not end the waiting for it.
            // It fails where it was not added for want of memory.
            let _ = epoll::delete(&self.ready, process);
        }
        Some(held)
    }

    /// Takes one out that the guardian has answered; `false` if it is not there any more.
    fn relieve(&self, id: HeldId) -> bool {
        let Some(Held { waiting, .. }) = self.take(id) else { return false };
        let (group, number) = (Arc::clone(&waiting.group), waiting.file.as_raw_fd());
        if waiting.answer(false) {
            lock(&group.elsewhere).forget(number);
        }
        true
    }

    /// The guardian has answered what we had read under these numbers, if it is not answered by us since.
    fn relieved(&self, numbers: &[i32], doorkeeper: &dyn Doorkeeper) {
        // With the table locked, so that none comes into it in between that is neither seen here nor sees it told.
        let table = lock(&self.held);
        let mut elsewhere = lock(&self.group.elsewhere);
        numbers.iter().for_each(|number| elsewhere.told(*number));
        drop(elsewhere);
        let ids = table.numbers(|held| held.waiting.is_answered_elsewhere());
        drop(table);
        for id in ids {
            if self.relieve(id) {
                doorkeeper.relieved(id);
            }
        }
    }

    /// Has the thread look again at what it put aside, or end.
    fn wake(&self) {
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    fn is_held(&self, object: FileId) -> bool {
        lock(&self.held).iter().any(|held| held.opening.object == object)
    }

    /// Called with the table locked, so that what is told last is true.
    fn tell(&self, waits: bool) {
        if let Some(hear) = &*lock(&self.hear) {
            hear(waits);
        }
    }

    /// Takes all marks off and refuses what is held: nothing waits for us any more, but what `each` is given.
    fn end(&self, mut each: impl FnMut(&records::Fanotify<'_>, Waiting, Option<OwnedFd>)) {
        *lock(&self.ended) = true;
        // The guardian has the group open, too: without this, opens would go on waiting for nobody.
        let _ = sys::mark(self.group.as_fd(), libc::FAN_MARK_FLUSH, 0, CWD, None);
        let mut table = lock(&self.held);
        let held = table.take_all();
        self.tell(false);
        drop(table);
        // Dropping them refuses them.
        drop(held);
        let mut buffer = [0; AT_ONCE * EVENT];
        while let Ok(length @ 1..) = rustix::io::read(&self.group, &mut buffer) {
            for event in records::fanotify(&buffer[..length]).flatten() {
                self.receive(&event, &mut each);
            }
        }
    }

    /// Takes the descriptors of an event over.
    fn receive(
        &self,
        event: &records::Fanotify<'_>,
        mut each: impl FnMut(&records::Fanotify<'_>, Waiting, Option<OwnedFd>),
    ) {
        let process = event.process().and_then(sys::take);
        // An event without a descriptor tells of an overflow, which an unlimited queue has not.
        if let Some(file) = sys::take(event.fd) {
            each(event, Waiting { group: Arc::clone(&self.group), file, is_answered: false }, process);
        }
    }
}

/// See [`crate::openings::Openings`].
pub(crate) struct HostOpenings {
    shared: Arc<Shared>,
    doorkeeper: Arc<dyn Doorkeeper>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for HostOpenings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Openings").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}

impl HostOpenings {
    pub(crate) fn start(
        group: OwnedFd,
        doorkeeper: Arc<dyn Doorkeeper>,
        witness: Arc<dyn Identify>,
    ) -> Result<Self, OpeningsError> {
        let call = |operation| move |source| OpeningsError::Call { operation, source };
        let errno = |operation| move |errno: Errno| OpeningsError::Call { operation, source: errno.into() };
        let numbers = numbers::stay_low().map_err(call("limit descriptors"))?;
        // Sent to who holds a lease that somebody else's open breaks, and deadly by default.
        disposition::set(libc::SIGIO, Disposition::Ignore).map_err(call("ignore SIGIO"))?;
        rustix::io::ioctl_fionbio(&group, true).map_err(errno("keep reads from waiting"))?;
        let ready = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(errno("make an epoll instance"))?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(errno("make an eventfd"))?;
        for (file, number) in [(&group, GROUP), (&wake, WAKE)] {
            epoll::add(&ready, file, EventData::new_u64(number), EventFlags::IN).map_err(errno("wait for events"))?;
        }
        let user = rustix::process::geteuid();
        let shared = Arc::new(Shared {
            group: Arc::new(Group { file: group, elsewhere: Mutex::default() }),
            ready,
            wake,
            // Half of the descriptors are for everything else.
            held: Mutex::new(Table::new(usize::try_from(numbers / 4).unwrap_or(usize::MAX))),
            hear: Mutex::new(None),
            witness,
            owner: (!user.is_root()).then_some(user.as_raw()),
            ended: Mutex::new(false),
            is_ending: AtomicBool::new(false),
            aside: AtomicUsize::new(0),
            longest: Mutex::new(None),
        });
        let told = Arc::clone(&doorkeeper);
        let reader = Reader { shared: Arc::clone(&shared), doorkeeper, own: own_pid(), aside: RefCell::default() };
        let thread = thread::Builder::new().name("openings".into()).spawn(move || reader.run());
        Ok(Self { shared, doorkeeper: told, thread: Some(thread.map_err(OpeningsError::Thread)?) })
    }

    pub(crate) fn marker(&self) -> Arc<dyn Marker> {
        Arc::clone(&self.shared) as Arc<dyn Marker>
    }

    pub(crate) fn answer(&self, id: HeldId, verdict: Verdict) -> Answered {
        let Some(held) = self.shared.take(id) else { return Answered::Gone };
        if self.shared.settle(held, verdict == Verdict::Allow) { Answered::Done } else { Answered::Relieved }
    }

    pub(crate) fn relief(&self) -> Relief {
        let (shared, doorkeeper) = (Arc::clone(&self.shared), Arc::clone(&self.doorkeeper));
        Box::new(move |numbers| shared.relieved(numbers, &*doorkeeper))
    }

    pub(crate) fn waiting(&self) -> usize {
        lock(&self.shared.held).len() + self.shared.aside.load(Ordering::Acquire)
    }

    pub(crate) fn answer_within(&self, longest: Duration) {
        *lock(&self.shared.longest) = Some(longest);
        self.shared.wake();
    }

    pub(crate) fn notice(&self, hear: Hear) {
        let table = lock(&self.shared.held);
        if !table.is_empty() {
            hear(true);
        }
        *lock(&self.shared.hear) = Some(hear);
        drop(table);
    }
}

impl Drop for HostOpenings {
    fn drop(&mut self) {
        self.shared.is_ending.store(true, Ordering::Release);
        self.shared.wake();
        if let Some(thread) = self.thread.take() {
            // It catches what panics.
            let _ = thread.join();
        }
    }
}

/// The thread's own side.
struct Reader {
    shared: Arc<Shared>,
    doorkeeper: Arc<dyn Doorkeeper>,
    own: u32,
    aside: RefCell<Vec<Aside>>,
}

/// An opener who may be a reader, and looks like a writer since one is held.
struct Aside {
    held: Held,
    /// Set when nobody is held any more: until then the file may be let go of.
    until: Option<Moment>,
}

impl Reader {
    fn run(self) {
        match catch_unwind(AssertUnwindSafe(|| self.read())) {
            Ok(Ok(())) => {
                self.shared.end(|event, waiting, process| self.serve(event, waiting, process, false));
                while !self.look_again(false) {
                    thread::yield_now();
                }
            }
            Ok(Err(_)) | Err(_) => {
                self.shared.end(|event, waiting, _| {
                    waiting.answer(pid(event) == self.own);
                });
                // Whatever it did before, it is told.
                let _ = catch_unwind(AssertUnwindSafe(|| self.doorkeeper.broken()));
            }
        }
    }

    fn read(&self) -> io::Result<()> {
        let mut buffer = [0; AT_ONCE * EVENT];
        let mut ready: Vec<epoll::Event> = Vec::with_capacity(64);
        loop {
            ready.clear();
            let is_known = self.look_again(true);
            let due = self.refuse_overdue().map(|left| Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            });
            let time = if is_known { due } else { Some(RETRY) };
            match epoll::wait(&self.shared.ready, rustix::buffer::spare_capacity(&mut ready), time.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            for event in &ready {
                match event.data.u64() {
                    WAKE if self.shared.is_ending.load(Ordering::Acquire) => return Ok(()),
                    WAKE => {
                        let _ = rustix::io::read(&self.shared.wake, &mut [0; 8]);
                    }
                    GROUP => self.take_events(&mut buffer)?,
                    id => self.opener_ended(HeldId(id)),
                }
            }
        }
    }

    fn take_events(&self, buffer: &mut [u8]) -> io::Result<()> {
        let length = match rustix::io::read(&*self.shared.group, &mut *buffer) {
            Ok(length) => length,
            // The guardian was faster.
            Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
            // No number is left for its descriptor: the kernel has refused the open.
            Err(Errno::MFILE | Errno::NFILE) => {
                self.doorkeeper.crowded();
                return Ok(());
            }
            Err(errno) => return Err(errno.into()),
        };
        for event in records::fanotify(&buffer[..length]) {
            let event = event.map_err(io::Error::other)?;
            self.shared.receive(&event, |event, waiting, process| self.serve(event, waiting, process, true));
        }
        Ok(())
    }

    /// Answers an event, or keeps it waiting if it is to be held and that may be.
    fn serve(&self, event: &records::Fanotify<'_>, waiting: Waiting, process: Option<OwnedFd>, may_hold: bool) {
        let at = SystemClock.now();
        let pid = pid(event);
        if pid == self.own {
            waiting.answer(true);
            return;
        }
        // What is not known of the object cannot be ruled on: dropping it refuses.
        let Ok((object, owner)) = identity(waiting.file.as_fd()) else { return };
        let lease = ask_lease(waiting.file.as_fd());
        // Read once, for all who ask; what waits in an open stays what it is.
        let line = if pid == 0 { None } else { stat_line(pid).ok().flatten() };
        let line = line.as_deref();
        let opener =
            Opener { pid, pidfd: process.as_ref().map(AsFd::as_fd), process: line.and_then(process::parse_stat) };
        let opening = Opening {
            object,
            path: fs::read_link(path_of(&waiting.file)).ok().map(|path| path.into_os_string().into_vec()),
            access: access(lease, || registers::registers(pid, line, FEW_THREADS)),
            by: self.shared.witness.identify(&opener),
            at,
        };
        let held = Held { waiting, process, opening };
        if !self.shared.is_ours(owner) {
            // It was given to somebody else since it was marked. The account of who opened it goes on.
            self.shared.settle(held, true);
            return;
        }
        self.rule(held, may_hold, (lease == Lease::Writer).then_some(line));
    }

    /// `in_doubt`: it looks like a writer, and perhaps only since another is; with what was read of it, if that is new.
    fn rule(&self, held: Held, may_hold: bool, in_doubt: Option<Option<&[u8]>>) {
        match self.doorkeeper.rule(&held.opening) {
            Ruling::Pass => {
                self.shared.settle(held, true);
            }
            Ruling::Hold if !may_hold => {
                held.waiting.answer(false);
            }
            Ruling::Hold if in_doubt.is_some_and(|line| self.may_be_reader(held.opening.by.program.pid, line)) => {
                self.aside.borrow_mut().push(Aside { held, until: None });
                self.shared.aside.fetch_add(1, Ordering::AcqRel);
            }
            Ruling::Hold => self.hold(held),
        }
    }

    fn may_be_reader(&self, pid: u32, line: Option<&[u8]>) -> bool {
        self.aside.borrow().len() < MOST_ASIDE
            && !matches!(
                registers::registers(pid, line, MOST_THREADS),
                Some(Told::Access(Access::Write) | Told::Nothing)
            )
    }

    /// Looks at those put aside on whose file nobody is held any more. `false`: of some it will be known soon.
    fn look_again(&self, may_hold: bool) -> bool {
        let now = SystemClock.now();
        let mut is_known = true;
        let mut left = Vec::new();
        // Ruling on one may hold it, so that the next is put aside again: the list is taken out meanwhile.
        for mut aside in self.aside.take() {
            let opening = &mut aside.held.opening;
            if self.shared.is_held(opening.object) {
                aside.until = None;
                left.push(aside);
                continue;
            }
            let until = *aside.until.get_or_insert(now + LETTING_GO);
            let pid = opening.by.program.pid;
            match ask_lease(aside.held.waiting.file.as_fd()) {
                Lease::Writer if now < until => {
                    is_known = false;
                    left.push(aside);
                }
                lease => {
                    opening.access = access(lease, || registers::registers(pid, None, FEW_THREADS));
                    self.shared.aside.fetch_sub(1, Ordering::AcqRel);
                    self.rule(aside.held, may_hold, None);
                }
            }
        }
        self.aside.borrow_mut().append(&mut left);
        is_known
    }

    fn hold(&self, held: Held) {
        let opening = held.opening.clone();
        // From here on somebody else may answer it, and then the process's descriptor is closed: it is added before.
        let mut table = lock(&self.shared.held);
        let was_empty = table.is_empty();
        match table.admit(held) {
            Admission::Held(id) => {
                if was_empty {
                    self.shared.tell(true);
                }
                if let Some(process) = table.get(id).and_then(|held| held.process.as_ref()) {
                    // Without memory for it, the end of its time answers it.
                    let _ = epoll::add(&self.shared.ready, process, EventData::new_u64(id.0), EventFlags::IN);
                }
                // It was read before a stop, and is held only now.
                let is_answered = table.get(id).is_some_and(|held| held.waiting.is_answered_elsewhere());
                drop(table);
                self.doorkeeper.held(id, opening);
                if is_answered && self.shared.relieve(id) {
                    self.doorkeeper.relieved(id);
                }
            }
            Admission::Crowded { turned_away, begins } => {
                drop(table);
                turned_away.waiting.answer(false);
                if begins {
                    self.doorkeeper.crowded();
                }
            }
        }
    }

    /// Refuses what has waited for longer than an answer may take: whoever is to give it may wait for something itself, for
    /// another watch perhaps that waits for us. Returns how long the next one has left.
    fn refuse_overdue(&self) -> Option<Duration> {
        let longest = (*lock(&self.shared.longest))?;
        let now = SystemClock.now();
        let overdue = lock(&self.shared.held).numbers(|held| held.opening.at + longest <= now);
        overdue.into_iter().for_each(|id| self.opener_ended(id));
        lock(&self.shared.held).iter().map(|held| (held.opening.at + longest).since(now)).min()
    }

    fn opener_ended(&self, id: HeldId) {
        if let Some(held) = self.shared.take(id) {
            // The kernel keeps the event until it is answered, whether anybody waits or not.
            if held.waiting.answer(false) {
                self.doorkeeper.gone(id);
            } else {
                self.doorkeeper.relieved(id);
            }
        }
    }
}

/// The process that opens; 0 if it is in a part of the system that we do not see.
fn pid(event: &records::Fanotify<'_>) -> u32 {
    u32::try_from(event.pid).unwrap_or(0)
}

#[cfg(test)]
mod tests;
