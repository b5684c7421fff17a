//! Globs of rule files and of `--allow-only`, matched on bytes.
//!
//! Promise: matching takes time polynomial in the lengths of glob and path, whatever both hold: braces are expanded when
//! a glob is compiled, under a cap, and a star is tried with one step back, never recursively. Names that are not UTF-8
//! match like any other: a byte that is no part of a character counts as one character.
//! Limit: no `\` escapes and no extended globs; `[*]` matches a star.

use platform::RelPath;

/// Alternatives one glob may expand to.
const MAX_ALTERNATIVES: usize = 64;
/// Bytes one glob may have.
const MAX_BYTES: usize = 4096;
/// Braces inside braces.
const MAX_NESTING: usize = 8;

/// Why a text is no glob, or no path of a rule file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GlobError {
    /// Nothing is left after trimming.
    #[error("is empty")]
    Empty,
    /// Starts with `/`.
    #[error("is absolute; write it relative to the root")]
    Absolute,
    /// Starts like `C:`.
    #[error("has a drive letter")]
    Drive,
    /// Two slashes in a row.
    #[error("has an empty segment")]
    EmptySegment,
    /// A `.` or `..` segment.
    #[error("has a `.` or `..` segment")]
    DotSegment,
    /// A backslash.
    #[error("has a backslash; segments are separated by `/`, and nothing is escaped")]
    Backslash,
    /// A control character.
    #[error("has a control character")]
    Control,
    /// `**` beside other characters in a segment.
    #[error("has `**` beside other characters; `**` must be a whole segment")]
    DoubleStar,
    /// `[` without `]`, or nothing in between.
    #[error("has a `[` without its `]`")]
    Class,
    /// A range that runs backwards, or a `/` in a class.
    #[error("has a faulty range in `[…]`")]
    Range,
    /// Braces do not pair.
    #[error("has a `{{` or `}}` without the other")]
    Brace,
    /// Expands to too many alternatives, or is too long or too deep.
    #[error("is too long or has too many alternatives")]
    TooLarge,
}

/// A compiled glob.
#[derive(Debug, Clone)]
pub struct Glob {
    text: String,
    alternatives: Vec<Vec<Segment>>,
}

/// One part of a path that must match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segment {
    /// `**`: any number of segments, none as well.
    AnyDepth,
    /// One name that looks like this.
    Name(Vec<Token>),
}

/// A part of what a name must look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    /// These bytes.
    Literal(Vec<u8>),
    /// Any one character.
    One,
    /// Any characters, none as well.
    Many,
    /// One character in, or not in, the ranges.
    Class {
        /// Whether the ranges exclude.
        negated: bool,
        /// First and last character of each range.
        ranges: Vec<(char, char)>,
    },
    /// Any one byte: git's ignore files know no characters.
    OneByte,
    /// Any bytes, none as well.
    ManyBytes,
    /// One byte of the set: bit `byte & 63` of word `byte >> 6`.
    ByteClass([u64; 4]),
}

/// The text without blanks around it, leading `./` and trailing `/`.
pub fn trimmed(text: &str) -> &str {
    let mut text = text.trim();
    while let Some(rest) = text.strip_prefix("./") {
        text = rest;
    }
    while text.len() > 1 && text.ends_with('/') {
        text = &text[..text.len() - 1];
    }
    text
}

/// Checks what paths and globs have in common: relative, no drive, no backslash, no control character, whole segments.
pub fn check(text: &str) -> Result<(), GlobError> {
    let bytes = text.as_bytes();
    if bytes.is_empty() {
        return Err(GlobError::Empty);
    }
    if bytes.len() > MAX_BYTES {
        return Err(GlobError::TooLarge);
    }
    if bytes[0] == b'/' {
        return Err(GlobError::Absolute);
    }
    if text.contains('\\') {
        return Err(GlobError::Backslash);
    }
    if bytes.len() > 1 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' {
        return Err(GlobError::Drive);
    }
    if text.chars().any(char::is_control) {
        return Err(GlobError::Control);
    }
    text.split('/').try_for_each(|segment| match segment {
        "" => Err(GlobError::EmptySegment),
        "." | ".." => Err(GlobError::DotSegment),
        _ => Ok(()),
    })
}

