//! What a file has to hold, and the lines that hold it.
//!
//! Promise: a literal is compared byte by byte; an expression takes linear time, and neither it nor a line of a file takes
//! more than a bounded amount of memory. Source: the libraries of ripgrep, set as it sets them, without maps of files.

use std::fs::File;
use std::io;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};

use super::found::Line;
use crate::gate::files::error::FilesError;
use crate::text::escaped;

/// Lines of one file that are told.
pub(super) const MOST_LINES: usize = 10;
/// Characters of a line that are told.
const MOST_WIDE: usize = 200;
/// The longest line that is searched, in bytes.
const LONGEST: usize = 16 << 20;
/// What a compiled expression may take.
const LARGEST: usize = 10 << 20;

/// What is looked for.
pub(super) struct Wanted {
    matcher: RegexMatcher,
}

impl Wanted {
    /// Takes a literal or a regular expression.
    pub(super) fn new(text: &str, is_regex: bool) -> Result<Self, FilesError> {
        let mut builder = RegexMatcherBuilder::new();
        builder.line_terminator(Some(b'\n')).fixed_strings(!is_regex).size_limit(LARGEST).dfa_size_limit(LARGEST);
        let matcher = builder
            .build(text)
            .map_err(|error| FilesError::Expression { why: escaped(error.to_string().as_bytes()) })?;
        Ok(Self { matcher })
    }

    /// Something to search with; one a thread.
    pub(super) fn searcher() -> Searcher {
        SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .line_number(true)
            .heap_limit(Some(LONGEST))
            .build()
    }

    /// The first lines that match; none if it is binary.
    pub(super) fn lines(&self, searcher: &mut Searcher, file: &File) -> io::Result<Vec<Line>> {
        let mut lines = Lines::default();
        searcher.search_file(&self.matcher, file, &mut lines)?;
        Ok(if lines.binary { Vec::new() } else { lines.found })
    }
}

#[derive(Default)]
struct Lines {
    found: Vec<Line>,
    binary: bool,
}

impl Sink for Lines {
    type Error = io::Error;

    /// One more than is told, to know whether there are more.
    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let bytes = found.bytes().trim_ascii_end();
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * MOST_WIDE)]);
        self.found.push(Line {
            number: found.line_number().unwrap_or_default(),
            text: text.chars().take(MOST_WIDE).collect(),
        });
        Ok(self.found.len() <= MOST_LINES)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.binary = true;
        Ok(false)
    }
}
