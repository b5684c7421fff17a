//! Giving up root and capabilities for good, and keeping other processes of the user out of ours.
//!
//! Promise: after [`drop_to`] returns `Ok` the process is the user, in every id, group and capability, and an attempt to
//! become root again was made and failed. After [`drop_capabilities`] returns `Ok` the process has none and gets none. After [`harden`] no process of the same user can trace us, read or write our
//! memory, or take our descriptors, the terminal's among them.
//! Limit: neither keeps a process that is root, or that has `CAP_SYS_PTRACE`, out; and any process of the user may still
//! kill or stop ours. Source: setresuid(2), capabilities(7), PR_SET_DUMPABLE(2const), PR_SET_NO_NEW_PRIVS(2const);
//! `PT_DENY_ATTACH` in ptrace(2) on macOS.

use std::io;
use std::path::PathBuf;

use rustix::process::{Resource, Rlimit, geteuid, setrlimit};

use crate::host;
pub use crate::users::User;

/// Why privilege could not be used ([`crate::Privileged::open`]), or why it was not given up, or not all of it; then the
/// process must end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivilegeError {
    /// There is nothing to give up.
    #[error("the process is not root")]
    NotRoot,
    /// Root has privilege without any capability.
    #[error("the process is root")]
    Root,
    /// Root, or a number that nobody can have.
    #[error("user {uid} with group {gid} is nobody to become")]
    NotAUser {
        /// The user asked for.
        uid: u32,
        /// The group asked for.
        gid: u32,
    },
    /// Other threads would stay what they are.
    #[error("{count} threads run already")]
    Threads {
        /// How many.
        count: usize,
    },
    /// The user database or /proc could not be read.
    #[error("cannot read {path}")]
    Read {
        /// What.
        path: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// A call failed.
    #[error("cannot {operation}")]
    Call {
        /// What it was to do.
        operation: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// All calls said yes, and yet the process is not the user only.
    #[error("root was not given up: {what}")]
    Kept {
        /// What is left of it.
        what: &'static str,
    },
}

impl PrivilegeError {
    pub(crate) fn call(operation: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Call { operation, source }
    }
}

/// Whether the process is root.
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// Whom root works for: who called sudo, if that says so, or else the owner of the tree; `None` if that is root too.
///
/// `sudo` are the texts of `SUDO_UID` and `SUDO_GID`. The owner's group is the main one of the user database and not the
/// tree's, which may be one the owner is not in.
pub fn invoker(sudo: Option<(&str, &str)>, owner: u32, main_group: impl Fn(u32) -> Option<u32>) -> Option<(u32, u32)> {
    let id = |text: &str| text.parse::<u32>().ok().filter(|&id| id != u32::MAX);
    let by_sudo = sudo.and_then(|(uid, gid)| Some((id(uid)?, id(gid)?)));
    by_sudo
        .filter(|&(uid, _)| uid != 0)
        .or_else(|| if owner == 0 { None } else { main_group(owner).map(|gid| (owner, gid)) })
}

/// The user with this number, as the system's own database tells.
pub fn user(uid: u32) -> Result<Option<User>, PrivilegeError> {
    host::user(uid)
}

/// The home directory of a user.
pub fn home_of(uid: u32) -> Result<Option<PathBuf>, PrivilegeError> {
    Ok(user(uid)?.map(|user| user.home))
}

/// Makes this process, which is root, the user `uid` with the group `gid` and the user's other groups. Irrevocable.
///
/// To be called before any thread is started, as some of it is kept per thread: with more than one it refuses.
/// After an error the process may be anything between the two and must end.
pub fn drop_to(uid: u32, gid: u32) -> Result<(), PrivilegeError> {
    if !is_root() {
        return Err(PrivilegeError::NotRoot);
    }
    if uid == 0 || uid == u32::MAX || gid == u32::MAX {
        return Err(PrivilegeError::NotAUser { uid, gid });
    }
    host::drop_to(uid, gid)
}

/// Gives up what capabilities the process, which is not root, has from its program's file. Irrevocable; nothing happens
/// if it has none.
///
/// To be called before any thread is started, as [`drop_to`] is. After an error the process must end.
pub fn drop_capabilities() -> Result<(), PrivilegeError> {
    if is_root() {
        return Err(PrivilegeError::Root);
    }
    host::drop_capabilities()
}

/// Keeps other processes of the user out of this one, and its memory out of core files. Children are not affected.
pub fn harden() -> Result<(), PrivilegeError> {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Core, none).map_err(|errno| PrivilegeError::call("forbid core files")(errno.into()))?;
    host::refuse_tracing()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sudo_names_the_invoker_and_else_the_owner_of_the_tree() {
        let main = |uid: u32| (uid == 1000).then_some(100);
        assert_eq!(invoker(Some(("1001", "1002")), 1000, main), Some((1001, 1002)));
        assert_eq!(invoker(None, 1000, main), Some((1000, 100)));
        assert_eq!(invoker(Some(("0", "0")), 1000, main), Some((1000, 100)), "root called sudo");
        assert_eq!(invoker(Some(("-1", "x")), 1000, main), Some((1000, 100)), "that is no number");
        assert_eq!(invoker(Some(("4294967295", "1")), 1000, main), Some((1000, 100)), "that would change nothing");
        assert_eq!(invoker(None, 0, main), None);
        assert_eq!(invoker(None, 7, main), None, "an owner without a main group is not guessed");
    }

    #[test]
    fn root_is_given_up_only_by_root_and_only_for_a_user() {
        if is_root() {
            assert!(matches!(drop_to(0, 1000), Err(PrivilegeError::NotAUser { .. })));
            assert!(matches!(drop_to(u32::MAX, 1000), Err(PrivilegeError::NotAUser { .. })));
        } else {
            assert!(matches!(drop_to(1000, 1000), Err(PrivilegeError::NotRoot)));
        }
    }

    #[test]
    fn the_home_of_root_is_known() {
        assert!(home_of(0).expect("the database can be read").expect("root is in it").is_absolute());
    }
}
