//! The lines of the audit, and reading them from their start.
//!
//! A line is a JSON object: `previous`, the SHA-256 of the line before without its newline (zeros for the first), `at`,
//! `event`, and the event's fields. Lines are written one at a time and each is durable before the next, so only the last
//! can be torn: it has no newline, or is no whole object.
//!
//! Promise: memory stays below two lines, whatever is in the file. Nothing is changed here.

use std::io::{self, BufRead, Read as _};

use serde::Serialize;
use serde::de::IgnoredAny;

use super::AuditEvent;
use crate::digest::Digest;
use crate::text::harmless_json;

/// The longest line, without its newline.
pub const MAX_LINE: usize = 1 << 20;

/// How every line begins.
const START: &[u8] = b"{\"previous\":\"";

/// An event that is longer than a line may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an entry of {bytes} bytes is longer than a line may be")]
pub struct TooLong {
    /// Its length.
    pub bytes: usize,
}

/// Where a chain ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    /// The digest of the last line.
    pub head: Digest,
    /// How many lines there are.
    pub lines: u64,
    /// Their length, newlines included.
    pub bytes: u64,
}

impl Default for End {
    fn default() -> Self {
        Self { head: Digest::from_bytes([0; 32]), lines: 0, bytes: 0 }
    }
}

impl End {
    /// The end after one more line, given without its newline.
    pub fn after(self, line: &[u8]) -> Self {
        Self { head: Digest::of(line), lines: self.lines + 1, bytes: self.bytes + line.len() as u64 + 1 }
    }
}

/// Why a chain was not read to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum ScanError {
    #[error("cannot read")]
    Read(#[from] io::Error),
    #[error("line {line}: {reason}")]
    Chain { line: u64, reason: &'static str },
}

/// The line of an event that comes after a line of this digest, without its newline.
pub(super) fn line(previous: Digest, at: &str, event: &AuditEvent) -> Result<Vec<u8>, TooLong> {
    #[derive(Serialize)]
    struct Line<'l> {
        previous: String,
        at: &'l str,
        #[serde(flatten)]
        event: &'l AuditEvent,
    }
    let line = Line { previous: previous.to_string(), at, event };
    let line = harmless_json(serde_json::to_string(&line).expect("an event has only strings for keys")).into_bytes();
    if line.len() > MAX_LINE { Err(TooLong { bytes: line.len() }) } else { Ok(line) }
}

/// Reads the lines that come after `end`; returns where the chain ends, and how many torn bytes follow it.
pub(super) fn scan(reader: &mut impl BufRead, mut end: End) -> Result<(End, u64), ScanError> {
    let mut line = Vec::new();
    loop {
        line.clear();
        reader.by_ref().take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok((end, 0));
        }
        let text = line.strip_suffix(b"\n");
        let previous = text.and_then(previous);
        if let (Some(text), Some(previous)) = (text, previous)
            && previous == end.head
        {
            end = end.after(text);
            continue;
        }
        let broken = |reason| ScanError::Chain { line: end.lines + 1, reason };
        if !reader.fill_buf()?.is_empty() {
            return Err(broken("the entry was altered, or the one before it was taken out, put in or altered"));
        }
        // The last: a torn one is no whole line. A whole one that does not continue the chain was not torn into that.
        return match previous {
            Some(_) => Err(broken("the entry is not one that continues the one before it")),
            None if end.lines == 0 && !begins_as_one(&line) => Err(broken("this is no audit")),
            // Quotes within a line are escaped, so that this is the beginning of another one.
            None if line.windows(START.len()).skip(1).any(|at| at == START) => {
                Err(broken("the entry is damaged, and another was written after it"))
            }
            None => Ok((end, line.len() as u64)),
        };
    }
}

/// The digest a line says the one before it has; `None` if it is no whole line.
fn previous(line: &[u8]) -> Option<Digest> {
    let (digits, _) = line.strip_prefix(START)?.split_first_chunk::<64>()?;
    let previous = Digest::parse(std::str::from_utf8(digits).ok()?)?;
    serde_json::from_slice::<IgnoredAny>(line).is_ok().then_some(previous)
}

