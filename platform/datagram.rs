//! Datagrams to a local socket that somebody else reads: the system's collectors of log records.
//!
//! Promise: sending waits a bounded time and no longer; a reader that was started anew is found again by its path.
//! Limit: that a record was taken says nothing of what its reader makes of it.
//! Source: unix(7); socket(7) on `SO_SNDTIMEO`.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::host;

/// Where records go, one at a time.
pub trait Outlet: Send {
    /// Hands over one record as a whole.
    ///
    /// # Errors
    /// It was not taken. The next one may be.
    fn send(&mut self, record: &[u8]) -> io::Result<()>;
}

/// How long a record waits for a reader whose queue is full.
const PATIENCE: Duration = Duration::from_secs(1);

/// A socket that takes datagrams.
#[derive(Debug)]
pub struct Datagrams {
    path: PathBuf,
    socket: UnixDatagram,
}

/// The socket of the system's journal, on systems that have one.
pub fn journal_socket() -> Option<&'static Path> {
    host::JOURNAL_SOCKET.map(Path::new)
}

/// The socket of the system's log, on systems that have one.
pub fn log_socket() -> Option<&'static Path> {
    host::LOG_SOCKET.map(Path::new)
}

impl Datagrams {
    /// Connects to the socket at `path`; symlinks are followed.
    pub fn connect(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), socket: connected(path)? })
    }
}

fn connected(path: &Path) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(Some(PATIENCE))?;
    socket.connect(path)?;
    Ok(socket)
}

impl Outlet for Datagrams {
    fn send(&mut self, record: &[u8]) -> io::Result<()> {
        use io::ErrorKind::{ConnectionRefused, ConnectionReset, NotConnected};
        let sent = match self.socket.send(record) {
            // Whoever read has gone; somebody else may have bound the path since.
            Err(error) if matches!(error.kind(), ConnectionRefused | ConnectionReset | NotConnected) => {
                self.socket = connected(&self.path)?;
                self.socket.send(record)?
            }
            sent => sent?,
        };
        // A datagram goes as a whole or not at all.
        if sent == record.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(reader: &UnixDatagram) -> Vec<u8> {
        let mut buffer = [0; 64];
        reader.set_read_timeout(Some(Duration::from_secs(5))).expect("sets");
        let length = reader.recv(&mut buffer).expect("a datagram within 5 s");
        buffer[..length].to_vec()
    }

    #[test]
    fn a_record_arrives_whole_and_a_reader_started_anew_gets_the_next() {
        let folder = tempfile::tempdir().expect("makes a folder");
        let path = folder.path().join("socket");
        assert!(Datagrams::connect(&path).is_err(), "nobody reads yet");
        let reader = UnixDatagram::bind(&path).expect("binds");
        let mut outlet = Datagrams::connect(&path).expect("connects");
        outlet.send(b"one\ntwo").expect("sends");
        assert_eq!(heard(&reader), b"one\ntwo");
        drop(reader);
        assert!(outlet.send(b"lost").is_err(), "nobody reads any more");
        std::fs::remove_file(&path).expect("removes");
        let reader = UnixDatagram::bind(&path).expect("binds");
        outlet.send(b"three").expect("sends");
        assert_eq!(heard(&reader), b"three");
    }

    #[test]
    fn a_reader_that_reads_nothing_delays_a_record_by_a_bounded_time() {
        let folder = tempfile::tempdir().expect("makes a folder");
        let path = folder.path().join("socket");
        let _reader = UnixDatagram::bind(&path).expect("binds");
        let mut outlet = Datagrams::connect(&path).expect("connects");
        let begun = std::time::Instant::now();
        let taken = (0..100_000).take_while(|_| outlet.send(&[b'x'; 1024]).is_ok()).count();
        assert!(taken < 100_000, "its queue has no end");
        assert!(begun.elapsed() < 10 * PATIENCE, "{:?}", begun.elapsed());
    }
}
