//! Names and peers of local sockets.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use rustix::net::sockopt::socket_peercred;

use crate::dir::Dir;

/// A path that leads to `name` in the open directory: short whatever its own path is, and the directory itself whatever was
/// renamed since (proc_pid_fd(5)).
pub(crate) fn socket_path(dir: &Dir, _path: &Path, name: &str) -> io::Result<PathBuf> {
    Ok(PathBuf::from(format!("/proc/self/fd/{}/{name}", dir.as_fd().as_raw_fd())))
}

/// The user that was at the other end when it connected.
pub(crate) fn peer_uid(socket: impl AsFd) -> io::Result<u32> {
    Ok(socket_peercred(socket)?.uid.as_raw())
}
