//! `file_read`: a part of a file, as text where it is text.
//!
//! Promise: only regular files are opened; at most [`MOST`] bytes come out, `size` is the whole file's, `truncated` says
//! whether anything follows, and `next` where it begins, in the unit that was asked for. A part by bytes ends between two
//! characters; a part by lines holds whole lines only. What is not UTF-8 comes as base64, and `encoding` says so.
//! Limit: a file that changes meanwhile may come out as a mixture.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use platform::{FileType, FsError, RelPath, Root};
use serde_json::{Map, Value, json};

use super::base64;
use super::error::FilesError;
use super::resolve;
use crate::gate::path::FilePath;
use crate::gate::tools::request::{FileRead, Unit};

/// The most bytes of one answer.
pub(super) const MOST: u64 = 1 << 20;
/// How far into a file lines are counted.
const MOST_COUNTED: u64 = 1 << 30;

/// What was read, and where it goes on.
struct Part {
    bytes: Vec<u8>,
    next: Option<u64>,
}

/// Reads.
pub(super) fn read(root: &Root, request: &FileRead) -> Result<Map<String, Value>, FilesError> {
    let found = resolve::through(root, &FilePath::parse(&request.path)?)?;
    match found.present()?.file_type {
        FileType::Regular => {}
        FileType::Directory => return Err(FilesError::IsDirectory { path: found.path }),
        _ => return Err(FilesError::Special { path: found.path }),
    }
    let file = root.open_read(&found.path)?;
    let failed = |source| FsError { operation: "read", path: found.path.as_path().to_owned(), source };
    let size = file.metadata().map_err(failed)?.len();
    let part = match request.unit {
        Unit::Bytes => bytes(&file, request.offset, request.limit.unwrap_or(MOST).min(MOST)).map_err(failed)?,
        Unit::Lines => {
            let limit = request.limit.unwrap_or(u64::MAX);
            Lines::default().read(&file, request.offset, limit).map_err(failed)?.part(&found.path)?
        }
    };
    let mut answer = Map::new();
    let text = String::from_utf8(part.bytes);
    let encoded = text.is_err();
    let content = text.unwrap_or_else(|error| base64::encode(error.as_bytes()));
    answer.insert("content".into(), content.into());
    if encoded {
        answer.insert("encoding".into(), "base64".into());
    }
    answer.insert("size".into(), size.into());
    answer.insert("truncated".into(), part.next.is_some().into());
    if let Some(next) = part.next {
        answer.insert("next".into(), json!(next));
    }
    Ok(answer)
}

/// At most `limit` bytes from `offset`, and one more to know whether anything follows.
fn bytes(file: &File, offset: u64, limit: u64) -> io::Result<Part> {
    let mut bytes = read_at(file, offset, limit + 1)?;
    let more = bytes.len() as u64 > limit;
    if more {
        bytes.truncate(limit as usize);
        // A character that was cut comes whole with the next part, unless nothing would be left.
        if let Err(error) = std::str::from_utf8(&bytes)
            && error.error_len().is_none()
            && error.valid_up_to() > 0
        {
            bytes.truncate(error.valid_up_to());
        }
    }
    Ok(Part { next: more.then_some(offset.saturating_add(bytes.len() as u64)), bytes })
}

