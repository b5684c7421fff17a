//! What the watch and its guardian say to each other: packets of a few bytes, and at most one descriptor.
//!
//! Promise: any bytes are taken; what is no message is none.

use crate::flags::FlagError;

/// What the watch says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Make the object immutable.
    Set,
    /// Take that off again.
    Clear,
    /// Take it off though an earlier guardian set it. Only before [`Request::Begin`].
    ClearEarlier,
    /// The watch begins: only what is set from now on is taken off.
    Begin,
    /// The first open waits (`true`), or none does any more. Needs no reply.
    Waits(bool),
}

impl Request {
    /// As a packet.
    pub fn encode(self) -> [u8; 1] {
        [match self {
            Request::Set => b'S',
            Request::Clear => b'C',
            Request::ClearEarlier => b'E',
            Request::Begin => b'B',
            Request::Waits(true) => b'W',
            Request::Waits(false) => b'N',
        }]
    }

    /// From a packet.
    pub fn decode(packet: &[u8]) -> Option<Self> {
        Some(match packet {
            b"S" => Request::Set,
            b"C" => Request::Clear,
            b"E" => Request::ClearEarlier,
            b"B" => Request::Begin,
            b"W" => Request::Waits(true),
            b"N" => Request::Waits(false),
            _ => return None,
        })
    }
}

/// The longest reply.
pub const LONGEST: usize = 512;

/// What the guardian says.
#[derive(Debug)]
pub enum Reply {
    /// It is confined and keeps watch. Said once, at the start.
    Ready,
    /// It could not confine itself, and has ended. Said once, instead.
    Unfit(String),
    /// What came of a request.
    Done(Result<(), FlagError>),
}

impl Reply {
    /// As a packet. Of a long text, the beginning.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Reply::Ready => vec![b'R'],
            Reply::Unfit(text) => {
                let mut packet = vec![b'!'];
                packet.extend(text.bytes().take(LONGEST - 1));
                packet
            }
            Reply::Done(Ok(())) => vec![b'D'],
            Reply::Done(Err(error)) => match error {
                FlagError::Unsupported => vec![b'U'],
                FlagError::Already => vec![b'A'],
                FlagError::NotOurs | FlagError::Gone => vec![b'N'],
                FlagError::Failed(error) => {
                    let mut packet = vec![b'F'];
                    packet.extend(error.raw_os_error().unwrap_or(0).to_ne_bytes());
                    packet
                }
            },
        }
    }

    /// From a packet.
    pub fn decode(packet: &[u8]) -> Option<Self> {
        let (&kind, rest) = packet.split_first()?;
        Some(match kind {
            b'R' => Reply::Ready,
            b'!' => Reply::Unfit(String::from_utf8_lossy(rest).into_owned()),
            b'D' => Reply::Done(Ok(())),
            b'U' => Reply::Done(Err(FlagError::Unsupported)),
            b'A' => Reply::Done(Err(FlagError::Already)),
            b'N' => Reply::Done(Err(FlagError::NotOurs)),
            b'F' => {
                let number = i32::from_ne_bytes(rest.try_into().ok()?);
                Reply::Done(Err(FlagError::Failed(std::io::Error::from_raw_os_error(number))))
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_comes_out_as_it_went_in() {
        use Request::{Begin, Clear, ClearEarlier, Set, Waits};
        for request in [Set, Clear, ClearEarlier, Begin, Waits(true), Waits(false)] {
            assert_eq!(Request::decode(&request.encode()), Some(request));
        }
        let done = |error| Reply::Done(Err(error));
        for reply in [
            Reply::Ready,
            Reply::Unfit("cannot".into()),
            Reply::Done(Ok(())),
            done(FlagError::Unsupported),
            done(FlagError::Already),
            done(FlagError::NotOurs),
            done(FlagError::Failed(std::io::Error::from_raw_os_error(28))),
        ] {
            let again = Reply::decode(&reply.encode()).expect("it is one");
            assert_eq!(format!("{again:?}"), format!("{reply:?}"));
        }
    }

    #[test]
    fn a_long_text_is_cut_to_what_is_read() {
        let reply = Reply::Unfit("x".repeat(LONGEST));
        assert_eq!(reply.encode().len(), LONGEST);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_taken(packet in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..12)) {
            Request::decode(&packet);
            Reply::decode(&packet);
        }
    }
}
