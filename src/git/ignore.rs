//! Whether git ignores a path, by the ignore files as they were when the watch began.
//!
//! Promise: an ignore file that is written later changes nothing, so nobody takes a folder out of protection by naming
//! it in `.gitignore`. A line that cannot be read ignores nothing; if it would bring something back, all lines before
//! it are void. Limit: in a directory that appears later, `.gitignore` ignores nothing, which protects more.
//! Source: gitignore(5); wildmatch.c of git for what a pattern matches: bytes, not characters.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock, RwLockWriteGuard};

use platform::{RelPath, Root};

use super::files::{Content, read_below};

use crate::rules::glob::{Segment, Token, path_matches, push_literal};

/// One ignore file, compiled.
#[derive(Debug, Clone, Default)]
pub struct IgnoreFile {
    patterns: Vec<Pattern>,
}

#[derive(Debug, Clone)]
struct Pattern {
    negated: bool,
    only_directories: bool,
    segments: Vec<Segment>,
}

impl IgnoreFile {
    /// Compiles the bytes of an ignore file.
    pub fn parse(bytes: &[u8]) -> Self {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let mut patterns = Vec::new();
        for line in bytes.split(|&byte| byte == b'\n') {
            let line = without_blanks(line.strip_suffix(b"\r").unwrap_or(line));
            if line.is_empty() || line[0] == b'#' {
                continue;
            }
            let (negated, line) = match line.strip_prefix(b"!") {
                Some(rest) => (true, rest),
                None => (false, line),
            };
            match pattern(line, negated) {
                Some(pattern) => patterns.push(pattern),
                // It may bring anything back: nothing above it can be relied on.
                None if negated => patterns.clear(),
                None => {}
            }
        }
        Self { patterns }
    }

    /// Whether the file ignores all that lies beside it, as tools write it into the folders they make.
    pub fn ignores_everything(&self) -> bool {
        self.patterns.iter().rev().take_while(|pattern| !pattern.negated).any(|pattern| {
            !pattern.only_directories
                && matches!(&pattern.segments[..], [Segment::AnyDepth, .., Segment::Name(name)] if name[..] == [Token::ManyBytes])
                && pattern.segments.len() == 2
        })
    }

    /// What the last pattern that matches says: ignored or not. `path` is relative to the file's directory.
    pub fn verdict(&self, path: &[&[u8]], is_directory: bool) -> Option<bool> {
        self.patterns
            .iter()
            .rev()
            .filter(|pattern| is_directory || !pattern.only_directories)
            .find(|pattern| path_matches(&pattern.segments, path))
            .map(|pattern| !pattern.negated)
    }
}

/// Blanks at the end do not count unless escaped.
fn without_blanks(line: &[u8]) -> &[u8] {
    let mut end = line.len();
    while end > 0 && line[end - 1] == b' ' {
        let escapes = line[..end - 1].iter().rev().take_while(|&&byte| byte == b'\\').count();
        if escapes % 2 == 1 {
            break;
        }
        end -= 1;
    }
    &line[..end]
}

fn pattern(line: &[u8], negated: bool) -> Option<Pattern> {
    let (only_directories, line) = match line.strip_suffix(b"/") {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let anchored = line.contains(&b'/');
    let line = line.strip_prefix(b"/").unwrap_or(line);
    let mut segments = Vec::new();
    if !anchored {
        segments.push(Segment::AnyDepth);
    }
    for part in segments_of(line) {
        let any_depth = part.len() > 1 && part.iter().all(|&byte| byte == b'*');
        // Git cuts the plain start of a pattern off, and then takes `a**/` for a leading `**/`: with such a line it may
        // bring back more than it says.
        if negated && anchored && !any_depth && part.windows(2).any(|pair| pair == b"**") {
            return None;
        }
        if any_depth && anchored {
            if segments.last() != Some(&Segment::AnyDepth) {
                segments.push(Segment::AnyDepth);
            }
        } else {
            segments.push(Segment::Name(tokens(part)?));
        }
    }
    match segments.last() {
        None => return None,
        Some(Segment::AnyDepth) => segments.push(Segment::Name(vec![Token::ManyBytes])),
        Some(Segment::Name(_)) => {}
    }
    Some(Pattern { negated, only_directories, segments })
}

/// Cuts at slashes. In a class a slash matches nothing in git either, so cutting there makes the class faulty: the same.
fn segments_of(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b'/')
}

