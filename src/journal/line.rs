//! One line of the journal, bytes and meaning.
//!
//! A line is a JSON object: `seq`, `batch`, `previous`, `at`, `session`, `event`, the event's fields, and last `sum`.
//! `batch` is the `seq` of the first entry that was written together with this one, `previous` the SHA-256 of the line
//! before without its newline, `sum` the first 16 hex digits of the SHA-256 of this line up to `,"sum"`.
//!
//! Promise: a line that parses is, byte for byte, one that was written as a whole, unless somebody made it on purpose.
//! Limit: nothing here is keyed. Whoever may write the file can write a new chain; the chain finds accidents and edits.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value};
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
    let mut object = Map::new();
    object.insert("seq".into(), seq.into());
    object.insert("batch".into(), batch.into());
    object.insert("previous".into(), head.digest.to_string().into());
    object.insert("at".into(), at.into());
    object.insert("session".into(), session.into());
    let Value::Object(fields) = serde_json::to_value(event).expect("an event has only strings for keys") else {
        unreachable!("an event is an object")
    };
    object.extend(fields);
    let mut line = text::json_line(&Value::Object(object)).into_bytes();
    line.pop();
    let sum = Digest::of(&line).to_string();
    line.extend_from_slice(SUM);
    line.extend_from_slice(&sum.as_bytes()[..SUM_DIGITS]);
    line.extend_from_slice(b"\"}");
    if line.len() > MAX_LINE_BYTES {
        return Err(TooLong { bytes: line.len() });
    }
    *head = Head { seq, digest: Digest::of(&line) };
    lines.append(&mut line);
    lines.push(b'\n');
    Ok(())
}

/// The link a line makes; `None` if it is not a whole line as [`push`] makes them.
pub(super) fn link(line: &[u8]) -> Option<Link> {
    #[derive(Deserialize)]
    struct Header<'l> {
        seq: u64,
        batch: u64,
        #[serde(borrow)]
        previous: Cow<'l, str>,
    }
    let tail = SUM.len() + SUM_DIGITS + 2;
    if !line.starts_with(START) || line.len() > MAX_LINE_BYTES || line.len() < tail {
        return None;
    }
    let (body, tail) = line.split_at(line.len() - tail);
    let sum = tail.strip_prefix(SUM)?.strip_suffix(b"\"}")?;
    let hasher = Sha256::new_with_prefix(body);
    let body_digest = hasher.clone().finalize();
    if !hex(&body_digest[..SUM_DIGITS / 2]).eq(sum.iter().copied()) {
        return None;
    }
    let header: Header<'_> = serde_json::from_slice(line).ok()?;
    let digest: [u8; 32] = hasher.chain_update(tail).finalize().into();
    Some(Link {
        seq: header.seq,
        batch: header.batch,
        previous: Digest::parse(&header.previous)?,
        digest: Digest::from_bytes(digest),
    })
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
        let event = serde_json::from_slice(line).map_err(fields)?;
        Ok(Self { seq: header.seq, batch: header.batch, at: header.at, session: header.session, event })
    }
}
