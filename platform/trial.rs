//! What a file system and this kernel let us do, each found out by doing it on scratch files.
//!
//! Promise: everything happens in a directory of its own, which is gone afterwards; [`Trial::Works`] means that the result
//! was looked at, not only that the call succeeded. Limit: it is true of this directory, this user and this moment; of
//! [`Facility::FullSync`] no program sees more than that the system says yes.
//! Source: openat2(2), renameat2(2), ioctl_ficlone(2), xattr(7), acl(5), flock(2), ioctl_iflags(2); on macOS open(2),
//! rename(2), clonefile(2), fcntl(2), acl(3), chflags(2).

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::attributes::{Flags, set_flags};
use crate::dir::{Dir, FsError, means_unsupported};
use crate::{host, random, xattr};

/// Something a file system or kernel may offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Facility {
    /// A path below a handle is opened in one call that follows no symlink.
    Beneath,
    /// Two names change places in one step.
    Exchange,
    /// A copy shares blocks with its source.
    SharedBlocks,
    /// Extended attributes of the user's own.
    Attributes,
    /// Access lists.
    AccessLists,
    /// A lock that ends with its holder.
    Lock,
    /// A flag that refuses every change.
    ImmutableFlag,
    /// What is synced has left the drive's cache, too.
    FullSync,
    /// A name in other letters of the same words is another name.
    CaseSensitive,
    /// A name with an accent that is written in another way is another name.
    ExactNames,
}

impl Facility {
    /// Every one, in the order in which they are tried.
    pub const ALL: [Facility; 10] = [
        Facility::Beneath,
        Facility::Exchange,
        Facility::SharedBlocks,
        Facility::Attributes,
        Facility::AccessLists,
        Facility::Lock,
        Facility::ImmutableFlag,
        Facility::FullSync,
        Facility::CaseSensitive,
        Facility::ExactNames,
    ];
}

/// How trying went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trial {
    /// It did what it should.
    Works,
    /// It did not, and why.
    Fails(String),
}

impl Trial {
    pub(crate) fn of(result: io::Result<bool>) -> Self {
        match result {
            Ok(true) => Trial::Works,
            Ok(false) => Trial::Fails("the call succeeds and does not do it".to_owned()),
            Err(error) => Trial::Fails(error.to_string()),
        }
    }
}

/// Tries everything in a scratch directory inside `dir`.
///
/// # Errors
/// No scratch directory can be made there, or not be removed again.
pub fn try_in(dir: &Dir) -> Result<Vec<(Facility, Trial)>, FsError> {
    let named = random::hex12().map_err(|source| FsError { operation: "name", path: "scratch".into(), source })?;
    let name = format!(".keep-trial-{named}").into_bytes();
    let scratch = dir.make_dir(&name, 0o700)?;
    let trials = Facility::ALL.map(|facility| (facility, Trial::of(run(facility, &scratch)))).into();
    dir.remove_all(&name)?;
    Ok(trials)
}

fn run(facility: Facility, scratch: &Dir) -> io::Result<bool> {
    match facility {
        Facility::Beneath => beneath(scratch),
        Facility::Exchange => exchange(scratch).map_err(system),
        Facility::SharedBlocks => shared_blocks(scratch),
        Facility::Attributes => attribute(scratch, host::USER_ATTRIBUTE, b"1"),
        Facility::AccessLists => match host::ACCESS_LIST {
            Some((name, list)) => attribute(scratch, name, list),
            None => Err(io::Error::other("they are not attributes on this system, and not looked at")),
        },
        Facility::Lock => lock(scratch),
        Facility::ImmutableFlag => immutable(scratch),
        Facility::FullSync => full_sync(scratch),
        Facility::CaseSensitive => are_two_names(scratch, b"case", b"CASE").map_err(system),
        Facility::ExactNames => are_two_names(scratch, COMPOSED, DECOMPOSED).map_err(system),
    }
}

/// The system's own words: which call it was is clear here.
fn system(error: FsError) -> io::Error {
    error.source
}

/// A directory is reached, and a symlink to it is not followed.
fn beneath(scratch: &Dir) -> io::Result<bool> {
    scratch.make_dir(b"below", 0o700).map_err(system)?;
    scratch.symlink(b"below", b"link").map_err(system)?;
    host::open_beneath_at_once(scratch, c"below")?;
    Ok(host::open_beneath_at_once(scratch, c"link").is_err())
}

fn exchange(scratch: &Dir) -> Result<bool, FsError> {
    let ids = |dir: &Dir| -> Result<_, FsError> {
        Ok((dir.stat(b"one")?.map(|stat| stat.id), dir.stat(b"other")?.map(|stat| stat.id)))
    };
    scratch.create_new(b"one", 0o600)?;
    scratch.create_new(b"other", 0o600)?;
    let (one, other) = ids(scratch)?;
    scratch.exchange(b"one", b"other")?;
    Ok(ids(scratch)? == (other, one))
}