fn read_at(file: &File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length as usize];
    let mut filled = 0;
    // No file is as long as that, and the system takes no such position.
    while filled < bytes.len() && offset <= i64::MAX as u64 - length {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// What a scan for lines has found.
#[derive(Default)]
struct Lines {
    /// Whole lines that were asked for.
    taken: Vec<u8>,
    /// How many lines are in it.
    count: u64,
    /// The first line that was asked for.
    first: u64,
    /// A line that is not over yet.
    begun: Vec<u8>,
    /// Whether something follows the lines taken.
    more: bool,
    /// Whether the next line alone is too long.
    long: bool,
    /// Whether the lines lie too far into the file.
    far: bool,
}

impl Lines {
    fn read(mut self, file: &File, first: u64, limit: u64) -> io::Result<Self> {
        self.first = first;
        let (mut at, mut line) = (0, 0);
        loop {
            if at >= MOST_COUNTED {
                self.far = true;
                return Ok(self);
            }
            let chunk = read_at(file, at, 64 << 10)?;
            if chunk.is_empty() {
                break;
            }
            at += chunk.len() as u64;
            for piece in chunk.split_inclusive(|&byte| byte == b'\n') {
                if line >= first {
                    if self.count == limit {
                        self.more = true;
                        return Ok(self);
                    }
                    self.begun.extend_from_slice(piece);
                    if (self.taken.len() + self.begun.len()) as u64 > MOST {
                        self.more = true;
                        self.long = self.count == 0;
                        return Ok(self);
                    }
                }
                if piece.ends_with(b"\n") {
                    self.end_line(line >= first);
                    line += 1;
                }
            }
        }
        let unfinished = !self.begun.is_empty();
        self.end_line(unfinished);
        Ok(self)
    }

    fn end_line(&mut self, counts: bool) {
        self.taken.append(&mut self.begun);
        self.count += u64::from(counts);
    }

    fn part(self, path: &RelPath) -> Result<Part, FilesError> {
        if self.far {
            return Err(FilesError::FarLine { path: path.clone(), most: MOST_COUNTED });
        }
        if self.long {
            return Err(FilesError::LongLine { path: path.clone(), most: MOST });
        }
        Ok(Part { bytes: self.taken, next: self.more.then_some(self.first + self.count) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn reads(content: &[u8], offset: u64, limit: Option<u64>, unit: Unit) -> Map<String, Value> {
        let temp = tempfile::tempdir().expect("a folder");
        fs::write(temp.path().join("f"), content).expect("writes");
        let root = Root::open(temp.path()).expect("opens");
        read(&root, &FileRead { path: "f".into(), offset, limit, unit }).expect("reads")
    }

    fn part(content: &str, offset: u64, limit: Option<u64>, unit: Unit) -> (String, Option<u64>) {
        let answer = reads(content.as_bytes(), offset, limit, unit);
        assert_eq!(answer["size"], content.len());
        assert_eq!(answer["truncated"], answer.contains_key("next"));
        assert!(!answer.contains_key("encoding"));
        (answer["content"].as_str().expect("text").to_owned(), answer.get("next").and_then(Value::as_u64))
    }

    #[test]
    fn bytes_go_on_where_they_stopped() {
        let read = |offset, limit| part("0123456789", offset, limit, Unit::Bytes);
        assert_eq!(read(0, None), ("0123456789".into(), None));
        assert_eq!(read(0, Some(4)), ("0123".into(), Some(4)));
        assert_eq!(read(4, Some(6)), ("456789".into(), None));
        assert_eq!(read(10, None), (String::new(), None));
        assert_eq!(read(u64::MAX, Some(u64::MAX)), (String::new(), None));
        assert_eq!(read(3, Some(0)), (String::new(), Some(3)));
    }

    #[test]
    fn a_part_ends_between_two_characters() {
        assert_eq!(part("ab\u{10348}c", 0, Some(4), Unit::Bytes), ("ab".into(), Some(2)));
        assert_eq!(part("ab\u{10348}c", 2, Some(4), Unit::Bytes), ("\u{10348}".into(), Some(6)));
        let cut = reads("\u{10348}".as_bytes(), 0, Some(2), Unit::Bytes);
        assert_eq!((&cut["encoding"], &cut["next"]), (&json!("base64"), &json!(2)), "it has to go on somewhere");
    }

    #[test]
    fn what_is_no_text_comes_in_base64() {
        let answer = reads(b"\xff\0", 0, None, Unit::Bytes);
        assert_eq!((&answer["content"], &answer["encoding"]), (&json!("/wA="), &json!("base64")));
    }

    #[test]
    fn lines_come_whole() {
        let read = |offset, limit| part("one\ntwo\n\nfour", offset, limit, Unit::Lines);
        assert_eq!(read(0, None), ("one\ntwo\n\nfour".into(), None));
        assert_eq!(read(0, Some(2)), ("one\ntwo\n".into(), Some(2)));
        assert_eq!(read(2, Some(1)), ("\n".into(), Some(3)));
        assert_eq!(read(3, Some(1)), ("four".into(), None));
        assert_eq!(read(4, None), (String::new(), None));
        assert_eq!(read(1, Some(0)), (String::new(), Some(1)));
        assert_eq!(part("a\nb\n", 1, Some(1), Unit::Lines), ("b\n".into(), None));
    }

    #[test]
    fn an_answer_has_a_mebibyte_at_most_and_a_longer_line_is_an_error() {
        let long = "x".repeat(3 << 20);
        let (content, next) = part(&long, 0, None, Unit::Bytes);
        assert_eq!((content.len(), next), (1 << 20, Some(1 << 20)));
        let lines = "y".repeat(99) + "\n";
        let (content, next) = part(&lines.repeat(20_000), 5, None, Unit::Lines);
        assert_eq!((content.len(), next), (10_485 * 100, Some(10_490)));
        let temp = tempfile::tempdir().expect("a folder");
        fs::write(temp.path().join("f"), long).expect("writes");
        let root = Root::open(temp.path()).expect("opens");
        let asked = FileRead { path: "f".into(), offset: 0, limit: Some(1), unit: Unit::Lines };
        assert!(matches!(read(&root, &asked), Err(FilesError::LongLine { .. })));
    }
}
