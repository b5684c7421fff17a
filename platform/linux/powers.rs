//! What privilege gives on Linux, tried: fanotify's marks and permission events, the process connector, the immutable flag.
//!
//! Limit: in another namespace than the first the connector says nothing, and counts as missing.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, capabilities};

use super::connector::Connector;
use super::process_events::{ProcessEvent, process_events};
use super::records::{answer, fanotify};
use super::sys::fanotify as sys;
use crate::attributes::{Flags, set_flags};
use crate::dir::{Dir, FsError};
use crate::powers::{Power, Standing};
use crate::process::own_pid;
use crate::trial::Trial;

/// How long an event may take that was caused before.
const PATIENCE: Duration = Duration::from_secs(2);

/// A read takes this much at once.
const BUFFER: usize = 16 << 10;

pub(crate) struct Powers {
    standing: Standing,
    whole: Trial,
    /// The group by which opens are held, and whether it tells openers by handles.
    opens: io::Result<(OwnedFd, bool)>,
    feed: io::Result<Connector>,
    immutable: Trial,
}

impl Powers {
    pub(crate) fn open(dir: &Dir) -> Self {
        Self {
            standing: standing(),
            whole: Trial::of(whole_file_system(dir)),
            opens: group_for_opens(),
            feed: Connector::open(),
            immutable: Trial::of(immutable(dir)),
        }
    }

    pub(crate) fn standing(&self) -> Standing {
        self.standing
    }

    pub(crate) fn try_in(self, dir: &Dir) -> Vec<(Power, Trial)> {
        let (held, handles) = match self.opens {
            Ok((group, has_handles)) => match held_opens(group, dir) {
                Ok(seen) if has_handles => (Trial::of(Ok(seen.held)), Trial::of(Ok(seen.handle))),
                Ok(seen) => (Trial::of(Ok(seen.held)), Trial::Fails("this kernel tells a number only".to_owned())),
                Err(error) => (Trial::Fails(error.to_string()), Trial::Fails(error.to_string())),
            },
            Err(error) => (Trial::Fails(error.to_string()), Trial::Fails(error.to_string())),
        };
        let feed = Trial::of(self.feed.and_then(|feed| tells_of_processes(&feed)));
        vec![
            (Power::WholeFileSystem, self.whole),
            (Power::HeldOpens, held),
            (Power::ProcessHandles, handles),
            (Power::ProcessFeed, feed),
            (Power::ImmutableFlag, self.immutable),
        ]
    }
}

fn standing() -> Standing {
    match capabilities(None) {
        _ if geteuid().is_root() => Standing::Root,
        Ok(sets) if sets.effective.intersects(CapabilitySet::SYS_ADMIN | CapabilitySet::LINUX_IMMUTABLE) => {
            Standing::Capabilities
        }
        _ => Standing::None,
    }
}

fn system(error: FsError) -> io::Error {
    error.source
}

/// A file of ours that nobody can open by a name.
fn scratch(dir: &Dir) -> io::Result<File> {
    dir.create_unnamed(true)
        .map_err(system)?
        .ok_or_else(|| io::Error::other("this file system has no files without a name to try it on"))
}

/// The path by which a file without a name is opened again.
fn path_of(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// When what was caused now has to be told.
fn deadline() -> Instant {
    Instant::now() + PATIENCE
}

/// Waits until there is something to read; an error if that takes too long.
fn wait_for(fd: BorrowedFd<'_>, until: Instant) -> io::Result<()> {
    let left = until.saturating_duration_since(Instant::now());
    let within = Timespec::try_from(left).map_err(|_| io::ErrorKind::InvalidInput)?;
    match poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&within))? {
        0 => Err(io::Error::other("no event came")),
        _ => Ok(()),
    }
}

/// A write to a file that has no mark of its own is told, with our own number.
fn whole_file_system(dir: &Dir) -> io::Result<bool> {
    let group = sys::init(libc::FAN_CLASS_NOTIF | libc::FAN_CLOEXEC | libc::FAN_NONBLOCK | libc::FAN_REPORT_FID)?;
    let file = scratch(dir)?;
    let flags = libc::FAN_MARK_ADD | libc::FAN_MARK_FILESYSTEM;
    sys::mark(group.as_fd(), flags, libc::FAN_MODIFY, dir.as_fd(), None)?;
    rustix::io::write(&file, b"x")?;
    let mut buffer = vec![0; BUFFER];
    let until = deadline();
    loop {
        // Others write, too.
        wait_for(group.as_fd(), until)?;
        let length = rustix::io::read(&group, &mut buffer[..])?;
        if fanotify(&buffer[..length]).flatten().any(|event| u32::try_from(event.pid) == Ok(own_pid())) {
            return Ok(true);
        }
    }
}

