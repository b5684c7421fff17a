//! One holder at a time: a lock that no crash leaves behind and no live holder loses.
//!
//! Promise: while a [`Lock`] lives, no other [`Lock::try_acquire`] of the same name succeeds, in no process; when its
//! process ends, however it ends, the next one does. What the file says never keeps anybody out, the kernel does.
//! Limit: a process that may remove names in the directory can remove the file and let a second holder in;
//! [`Lock::is_in_place`] tells the first. On a file system without flock(2) (some network ones) the file's content decides,
//! with the holder's start time and boot: on one machine only, and not proof against a holder that may not be looked at.
//! A child has the lock, too, from fork until its program runs: a holder killed in that instant frees it a moment later.
//! Source: flock(2): a lock belongs to the open file, which is closed on exec.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};

use crate::dir::{Dir, FsError, means_unsupported, stat_of};
use crate::holder::{Holder, Known};
use crate::{fault, host};

/// The line is much shorter; more is not ours and not read.
const MAX_LINE: usize = 4096;

/// How often the file may be replaced under us before we call it an attack.
const MAX_ROUNDS: u32 = 16;

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Somebody has it.
    #[error("another process holds the lock")]
    Held {
        /// What the file tells of it; as good as nothing if the file is garbled.
        holder: Known,
    },
    /// The file could not be opened or looked at.
    #[error(transparent)]
    File(#[from] FsError),
    /// flock(2) failed.
    #[error("cannot lock the file")]
    Flock(#[source] io::Error),
    /// The holder's line could not be written.
    #[error("cannot write the lock's file")]
    Write(#[source] io::Error),
    /// The file was removed or replaced again and again while we tried.
    #[error("another process keeps replacing the lock's file")]
    Unstable,
}

/// A lock that is held until it is dropped or the process ends.
#[derive(Debug)]
pub struct Lock {
    dir: Dir,
    name: Vec<u8>,
    file: File,
}

impl Lock {
    /// Takes the lock `name` in `dir` for `holder`, which is this process, or says who has it. Never waits.
    pub fn try_acquire(dir: &Dir, name: &[u8], holder: &Holder) -> Result<Self, LockError> {
        let lock = |file: &File| flock(file, FlockOperation::NonBlockingLockExclusive);
        Self::acquire(dir, name, holder, lock)
    }

    /// Whether the name still leads to the file we hold. If not, the lock no longer keeps others out.
    pub fn is_in_place(&self) -> bool {
        is_named(&self.dir, &self.name, &self.file).unwrap_or(false)
    }

    fn acquire(
        dir: &Dir,
        name: &[u8],
        holder: &Holder,
        lock: impl Fn(&File) -> rustix::io::Result<()>,
    ) -> Result<Self, LockError> {
        for _ in 0..MAX_ROUNDS {
            let file = dir.open_update(name)?;
            match retry_on_intr(|| lock(&file)) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Err(LockError::Held { holder: read(&file) }),
                Err(errno) if errno == Errno::NOLCK || means_unsupported(errno) => {
                    return Self::acquire_by_name(dir, name, holder);
                }
                Err(errno) => return Err(LockError::Flock(errno.into())),
            }
            // Between open and flock the earlier holder may have been cleaned away together with its file; then we hold a
            // file nobody else will ever open, and so might somebody else hold the new one.
            if is_named(dir, name, &file)? {
                write(&file, holder).map_err(LockError::Write)?;
                return Ok(Self { dir: dir.try_clone()?, name: name.to_vec(), file });
            }
        }
        Err(LockError::Unstable)
    }

    /// Holders take numbers: `lock.1`, `lock.2`, … The one with the highest number has the lock while it runs. A dead one
    /// is followed by the next number, which only one can take since the name must be free, and no number is ever taken
    /// back, so that nobody can be moved out of the way by somebody who looked a moment too early.
    fn acquire_by_name(dir: &Dir, name: &[u8], holder: &Holder) -> Result<Self, LockError> {
        for _ in 0..MAX_ROUNDS {
            let highest = numbers(dir, name)?.into_iter().max().unwrap_or(0);
            if let Some(file) = open_existing(dir, &numbered(name, highest))? {
                let found = read(&file);
                if found.may_run(&holder.boot_id) {
                    return Err(LockError::Held { holder: found });
                }
            }
            let ours = highest + 1;
            let Some(file) = place(dir, &numbered(name, ours), holder)? else { continue };
            let others = numbers(dir, name)?;
            if others.iter().any(|&number| number > ours) {
                // Our number had been passed and cleaned away before we took it.
                dir.unlink(&numbered(name, ours))?;
                continue;
            }
            for number in others.into_iter().filter(|&number| number < ours) {
                let _ = dir.unlink(&numbered(name, number));
            }
            return Ok(Self { dir: dir.try_clone()?, name: numbered(name, ours), file });
        }
        Err(LockError::Unstable)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Where flock(2) works this is tidiness: closing the file frees the lock. Elsewhere it saves the next one the
        // question whether we run.
        let _ = fault::point("lock").and_then(|()| self.file.set_len(0));
    }
}

fn numbered(name: &[u8], number: u64) -> Vec<u8> {
    [name, b".", number.to_string().as_bytes()].concat()
}

fn numbers(dir: &Dir, name: &[u8]) -> Result<Vec<u64>, FsError> {
    let mut found = Vec::new();
    dir.each_entry(|entry, _| {
        let digits = entry.strip_prefix(name).and_then(|rest| rest.strip_prefix(b"."));
        found.extend(digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<u64>().ok()));
    })?;
    Ok(found)
}

