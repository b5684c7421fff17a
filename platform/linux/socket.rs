//! Names and peers of local sockets.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use rustix::net::sockopt::socket_peercred;

use crate::dir::Dir;

/// Where systemd-journald takes records in its own format (systemd.journal-fields(7), "Native Journal Protocol").
pub(crate) const JOURNAL_SOCKET: Option<&str> = Some("/run/systemd/journal/socket");
/// Where syslog(3) sends its records to.
pub(crate) const LOG_SOCKET: Option<&str> = Some("/dev/log");

/// A path that leads to `name` in the open directory: short whatever its own path is, and the directory itself whatever was
/// renamed since (proc_pid_fd(5)).
pub(crate) fn socket_path(dir: &Dir, _path: &Path, name: &str) -> io::Result<PathBuf> {
    Ok(PathBuf::from(format!("/proc/self/fd/{}/{name}", dir.as_fd().as_raw_fd())))
}

/// The user that was at the other end when it connected.
pub(crate) fn peer_uid(socket: impl AsFd) -> io::Result<u32> {
    Ok(socket_peercred(socket)?.uid.as_raw())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use crate::dir::Dir;
    use crate::local_socket::{LocalListener, connect};

    #[test]
    fn a_path_longer_than_an_address_is_no_obstacle_and_neither_is_a_rename() {
        let folder = tempfile::tempdir().expect("makes a folder");
        let long = folder.path().join("x".repeat(200));
        std::fs::create_dir(&long).expect("makes it");
        let dir = Dir::open_ambient(&long).expect("opens it");
        let (sender, accepted) = channel();
        let listener = LocalListener::replace(&dir, &long, "socket").expect("listens");
        let _listening = listener.start(Box::new(move |stream| sender.send(stream).is_ok())).expect("starts");
        for renamed in [false, true] {
            if renamed {
                std::fs::rename(&long, folder.path().join("other")).expect("renames");
            }
            let mut client = connect(&dir, &long, "socket").expect("connects").expect("somebody listens");
            let mut server = accepted.recv_timeout(Duration::from_secs(5)).expect("accepted within 5 s");
            client.write_all(b"hello").expect("writes");
            let mut heard = [0; 5];
            server.read_exact(&mut heard).expect("reads");
            assert_eq!(&heard, b"hello");
        }
    }
}