fn group_for_opens() -> io::Result<(OwnedFd, bool)> {
    let flags = libc::FAN_CLASS_CONTENT | libc::FAN_CLOEXEC | libc::FAN_NONBLOCK;
    match sys::init(flags | libc::FAN_REPORT_PIDFD) {
        Ok(group) => Ok((group, true)),
        // Before Linux 5.15 there are no handles of processes.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok((sys::init(flags)?, false)),
        Err(error) => Err(error),
    }
}

/// What came of an open that was held.
struct Seen {
    /// It failed when it was refused, and went on when it was allowed.
    held: bool,
    /// Its process was told by a handle.
    handle: bool,
}

/// A thread opens a file twice: once it is refused, once let through.
fn held_opens(group: OwnedFd, dir: &Dir) -> io::Result<Seen> {
    let file = scratch(dir)?;
    sys::mark(group.as_fd(), libc::FAN_MARK_ADD, libc::FAN_OPEN_PERM, file.as_fd(), None)?;
    let path = path_of(&file);
    let opener = thread::Builder::new().name("opener".to_owned()).spawn(move || {
        let refused = File::open(&path).err().and_then(|error| Errno::from_io_error(&error));
        (refused, File::open(&path).is_ok())
    })?;
    let answered = answer_next(&group, false).and_then(|first| Ok(first & answer_next(&group, true)?));
    // Whatever still waits goes on with the end of the group, so that the thread ends.
    drop(group);
    let opened = opener.join().map_err(|_| io::Error::other("the opener panicked"))?;
    Ok(Seen { handle: answered?, held: opened == (Some(Errno::PERM), true) })
}

/// Answers one event; whether it had a handle of its process.
fn answer_next(group: &OwnedFd, allow: bool) -> io::Result<bool> {
    wait_for(group.as_fd(), deadline())?;
    let mut buffer = [0; 256];
    // One thread opens, so one event waits.
    let length = rustix::io::read(group, &mut buffer[..])?;
    let event = fanotify(&buffer[..length]).next().and_then(Result::ok).ok_or(io::ErrorKind::InvalidData)?;
    let process = event.process().and_then(sys::take);
    let object = sys::take(event.fd);
    rustix::io::write(group, &answer(event.fd, allow))?;
    drop(object);
    Ok(process.is_some())
}

/// The kernel answers that it tells of processes, or tells of one.
fn tells_of_processes(feed: &Connector) -> io::Result<bool> {
    let mut buffer = vec![0; BUFFER];
    let until = deadline();
    loop {
        // On a busy machine the first may be one that says nothing to us, or that some were dropped.
        wait_for(feed.messages(), until)?;
        let length = match rustix::io::read(feed.messages(), &mut buffer[..]) {
            Ok(length) => length,
            Err(Errno::NOBUFS) => continue,
            Err(errno) => return Err(errno.into()),
        };
        if let Some(event) = process_events(&buffer[..length]).flatten().next() {
            return Ok(!matches!(event, ProcessEvent::Answer(1..)));
        }
    }
}

fn immutable(dir: &Dir) -> io::Result<bool> {
    let file = scratch(dir)?;
    set_flags(&file, Flags { immutable: true, append_only: false }).map_err(system)?;
    let refused = rustix::fs::fchmod(&file, Mode::RUSR) == Err(Errno::PERM);
    set_flags(&file, Flags::default()).map_err(system)?;
    Ok(refused && rustix::fs::fchmod(&file, Mode::RUSR).is_ok())
}

/// Settings of the kernel that keep a program from the person's other programs, by the name sysctl(8) takes.
pub(crate) fn settings() -> Vec<(crate::machine::Setting, Option<u64>)> {
    use crate::machine::Setting;
    let value = |setting: Setting| {
        let path = format!("/proc/sys/{}", setting.name().replace('.', "/"));
        fs::read_to_string(path).ok()?.trim().parse().ok()
    };
    [Setting::Tracing, Setting::KeyPushing].map(|setting| (setting, value(setting))).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privilege::is_root;

    #[test]
    fn root_has_all_of_it_on_an_ordinary_file_system() {
        if !is_root() {
            return;
        }
        let folder = tempfile::tempdir().expect("a temporary directory");
        let dir = Dir::open_ambient(folder.path()).expect("it exists");
        let powers = Powers::open(&dir);
        assert_eq!(powers.standing(), Standing::Root);
        for (power, trial) in powers.try_in(&dir) {
            // Root of a container has less.
            if trial == Trial::Fails("Operation not permitted (os error 1)".to_owned()) {
                continue;
            }
            assert_eq!(trial, Trial::Works, "{power:?}");
        }
    }
}