fn shared_blocks(scratch: &Dir) -> io::Result<bool> {
    let content = [7; 8192];
    let from = scratch.create_new(b"source", 0o600).map_err(system)?;
    from.write_all_at(&content, 0)?;
    let to = scratch.create_new(b"copy", 0o600).map_err(system)?;
    let to = match host::share_blocks(from.as_fd(), to.as_fd()) {
        // Some systems do it with a new file only.
        Err(errno) if means_unsupported(errno) && host::clone_new(from.as_fd(), scratch.as_fd(), b"clone").is_ok() => {
            scratch.open_read(b"clone").map_err(system)?
        }
        done => done.map(|()| to)?,
    };
    let mut copied = [0; 8192];
    to.read_exact_at(&mut copied, 0)?;
    Ok(copied == content)
}

fn attribute(scratch: &Dir, name: &[u8], value: &[u8]) -> io::Result<bool> {
    scratch.remove_all(b"attributed").map_err(system)?;
    let file = scratch.create_new(b"attributed", 0o600).map_err(system)?;
    let wanted = BTreeMap::from([(name.to_vec(), value.to_vec())]);
    xattr::set_all(&file, &wanted).map_err(system)?;
    Ok(xattr::read_file(&file).map_err(system)?.get(name).is_some_and(|read| read == value))
}

/// Another open file of the same name is kept out while the first holds the lock, and gets it afterwards.
fn lock(scratch: &Dir) -> io::Result<bool> {
    let holder = scratch.open_update(b"locked").map_err(system)?;
    let other = scratch.open_update(b"locked").map_err(system)?;
    flock(&holder, FlockOperation::NonBlockingLockExclusive)?;
    let kept_out = flock(&other, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK);
    drop(holder);
    Ok(kept_out && flock(&other, FlockOperation::NonBlockingLockExclusive).is_ok())
}

/// An e with an acute accent as one character, and as two.
const COMPOSED: &[u8] = b"\xc3\xa9";
const DECOMPOSED: &[u8] = b"e\xcc\x81";

/// Whether the second name leads to nothing when the first one has been made, and the first one reads as it was written.
fn are_two_names(scratch: &Dir, name: &[u8], other: &[u8]) -> Result<bool, FsError> {
    scratch.create_new(name, 0o600)?;
    Ok(scratch.stat(other)?.is_none() && scratch.list()?.iter().any(|entry| entry.name == name))
}

fn full_sync(scratch: &Dir) -> io::Result<bool> {
    let file = scratch.create_new(b"synced", 0o600).map_err(system)?;
    file.write_all_at(b"1", 0)?;
    host::sync_through(file.as_fd())?;
    // Nothing short of pulling the plug shows more than that the system says so.
    Ok(true)
}

fn immutable(scratch: &Dir) -> io::Result<bool> {
    let file = scratch.create_new(b"immutable", 0o600).map_err(system)?;
    set_flags(&file, Flags { immutable: true, append_only: false }).map_err(system)?;
    let refused = scratch.unlink(b"immutable").is_err();
    set_flags(&file, Flags::default()).map_err(system)?;
    Ok(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trials() -> (tempfile::TempDir, Vec<(Facility, Trial)>) {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let dir = Dir::open_ambient(temp.path()).expect("it exists");
        let trials = try_in(&dir).expect("a scratch directory can be made");
        assert_eq!(dir.list().expect("lists"), [], "something was left");
        (temp, trials)
    }

    #[test]
    fn everything_is_tried_once_and_nothing_is_left() {
        let (_temp, trials) = trials();
        assert_eq!(trials.iter().map(|(facility, _)| *facility).collect::<Vec<_>>(), Facility::ALL);
    }

    #[test]
    fn what_fails_says_why() {
        let (_temp, trials) = trials();
        for (facility, trial) in trials {
            if let Trial::Fails(reason) = trial {
                assert!(!reason.is_empty(), "{facility:?}");
            }
        }
    }

    #[test]
    fn a_lock_that_lets_two_in_would_not_pass() {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let dir = Dir::open_ambient(temp.path()).expect("it exists");
        // Held by somebody else: then the first of the two does not get it, and that is no success.
        let held = dir.open_update(b"locked").expect("opens");
        flock(&held, FlockOperation::NonBlockingLockExclusive).expect("is free");
        assert!(lock(&dir).is_err());
        drop(held);
        assert!(lock(&dir).expect("flock works in a temporary directory"));
    }

    #[test]
    fn a_name_that_leads_to_the_same_file_is_no_other_name() {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let dir = Dir::open_ambient(temp.path()).expect("it exists");
        // What a volume that ignores case answers for the second name.
        dir.create_new(b"NAME", 0o600).expect("creates");
        assert!(!are_two_names(&dir, b"name", b"NAME").expect("looks"));
        assert!(are_two_names(&dir, b"one", b"two").expect("looks"));
    }

    #[test]
    fn where_nothing_can_be_made_that_is_the_error() {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let dir = Dir::open_ambient(temp.path()).expect("it exists");
        drop(temp);
        assert_eq!(try_in(&dir).expect_err("the directory is gone").operation, "make directory");
    }
}
