//! Our end of the channel to a child.
//!
//! Promise: no call waits beyond the time that was allowed; then it fails with `TimedOut`.
//! Source: poll(2), unix(7).

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};

use crate::clock::{Clock, Moment, SystemClock};

/// A stream to a child and from it.
#[derive(Debug)]
pub struct Channel {
    stream: UnixStream,
    until: Moment,
}

impl Channel {
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, until: Moment::default() })
    }

    /// Lets everything from now on take so long together.
    pub fn allow(&mut self, time: Duration) {
        self.until = SystemClock.now() + time;
    }

    /// Whether there is neither anything to read nor an end.
    pub(super) fn is_quiet(&self) -> bool {
        retry_on_intr(|| self.wait(PollFlags::IN, Duration::ZERO)) == Ok(false)
    }

    pub(super) fn shut(&self, how: Shutdown) -> io::Result<()> {
        self.stream.shutdown(how)
    }

    /// Whether the stream is ready, or has ended, within the time.
    fn wait(&self, what: PollFlags, time: Duration) -> Result<bool, Errno> {
        let time =
            Timespec { tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX), tv_nsec: time.subsec_nanos().into() };
        Ok(poll(&mut [PollFd::new(&self.stream, what)], Some(&time))? > 0)
    }

    fn when_ready<T>(
        &mut self,
        what: PollFlags,
        mut act: impl FnMut(&mut UnixStream) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            match act(&mut self.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                done => return done,
            }
            let left = self.until.since(SystemClock.now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match self.wait(what, left) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

impl Read for Channel {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.when_ready(PollFlags::IN, |stream| stream.read(buffer))
    }
}

impl Write for Channel {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.when_ready(PollFlags::OUT, |stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Channel, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("makes a pair");
        (Channel::new(ours).expect("sets a flag"), theirs)
    }

    #[test]
    fn nobody_waits_longer_than_was_allowed() {
        let (mut channel, _theirs) = pair();
        channel.allow(Duration::from_millis(10));
        let read = channel.read(&mut [0; 8]).expect_err("nothing comes");
        assert_eq!(read.kind(), io::ErrorKind::TimedOut);
        let most = vec![0; 16 << 20];
        let written = channel.write_all(&most).expect_err("nobody takes it");
        assert_eq!(written.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn much_goes_through_in_both_directions_though_no_end_holds_it_all() {
        let (mut channel, mut theirs) = pair();
        let most: Vec<u8> = (0..4_000_000_u32).map(|at| at as u8).collect();
        let echo = std::thread::spawn(move || {
            let mut heard = vec![0; 4_000_000];
            theirs.read_exact(&mut heard).expect("reads");
            theirs.write_all(&heard).expect("writes");
        });
        channel.allow(Duration::from_secs(40));
        channel.write_all(&most).expect("writes");
        let mut back = vec![0; most.len()];
        channel.read_exact(&mut back).expect("reads");
        assert!(back == most);
        echo.join().expect("ends");
    }

    #[test]
    fn an_end_and_something_unread_are_no_quiet() {
        let (channel, mut theirs) = pair();
        assert!(channel.is_quiet());
        theirs.write_all(b"x").expect("writes");
        assert!(!channel.is_quiet());
        let (channel, theirs) = pair();
        drop(theirs);
        assert!(!channel.is_quiet());
    }
}