/// Whether bytes can be what is left of a first line: some of its beginning, or nothing where blocks are missing.
fn begins_as_one(part: &[u8]) -> bool {
    let start = &part[..part.len().min(START.len())];
    start.first() == Some(&0) || START.starts_with(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::Index;

    use crate::gate::denial::Denial;
    use crate::gate::wire::GrantInfo;

    fn denied(caller: &str) -> AuditEvent {
        let action = GrantInfo { kind: "file".into(), target: "notes/a\u{202e}.md".into() };
        AuditEvent::Denied { caller: caller.into(), tool: "file_write".into(), action, reason: Denial::Declined }
    }

    /// The bytes of an audit, and the end of each of its lines.
    fn audit(callers: &[String]) -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut ends, mut end) = (Vec::new(), vec![0], End::default());
        for caller in callers {
            let line = line(end.head, "2026-11-30T09:41:07.123Z", &denied(caller)).expect("fits");
            end = end.after(&line);
            bytes.extend(line);
            bytes.push(b'\n');
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    fn look(mut bytes: &[u8]) -> Result<(End, u64), ScanError> {
        scan(&mut bytes, End::default())
    }

    #[test]
    fn a_line_is_flat_and_cannot_draw() {
        let line = line(Digest::from_bytes([0; 32]), "then", &denied("a\u{1b}[2J\n\"")).expect("fits");
        let zeros = "0".repeat(64);
        let wanted = format!(
            concat!(
                r#"{{"previous":"{}","at":"then","event":"denied","caller":"a\u001b[2J\n\"","tool":"file_write","#,
                r#""action":{{"kind":"file","target":"notes/a\u202e.md"}},"reason":"declined"}}"#
            ),
            zeros
        );
        assert_eq!(String::from_utf8(line.clone()).expect("is text"), wanted);
        let mut fields: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(&line).expect("is an object");
        assert!(fields.remove("previous").is_some() && fields.remove("at").is_some());
        let event: AuditEvent = serde_json::from_value(fields.into()).expect("is an event");
        assert_eq!(event, denied("a\u{1b}[2J\n\""));
    }

    #[test]
    fn an_event_that_is_too_long_makes_no_line() {
        assert!(line(Digest::of(b""), "then", &denied(&"x".repeat(MAX_LINE - 400))).is_ok());
        assert!(matches!(line(Digest::of(b""), "then", &denied(&"x".repeat(MAX_LINE))), Err(TooLong { .. })));
    }

    #[test]
    fn what_was_no_audit_is_not_taken_for_a_torn_one() {
        assert_eq!(look(b"").expect("is empty"), (End::default(), 0));
        for torn in [&b"{\"prev"[..], b"{", b"\0\0\0\0", b"{\"previous\":\"00"] {
            assert_eq!(look(torn).expect("is torn"), (End::default(), torn.len() as u64));
        }
        for other in [&b"text"[..], b"text\n", b"[]\n", b"{\"seq\":1}\n", b"a\nb\n"] {
            assert!(matches!(look(other), Err(ScanError::Chain { line: 1, .. })), "{other:?}");
        }
        let long = vec![b'{'; MAX_LINE * 2];
        assert!(matches!(look(&long), Err(ScanError::Chain { line: 1, .. })));
    }

    fn callers() -> impl Strategy<Value = Vec<String>> {
        proptest::collection::vec("[a-z\"\\\\\n\u{1b}é]{0,12}", 1..6)
    }

    proptest! {
        #[test]
        fn every_prefix_gives_the_lines_that_are_whole(callers in callers()) {
            let (bytes, ends) = audit(&callers);
            for cut in 0..=bytes.len() {
                let (end, torn) = look(&bytes[..cut]).map_err(|error| TestCaseError::fail(error.to_string()))?;
                let whole = ends.iter().rposition(|end| *end <= cut).expect("the first is zero");
                prop_assert_eq!((end.lines, end.bytes), (whole as u64, ends[whole] as u64));
                prop_assert_eq!(torn, (cut - ends[whole]) as u64);
            }
        }

        #[test]
        fn blocks_missing_from_the_last_line_tear_it_and_no_other(callers in callers(), mask in any::<u64>()) {
            let (mut bytes, ends) = audit(&callers);
            let last = ends[ends.len() - 2];
            let whole = bytes.clone();
            for (number, block) in bytes[last..].chunks_mut(37).enumerate() {
                if mask >> (number % 64) & 1 == 1 {
                    block.fill(0);
                }
            }
            let (end, torn) = look(&bytes).map_err(|error| TestCaseError::fail(error.to_string()))?;
            let is_whole = bytes == whole;
            prop_assert_eq!(end.bytes as usize, if is_whole { bytes.len() } else { last });
            prop_assert_eq!(torn as usize, if is_whole { 0 } else { bytes.len() - last });
        }

        #[test]
        fn any_edit_before_the_last_line_is_found(
            callers in callers(), at in any::<Index>(), length in 0..60usize,
            with in proptest::collection::vec(any::<u8>(), 0..60)
        ) {
            let (bytes, ends) = audit(&callers);
            let last = ends[ends.len() - 2];
            prop_assume!(last > 0);
            let start = at.index(last);
            let edited = [&bytes[..start], &with[..], &bytes[(start + length).min(last)..]].concat();
            prop_assume!(edited != bytes);
            prop_assert!(look(&edited).is_err(), "went unseen");
        }

        #[test]
        fn lines_taken_out_or_swapped_are_found(callers in callers(), which in any::<Index>()) {
            let (bytes, ends) = audit(&callers);
            prop_assume!(callers.len() > 1);
            let which = which.index(callers.len() - 1);
            let (start, middle, end) = (ends[which], ends[which + 1], ends[which + 2]);
            let without = [&bytes[..start], &bytes[middle..]].concat();
            prop_assert!(look(&without).is_err());
            let swapped = [&bytes[..start], &bytes[middle..end], &bytes[start..middle], &bytes[end..]].concat();
            prop_assert!(look(&swapped).is_err());
        }

        #[test]
        fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _any_answer = look(&bytes);
        }
    }
}
