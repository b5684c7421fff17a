//! Stream sockets that have a name in a directory, between processes of one user.
//!
//! Promise: a name is bound and found through the directory's handle, so that neither the length of its path nor a rename
//! on the way matters; whoever is at the other end runs as our own user, or is not listened to. A socket file that a dead
//! process left behind is no obstacle.
//! Limit: on macOS a path leads to the name, of at most 103 bytes. Every process of the user can connect.
//! Source: unix(7) (`SO_PEERCRED`, 108 bytes of `sun_path`), accept(2) on errors that are no end; getpeereid(3) on macOS.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{self, Mode};
use rustix::process::geteuid;

use crate::dir::{Dir, FsError};
use crate::host;
use crate::stat::{FileId, FileType};

/// How long nothing is accepted after the system had no descriptor or memory left.
const RECOVER: Duration = Duration::from_millis(100);

/// Why there is no socket of that name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SocketError {
    /// Something else has the name.
    #[error("{} is there already, and is no socket", shown(.0))]
    Taken(PathBuf),
    /// Another process listens there.
    #[error("another process listens at {} already", shown(.0))]
    Live(PathBuf),
    /// bind(2), or what goes before it, failed.
    #[error("cannot listen at {}", shown(.path))]
    Bind {
        /// The name.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// connect(2) failed, other than because nobody listens.
    #[error("cannot connect to {}", shown(.path))]
    Connect {
        /// The name.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another user listens there.
    #[error("another user listens at {}", shown(.0))]
    Stranger(PathBuf),
    /// The thread that accepts could not be started.
    #[error("cannot start the thread that accepts connections")]
    Thread(#[source] io::Error),
    /// The directory could not be looked at.
    #[error(transparent)]
    Dir(#[from] FsError),
}

fn shown(path: &Path) -> impl std::fmt::Display + '_ {
    path.as_os_str().as_bytes().escape_ascii()
}

/// One connection.
#[derive(Debug)]
pub struct LocalStream(UnixStream);

impl LocalStream {
    /// Two ends of one connection within this process.
    pub fn pair() -> io::Result<(Self, Self)> {
        UnixStream::pair().map(|(one, other)| (Self(one), Self(other)))
    }

    /// Another handle of the same end.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Ends the connection in both directions; whoever waits for it, in any thread, wakes.
    pub fn shut_down(&self) {
        // It may have been ended by the other side.
        let _ = self.0.shutdown(Shutdown::Both);
    }

    /// Lets a read fail with `WouldBlock` that the other side has nothing for within this time.
    pub fn limit_reads(&self, most: Duration) -> io::Result<()> {
        self.0.set_read_timeout(Some(most))
    }

    /// Lets a write fail that the other side does not take within this time.
    pub fn limit_writes(&self, most: Duration) -> io::Result<()> {
        self.0.set_write_timeout(Some(most))
    }
}

impl Read for &LocalStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(buffer)
    }
}

impl Write for &LocalStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for LocalStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }
}

impl Write for LocalStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for LocalStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Connects to the socket `name` in the open directory, whose path is `path`; `None` if nobody listens there.
pub fn connect(dir: &Dir, path: &Path, name: &str) -> Result<Option<LocalStream>, SocketError> {
    let full = path.join(name);
    match host::socket_path(dir, path, name).and_then(UnixStream::connect) {
        Ok(stream) if is_ours(&stream) => Ok(Some(LocalStream(stream))),
        Ok(_) => Err(SocketError::Stranger(full)),
        Err(error) if means_nobody(&error) => Ok(None),
        Err(source) => Err(SocketError::Connect { path: full, source }),
    }
}

/// No such name, or a socket file whose process is gone.
fn means_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// Whether the other end is of our own user. Root is another one: whoever can be root needs no socket of ours.
fn is_ours(stream: &UnixStream) -> bool {
    host::peer_uid(stream).is_ok_and(|uid| uid == geteuid().as_raw())
}

/// A socket that can be connected to; connections wait until [`LocalListener::start`].
#[derive(Debug)]
pub struct LocalListener {
    listener: UnixListener,
    dir: Dir,
    name: String,
    /// The socket's file, so that only our own is taken away.
    file: Option<FileId>,
}

impl LocalListener {
    /// Listens at `name` in the open directory, whose path is `path`. A socket that has the name is taken away: only for
    /// whoever is sure that its process is gone, or is to be cut off.
    pub fn replace(dir: &Dir, path: &Path, name: &str) -> Result<Self, SocketError> {
        match dir.stat(name.as_bytes())?.map(|stat| stat.file_type) {
            None => {}
            Some(FileType::Socket) => dir.unlink(name.as_bytes())?,
            Some(_) => return Err(SocketError::Taken(path.join(name))),
        }
        Self::bind(dir, path, name)
    }

