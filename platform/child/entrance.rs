//! The child's own side: taking what it was given, and letting go of the rest.
//!
//! Promise: after [`enter`] the process has the channel, the folder, and the null device three times; no terminal, no
//! other descriptor, and on Linux a signal that ends it with its parent.

use std::fs::File;
use std::io;

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{getppid, setsid};
use rustix::stdio;

use crate::dir::{Dir, FsError, stat_of};
use crate::host;
use crate::stat::FileType;

/// Why a process is no child that [`super::Child::start`] started, or cannot be one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EntranceError {
    /// Standard input is no socket, or standard output no directory.
    #[error("this process was not started by another of this program")]
    NotAChild,
    /// Inherited descriptors could not be closed.
    #[error("cannot close what was inherited")]
    Close(#[source] io::Error),
    /// The end of the parent could not be made ours.
    #[error("cannot be bound to the parent")]
    Bind(#[source] io::Error),
    /// The terminal could not be left.
    #[error("cannot leave the terminal")]
    Session(#[source] io::Error),
    /// The channel could not be taken.
    #[error("cannot take the channel")]
    Channel(#[source] io::Error),
    /// The folder could not be taken.
    #[error("cannot take the folder")]
    Folder(#[source] FsError),
    /// The null device could not take their places.
    #[error("cannot open the null device")]
    Null(#[source] io::Error),
}

/// What a child was given.
#[derive(Debug)]
pub struct Entrance {
    /// The channel to its parent.
    pub channel: File,
    /// The folder.
    pub folder: Dir,
    /// The parent's number, read after its end had become ours: a parent that was gone by then has another.
    pub parent: u32,
}

/// Takes them. To be called first thing in a process, before it opens anything or starts a thread.
pub fn enter() -> Result<Entrance, EntranceError> {
    let type_of = |fd| stat_of(fd).ok().map(|stat| stat.file_type);
    let given = (type_of(stdio::stdin()), type_of(stdio::stdout()));
    if given != (Some(FileType::Socket), Some(FileType::Directory)) {
        return Err(EntranceError::NotAChild);
    }
    host::close_inherited(3).map_err(EntranceError::Close)?;
    host::end_with_parent().map_err(EntranceError::Bind)?;
    let parent = getppid().map_or(0, |pid| pid.as_raw_nonzero().get().unsigned_abs());
    // Keys for the parent's terminal are signals to its group; and a terminal is nothing for us to write to.
    setsid().map_err(|errno| EntranceError::Session(errno.into()))?;
    let channel =
        rustix::io::fcntl_dupfd_cloexec(stdio::stdin(), 3).map_err(|errno| EntranceError::Channel(errno.into()))?;
    let folder = rustix::io::fcntl_dupfd_cloexec(stdio::stdout(), 3)
        .map(Dir::from)
        .map_err(|errno| EntranceError::Channel(errno.into()))?
        // The parent goes on listing through its own handle, and the two would share one position.
        .reopen()
        .map_err(EntranceError::Folder)?;
    open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .and_then(|null| {
            stdio::dup2_stdin(&null)?;
            stdio::dup2_stdout(&null)?;
            stdio::dup2_stderr(&null)
        })
        .map_err(|errno| EntranceError::Null(errno.into()))?;
    host::name_process(c"keep-files");
    Ok(Entrance { channel: File::from(channel), folder, parent })
}
