//! What the terminal has not taken yet; pure.
//!
//! Promise: bounded, in order, and never cut in the middle of a piece of which a part was written: half an escape sequence
//! would spoil what follows. Limit: when it overflows, everything not begun is given up, and that is said once, when the
//! terminal takes bytes again, so that the caller can draw anew.

use std::collections::VecDeque;
use std::io;

/// The most that is kept.
const MOST_BYTES: usize = 64 * 1024;

/// How a write went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum WriteState {
    /// The terminal took everything.
    Written,
    /// The terminal takes nothing at present; the rest is kept.
    Pending,
    /// The terminal took everything that was kept, but some was given up before: draw anew. Said once.
    Lost,
    /// There is no terminal any more.
    HungUp,
}

/// Pieces in order.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    pieces: VecDeque<Piece>,
    bytes: usize,
    lost: bool,
}

#[derive(Debug)]
struct Piece {
    bytes: Vec<u8>,
    written: usize,
    passing: bool,
}

impl Backlog {
    /// Adds bytes that must be written.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.add(bytes, false);
    }

    /// Adds bytes that only matter until others come.
    pub(super) fn push_passing(&mut self, bytes: &[u8]) {
        self.add(bytes, true);
    }

    /// Whether nothing is left to write.
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty() && !self.lost
    }

    fn add(&mut self, bytes: &[u8], passing: bool) {
        // Not while something was lost: what comes after a gap may move the cursor over what is not there.
        if self.lost || bytes.is_empty() {
            return;
        }
        // At most one passing piece, and at the end: this one takes its place.
        if self.pieces.back().is_some_and(|last| last.passing && last.written == 0) {
            let last = self.pieces.pop_back().expect("it was just looked at");
            self.bytes -= last.bytes.len();
        }
        self.bytes += bytes.len();
        self.pieces.push_back(Piece { bytes: bytes.to_vec(), written: 0, passing });
    }

    /// Hands pieces to `write`, which returns how many bytes were taken, or `WouldBlock`, or that the terminal is gone.
    pub(super) fn drain(&mut self, mut write: impl FnMut(&[u8]) -> io::Result<usize>) -> WriteState {
        while let Some(piece) = self.pieces.front_mut() {
            match write(&piece.bytes[piece.written..]) {
                Ok(taken) => {
                    piece.written += taken;
                    self.bytes -= taken;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.limit();
                    return WriteState::Pending;
                }
                Err(_) => {
                    self.pieces.clear();
                    self.bytes = 0;
                    return WriteState::HungUp;
                }
            }
            if piece.written == piece.bytes.len() {
                self.pieces.pop_front();
            }
        }
        if std::mem::take(&mut self.lost) { WriteState::Lost } else { WriteState::Written }
    }

    fn limit(&mut self) {
        if self.bytes > MOST_BYTES {
            self.lost = true;
            self.pieces.retain(|piece| piece.written > 0);
            self.bytes = self.pieces.iter().map(|piece| piece.bytes.len() - piece.written).sum();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A terminal that takes that many bytes and then no more.
    fn takes<'a>(room: usize, seen: &'a mut Vec<u8>) -> impl FnMut(&[u8]) -> io::Result<usize> + 'a {
        let mut room = room;
        move |bytes| {
            if room == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let taken = bytes.len().min(room);
            room -= taken;
            seen.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }
    }

    #[test]
    fn pieces_come_out_in_order_and_whole() {
        let (mut backlog, mut seen) = (Backlog::default(), Vec::new());
        backlog.push(b"one ");
        backlog.push(b"two");
        assert_eq!(backlog.drain(takes(5, &mut seen)), WriteState::Pending);
        assert!(!backlog.is_empty());
        assert_eq!(backlog.drain(takes(99, &mut seen)), WriteState::Written);
        assert_eq!(seen, b"one two");
        assert!(backlog.is_empty());
    }

    #[test]
    fn only_the_latest_countdown_is_kept() {
        let (mut backlog, mut seen) = (Backlog::default(), Vec::new());
        backlog.push(b"question");
        for tick in [b"[9]", b"[8]", b"[7]"] {
            backlog.push_passing(tick);
        }
        assert_eq!(backlog.drain(takes(99, &mut seen)), WriteState::Written);
        assert_eq!(seen, b"question[7]");
    }

    #[test]
    fn a_countdown_that_was_begun_is_finished_and_one_that_was_not_gives_way() {
        let (mut backlog, mut seen) = (Backlog::default(), Vec::new());
        backlog.push_passing(b"[9]");
        assert_eq!(backlog.drain(takes(1, &mut seen)), WriteState::Pending);
        backlog.push_passing(b"[8]");
        backlog.push(b"line");
        assert_eq!(backlog.drain(takes(99, &mut seen)), WriteState::Written);
        assert_eq!(seen, b"[9]line");
    }

    #[test]
    fn an_overflow_gives_up_what_was_not_begun_and_says_so_once() {
        let (mut backlog, mut seen) = (Backlog::default(), Vec::new());
        for _ in 0..40 {
            backlog.push(&[b'x'; 2000]);
        }
        assert_eq!(backlog.drain(takes(1, &mut seen)), WriteState::Pending);
        assert_eq!(backlog.bytes, 1999);
        backlog.push(b"after the gap");
        assert!(!backlog.is_empty());
        assert_eq!(backlog.drain(takes(9999, &mut seen)), WriteState::Lost);
        assert_eq!(seen, [b'x'; 2000]);
        backlog.push(b"anew");
        assert_eq!(backlog.drain(takes(9999, &mut seen)), WriteState::Written);
    }

    #[test]
    fn a_terminal_that_is_gone_is_told_and_nothing_is_kept() {
        let mut backlog = Backlog::default();
        backlog.push(b"x");
        let gone = |_: &[u8]| Err(io::Error::from_raw_os_error(libc::EIO));
        assert_eq!(backlog.drain(gone), WriteState::HungUp);
        assert!(backlog.is_empty());
    }
}