    /// Listens at a path the person gave, and takes the place of a socket there at which nobody listens.
    pub fn at(path: &Path) -> Result<Self, SocketError> {
        let bad = || SocketError::Bind { path: path.to_path_buf(), source: io::ErrorKind::InvalidInput.into() };
        let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(bad)?;
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let dir = Dir::open_ambient(folder)?;
        if let Some(stat) = dir.stat(name.as_bytes())? {
            if stat.file_type != FileType::Socket {
                return Err(SocketError::Taken(path.to_path_buf()));
            }
            match connect(&dir, folder, name) {
                Ok(None) => dir.unlink(name.as_bytes())?,
                Ok(Some(_)) | Err(SocketError::Stranger(_)) => return Err(SocketError::Live(path.to_path_buf())),
                Err(error) => return Err(error),
            }
        }
        Self::bind(&dir, folder, name)
    }

    fn bind(dir: &Dir, path: &Path, name: &str) -> Result<Self, SocketError> {
        let failed = |source| SocketError::Bind { path: path.join(name), source };
        let at = host::socket_path(dir, path, name).map_err(failed)?;
        let listener = UnixListener::bind(&at).map_err(failed)?;
        // Not what keeps others out (every peer's user is looked at), but what a listing should show.
        fs::chmodat(dir, name, Mode::RUSR | Mode::WUSR, fs::AtFlags::empty()).map_err(|errno| failed(errno.into()))?;
        listener.set_nonblocking(true).map_err(failed)?;
        let file = dir.stat(name.as_bytes())?.map(|stat| stat.id);
        Ok(Self { listener, dir: dir.try_clone()?, name: name.to_owned(), file })
    }

    /// Gives every connection of our own user to `out`, from a thread of its own, until that returns `false` or the
    /// result is dropped.
    pub fn start(self, out: Box<dyn FnMut(LocalStream) -> bool + Send>) -> Result<Listening, SocketError> {
        let (bell, rope) = UnixStream::pair().map_err(SocketError::Thread)?;
        let listener = self.listener.try_clone().map_err(SocketError::Thread)?;
        let thread = thread::Builder::new()
            .name("listener".to_owned())
            .spawn(move || accept_all(&listener, &bell, out))
            .map_err(SocketError::Thread)?;
        Ok(Listening { thread: Some(thread), rope: Some(rope), listener: self })
    }
}

impl Drop for LocalListener {
    fn drop(&mut self) {
        let name = self.name.as_bytes();
        let ours = self.dir.stat(name).ok().flatten().map(|stat| stat.id);
        if ours.is_some() && ours == self.file {
            // Whoever connects from now on learns that nobody is there; a file that stays says the same.
            let _ = self.dir.unlink(name);
        }
    }
}

/// Accepts connections until it is dropped; then the socket's file is gone, too.
#[derive(Debug)]
#[must_use]
pub struct Listening {
    thread: Option<JoinHandle<()>>,
    /// Wakes the thread when it is dropped.
    rope: Option<UnixStream>,
    listener: LocalListener,
}

impl Listening {
    /// The file's name.
    pub fn name(&self) -> &str {
        &self.listener.name
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.rope = None;
        if let Some(thread) = self.thread.take() {
            // A panic in it has been reported by its thread.
            let _ = thread.join();
        }
    }
}

fn accept_all(listener: &UnixListener, bell: &UnixStream, mut out: Box<dyn FnMut(LocalStream) -> bool + Send>) {
    loop {
        let mut both = [PollFd::new(listener, PollFlags::IN), PollFd::new(bell, PollFlags::IN)];
        let woken = poll(&mut both, None);
        if !both[1].revents().is_empty() {
            return;
        }
        if woken.is_err() {
            continue;
        }
        match listener.accept() {
            Ok((stream, _)) => {
                // Some systems let it inherit that the listener does not wait.
                if is_ours(&stream) && stream.set_nonblocking(false).is_ok() && !out(LocalStream(stream)) {
                    return;
                }
            }
            Err(error) if is_passing(&error) => {}
            // No descriptor or memory left: the connection still waits, and asking again at once would only burn time.
            Err(_) => {
                let within = Timespec::try_from(RECOVER).expect("100 ms fit");
                if poll(&mut [PollFd::new(bell, PollFlags::IN)], Some(&within)).is_ok_and(|rung| rung > 0) {
                    return;
                }
            }
        }
    }
}

