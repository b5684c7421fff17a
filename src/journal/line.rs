//! One line of the journal, bytes and meaning.
//!
//! A line is a JSON object: `seq`, `batch`, `previous`, `at`, `session`, `event`, the event's fields, and last `sum`.
//! `batch` is the `seq` of the first entry that was written together with this one, `previous` the SHA-256 of the line
//! before without its newline, `sum` the first 16 hex digits of the SHA-256 of this line up to `,"sum"`.
//!
//! Promise: a line that parses is, byte for byte, one that was written as a whole, unless somebody made it on purpose.
//! Limit: nothing here is keyed. Whoever may write the file can write a new chain; the chain finds accidents and edits.

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, EnumAccess, Error as _, VariantAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::event::Event;
use crate::digest::Digest;
use crate::text;

/// The longest line, without its newline.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// How every line begins; inside a line the quotes of a string are escaped, so this occurs nowhere else.
pub(super) const START: &[u8] = b"{\"seq\":";

const SUM: &[u8] = b",\"sum\":\"";
const SUM_DIGITS: usize = 16;

/// Where a chain stands: the number and the digest of its last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Number of the last entry; zero if there is none.
    pub seq: u64,
    /// Digest of its line; zeros if there is none.
    pub digest: Digest,
}

impl Default for Head {
    fn default() -> Self {
        Self { seq: 0, digest: Digest::from_bytes([0; 32]) }
    }
}

/// One entry of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its number; the first is 1.
    pub seq: u64,
    /// The number of the first entry written together with it.
    pub batch: u64,
    /// When it was made, in RFC 3339.
    pub at: String,
    /// The session that made it.
    pub session: String,
    /// What it says.
    pub event: Event,
}

/// An entry that is longer than a line may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an entry of {bytes} bytes is longer than a line may be")]
pub struct TooLong {
    /// Its length.
    pub bytes: usize,
}

/// Why a line that is in the chain cannot be understood.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// A newer version wrote it.
    #[error("the event {} is not known to this version", .0.escape_debug())]
    UnknownEvent(String),
    /// The event is known, and its fields are not what they must be.
    #[error("{}", .0.escape_debug())]
    Fields(String),
}

/// The part of a line that makes the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link {
    pub seq: u64,
    pub batch: u64,
    pub previous: Digest,
    /// Digest of the line itself.
    pub digest: Digest,
}

impl Link {
    pub fn head(&self) -> Head {
        Head { seq: self.seq, digest: self.digest }
    }
}

/// Adds the line of an entry to `lines` with its newline, and moves `head` to it. On an error both are as before.
pub(super) fn push(
    lines: &mut Vec<u8>,
    head: &mut Head,
    batch: u64,
    (at, session): (&str, &str),
    event: &Event,
) -> Result<(), TooLong> {
    let seq = head.seq + 1;
    let json = |value: &str| Value::from(value).to_string();
    let (previous, at, session, name) = (head.digest, json(at), json(session), event.name());
    let start = format!(
        r#"{{"seq":{seq},"batch":{batch},"previous":"{previous}","at":{at},"session":{session},"event":"{name}","#
    );
    // By itself an event is `{"name":{fields}}`.
    let fields = serde_json::to_string(event).expect("an event has only strings for keys");
    let fields = &fields[name.len() + 5..fields.len() - 2];
    let mut line = text::harmless_json(start + fields).into_bytes();
    let hasher = Sha256::new_with_prefix(&line);
    let body_bytes = line.len();
    line.extend_from_slice(SUM);
    line.extend(hex(&hasher.clone().finalize()[..SUM_DIGITS / 2]));
    line.extend_from_slice(b"\"}");
    if line.len() > MAX_LINE_BYTES {
        return Err(TooLong { bytes: line.len() });
    }
    *head = Head { seq, digest: Digest::from_bytes(hasher.chain_update(&line[body_bytes..]).finalize().into()) };
    lines.append(&mut line);
    lines.push(b'\n');
    Ok(())
}

/// The link a line makes; `None` if it is not a whole line as [`push`] makes them.
pub(super) fn link(line: &[u8]) -> Option<Link> {
    let tail = SUM.len() + SUM_DIGITS + 2;
    if line.len() > MAX_LINE_BYTES || line.len() < tail {
        return None;
    }
    let (body, tail) = line.split_at(line.len() - tail);
    let sum = tail.strip_prefix(SUM)?.strip_suffix(b"\"}")?;
    let (seq, rest) = number(body.strip_prefix(START)?)?;
    let (batch, rest) = number(rest.strip_prefix(b",\"batch\":")?)?;
    let (previous, _) = rest.strip_prefix(b",\"previous\":\"")?.split_first_chunk::<64>()?;
    let previous = Digest::parse(std::str::from_utf8(previous).ok()?)?;
    let hasher = Sha256::new_with_prefix(body);
    if !hex(&hasher.clone().finalize()[..SUM_DIGITS / 2]).eq(sum.iter().copied()) {
        return None;
    }
    let digest = Digest::from_bytes(hasher.chain_update(tail).finalize().into());
    Some(Link { seq, batch, previous, digest })
}

/// The digits at the start of these bytes as a number, and what follows them.
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let end = bytes.iter().position(|byte| !byte.is_ascii_digit())?;
    let (digits, rest) = bytes.split_at(end);
    Some((std::str::from_utf8(digits).ok()?.parse().ok()?, rest))
}

fn hex(bytes: &[u8]) -> impl Iterator<Item = u8> + '_ {
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| b"0123456789abcdef"[usize::from(digit)])
}

impl Entry {
    /// The entry a line holds. The line's place in the chain is not looked at.
    pub fn parse(line: &[u8]) -> Result<Self, Unreadable> {
        #[derive(Deserialize)]
        struct Header {
            seq: u64,
            batch: u64,
            at: String,
            session: String,
            event: String,
        }
        let fields = |error: serde_json::Error| Unreadable::Fields(error.to_string());
        let header: Header = serde_json::from_slice(line).map_err(fields)?;
        if !Event::NAMES.contains(&header.event.as_str()) {
            return Err(Unreadable::UnknownEvent(header.event));
        }
        let event = Event::deserialize(Named { name: &header.event, line }).map_err(fields)?;
        Ok(Self { seq: header.seq, batch: header.batch, at: header.at, session: header.session, event })
    }
}

/// An event whose name is known and whose fields stand in a line, among others. What serde offers for a name inside the
/// object copies every field before it looks at one: three times slower, at every start.
struct Named<'l> {
    name: &'l str,
    line: &'l [u8],
}

impl<'de> Deserializer<'de> for Named<'de> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_enum(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> EnumAccess<'de> for Named<'de> {
    type Error = serde_json::Error;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Self::Error> {
        Ok((seed.deserialize(StrDeserializer::new(self.name))?, self))
    }
}

impl<'de> VariantAccess<'de> for Named<'de> {
    type Error = serde_json::Error;

    fn unit_variant(self) -> Result<(), Self::Error> {
        Err(Self::Error::custom("an event has fields"))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, _: S) -> Result<S::Value, Self::Error> {
        Err(Self::Error::custom("an event's fields have names"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Self::Error> {
        Err(Self::Error::custom("an event's fields have names"))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, Self::Error> {
        serde_json::Deserializer::from_slice(self.line).deserialize_map(visitor)
    }
}
