//! The text of a git configuration file, as settings in order.
//!
//! Promise: any bytes end in a list, in linear time; a line that git would refuse is left out and counted, so that a
//! setting after it is still found. Limit: nothing is looked up or included here; that is [`super::settings`]'s.
//! Source: git-config(1), "Syntax"; config.c of git for what it does not say.

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Section, lower case.
    pub section: Vec<u8>,
    /// Subsection, as written; `None` if there is none.
    pub subsection: Option<Vec<u8>>,
    /// Key, lower case.
    pub key: Vec<u8>,
    /// Value; `None` for a key without `=`.
    pub value: Option<Vec<u8>>,
}

impl Setting {
    /// Whether this is `section.key`, without a subsection.
    pub fn is(&self, section: &str, key: &str) -> bool {
        self.subsection.is_none() && self.section == section.as_bytes() && self.key == key.as_bytes()
    }
}

/// A parsed file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Its settings, in order.
    pub settings: Vec<Setting>,
    /// Number of the first line that could not be read.
    pub faulty_line: Option<usize>,
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
}

impl Cursor<'_> {
    /// The next byte, with `\r\n` as one line end. At the end a line end, too.
    fn next(&mut self) -> u8 {
        let byte = self.bytes.get(self.at).copied().unwrap_or(b'\n');
        self.at += 1;
        if byte == b'\r' && self.bytes.get(self.at) == Some(&b'\n') {
            self.at += 1;
            self.line += 1;
            return b'\n';
        }
        if byte == b'\n' {
            self.line += 1;
        }
        byte
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_line(&mut self) {
        while self.at < self.bytes.len() && self.next() != b'\n' {}
    }
}

/// Parses a file.
pub fn parse(bytes: &[u8]) -> Config {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut cursor = Cursor { bytes, at: 0, line: 1 };
    let mut config = Config::default();
    let mut section: Option<(Vec<u8>, Option<Vec<u8>>)> = None;
    while let Some(byte) = cursor.peek() {
        let line = cursor.line;
        let read = match byte {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => {
                cursor.next();
                continue;
            }
            b'#' | b';' => {
                cursor.skip_line();
                continue;
            }
            b'[' => header(&mut cursor).map(|header| section = Some(header)),
            _ => setting(&mut cursor).and_then(|(key, value)| {
                let (section, subsection) = section.clone()?;
                config.settings.push(Setting { section, subsection, key, value });
                Some(())
            }),
        };
        if read.is_none() {
            config.faulty_line.get_or_insert(line);
            // What was read may have taken the line's end with it.
            if cursor.line == line {
                cursor.skip_line();
            }
        }
    }
    config
}

/// `[section]`, `[section.sub]` or `[section "sub"]`.
fn header(cursor: &mut Cursor<'_>) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    cursor.next();
    let mut name = Vec::new();
    loop {
        match cursor.next() {
            b']' => break,
            b' ' | b'\t' => {
                while matches!(cursor.peek(), Some(b' ' | b'\t')) {
                    cursor.next();
                }
                return (cursor.next() == b'"').then(|| quoted(cursor)).flatten().map(|sub| (name, Some(sub)));
            }
            byte if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.' => {
                name.push(byte.to_ascii_lowercase())
            }
            _ => return None,
        }
    }
    match name.iter().position(|&byte| byte == b'.') {
        Some(dot) => Some((name[..dot].to_vec(), Some(name[dot + 1..].to_vec()))),
        None => Some((name, None)),
    }
}

/// The rest of a quoted subsection, up to `"]`.
fn quoted(cursor: &mut Cursor<'_>) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    loop {
        match cursor.next() {
            b'"' => return (cursor.next() == b']').then_some(text),
            b'\n' => return None,
            b'\\' => match cursor.next() {
                b'\n' => return None,
                escaped => text.push(escaped),
            },
            plain => text.push(plain),
        }
    }
}