impl Glob {
    /// Compiles a glob; blanks around it, a leading `./` and a trailing `/` do not count.
    pub fn compile(text: &str) -> Result<Self, GlobError> {
        let text = trimmed(text);
        check(text)?;
        let characters: Vec<char> = text.chars().collect();
        let anchored = text.contains('/');
        let mut alternatives = Vec::new();
        for alternative in expand(&characters, 0)? {
            check(&alternative)?;
            let mut segments = Vec::new();
            if !anchored {
                segments.push(Segment::AnyDepth);
            }
            for segment in alternative.split('/') {
                if segment != "**" {
                    segments.push(Segment::Name(tokens(segment)?));
                } else if segments.last() != Some(&Segment::AnyDepth) {
                    segments.push(Segment::AnyDepth);
                }
            }
            // What ends in `**` means everything below, and not the folder itself.
            if segments.last() == Some(&Segment::AnyDepth) {
                segments.push(Segment::Name(vec![Token::Many]));
            }
            alternatives.push(segments);
        }
        Ok(Self { text: text.to_owned(), alternatives })
    }

    /// The glob as it was written, trimmed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether some path with this last component can match: a cheap question before [`Glob::matches`].
    pub fn admits_name(&self, name: &[u8]) -> bool {
        self.alternatives.iter().any(|segments| match segments.last() {
            Some(Segment::Name(tokens)) => name_matches(tokens, name),
            Some(Segment::AnyDepth) | None => true,
        })
    }

    /// Whether the path with these components matches.
    pub fn matches(&self, components: &[&[u8]]) -> bool {
        self.alternatives.iter().any(|segments| path_matches(segments, components))
    }

    /// Whether the path matches.
    pub fn matches_path(&self, path: &RelPath) -> bool {
        self.matches(&path.components().collect::<Vec<_>>())
    }
}

/// Expands braces, outermost first. Every part is expanded once and the product is capped, so this cannot run away.
fn expand(text: &[char], nesting: usize) -> Result<Vec<String>, GlobError> {
    if nesting > MAX_NESTING {
        return Err(GlobError::TooLarge);
    }
    let mut expanded = vec![String::new()];
    let mut at = 0;
    while at < text.len() {
        let options = match text[at] {
            '}' => return Err(GlobError::Brace),
            '{' => {
                let (parts, end) = options(text, at)?;
                at = end;
                let mut options = Vec::new();
                for part in parts {
                    options.extend(expand(part, nesting + 1)?);
                }
                options
            }
            '[' => {
                let end = class_end(text, at)?;
                let class = text[at..end].iter().collect();
                at = end;
                vec![class]
            }
            plain => {
                at += 1;
                vec![plain.to_string()]
            }
        };
        if let [only] = &options[..] {
            expanded.iter_mut().for_each(|start| start.push_str(only));
            continue;
        }
        if expanded.len() * options.len() > MAX_ALTERNATIVES {
            return Err(GlobError::TooLarge);
        }
        expanded = expanded.iter().flat_map(|start| options.iter().map(move |end| format!("{start}{end}"))).collect();
    }
    Ok(expanded)
}

/// The options of the brace at `open`, and the index after its end.
fn options(text: &[char], open: usize) -> Result<(Vec<&[char]>, usize), GlobError> {
    let (mut parts, mut start, mut depth, mut at) = (Vec::new(), open + 1, 0usize, open);
    while at < text.len() {
        match text[at] {
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                if depth == 0 {
                    parts.push(&text[start..at]);
                    return Ok((parts, at + 1));
                }
            }
            ',' if depth == 1 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            '[' => at = class_end(text, at)? - 1,
            _ => {}
        }
        at += 1;
    }
    Err(GlobError::Brace)
}

/// The index after the class that opens at `open`. A `]` that comes first is a member.
fn class_end(text: &[char], open: usize) -> Result<usize, GlobError> {
    let mut first = open + 1;
    if matches!(text.get(first), Some('!' | '^')) {
        first += 1;
    }
    let end = (first + 1..text.len()).find(|&at| text[at] == ']').ok_or(GlobError::Class)?;
    if text[first..end].contains(&'/') { Err(GlobError::Range) } else { Ok(end + 1) }
}

/// The tokens of one segment without braces.
fn tokens(segment: &str) -> Result<Vec<Token>, GlobError> {
    let text: Vec<char> = segment.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            '*' if text.get(at + 1) == Some(&'*') => return Err(GlobError::DoubleStar),
            '*' => tokens.push(Token::Many),
            '?' => tokens.push(Token::One),
            '[' => {
                let end = class_end(&text, at)?;
                tokens.push(class(&text[at + 1..end - 1])?);
                at = end;
                continue;
            }
            plain => push_literal(&mut tokens, plain.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        at += 1;
    }
    Ok(tokens)
}