/// The tokens of one segment; `None` if nothing can match it.
fn tokens(segment: &[u8]) -> Option<Vec<Token>> {
    if segment.is_empty() {
        return None;
    }
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < segment.len() {
        match segment[at] {
            b'*' if tokens.last() == Some(&Token::ManyBytes) => {}
            b'*' => tokens.push(Token::ManyBytes),
            b'?' => tokens.push(Token::OneByte),
            b'\\' => {
                at += 1;
                push_literal(&mut tokens, &[*segment.get(at)?]);
            }
            b'[' => {
                let (set, end) = class(segment, at)?;
                tokens.push(Token::ByteClass(set));
                at = end;
                continue;
            }
            plain => push_literal(&mut tokens, &[plain]),
        }
        at += 1;
    }
    Some(tokens)
}

/// The class that opens at `open`, and the index after it.
fn class(text: &[u8], open: usize) -> Option<([u64; 4], usize)> {
    let mut members = [false; 256];
    let mut at = open + 1;
    let negated = matches!(text.get(at), Some(b'!' | b'^'));
    if negated {
        at += 1;
    }
    let first = at;
    loop {
        let byte = *text.get(at)?;
        if byte == b']' && at > first {
            break;
        }
        if byte == b'[' && text.get(at + 1) == Some(&b':') {
            let end = at + 2 + text[at + 2..].windows(2).position(|pair| pair == b":]")?;
            let holds = named_class(&text[at + 2..end])?;
            (0..=255u8).filter(holds).for_each(|byte| members[usize::from(byte)] = true);
            at = end + 2;
            continue;
        }
        let (from, next) = member(text, at)?;
        // The first of a range counts even if the range runs backwards, as in git.
        members[usize::from(from)] = true;
        if text.get(next) == Some(&b'-') && text.get(next + 1).is_some_and(|&end| end != b']') {
            let (to, next) = member(text, next + 1)?;
            (from..=to).for_each(|byte| members[usize::from(byte)] = true);
            at = next;
        } else {
            at = next;
        }
    }
    let mut set = [0; 4];
    for byte in 0..=255u8 {
        if members[usize::from(byte)] != negated && byte != b'/' {
            set[usize::from(byte >> 6)] |= 1 << (byte & 63);
        }
    }
    Some((set, at + 1))
}

/// One member of a class, unescaped, and the index after it.
fn member(text: &[u8], at: usize) -> Option<(u8, usize)> {
    match *text.get(at)? {
        b'\\' => Some((*text.get(at + 1)?, at + 2)),
        plain => Some((plain, at + 1)),
    }
}

fn named_class(name: &[u8]) -> Option<fn(&u8) -> bool> {
    Some(match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| matches!(byte, 0x20..=0x7e),
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |byte| byte.is_ascii_whitespace() || *byte == 0x0b,
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    })
}

/// What a `.gitignore` is called.
const NAME: &[u8] = b".gitignore";
/// Bytes an ignore file may have.
const MAX_BYTES: u64 = 1 << 20;

/// All ignore files of a repository. Those in the tree are read when they are first asked for, until [`IgnoreSet::freeze`]:
/// what git ignores is settled by the end of the first walk, and a huge tree does not delay its beginning.
#[derive(Debug, Default)]
pub struct IgnoreSet {
    /// By the directory they lie in; `None` where there is none.
    nested: RwLock<HashMap<Vec<u8>, Option<Arc<IgnoreFile>>>>,
    /// Where they are read from.
    tree: Option<Arc<Root>>,
    frozen: AtomicBool,
    /// `info/exclude`, then `core.excludesFile`: the weaker the later.
    general: Vec<IgnoreFile>,
    /// The last directory asked about, and the answer: events come in bunches from one directory.
    last: Mutex<Option<(Box<[u8]>, bool)>>,
}