fn setting(cursor: &mut Cursor<'_>) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let first = cursor.next();
    if !first.is_ascii_alphabetic() {
        return None;
    }
    let mut key = vec![first.to_ascii_lowercase()];
    loop {
        match cursor.next() {
            b'\n' => return Some((key, None)),
            b'=' => return value(cursor).map(|value| (key, Some(value))),
            b' ' | b'\t' => {
                while matches!(cursor.peek(), Some(b' ' | b'\t')) {
                    cursor.next();
                }
                return match cursor.next() {
                    b'\n' => Some((key, None)),
                    b'=' => value(cursor).map(|value| (key, Some(value))),
                    b'#' | b';' => {
                        cursor.skip_line();
                        Some((key, None))
                    }
                    _ => None,
                };
            }
            byte if byte.is_ascii_alphanumeric() || byte == b'-' => key.push(byte.to_ascii_lowercase()),
            _ => return None,
        }
    }
}

fn value(cursor: &mut Cursor<'_>) -> Option<Vec<u8>> {
    let (mut value, mut in_quotes, mut kept) = (Vec::new(), false, 0);
    loop {
        match cursor.next() {
            b'\n' if in_quotes => return None,
            b'\n' => break,
            blank @ (b' ' | b'\t' | b'\r' | 0x0b | 0x0c) if !in_quotes => {
                // Leading blanks do not count, trailing ones are cut below.
                if !value.is_empty() {
                    value.push(blank);
                }
                continue;
            }
            b'#' | b';' if !in_quotes => {
                cursor.skip_line();
                break;
            }
            b'\\' => match cursor.next() {
                b'\n' if cursor.at > cursor.bytes.len() => return None,
                b'\n' => continue,
                b't' => value.push(b'\t'),
                b'n' => value.push(b'\n'),
                b'b' => value.push(0x08),
                same @ (b'\\' | b'"') => value.push(same),
                _ => return None,
            },
            b'"' => in_quotes = !in_quotes,
            plain => value.push(plain),
        }
        kept = value.len();
    }
    value.truncate(kept);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values(text: &str) -> Vec<String> {
        let show = |setting: &Setting| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let sub = setting.subsection.as_ref().map_or(String::new(), |sub| format!("<{}>", text(sub)));
            let value = setting.value.as_ref().map_or("!".to_owned(), |value| format!("={}", text(value)));
            format!("{}{sub}.{}{value}", text(&setting.section), text(&setting.key))
        };
        parse(text.as_bytes()).settings.iter().map(show).collect()
    }

    #[test]
    fn settings_are_read_as_git_reads_them() {
        for (text, wanted) in [
            ("[core]\n\thooksPath = tools/hooks\n", "core.hookspath=tools/hooks"),
            ("[CORE] HooksPath=a b \t# comment\n", "core.hookspath=a b"),
            ("[core]\r\n\tx = y\r\n", "core.x=y"),
            ("[core]\nbare", "core.bare!"),
            ("[core]\nbare ; no\n", "core.bare!"),
            ("[core]\nx = \" a # b \" ; c\n", "core.x= a # b "),
            ("[core]\nx = a\\\n  b\n", "core.x=a  b"),
            ("[core]\nx = \\\"q\\\\\\t\n", "core.x=\"q\\\t"),
            ("[core]\nx =\n", "core.x="),
            ("\u{feff}[a]\nk=v\n", "a.k=v"),
            ("[includeIf \"gitdir:~/\\\"w\"]\npath = x\n", "includeif<gitdir:~/\"w>.path=x"),
            ("[remote.Origin]\nurl = u", "remote<origin>.url=u"),
        ] {
            assert_eq!(values(text), [wanted], "{text:?}");
        }
    }

    #[test]
    fn a_faulty_line_hides_no_later_setting() {
        for text in [
            "[core\n[core]\nx=y",
            "[core]\n1x=y\nx=y",
            "[core]\nz=\\q\nx=y",
            "[core]\nz=\"open\nx=y",
            "k=v\n[core]\nx=y",
        ] {
            let config = parse(text.as_bytes());
            assert!(config.faulty_line.is_some(), "{text:?}");
            assert_eq!(values(text), ["core.x=y"], "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            parse(&bytes);
        }

        #[test]
        fn no_text_of_its_signs_panics(text in "[\\[\\]\"\\\\=#;.a \t\r\n-]{0,60}") {
            let config = parse(text.as_bytes());
            prop_assert!(config.settings.len() <= text.len());
        }
    }
}