/// Makes a finished file of that name; `None` if somebody else was first.
fn place(dir: &Dir, name: &[u8], holder: &Holder) -> Result<Option<File>, LockError> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let beside = format!(".lock-{}-{}", holder.pid, NEXT.fetch_add(1, Ordering::Relaxed)).into_bytes();
    dir.remove_all(&beside)?;
    let file = dir.create_new(&beside, 0o600)?;
    write(&file, holder).map_err(LockError::Write)?;
    match dir.rename_new(&beside, dir, name) {
        Ok(()) => Ok(Some(file)),
        Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists => {
            dir.unlink(&beside)?;
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

fn open_existing(dir: &Dir, name: &[u8]) -> Result<Option<File>, LockError> {
    match dir.open_read(name) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether a name of the directory leads to this open file.
pub(crate) fn is_named(dir: &Dir, name: &[u8], file: &File) -> Result<bool, FsError> {
    Ok(dir.stat(name)?.map(|stat| stat.id) == Some(stat_of(file.as_fd())?.id))
}

fn read(file: &File) -> Known {
    let mut buffer = [0; MAX_LINE];
    let length = file.read_at(&mut buffer, 0).unwrap_or(0);
    Known::parse(&buffer[..length])
}

/// Writes over what is there and then cuts, so that a reader meets as little as possible of a half-written line.
fn write(file: &File, holder: &Holder) -> io::Result<()> {
    let line = holder.to_line();
    fault::point("lock")?;
    file.write_all_at(line.as_bytes(), 0)?;
    file.set_len(line.len() as u64)?;
    Ok(host::sync(file.as_fd())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::atomic::AtomicU32;

    fn fixture() -> (tempfile::TempDir, Dir, Holder) {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let dir = Dir::open_ambient(temp.path()).expect("it exists");
        let us = Holder::this_process("keep watch", "2026-01-02T03:04:05Z").expect("the system tells");
        (temp, dir, us)
    }

    fn without_flock(_: &File) -> rustix::io::Result<()> {
        Err(Errno::NOLCK)
    }

    /// A holder that cannot run: our number, and a start before ours.
    fn dead(us: &Holder) -> Holder {
        Holder { start_time: us.start_time.wrapping_sub(1), ..us.clone() }
    }

    fn put(dir: &Dir, text: &[u8]) {
        dir.open_update(b"lock").expect("opens").write_all(text).expect("writes");
    }

    /// Takes it where nobody should have it. A child that another test is just starting may have the descriptor of one that
    /// is gone for a moment.
    fn free(dir: &Dir, us: &Holder) -> Lock {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
        loop {
            match Lock::try_acquire(dir, b"lock", us) {
                Err(LockError::Held { .. }) if std::time::Instant::now() < end => std::thread::yield_now(),
                other => return other.expect("nobody has locked it"),
            }
        }
    }

    fn held(result: Result<Lock, LockError>) -> Known {
        match result {
            Err(LockError::Held { holder }) => holder,
            other => panic!("expected it to be held: {other:?}"),
        }
    }

    #[test]
    fn the_second_one_learns_who_holds_it() {
        let (_temp, dir, us) = fixture();
        let first = Lock::try_acquire(&dir, b"lock", &us).expect("it is free");
        let holder = held(Lock::try_acquire(&dir, b"lock", &us));
        assert_eq!((holder.pid, holder.command.as_deref()), (Some(us.pid), Some("keep watch")));
        drop(first);
        free(&dir, &us);
    }

    #[test]
    fn a_garbled_file_of_a_live_holder_is_still_held() {
        let (_temp, dir, us) = fixture();
        let _first = Lock::try_acquire(&dir, b"lock", &us).expect("it is free");
        dir.open_update(b"lock").expect("opens").write_all(b"{\"pid\":12,\xff\x00garbage").expect("writes");
        assert_eq!(held(Lock::try_acquire(&dir, b"lock", &us)).pid, Some(12));
    }

    #[test]
    fn no_content_without_a_holder_keeps_anybody_out() {
        let (_temp, dir, us) = fixture();
        for text in [us.to_line().into_bytes(), dead(&us).to_line().into_bytes(), b"garbage".to_vec(), vec![b'x'; 9000]]
        {
            put(&dir, &text);
            let lock = free(&dir, &us);
            assert_eq!(read(&lock.file).pid, Some(us.pid));
            assert_eq!(stat_of(lock.file.as_fd()).expect("stats").size, us.to_line().len() as u64);
        }
    }

    #[test]
    fn a_file_replaced_between_open_and_lock_is_not_the_lock() {
        let (_temp, dir, us) = fixture();
        let rounds = AtomicU32::new(0);
        let lock = Lock::acquire(&dir, b"lock", &us, |file| {
            if rounds.fetch_add(1, Ordering::Relaxed) == 0 {
                dir.unlink(b"lock").expect("removes");
                dir.create_new(b"lock", 0o600).expect("creates");
            }
            flock(file, FlockOperation::NonBlockingLockExclusive)
        })
        .expect("the second round gets it");
        assert_eq!(rounds.load(Ordering::Relaxed), 2);
        assert!(lock.is_in_place());
        dir.unlink(b"lock").expect("removes");
        assert!(!lock.is_in_place());
    }

    #[test]
    fn a_file_that_never_stays_is_given_up() {
        let (_temp, dir, us) = fixture();
        let result = Lock::acquire(&dir, b"lock", &us, |_| {
            dir.unlink(b"lock").expect("removes");
            Ok(())
        });
        assert!(matches!(result, Err(LockError::Unstable)), "{result:?}");
    }

    #[test]
    fn a_symlink_or_fifo_in_its_place_is_refused() {
        let (temp, dir, us) = fixture();
        dir.symlink(b"elsewhere", b"lock").expect("links");
        assert!(matches!(Lock::try_acquire(&dir, b"lock", &us), Err(LockError::File(_))));
        assert_eq!(dir.stat(b"elsewhere").expect("stats"), None);
        let made = std::process::Command::new("mkfifo").arg(temp.path().join("fifo")).status();
        assert!(made.is_ok_and(|status| status.success()));
        assert!(matches!(Lock::try_acquire(&dir, b"fifo", &us), Err(LockError::File(_))));
    }

    #[test]
    fn without_flock_a_live_holder_keeps_it_and_a_dead_one_does_not() {
        let (_temp, dir, us) = fixture();
        let first = Lock::acquire(&dir, b"lock", &us, without_flock).expect("it is free");
        assert!(first.is_in_place());
        assert_eq!(held(Lock::acquire(&dir, b"lock", &us, without_flock)).pid, Some(us.pid));
        drop(first);
        drop(Lock::acquire(&dir, b"lock", &us, without_flock).expect("it was given back"));
        for gone in [dead(&us), Holder { boot_id: "another boot".into(), ..us.clone() }] {
            let highest = numbers(&dir, b"lock").expect("lists").into_iter().max().expect("there was one");
            place(&dir, &numbered(b"lock", highest + 1), &gone).expect("writes").expect("it is free");
            let lock = Lock::acquire(&dir, b"lock", &us, without_flock).expect("its holder is gone");
            assert_eq!(numbers(&dir, b"lock").expect("lists"), [highest + 2], "those before it are cleaned away");
            assert_eq!(read(&lock.file).start_time, Some(us.start_time));
        }
    }

    #[test]
    fn without_flock_of_many_that_find_a_dead_holder_exactly_one_gets_it() {
        let (_temp, dir, us) = fixture();
        for round in 0..50 {
            let start = std::sync::Barrier::new(4);
            let got = std::thread::scope(|scope| {
                let one = || {
                    start.wait();
                    match Lock::acquire(&dir, b"lock", &us, without_flock) {
                        Ok(lock) => Some(lock),
                        Err(LockError::Held { .. }) => None,
                        Err(other) => panic!("round {round}: {other:?}"),
                    }
                };
                let tries: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
                tries.into_iter().filter_map(|thread| thread.join().expect("does not panic")).collect::<Vec<_>>()
            });
            assert_eq!(got.len(), 1, "round {round}");
            // What a crash leaves: the line of a holder that does not run.
            let name = got[0].name.clone();
            drop(got);
            write(&dir.open_update(&name).expect("opens"), &dead(&us)).expect("writes");
        }
    }
}
