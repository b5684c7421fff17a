//! Starting the guardian, and talking to it from the watch.

mod cage;
pub(super) mod calls;
mod footing;
mod notes;
mod watching;

use std::fs::{self, File};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketFlags, SocketType,
    recv, sendmsg, shutdown, socketpair,
};
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, getpid, pidfd_open, waitid};
use rustix::thread::{CapabilitySet, capabilities};

use self::cage::Inherited;
use self::notes::Notes;
use super::limits::file_system;
use super::numbers;
use super::sys::fork;
use crate::flags::FlagError;
use crate::guardian::message::{LONGEST, Reply, Request};
use crate::guardian::{GuardianError, Settings, Word};
use crate::process::own_pid;

/// What it has to do takes microseconds, apart from confining itself.
const REPLY: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };
const END: Timespec = Timespec { tv_sec: 3, tv_nsec: 0 };
/// From then on only the kernel can keep it, which is no reason for us to stay.
const REAPED: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// What the guardian may have said and we not heard, in bytes: what is more it puts together.
const UNHEARD: usize = 4608;

/// See [`crate::guardian::Guardian`].
#[derive(Debug)]
pub(crate) struct HostGuardian {
    socket: OwnedFd,
    /// Whose turn it is to ask and to hear the reply.
    turn: Mutex<()>,
    pid: u32,
    process: OwnedFd,
    notes: Arc<Notes>,
    hearing: Mutex<Option<JoinHandle<()>>>,
}

fn call<E: Into<io::Error>>(operation: &'static str) -> impl FnOnce(E) -> GuardianError {
    move |source| GuardianError::Call { operation, source: source.into() }
}

impl HostGuardian {
    pub(crate) fn start(
        permissions: BorrowedFd<'_>,
        others: &[BorrowedFd<'_>],
        settings: Settings,
    ) -> Result<Self, GuardianError> {
        let count = fs::read_dir("/proc/self/task").map_err(call("count the threads of this process"))?.count();
        if count != 1 {
            return Err(GuardianError::Threads { count });
        }
        let own = capabilities(None).map_err(call("read the capabilities"))?;
        if settings.may_flag && !own.permitted.contains(CapabilitySet::LINUX_IMMUTABLE) {
            return Err(GuardianError::MayNotFlag);
        }
        numbers::stay_low().map_err(call("limit descriptors"))?;
        let watch = own_pid();
        let channel = || socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let (ours, theirs) = channel().map_err(call("make a channel"))?;
        let (notes, their_notes) = channel().map_err(call("make a channel"))?;
        set_socket_send_buffer_size(&their_notes, UNHEARD).map_err(call("limit a channel"))?;
        let notes = Arc::new(Notes::new(notes).map_err(call("make an eventfd"))?);
        let stat =
            File::open(format!("/proc/{watch}/stat")).map_err(call("open the line of /proc about this process"))?;
        let this = pidfd_open(getpid(), PidfdFlags::empty()).map_err(call("open this process"))?;
        let inherited = Inherited {
            group: permissions,
            socket: theirs.as_fd(),
            watch: this.as_fd(),
            stat: stat.as_fd(),
            notes: their_notes.as_fd(),
            others: others.to_vec(),
        };
        let Some(pid) = fork::fork().map_err(call("make a process"))? else {
            watching::be(&inherited, settings, watch);
        };
        // As long as we had it, too, its end would not be ours to see.
        drop((theirs, their_notes));
        let process = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH);
        let process = process
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()))
            .map_err(call("open the guardian's process"))?;
        // From here on, dropping it ends and reaps it.
        let guardian = Self { socket: ours, turn: Mutex::new(()), pid, process, notes, hearing: Mutex::new(None) };
        match guardian.hear() {
            Some(Reply::Ready) => Ok(guardian),
            Some(Reply::Unfit(text)) => Err(GuardianError::Unfit(text)),
            Some(Reply::Done(_)) | None => Err(GuardianError::Ended),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// The next reply. `None` if there will be none: the channel is closed for good then, so that a late one is not taken
    /// for another's.
    fn hear(&self) -> Option<Reply> {
        let mut waited = [PollFd::new(&self.socket, PollFlags::IN)];
        let is_ready = retry_on_intr(|| poll(&mut waited, Some(&REPLY))).is_ok_and(|ready| ready > 0);
        let mut packet = [0; LONGEST];
        let received = if is_ready { recv(&self.socket, &mut packet, RecvFlags::DONTWAIT).ok() } else { None };
        let reply = received.and_then(|(_, length)| Reply::decode(&packet[..length.min(LONGEST)]));
        if reply.is_none() {
            let _ = shutdown(&self.socket, Shutdown::Both);
        }
        reply
    }

    pub(crate) fn request(&self, request: Request, object: Option<BorrowedFd<'_>>) -> Result<(), FlagError> {
        // A program that serves a file system could keep the guardian waiting, and with it every opener. Whoever asks waits here.
        let holds_own_files = |object| file_system(object).is_ok_and(|found| found.kind.holds_own_files());
        if request == Request::Set && object.is_some_and(|object| !holds_own_files(object)) {
            return Err(FlagError::Unsupported);
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let packet = request.encode();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let objects = object.map(|object| [object]);
        if let Some(objects) = &objects {
            // There is room for one.
            ancillary.push(SendAncillaryMessage::ScmRights(objects));
        }
        let sent =
            retry_on_intr(|| sendmsg(&self.socket, &[IoSlice::new(&packet)], &mut ancillary, SendFlags::NOSIGNAL));
        match sent {
            Ok(_) => {}
            Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => return Err(FlagError::Gone),
            Err(errno) => return Err(FlagError::Failed(errno.into())),
        }
        match self.hear() {
            Some(Reply::Done(done)) => done,
            Some(Reply::Ready | Reply::Unfit(_)) | None => Err(FlagError::Gone),
        }
    }

    pub(crate) fn waits(&self, waits: bool) {
        self.notes.say(waits);
    }

    pub(crate) fn has_heard(&self) -> bool {
        self.notes.is_said()
    }

    pub(crate) fn listen(&self, hear: Box<dyn Fn(Word) + Send>) -> Result<(), GuardianError> {
        let process = self.process.try_clone().map_err(call("duplicate a descriptor"))?;
        let thread = Notes::hear(Arc::clone(&self.notes), process, hear).map_err(call("start a thread"))?;
        *self.hearing.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }
}

impl Drop for HostGuardian {
    fn drop(&mut self) {
        self.notes.end();
        if let Some(thread) = self.hearing.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
        // It ends by itself when it hears of nobody any more; we may not be allowed to kill it. What there is to do for us is
        // done when it lets go of its channel: then the kernel may keep it waiting for others, and us it need not.
        let _ = shutdown(&self.socket, Shutdown::Both);
        self.notes.wait_for_its_end(&END);
        let mut waited = [PollFd::new(&self.process, PollFlags::IN)];
        if retry_on_intr(|| poll(&mut waited, Some(&REAPED))).is_ok_and(|ready| ready > 0) {
            let _ = retry_on_intr(|| waitid(WaitId::PidFd(self.process.as_fd()), WaitIdOptions::EXITED));
        }
    }
}
