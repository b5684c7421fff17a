//! SHA-256 digests: the name of content everywhere, in questions by its first twelve hex digits.

use std::fmt;
use std::io::{self, Read};

use sha2::Digest as _;

/// The SHA-256 digest of some content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// The digest of all that `reader` gives, and its length in bytes. At most `max_bytes` + 1 bytes are read.
    pub fn of_reader(reader: &mut impl Read, max_bytes: u64) -> io::Result<(Self, u64)> {
        let mut hasher = sha2::Sha256::new();
        let mut buffer = [0; 64 * 1024];
        let mut length = 0;
        let mut limited = reader.take(max_bytes.saturating_add(1));
        loop {
            match limited.read(&mut buffer) {
                Ok(0) => return Ok((Self(hasher.finalize().into()), length)),
                Ok(read) => {
                    hasher.update(&buffer[..read]);
                    length += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// A digest that was computed elsewhere.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Takes 64 lower-case hex digits.
    pub fn parse(hex: &str) -> Option<Self> {
        let digits = hex.as_bytes();
        let value = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        let mut bytes = [0; 32];
        if digits.len() != 64 {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = value(pair[0])? << 4 | value(pair[1])?;
        }
        Some(Self(bytes))
    }

    /// The first twelve hex digits, as a question shows them.
    pub fn short(&self) -> String {
        self.to_string()[..12].to_owned()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Digest({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_nothing_is_the_known_one() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), empty);
        assert_eq!(Digest::of(b"").short(), "e3b0c44298fc");
        assert_eq!(Digest::parse(empty), Some(Digest::of(b"")));
        assert_eq!(Digest::parse(&empty.to_uppercase()), None);
        assert_eq!(Digest::parse("e3b0"), None);
    }

    #[test]
    fn a_reader_is_cut_just_past_the_cap() {
        let data = [7; 10];
        assert_eq!(Digest::of_reader(&mut &data[..], 10).expect("reads"), (Digest::of(&data), 10));
        assert_eq!(Digest::of_reader(&mut &data[..], 4).expect("reads").1, 5);
    }
}
