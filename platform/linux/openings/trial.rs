//! Holding opens of our own, to see that it works.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::marking::{identity, may_be_held};
use super::{ask_lease, respond, sys};
use crate::dir::Dir;
use crate::linux::files::path_of;
use crate::linux::records;
use crate::opening::Access;
use crate::openings::access::{Lease, access};
use crate::openings::trial::Tried;
use crate::random;
use crate::stat::FileId;

/// An event is there as soon as the open began.
const PATIENCE: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

pub(crate) fn try_holding(group: BorrowedFd<'_>, dir: &Dir) -> io::Result<Tried> {
    let scratch = scratch(dir)?;
    if !may_be_held(scratch.as_fd())? {
        let name = crate::linux::file_system(scratch.as_fd())?.name;
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("opens on this file system ({name}) are not held"),
        ));
    }
    let path = std::ffi::CString::new(path_of(&scratch))?;
    sys::mark(group, libc::FAN_MARK_ADD, libc::FAN_OPEN_PERM, CWD, Some(&path))?;
    let (object, _) = identity(scratch.as_fd())?;
    let tried = (|| {
        let writes_are_held = is_held(group, &scratch, object, Access::Write)?;
        let reads_are_told = is_held(group, &scratch, object, Access::Read)?;
        Ok(Tried { writes_are_held, reads_are_told })
    })();
    let taken_off = sys::mark(group, libc::FAN_MARK_REMOVE, libc::FAN_OPEN_PERM, CWD, Some(&path));
    taken_off.and(tried)
}

/// A file without a name that nobody has open for writing, the reader of this handle included.
fn scratch(dir: &Dir) -> io::Result<OwnedFd> {
    let unnamed = dir.create_unnamed(true).map_err(|error| error.source)?;
    let writable = match unnamed {
        Some(file) => file,
        None => {
            let name = format!(".keep-trial-{}", random::hex12()?).into_bytes();
            let file = dir.create_new(&name, 0o600).map_err(|error| error.source)?;
            dir.unlink(&name).map_err(|error| error.source)?;
            file
        }
    };
    Ok(open(&writable, OFlags::RDONLY)?)
}

fn open(file: &impl AsRawFd, access: OFlags) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(path_of(file), access | OFlags::CLOEXEC, Mode::empty())
}

/// Whether an open for this waits, is told for what it is, and fails when it is refused.
fn is_held(group: BorrowedFd<'_>, scratch: &OwnedFd, object: FileId, wanted: Access) -> io::Result<bool> {
    let flags = match wanted {
        Access::Read => OFlags::RDONLY,
        Access::Write => OFlags::WRONLY,
    };
    thread::scope(|scope| {
        let opener = thread::Builder::new().spawn_scoped(scope, || open(scratch, flags))?;
        let mut told = None;
        while !opener.is_finished() && told.is_none() {
            let mut ready = [PollFd::from_borrowed_fd(group, PollFlags::IN)];
            if retry_on_intr(|| poll(&mut ready, Some(&PATIENCE)))? == 0 {
                break;
            }
            told = refuse_next(group, object)?;
        }
        let opened = opener.join().unwrap_or(Err(Errno::IO));
        Ok(told == Some(wanted) && opened.err() == Some(Errno::PERM))
    })
}

/// Refuses the opens that wait; what the one of our object was for.
fn refuse_next(group: BorrowedFd<'_>, object: FileId) -> io::Result<Option<Access>> {
    let mut buffer = [0; 4096];
    let length = match rustix::io::read(group, &mut buffer) {
        Ok(length) => length,
        Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    let mut told = None;
    for event in records::fanotify(&buffer[..length]) {
        let event = event.map_err(io::Error::other)?;
        drop(event.process().and_then(sys::take));
        let Some(file) = sys::take(event.fd).map(File::from) else { continue };
        if identity(file.as_fd()).is_ok_and(|(found, _)| found == object) {
            let lease = ask_lease(file.as_fd());
            told = (lease != Lease::Unknown).then(|| access(lease, || None));
        }
        respond(group, file.as_raw_fd(), false);
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privilege::is_root;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn opens_of_a_scratch_file_are_held_and_nothing_is_left_behind() {
        if !is_root() {
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let dir = Dir::open_ambient(folder.path()).expect("opens");
        let group = super::super::permission_group().expect("a group");
        let tried = try_holding(group.as_fd(), &dir).expect("can be tried");
        assert_eq!(tried, Tried { writes_are_held: true, reads_are_told: true });
        assert_eq!(dir.list().expect("lists"), []);
        // Its mark is off: an open waits for nobody.
        std::fs::write(folder.path().join("a"), b"x").expect("writes");
        assert!(refuse_next(group.as_fd(), FileId { dev: 0, ino: 0 }).expect("is empty").is_none());
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        if !is_root() {
            return;
        }
        let group = super::super::permission_group().expect("a group");
        let gone = folder.path().join("gone");
        std::fs::create_dir(&gone).expect("makes");
        std::fs::set_permissions(&gone, std::fs::Permissions::from_mode(0o500)).expect("sets");
        let dir = Dir::open_ambient(&gone).expect("opens");
        std::fs::remove_dir(&gone).expect("removes");
        assert!(try_holding(group.as_fd(), &dir).is_err());
    }
}
