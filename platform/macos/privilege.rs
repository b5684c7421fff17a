//! Identity and tracing on macOS.

use super::sys::identity;
use crate::privilege::PrivilegeError;
use crate::users::User;

pub(crate) fn user(uid: u32) -> Result<Option<User>, PrivilegeError> {
    identity::user(uid).map_err(|source| PrivilegeError::Read { path: "the user database", source })
}

/// The count of threads cannot be had cheaply here; ids belong to the whole process, so that it matters less.
pub(crate) fn drop_to(uid: u32, gid: u32) -> Result<(), PrivilegeError> {
    let call = PrivilegeError::call;
    match user(uid)? {
        Some(user) => identity::initgroups(&user.name, gid),
        None => identity::setgroups(&[gid]),
    }
    .map_err(call("set the groups"))?;
    // As root these set the real, effective and saved id (setuid(2)).
    identity::setgid(gid).map_err(call("set the group"))?;
    identity::setuid(uid).map_err(call("set the user"))?;

    let now = [rustix::process::getuid().as_raw(), rustix::process::geteuid().as_raw()];
    if now != [uid; 2] {
        return Err(PrivilegeError::Kept { what: "a user id is another one" });
    }
    // The saved id cannot be read; that neither of these works shows that it is not root's.
    if identity::seteuid(0).is_ok() || identity::setuid(0).is_ok() {
        return Err(PrivilegeError::Kept { what: "the way back to root is open" });
    }
    if gid != 0 && identity::setgid(0).is_ok() {
        return Err(PrivilegeError::Kept { what: "the way back to root's group is open" });
    }
    Ok(())
}

/// There are none.
pub(crate) fn drop_capabilities() -> Result<(), PrivilegeError> {
    Ok(())
}

pub(crate) fn refuse_tracing() -> Result<(), PrivilegeError> {
    identity::deny_attach().map_err(PrivilegeError::call("refuse tracing"))
}