/// Appends bytes to the last token if that is a literal, or as a new one.
pub(crate) fn push_literal(tokens: &mut Vec<Token>, bytes: &[u8]) {
    if let Some(Token::Literal(literal)) = tokens.last_mut() {
        literal.extend_from_slice(bytes);
    } else {
        tokens.push(Token::Literal(bytes.to_vec()));
    }
}

/// The class with these characters between its brackets.
fn class(text: &[char]) -> Result<Token, GlobError> {
    let negated = matches!(text.first(), Some('!' | '^'));
    let mut members = if negated { &text[1..] } else { text };
    let mut ranges = Vec::new();
    while let Some((&from, rest)) = members.split_first() {
        let (to, rest) = match rest {
            ['-', to, rest @ ..] => (*to, rest),
            _ => (from, rest),
        };
        if from > to {
            return Err(GlobError::Range);
        }
        ranges.push((from, to));
        members = rest;
    }
    Ok(Token::Class { negated, ranges })
}

/// The first character and its length in bytes; `None` for a byte that is no part of one.
fn character(bytes: &[u8]) -> (Option<char>, usize) {
    if bytes[0].is_ascii() {
        return (Some(char::from(bytes[0])), 1);
    }
    for length in 2..=bytes.len().min(4) {
        if let Ok(text) = std::str::from_utf8(&bytes[..length]) {
            return (text.chars().next(), length);
        }
    }
    (None, 1)
}

/// The length of what the token takes at the start of `bytes`. A star is the caller's business.
fn taken(token: &Token, bytes: &[u8]) -> Option<usize> {
    match token {
        Token::Literal(literal) => bytes.starts_with(literal).then_some(literal.len()),
        _ if bytes.is_empty() => None,
        Token::One => Some(character(bytes).1),
        Token::Class { negated, ranges } => {
            let (character, length) = character(bytes);
            let inside = character.is_some_and(|found| ranges.iter().any(|&(from, to)| (from..=to).contains(&found)));
            (inside != *negated).then_some(length)
        }
        Token::OneByte => Some(1),
        Token::ByteClass(set) => (set[usize::from(bytes[0] >> 6)] >> (bytes[0] & 63) & 1 == 1).then_some(1),
        Token::Many | Token::ManyBytes => None,
    }
}

/// Whether a whole name matches. Only the last star is ever tried again: what an earlier one could take in its place,
/// the last one can take as well, so this is quadratic at worst.
pub(crate) fn name_matches(tokens: &[Token], name: &[u8]) -> bool {
    // The two usual forms, without a search.
    match tokens {
        [Token::Literal(literal)] => return literal == name,
        [Token::Many | Token::ManyBytes, Token::Literal(literal)] => return name.ends_with(literal),
        _ => {}
    }
    let (mut token, mut at) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    loop {
        match tokens.get(token) {
            Some(Token::Many | Token::ManyBytes) => {
                token += 1;
                retry = Some((token, at));
                continue;
            }
            Some(wanted) => {
                if let Some(length) = taken(wanted, &name[at..]) {
                    token += 1;
                    at += length;
                    continue;
                }
            }
            None if at == name.len() => return true,
            None => {}
        }
        match retry {
            Some((after_star, start)) if start < name.len() => {
                let step = if tokens[after_star - 1] == Token::Many { character(&name[start..]).1 } else { 1 };
                retry = Some((after_star, start + step));
                (token, at) = (after_star, start + step);
            }
            _ => return false,
        }
    }
}

