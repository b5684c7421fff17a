//! Identity, capabilities and dumpability on Linux.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::{DumpableBehavior, dumpable_behavior, getgroups, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, no_new_privs, set_capabilities,
    set_keep_capabilities, set_no_new_privs,
};

use super::sys::identity;
use crate::privilege::PrivilegeError;
use crate::users::{User, find_user, groups_of};

fn read(path: &'static str) -> Result<Vec<u8>, PrivilegeError> {
    fs::read(path).map_err(|source| PrivilegeError::Read { path, source })
}

pub(crate) fn user(uid: u32) -> Result<Option<User>, PrivilegeError> {
    Ok(find_user(&read("/etc/passwd")?, uid))
}

pub(crate) fn drop_to(uid: u32, gid: u32) -> Result<(), PrivilegeError> {
    require_one_thread()?;
    let groups = match user(uid)? {
        Some(user) => groups_of(&read("/etc/group")?, &user.name, gid),
        None => BTreeSet::from([gid]),
    };

    let call = PrivilegeError::call;
    // First what programs started later could get back, then groups, then the user: afterwards nothing would be allowed.
    clear_ambient_capability_set().map_err(|errno| call("clear ambient capabilities")(errno.into()))?;
    set_no_new_privs(true).map_err(|errno| call("refuse new privileges")(errno.into()))?;
    identity::setgroups(&groups.iter().copied().collect::<Vec<_>>()).map_err(call("set the groups"))?;
    identity::setresgid(gid).map_err(call("set the group"))?;
    // Who becomes another user may be traced by that user at once where `fs.suid_dumpable` is 1 (prctl(2),
    // PR_SET_DUMPABLE), but not while it has capabilities that the tracer has not: they go once tracing is refused. Securebits
    // may forbid to keep them.
    let _that_may_be_locked = set_keep_capabilities(true);
    identity::setresuid(uid).map_err(call("set the user"))?;
    refuse_tracing()?;
    set_capabilities(None, NONE).map_err(|errno| call("drop capabilities")(errno.into()))?;
    let _that_may_be_locked = set_keep_capabilities(false);

    verify(uid, gid, &groups)
}

const NONE: CapabilitySets = CapabilitySets {
    effective: CapabilitySet::empty(),
    permitted: CapabilitySet::empty(),
    inheritable: CapabilitySet::empty(),
};

fn require_one_thread() -> Result<(), PrivilegeError> {
    let threads = |source| PrivilegeError::Read { path: "/proc/self/task", source };
    let count = fs::read_dir("/proc/self/task").map_err(threads)?.count();
    if count == 1 { Ok(()) } else { Err(PrivilegeError::Threads { count }) }
}

/// All there are: what is in the ambient set is permitted and inheritable, too.
fn all_capabilities() -> Result<CapabilitySet, PrivilegeError> {
    let sets = capabilities(None).map_err(|errno| PrivilegeError::call("read the capabilities")(errno.into()))?;
    Ok(sets.permitted | sets.effective | sets.inheritable)
}

pub(crate) fn drop_capabilities() -> Result<(), PrivilegeError> {
    let had = all_capabilities()?;
    if had.is_empty() {
        return Ok(());
    }
    require_one_thread()?;
    let call = PrivilegeError::call;
    clear_ambient_capability_set().map_err(|errno| call("clear ambient capabilities")(errno.into()))?;
    set_no_new_privs(true).map_err(|errno| call("refuse new privileges")(errno.into()))?;
    set_capabilities(None, NONE).map_err(|errno| call("drop capabilities")(errno.into()))?;

    let kept = |what| Err(PrivilegeError::Kept { what });
    if !all_capabilities()?.is_empty() {
        return kept("a capability is left");
    }
    if !no_new_privs().map_err(|errno| call("read no_new_privs")(errno.into()))? {
        return kept("programs could gain privileges");
    }
    if set_capabilities(None, CapabilitySets { effective: had, permitted: had, inheritable: had }).is_ok() {
        return kept("the way back to the capabilities is open");
    }
    // A program that is set-user-id root as well, and has laid that aside.
    if identity::getresuid().map_err(call("read the user"))?.contains(&0) || identity::setresuid(0).is_ok() {
        return kept("the way to root is open");
    }
    Ok(())
}

fn verify(uid: u32, gid: u32, groups: &BTreeSet<u32>) -> Result<(), PrivilegeError> {
    let kept = |what| Err(PrivilegeError::Kept { what });
    let call = PrivilegeError::call;
    if identity::getresuid().map_err(call("read the user"))? != [uid; 3] {
        return kept("a user id is another one");
    }
    if identity::getresgid().map_err(call("read the group"))? != [gid; 3] {
        return kept("a group id is another one");
    }
    let now = getgroups().map_err(|errno| call("read the groups")(errno.into()))?;
    if now.into_iter().map(rustix::process::Gid::as_raw).collect::<BTreeSet<_>>() != *groups {
        return kept("the groups are other ones");
    }
    if !all_capabilities()?.is_empty() {
        return kept("a capability is left");
    }
    if !no_new_privs().map_err(|errno| call("read no_new_privs")(errno.into()))? {
        return kept("programs could gain privileges");
    }
    if identity::setresuid(0).is_ok() {
        return kept("the way back to root is open");
    }
    if gid != 0 && identity::setresgid(0).is_ok() {
        return kept("the way back to root's group is open");
    }
    Ok(())
}

pub(crate) fn refuse_tracing() -> Result<(), PrivilegeError> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|errno| PrivilegeError::call("refuse tracing")(errno.into()))?;
    match dumpable_behavior() {
        Ok(DumpableBehavior::NotDumpable) => Ok(()),
        _ => Err(PrivilegeError::Kept { what: "the process can be traced" }),
    }
}
