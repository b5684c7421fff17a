//! Reads what is typed, in pieces that belong together.
//!
//! Promise: bytes that come within [`TOGETHER`] of the one before are one piece, so that a paste cut by the network does
//! not look like single keys; only Ctrl-C is passed on at once. Nothing is read while another job has the terminal, and
//! what was typed meanwhile is thrown away.
//! Limit: the moment of a piece is when it was read, which is later than when it was typed if we were not running.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::termios::{QueueSelector, tcflush, tcgetattr};

use super::modes::in_background;
use crate::clock::{Clock, Moment, SystemClock};
use crate::host;

/// The longest gap within a piece.
const TOGETHER: Duration = Duration::from_millis(25);

/// The longest a piece may take in all; a longer paste comes in several.
const PIECE: Duration = Duration::from_millis(200);

/// How often we look whether the terminal is ours again, while it is not.
const BACKGROUND: Duration = Duration::from_millis(200);

/// What the terminal says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputEvent {
    /// Bytes that came together.
    Bytes {
        /// The bytes.
        bytes: Vec<u8>,
        /// When the first of them was read.
        at: Moment,
    },
    /// The terminal is ours again after another job had it: make it raw ([`super::Terminal::resume`]) and draw anew.
    Foreground,
    /// There is no terminal any more. The last event.
    HungUp,
}

/// Wakes the thread that reads.
#[derive(Debug)]
pub(super) struct Wake {
    reader: UnixStream,
    writer: UnixStream,
}

impl Wake {
    pub(super) fn new() -> io::Result<Self> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        Ok(Self { reader, writer })
    }

    /// Lets the thread look whether we are in the background. A full socket wakes as well.
    pub(super) fn ring(&self) {
        let _full_is_fine = rustix::io::write(&self.writer, b"!");
    }

    fn clear(&self) {
        let mut rings = [0; 64];
        while rustix::io::read(&self.reader, &mut rings).is_ok_and(|count| count > 0) {}
    }
}

/// Reads until the terminal hangs up.
pub(super) fn read(fd: &OwnedFd, wake: &Wake, out: &dyn Fn(InputEvent)) {
    loop {
        if in_background(fd) {
            while in_background(fd) {
                thread::sleep(BACKGROUND);
            }
            let _nothing_to_do = tcflush(fd, QueueSelector::IFlush);
            out(InputEvent::Foreground);
        }
        if !wait(fd, wake) || in_background(fd) {
            continue;
        }
        match piece(fd) {
            Ok(Some((bytes, at))) => out(InputEvent::Bytes { bytes, at }),
            // The end of a line mode input (Ctrl-D before we were raw), or a background read, is not the end of it all.
            Ok(None) | Err(Errno::IO) if tcgetattr(fd).is_ok() => thread::sleep(TOGETHER),
            Ok(None) => return out(InputEvent::HungUp),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return out(InputEvent::HungUp),
        }
    }
}

/// Waits for something to read; `false` if it was only a ring.
fn wait(fd: &OwnedFd, wake: &Wake) -> bool {
    match host::readable([fd.as_fd(), wake.reader.as_fd()], None) {
        Ok([_, false]) => true,
        Ok([is_ready, true]) => {
            wake.clear();
            is_ready
        }
        Err(_) => false,
    }
}

/// One piece and when it began; `None` at the end of the input.
fn piece(fd: &OwnedFd) -> Result<Option<(Vec<u8>, Moment)>, Errno> {
    let mut buffer = [0; 4096];
    let count = rustix::io::read(fd, &mut buffer)?;
    let at = SystemClock.now();
    let mut bytes = buffer[..count].to_vec();
    if bytes == [CTRL_C] {
        return Ok(Some((bytes, at)));
    }
    while count > 0 && bytes.len() < buffer.len() && SystemClock.now() < at + PIECE && follows(fd) {
        match rustix::io::read(fd, &mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(more) => bytes.extend_from_slice(&buffer[..more]),
        }
    }
    Ok((count > 0).then_some((bytes, at)))
}

fn follows(fd: &OwnedFd) -> bool {
    host::readable([fd.as_fd()], Some(TOGETHER)) == Ok([true])
}

const CTRL_C: u8 = 0x03;
