//! Messages on a stream: four bytes of length, little end first, and so many bytes of JSON.
//!
//! Promise: a message that is longer than allowed is an error before a byte of it is kept, and what does not parse is an
//! error that names the place; neither takes more memory than the message itself. What parses takes a few times the memory
//! of its text, since its values are counted first.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest message: a `file_write` of its most bytes, every one of them escaped as JSON escapes a control character.
pub const MAX_FRAME: usize = 6 * (16 << 20) + (1 << 20);

/// The most values in one message: twice what the longest listing of a directory holds. A value is written in two bytes,
/// and takes more than a hundred once it is parsed.
pub const MAX_VALUES: usize = 1 << 18;

/// Whether a text, if it is JSON, holds more than [`MAX_VALUES`]. Every value but the first follows a comma or is the first
/// of an array or an object.
pub fn holds_too_much(json: &[u8]) -> bool {
    let (mut values, mut in_string, mut is_escaped) = (0_usize, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => values += 1,
            _ => {}
        }
    }
    values > MAX_VALUES
}

/// Why a message was not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The other side has closed the stream, between two messages.
    #[error("the other side has closed the connection")]
    Closed,
    /// It says it is longer than any message may be.
    #[error("a message of {bytes} bytes is longer than any may be")]
    TooLong {
        /// What it says.
        bytes: u32,
    },
    /// It holds more than any message does.
    #[error("a message of more values than any may have")]
    TooMuch,
    /// The stream failed, or ended within a message.
    #[error("cannot read a message")]
    Read(#[source] io::Error),
    /// It is no message.
    #[error("a message that is none")]
    Malformed(#[source] serde_json::Error),
}

/// Reads one message; waits for it.
pub fn read<T: DeserializeOwned>(stream: &mut impl Read) -> Result<T, FrameError> {
    let mut length = [0; 4];
    let mut filled = 0;
    while filled < length.len() {
        match stream.read(&mut length[filled..]) {
            Ok(0) if filled == 0 => return Err(FrameError::Closed),
            Ok(0) => return Err(FrameError::Read(io::ErrorKind::UnexpectedEof.into())),
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(FrameError::Read(error)),
        }
    }
    let bytes = u32::from_le_bytes(length);
    if bytes as usize > MAX_FRAME {
        return Err(FrameError::TooLong { bytes });
    }
    let mut message = Vec::new();
    // Grows with what really comes: a length alone takes no memory.
    stream.take(u64::from(bytes)).read_to_end(&mut message).map_err(FrameError::Read)?;
    if message.len() < bytes as usize {
        return Err(FrameError::Read(io::ErrorKind::UnexpectedEof.into()));
    }
    if holds_too_much(&message) {
        return Err(FrameError::TooMuch);
    }
    serde_json::from_slice(&message).map_err(FrameError::Malformed)
}

/// Writes one message.
pub fn write(stream: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = bytes.len() - 4;
    if length > MAX_FRAME {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a message longer than any may be"));
    }
    let length = u32::try_from(length).expect("the longest message is shorter");
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    stream.write_all(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_length_without_its_message_takes_no_memory_and_is_an_error() {
        let huge = (MAX_FRAME as u32 + 1).to_le_bytes();
        assert!(matches!(read::<u8>(&mut &huge[..]), Err(FrameError::TooLong { .. })));
        let most = (MAX_FRAME as u32).to_le_bytes();
        assert!(matches!(read::<u8>(&mut &most[..]), Err(FrameError::Read(_))));
        assert!(matches!(read::<u8>(&mut &b"\x01\0"[..]), Err(FrameError::Read(_))));
        assert!(matches!(read::<u8>(&mut &b""[..]), Err(FrameError::Closed)));
        assert!(matches!(read::<u8>(&mut &b"\x01\0\0\0x"[..]), Err(FrameError::Malformed(_))));
    }

    #[test]
    fn many_small_values_are_refused_before_they_are_parsed_and_long_text_is_not() {
        let framed = |text: &str| [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat();
        let read = |text: &str| read::<serde_json::Value>(&mut &framed(text)[..]);
        for item in ["0,", "[],", "{},", r#""\\","#, r#"{"a":0},"#] {
            let many = |count: usize| format!("[{}0]", item.repeat(count));
            assert!(matches!(read(&many(MAX_VALUES)), Err(FrameError::TooMuch)), "{item}");
            assert!(read(&many(MAX_VALUES / 3)).is_ok(), "{item}");
        }
        let text = format!(r#"["{}"]"#, r#"\",[{"#.repeat(MAX_VALUES));
        assert!(read(&text).is_ok(), "what stands in a string is one value");
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_one_by_one(texts in proptest::collection::vec(any::<String>(), 0..5)) {
            let mut stream = Vec::new();
            for text in &texts {
                write(&mut stream, text).expect("writes");
            }
            let mut stream = &stream[..];
            for text in &texts {
                prop_assert_eq!(&read::<String>(&mut stream).expect("reads"), text);
            }
            prop_assert!(matches!(read::<String>(&mut stream), Err(FrameError::Closed)));
        }

        #[test]
        fn no_bytes_make_it_fall(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _any_answer = read::<serde_json::Value>(&mut &bytes[..]);
        }
    }
}
