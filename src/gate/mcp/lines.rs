//! Lines out of chunks: how JSON-RPC is framed on standard input.
//!
//! Promise: a line is the same however its bytes arrive, and one that is longer than allowed is told as such without being
//! kept; what comes after it is read as if it had not been there.
//! Source: Model Context Protocol, "Transports", stdio: messages are delimited by newlines and hold none.

/// The longest line, in bytes. The longest that is legal is a `file_write` of 16 MiB with every byte escaped as six.
pub const MAX_LINE: usize = 128 << 20;

/// What came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A line, without its end.
    Whole(Vec<u8>),
    /// One that was longer than allowed; it is skipped.
    TooLong,
}

/// Cuts a stream into lines.
#[derive(Debug)]
pub struct Lines {
    longest: usize,
    begun: Vec<u8>,
    skipping: bool,
}

impl Lines {
    /// Lines of at most `longest` bytes.
    pub const fn new(longest: usize) -> Self {
        Self { longest, begun: Vec::new(), skipping: false }
    }

    /// Takes a chunk, and calls `found` for each line that it ends, or that has become too long.
    pub fn push(&mut self, mut chunk: &[u8], mut found: impl FnMut(Line)) {
        while !chunk.is_empty() {
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let part = &chunk[..end.unwrap_or(chunk.len())];
            if !self.skipping {
                if self.begun.len() + part.len() > self.longest {
                    // Told at once, since its end may never come.
                    self.begun = Vec::new();
                    self.skipping = true;
                    found(Line::TooLong);
                } else {
                    self.begun.extend_from_slice(part);
                }
            }
            let Some(end) = end else { return };
            if !std::mem::take(&mut self.skipping) {
                found(Line::Whole(std::mem::take(&mut self.begun)));
            }
            chunk = &chunk[end + 1..];
        }
    }

    /// What the stream ended with: a last line without its end.
    pub fn rest(self) -> Option<Vec<u8>> {
        Some(self.begun).filter(|begun| !begun.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(longest: usize, chunks: &[&[u8]]) -> (Vec<Line>, Option<Vec<u8>>) {
        let mut lines = Lines::new(longest);
        let mut found = Vec::new();
        for chunk in chunks {
            lines.push(chunk, |line| found.push(line));
        }
        (found, lines.rest())
    }

    #[test]
    fn a_line_over_the_limit_is_told_at_once_and_skipped_to_its_end() {
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        assert_eq!(cut(3, &[b"abc\nabcd"]).0, [whole("abc"), Line::TooLong]);
        let (found, rest) = cut(3, &[b"abcd", b"efgh", b"ij\nxy\n", b"z"]);
        assert_eq!(found, [Line::TooLong, whole("xy")]);
        assert_eq!(rest.as_deref(), Some(&b"z"[..]));
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_their_bytes_arrive(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..200),
            cuts in proptest::collection::vec(1usize..40, 1..20),
            longest in 0usize..30,
        ) {
            let mut chunks = Vec::new();
            let mut rest = &bytes[..];
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (chunk, more) = rest.split_at((*cut).min(rest.len()));
                chunks.push(chunk);
                rest = more;
            }
            prop_assert_eq!(cut(longest, &chunks), cut(longest, &[&bytes]));
        }

        #[test]
        fn every_line_within_the_limit_comes_out_as_it_went_in(
            lines in proptest::collection::vec("[^\n]{0,20}", 0..20),
        ) {
            let joined: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let wanted: Vec<Line> = lines.iter().map(|line| Line::Whole(line.as_bytes().to_vec())).collect();
            prop_assert_eq!(cut(100, &[joined.as_bytes()]), (wanted, None));
        }
    }
}
