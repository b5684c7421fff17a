//! Objects that refuse every change until somebody with privilege allows it again.
//!
//! Promise: whoever sets a flag acts on the open object and on nothing a name leads to; a flag that was there before is
//! reported and left alone. Limit: a descriptor or a mapping that was open before may go on writing where the file system
//! looks at the flag only when a file is opened (btrfs, xfs, tmpfs, overlay; not ext4).
//! Source: ioctl_iflags(2), `FS_IMMUTABLE_FL`; capabilities(7), `CAP_LINUX_IMMUTABLE`.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use crate::{dir, host};

/// Why a flag was not set, or not taken off.
#[derive(Debug, thiserror::Error)]
pub enum FlagError {
    /// The file system has no such flag.
    #[error("its file system cannot make it immutable")]
    Unsupported,
    /// It was immutable before: the flag is somebody else's.
    #[error("it was immutable already")]
    Already,
    /// The object belongs to another user than the one we work for.
    #[error("it belongs to another user")]
    NotOurs,
    /// The process that may do it is gone.
    #[error("the process that may do it is gone")]
    Gone,
    /// The system refused.
    #[error("the system refused it")]
    Failed(#[source] io::Error),
}

/// Whoever may make objects immutable.
pub trait Flags: Send + Sync {
    /// Makes the object immutable, for root as well.
    ///
    /// # Errors
    /// Any: the object is as it was.
    fn set(&self, object: BorrowedFd<'_>) -> Result<(), FlagError>;

    /// Lets the object be changed again. One that is not immutable is left as it is, which is no error.
    fn clear(&self, object: BorrowedFd<'_>) -> Result<(), FlagError>;

    /// The same for an object on which an earlier process left the flag. Not after [`begin`](Self::begin), where that is
    /// another process's work.
    fn clear_earlier(&self, object: BorrowedFd<'_>) -> Result<(), FlagError> {
        self.clear(object)
    }

    /// Nothing of an earlier process is to be taken off any more.
    fn begin(&self) -> Result<(), FlagError> {
        Ok(())
    }
}

/// This process itself, which has the privilege and keeps it.
#[derive(Debug, Clone, Copy)]
pub struct InProcess {
    owner: Option<u32>,
}

impl InProcess {
    /// Acts on objects of this user only; of any, if `None`.
    pub fn new(owner: Option<u32>) -> Self {
        Self { owner }
    }

    fn admit(self, object: BorrowedFd<'_>) -> Result<(), FlagError> {
        let stat = dir::stat_of(object).map_err(|error| FlagError::Failed(error.source))?;
        if self.owner.is_none_or(|owner| owner == stat.uid) { Ok(()) } else { Err(FlagError::NotOurs) }
    }
}

impl Flags for InProcess {
    fn set(&self, object: BorrowedFd<'_>) -> Result<(), FlagError> {
        self.admit(object)?;
        change(object, true)
    }

    fn clear(&self, object: BorrowedFd<'_>) -> Result<(), FlagError> {
        self.admit(object)?;
        change(object, false)
    }
}

/// Sets the flag of an open object or takes it off; all other flags stay. For whoever has the privilege.
pub fn change(object: BorrowedFd<'_>, immutable: bool) -> Result<(), FlagError> {
    let done = dir::change("set flags of", b"file", || host::set_immutable(object, immutable));
    match done {
        Ok(true) => Ok(()),
        Ok(false) if immutable => Err(FlagError::Already),
        Ok(false) => Ok(()),
        Err(error) if error.is_unsupported() => {
            if immutable {
                Err(FlagError::Unsupported)
            } else {
                Ok(())
            }
        }
        Err(error) => Err(FlagError::Failed(error.source)),
    }
}

/// Why nothing can be made immutable, where that is so.
pub const HINDRANCE: &str = host::NO_IMMUTABLE;

/// What this process may do by itself, without help: nothing, unless it has the privilege. As root it acts for any user,
/// otherwise on objects of its own.
pub fn in_process() -> Option<Arc<dyn Flags>> {
    let own = rustix::process::geteuid();
    let owner = (!own.is_root()).then_some(own.as_raw());
    host::may_set_immutable().then(|| Arc::new(InProcess::new(owner)) as Arc<dyn Flags>)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::dir::Dir;

    fn fixture() -> (tempfile::TempDir, Dir) {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let dir = Dir::open_ambient(temp.path()).expect("it exists");
        (temp, dir)
    }

    #[test]
    fn a_flag_of_somebody_else_is_reported_and_left_alone_and_one_of_ours_comes_off() {
        let (_temp, dir) = fixture();
        let file = dir.create_new(b"f", 0o600).expect("creates");
        let Some(flags) = in_process() else { return };
        match flags.set(file.as_fd()) {
            Err(FlagError::Unsupported) => return,
            done => done.expect("sets"),
        }
        assert!(dir.unlink(b"f").is_err(), "an immutable file was removed");
        assert!(matches!(flags.set(file.as_fd()), Err(FlagError::Already)));
        flags.clear(file.as_fd()).expect("takes it off");
        flags.clear(file.as_fd()).expect("nothing to take off is no error");
        dir.unlink(b"f").expect("now it can go");
    }

    #[test]
    fn objects_of_another_user_are_not_touched() {
        let (_temp, dir) = fixture();
        let file = dir.create_new(b"f", 0o600).expect("creates");
        let own = dir.own_stat().expect("stats").uid;
        let flags = InProcess::new(Some(own + 1));
        assert!(matches!(flags.set(file.as_fd()), Err(FlagError::NotOurs)));
        assert!(matches!(flags.clear(file.as_fd()), Err(FlagError::NotOurs)));
    }

    #[test]
    fn without_the_privilege_the_system_refuses_and_nothing_is_changed() {
        let (_temp, dir) = fixture();
        let file = dir.create_new(b"f", 0o600).expect("creates");
        if in_process().is_some() {
            return;
        }
        assert!(InProcess::new(None).set(file.as_fd()).is_err());
        dir.unlink(b"f").expect("it is not immutable");
    }
}