impl IgnoreSet {
    /// Starts with the files that hold for the whole tree, the stronger first.
    pub fn new(general: Vec<IgnoreFile>) -> Self {
        Self { general, ..Self::default() }
    }

    /// The same, with the `.gitignore` files of a tree.
    pub fn of_tree(general: Vec<IgnoreFile>, tree: Arc<Root>) -> Self {
        Self { tree: Some(tree), ..Self::new(general) }
    }

    /// Adds the `.gitignore` of a directory.
    pub fn add(&mut self, dir: &RelPath, file: IgnoreFile) {
        self.known().insert(dir.as_bytes().to_vec(), Some(Arc::new(file)));
        self.last = Mutex::default();
    }

    /// From here on nothing is read any more: a `.gitignore` that appears or changes later takes no protection away.
    pub fn freeze(&self) {
        self.frozen.store(true, Ordering::Relaxed);
    }

    fn known(&self) -> RwLockWriteGuard<'_, HashMap<Vec<u8>, Option<Arc<IgnoreFile>>>> {
        self.nested.write().expect("no holder of this lock panics")
    }

    /// The `.gitignore` of a directory.
    fn file_of(&self, dir: &[u8]) -> Option<Arc<IgnoreFile>> {
        if let Some(known) = self.nested.read().expect("no holder of this lock panics").get(dir) {
            return known.clone();
        }
        let tree = self.tree.as_ref().filter(|_| !self.frozen.load(Ordering::Relaxed))?;
        let path = RelPath::parse(dir).ok()?.join(NAME);
        let file = match read_below(tree, &path, MAX_BYTES) {
            Ok(Content::Absent) => None,
            Ok(Content::Bytes(bytes)) => Some(Arc::new(IgnoreFile::parse(&bytes))),
            // It may bring back anything that a file above ignores.
            Ok(Content::TooLarge) | Err(_) => Some(Arc::new(IgnoreFile::parse(b"!*"))),
        };
        self.known().insert(dir.to_vec(), file.clone());
        file
    }

    /// Whether git ignores the directory, or all that is in it.
    pub fn ignores_dir(&self, dir: &[u8]) -> bool {
        if dir.is_empty() {
            return false;
        }
        if let Ok(last) = self.last.try_lock()
            && let Some((known, ignored)) = last.as_ref()
            && **known == *dir
        {
            return *ignored;
        }
        let ends = dir.iter().enumerate().filter(|&(_, &byte)| byte == b'/').map(|(slash, _)| slash).chain([dir.len()]);
        let ignored = ends.into_iter().any(|end| {
            let path = &dir[..end];
            self.entry_verdict(path, true) || self.file_of(path).is_some_and(|file| file.ignores_everything())
        });
        if let Ok(mut last) = self.last.try_lock() {
            *last = Some((dir.into(), ignored));
        }
        ignored
    }

    /// Whether git ignores the file `name` of `dir`.
    pub fn ignores_file(&self, dir: &[u8], name: &[u8]) -> bool {
        let mut path = Vec::with_capacity(dir.len() + 1 + name.len());
        path.extend_from_slice(dir);
        if !dir.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        self.ignores_dir(dir) || self.entry_verdict(&path, false)
    }

    /// What the nearest file that knows the path says, without looking at the directories above.
    fn entry_verdict(&self, path: &[u8], is_directory: bool) -> bool {
        let components: Vec<&[u8]> = path.split(|&byte| byte == b'/').collect();
        let mut end = path.len();
        for depth in (0..components.len()).rev() {
            // The directory the component lies in is what stands before it.
            end = (end - components[depth].len()).saturating_sub(1);
            if let Some(file) = self.file_of(&path[..end])
                && let Some(verdict) = file.verdict(&components[depth..], is_directory)
            {
                return verdict;
            }
        }
        self.general.iter().find_map(|file| file.verdict(&components, is_directory)).unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(files: &[(&str, &str)]) -> IgnoreSet {
        let mut set = IgnoreSet::default();
        for (dir, text) in files {
            set.add(&RelPath::parse(dir.as_bytes()).expect("a path"), IgnoreFile::parse(text.as_bytes()));
        }
        set
    }

    fn ignores(set: &IgnoreSet, path: &str) -> bool {
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        if name.is_empty() {
            set.ignores_dir(dir.as_bytes())
        } else {
            set.ignores_file(dir.as_bytes(), name.as_bytes())
        }
    }

    #[test]
    fn patterns_mean_what_gitignore_says() {
        for (text, yes, no) in [
            ("*.log", "a/b.log x.log", "a.logs log"),
            ("/build", "build build/x", "a/build"),
            ("build/", "build/x a/build/x", "build a/build"),
            ("doc/*.txt", "doc/a.txt", "doc/a/b.txt x/doc/a.txt"),
            ("**/foo", "foo a/foo a/b/foo", "foox"),
            ("**/foo/bar", "foo/bar a/foo/bar", "foo/x/bar"),
            ("abc/**", "abc/x abc/x/y", "abc x/abc/y"),
            ("a/**/b", "a/b a/x/b a/x/y/b", "ab"),
            ("*.o\n!keep.o", "x.o", "keep.o a/keep.o"),
            ("dir/\n!dir/keep", "dir/keep", "keep"),
            ("\\#x\n\\!y", "#x !y", "x y"),
            ("a\\ ", "", "a"),
            ("tail  ", "tail", "tail2"),
            ("{a,b}", "{a,b}", "a b"),
            ("[a-c]?[!x]", "a12 cz1", "d12 a1x a1"),
            ("[[:digit:]]x", "1x", "ax"),
            ("[]-]", "] -", "x"),
            ("[a", "", "[a a"),
            ("fo**o", "foxxo foo", "fo/o"),
            ("# comment\n\n", "", "x"),
            ("*\n!*/\n!*.c", "x a/y", "a/b.c"),
        ] {
            let set = set(&[("", text)]);
            for path in yes.split_whitespace() {
                assert!(ignores(&set, path), "{text:?} should ignore {path}");
            }
            for path in no.split_whitespace() {
                assert!(!ignores(&set, path), "{text:?} should not ignore {path}");
            }
        }
        assert!(ignores(&set(&[("", "a\\ ")]), "a "));
    }

    #[test]
    fn the_nearest_file_that_knows_the_path_decides() {
        let set = set(&[("", "*.log\nout/"), ("a", "!*.log\n/only"), ("a/b", "x.log"), (".venv", "*")]);
        assert!(ignores(&set, "x.log") && !ignores(&set, "a/x.log") && ignores(&set, "a/b/x.log"));
        assert!(!ignores(&set, "a/b/y.log"));
        assert!(ignores(&set, "a/only") && !ignores(&set, "a/b/only") && !ignores(&set, "only"));
        assert!(ignores(&set, "a/out/x"), "a directory above is ignored");
        assert!(set.ignores_dir(b".venv/lib") && set.ignores_dir(b".venv"));
    }

    #[test]
    fn a_line_that_cannot_be_read_ignores_nothing() {
        let mut unreadable = IgnoreSet::default();
        unreadable.add(&RelPath::root(), IgnoreFile::parse(b"secret\n![\n*.log\n"));
        assert!(!ignores(&unreadable, "secret"), "the broken line may have brought it back");
        assert!(ignores(&unreadable, "x.log"));
        let bytes = IgnoreFile::parse(b"caf\xe9\n");
        assert_eq!(bytes.verdict(&[b"caf\xe9"], false), Some(true));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(file in proptest::collection::vec(any::<u8>(), 0..80), path in proptest::collection::vec(any::<u8>(), 1..40)) {
            let mut set = IgnoreSet::new(vec![IgnoreFile::parse(&file)]);
            set.add(&RelPath::root(), IgnoreFile::parse(&file));
            set.ignores_file(b"a/b", &path);
            set.ignores_dir(&path);
        }
    }
}
