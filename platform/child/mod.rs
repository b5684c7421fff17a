//! A process of this very program: with one channel to us, the handle of one folder, and nothing else of ours.
//!
//! Promise: the child has an empty environment, no terminal, no descriptor but these, `/` as its working directory, and no
//! path to the folder. When it is dropped it is gone; when we are killed it is gone too, on Linux by a signal of the
//! kernel's, elsewhere when it next reads from the channel. It is reaped as soon as it ends.
//! Limit: between fork and exec it is a copy of us, as any child is.
//! Source: execve(2), socketpair(2), PR_SET_PDEATHSIG(2const), setsid(2), waitid(2).

mod channel;
mod entrance;

use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, mpsc};
use std::thread;
use std::time::Duration;

use rustix::io::retry_on_intr;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::dir::Dir;
use crate::host;

pub use channel::Channel;
pub use entrance::{Entrance, EntranceError, enter};

/// How long a child that is to end by itself may take.
const GRACE: Duration = Duration::from_secs(1);

/// Why there is no child.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChildError {
    /// The channel could not be made.
    #[error("cannot make a channel")]
    Channel(#[source] io::Error),
    /// The folder's handle could not be duplicated.
    #[error("cannot duplicate the handle of the folder")]
    Folder(#[source] io::Error),
    /// It is not known where this program is.
    #[error("cannot tell where this program is")]
    Program(#[source] io::Error),
    /// A thread could not be started.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
    /// The process could not be started.
    #[error("cannot start a process of this program")]
    Start(#[source] io::Error),
}

/// A running child, or one that has ended.
#[derive(Debug)]
pub struct Child {
    channel: Channel,
    life: Arc<Life>,
    pid: u32,
}

/// The process while it has not been reaped, so that its number is nobody else's.
#[derive(Debug)]
struct Life {
    process: Mutex<Option<std::process::Child>>,
    gone: Condvar,
}

type Running<'l> = MutexGuard<'l, Option<std::process::Child>>;

impl Life {
    fn lock(&self) -> Running<'_> {
        self.process.lock().expect("no holder of this lock panics")
    }

    /// Waits until it is reaped, but no longer than this.
    fn wait<'l>(&'l self, running: Running<'l>, time: Duration) -> Running<'l> {
        let waited = self.gone.wait_timeout_while(running, time, |process| process.is_some());
        waited.expect("no holder of this lock panics").0
    }
}

impl Child {
    /// Starts this program with the one argument.
    pub fn start(argument: &str, folder: &Dir) -> Result<Self, ChildError> {
        let (ours, theirs) = UnixStream::pair().map_err(ChildError::Channel)?;
        let channel = Channel::new(ours).map_err(ChildError::Channel)?;
        let folder = folder.as_fd().try_clone_to_owned().map_err(ChildError::Folder)?;
        let program = host::own_program().map_err(ChildError::Program)?;
        let mut command = Command::new(program);
        command
            .arg0("keep")
            .arg(argument)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
            .stdout(Stdio::from(folder))
            .stderr(Stdio::null());

        // The kernel's signal comes when the *thread* that made the child ends, so that thread lives as long as the child.
        let (tell, told) = mpsc::channel();
        thread::Builder::new().name("child".into()).spawn(move || keep(command, &tell)).map_err(ChildError::Thread)?;
        let (life, pid) = match told.recv() {
            Ok(started) => started.map_err(ChildError::Start)?,
            Err(mpsc::RecvError) => return Err(ChildError::Start(io::ErrorKind::Other.into())),
        };
        Ok(Self { channel, life, pid })
    }

    /// Its number; that of nobody, or of somebody else, once it has ended.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The channel to it.
    pub fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }

    /// Whether it runs and has said nothing that was not read.
    pub fn is_idle(&self) -> bool {
        self.life.lock().is_some() && self.channel.is_quiet()
    }

    /// Kills it, and returns when it is gone.
    pub fn kill(self) {
        self.end(Duration::ZERO);
    }

    fn end(&self, grace: Duration) {
        // The end of its input: it has nothing more to do.
        let _ = self.channel.shut(Shutdown::Both);
        let running = self.life.lock();
        let mut running = if grace.is_zero() { running } else { self.life.wait(running, grace) };
        if let Some(process) = running.as_mut() {
            let _ = process.kill();
            drop(self.life.wait(running, GRACE));
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.end(GRACE);
    }
}

type Started = io::Result<(Arc<Life>, u32)>;

/// Starts the process, waits for its end, and reaps it.
fn keep(mut command: Command, tell: &mpsc::Sender<Started>) {
    let process = match command.spawn() {
        Ok(process) => process,
        Err(error) => return drop(tell.send(Err(error))),
    };
    // Its end of the channel: as long as we had one too, its end would not be ours to see.
    drop(command);
    let pid = process.id();
    let life = Arc::new(Life { process: Mutex::new(Some(process)), gone: Condvar::new() });
    // Where nobody waits for the news any more, the channel is closed already and the child ends by itself.
    let _ = tell.send(Ok((Arc::clone(&life), pid)));
    if let Some(id) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // Without reaping: until that is done under the lock, its number cannot be given to another process.
        let _ = retry_on_intr(|| waitid(WaitId::Pid(id), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT));
    }
    let mut process = life.lock();
    if let Some(mut ended) = process.take() {
        let _ = ended.wait();
    }
    life.gone.notify_all();
}
