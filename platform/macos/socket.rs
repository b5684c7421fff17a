//! Names and peers of local sockets.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use super::sys;
use crate::dir::Dir;

/// There is none on this system.
pub(crate) const JOURNAL_SOCKET: Option<&str> = None;
/// The system's log takes records by a library only, which this version does not use.
pub(crate) const LOG_SOCKET: Option<&str> = None;

/// The path of `name` in the directory: no path leads through a descriptor here. That `path` leads to the open directory is
/// looked at; it can be renamed right after.
pub(crate) fn socket_path(dir: &Dir, path: &Path, name: &str) -> io::Result<PathBuf> {
    let there = Dir::open_ambient(path).and_then(|there| there.own_stat()).map_err(|error| error.source)?;
    let open = dir.own_stat().map_err(|error| error.source)?;
    if there.id == open.id { Ok(path.join(name)) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// The user that was at the other end when it connected.
pub(crate) fn peer_uid(socket: impl AsFd) -> io::Result<u32> {
    sys::socket::getpeereid(socket.as_fd())
}