/// The connection was gone before it was taken, or nothing came.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionAborted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Instant;

    struct Lab {
        folder: tempfile::TempDir,
        dir: Dir,
    }

    fn lab() -> Lab {
        let folder = tempfile::tempdir().expect("makes a folder");
        let dir = Dir::open_ambient(folder.path()).expect("opens it");
        Lab { folder, dir }
    }

    impl Lab {
        fn listen(&self) -> (Listening, Receiver<LocalStream>) {
            started(LocalListener::replace(&self.dir, self.folder.path(), "socket").expect("listens"))
        }

        fn connect(&self) -> Option<LocalStream> {
            connect(&self.dir, self.folder.path(), "socket").expect("connects or not")
        }
    }

    fn started(listener: LocalListener) -> (Listening, Receiver<LocalStream>) {
        let (sender, accepted) = channel();
        (listener.start(Box::new(move |stream| sender.send(stream).is_ok())).expect("starts"), accepted)
    }

    fn talk(mut client: LocalStream, accepted: &Receiver<LocalStream>) {
        let mut server = accepted.recv_timeout(Duration::from_secs(5)).expect("accepted within 5 s");
        client.write_all(b"hello").expect("writes");
        let mut heard = [0; 5];
        server.read_exact(&mut heard).expect("reads");
        assert_eq!(&heard, b"hello");
    }

    #[test]
    fn a_client_finds_the_listener_by_its_name_in_the_folder() {
        let lab = lab();
        assert!(lab.connect().is_none(), "nobody listens yet");
        let (listening, accepted) = lab.listen();
        talk(lab.connect().expect("connects"), &accepted);
        let mode = std::fs::metadata(lab.folder.path().join("socket")).expect("is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(listening);
        assert!(lab.connect().is_none(), "nobody listens any more");
        assert!(lab.dir.stat(b"socket").expect("stats").is_none(), "the file is gone");
    }

    #[test]
    fn a_file_that_a_dead_listener_left_is_replaced_and_anything_else_is_not() {
        let lab = lab();
        let path = lab.folder.path().join("socket");
        drop(UnixListener::bind(&path).expect("binds"));
        assert!(path.exists(), "std leaves the file");
        assert!(lab.connect().is_none());
        let (listening, accepted) = lab.listen();
        talk(lab.connect().expect("connects"), &accepted);
        drop(listening);
        std::fs::write(&path, "notes").expect("writes");
        let refused = LocalListener::replace(&lab.dir, lab.folder.path(), "socket");
        assert!(matches!(refused, Err(SocketError::Taken(_))), "{refused:?}");
        assert_eq!(std::fs::read(&path).expect("reads"), b"notes");
    }

    #[test]
    fn a_path_at_which_somebody_listens_is_not_taken_over() {
        let lab = lab();
        let path = lab.folder.path().join("chosen");
        let (listening, accepted) = started(LocalListener::at(&path).expect("listens"));
        let second = LocalListener::at(&path);
        assert!(matches!(second, Err(SocketError::Live(_))), "{second:?}");
        drop(accepted.recv_timeout(Duration::from_secs(5)).expect("the second one's look"));
        talk(connect(&lab.dir, lab.folder.path(), "chosen").expect("connects").expect("listens"), &accepted);
        drop(listening);
        drop(UnixListener::bind(&path).expect("binds"));
        // A child that another test is just starting may have the dead one's descriptor for a moment.
        let deadline = Instant::now() + Duration::from_secs(5);
        let successor = loop {
            match LocalListener::at(&path) {
                Err(SocketError::Live(_)) if Instant::now() < deadline => thread::yield_now(),
                other => break other.expect("takes the place of the dead one"),
            }
        };
        let (_listening, accepted) = started(successor);
        talk(connect(&lab.dir, lab.folder.path(), "chosen").expect("connects").expect("listens"), &accepted);
    }

    #[test]
    fn the_successors_file_is_not_taken_away() {
        let lab = lab();
        let (first, _) = lab.listen();
        let (_second, accepted) = lab.listen();
        drop(first);
        talk(lab.connect().expect("the second one is there"), &accepted);
    }

    #[test]
    fn a_shut_down_wakes_whoever_reads() {
        let (here, there) = LocalStream::pair().expect("a pair");
        let reader = thread::spawn(move || (&there).read(&mut [0; 8]).expect("ends"));
        here.shut_down();
        assert_eq!(reader.join().expect("ends"), 0);
    }
}