/// The same one level up: segments against components, `**` as the star.
pub(crate) fn path_matches(segments: &[Segment], components: &[&[u8]]) -> bool {
    let (mut segment, mut at) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    loop {
        match segments.get(segment) {
            Some(Segment::AnyDepth) => {
                segment += 1;
                retry = Some((segment, at));
                continue;
            }
            Some(Segment::Name(tokens)) if components.get(at).is_some_and(|name| name_matches(tokens, name)) => {
                segment += 1;
                at += 1;
                continue;
            }
            None if at == components.len() => return true,
            Some(Segment::Name(_)) | None => {}
        }
        match retry {
            Some((after_star, start)) if start < components.len() => {
                retry = Some((after_star, start + 1));
                (segment, at) = (after_star, start + 1);
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(glob: &str, path: &[u8]) -> bool {
        let glob = Glob::compile(glob).expect("a glob");
        glob.matches(&path.split(|&byte| byte == b'/').collect::<Vec<_>>())
    }

    #[test]
    fn the_parts_of_a_glob_mean_what_the_documents_say() {
        for (glob, yes, no) in [
            ("infra/*.tf", "infra/a.tf", "infra/deep/a.tf"),
            ("infra/?.tf", "infra/é.tf", "infra/ab.tf"),
            ("infra/**", "infra/a/b", "infra"),
            ("**/x", "x", "xx"),
            ("**/x", "a/b/x", "a/x/b"),
            ("a/**/b", "a/b", "a/c"),
            ("a/**/b", "a/x/y/b", "ab"),
            ("**", ".hidden/file", ""),
            ("*.pem", "deep/down/key.pem", "key.pem/x"),
            ("./conf/", "deep/conf", "conf.d"),
            ("conf/[ab]?.ini", "conf/a1.ini", "conf/c1.ini"),
            ("conf/[!ab]", "conf/c", "conf/a"),
            ("[]x]", "]", "y"),
            ("[a-c-]", "-", "d"),
            ("**/*.{pem,key}", "two.key", "two.KEY"),
            ("{a,b{c,d}}/x", "bd/x", "b/x"),
            ("{,x/}y/z", "x/y/z", "x/z"),
            ("[{,}]/a", ",/a", "x/a"),
            ("*", "any/.name", ""),
        ] {
            assert!(matches(glob, yes.as_bytes()), "{glob} should match {yes}");
            assert!(no.is_empty() || !matches(glob, no.as_bytes()), "{glob} should not match {no}");
        }
    }

    #[test]
    fn a_name_that_is_not_utf8_matches() {
        assert!(matches("d/*.pem", b"d/\xff\xfe.pem"));
        assert!(matches("d/?", b"d/\xff"));
        assert!(matches("d/[!a]", b"d/\xff"));
        assert!(!matches("d/[a-z]", b"d/\xff"));
        assert!(!matches("d/?", b"d/\xff\xff"));
    }

    #[test]
    fn faulty_globs_are_refused() {
        for (text, error) in [
            ("  ", GlobError::Empty),
            ("/etc/*", GlobError::Absolute),
            ("C:/x", GlobError::Drive),
            ("a//b", GlobError::EmptySegment),
            ("a/../b", GlobError::DotSegment),
            ("{..,x}/b", GlobError::DotSegment),
            ("a/{,x}/b", GlobError::EmptySegment),
            ("a\\b", GlobError::Backslash),
            ("a\u{1b}b", GlobError::Control),
            ("a**/b", GlobError::DoubleStar),
            ("[a", GlobError::Class),
            ("[]", GlobError::Class),
            ("[z-a]", GlobError::Range),
            ("{a", GlobError::Brace),
            ("a}", GlobError::Brace),
            ("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", GlobError::TooLarge),
            ("{{{{{{{{{{a}}}}}}}}}}", GlobError::TooLarge),
        ] {
            assert_eq!(Glob::compile(text).err(), Some(error), "{text}");
        }
    }

    #[test]
    fn stars_without_end_are_matched_in_a_moment() {
        // Exponential matchers need longer than the universe has for these; this one needs well under a second.
        let name = "a".repeat(4000);
        assert!(!matches(&format!("{}b", "a*".repeat(1000)), name.as_bytes()));
        let path = ["a"; 2000].join("/");
        assert!(!matches(&format!("{}b", "**/a/".repeat(300)), path.as_bytes()));
        assert!(matches(&format!("{}a", "**/a/".repeat(300)), path.as_bytes()));
    }

    /// The plain definition: a star takes every possible length, tried recursively.
    fn oracle(tokens: &[Token], name: &[u8]) -> bool {
        match tokens.split_first() {
            None => name.is_empty(),
            Some((Token::Many, rest)) => {
                oracle(rest, name) || (!name.is_empty() && oracle(tokens, &name[character(name).1..]))
            }
            Some((token, rest)) => taken(token, name).is_some_and(|length| oracle(rest, &name[length..])),
        }
    }

    proptest! {
        #[test]
        fn one_step_back_is_enough(glob in "[ab?*é]{1,8}", name in "[abé]{0,8}") {
            prop_assume!(!glob.contains("**"));
            let tokens = tokens(&glob).expect("a segment");
            prop_assert_eq!(name_matches(&tokens, name.as_bytes()), oracle(&tokens, name.as_bytes()));
        }

        #[test]
        fn no_text_and_no_path_panics(glob in "\\PC{0,40}|[\\[\\]{},*?a!/^-]{0,24}", path in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(glob) = Glob::compile(&glob) {
                glob.matches(&path.split(|&byte| byte == b'/').collect::<Vec<_>>());
                glob.admits_name(&path);
            }
        }
    }
}
