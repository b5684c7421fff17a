//! The labels of a name: IDNA, what can be registered, and what looks like something else.
//!
//! Promise: a canonical name is ASCII, lower case, and decodes to the very labels it was made from; a label that mixes
//! scripts, or is written in letters that look Latin and are not, is remarked upon. Limit: the tables of scripts and of
//! look-alikes hold what names are written in, not all of Unicode; an unknown letter counts as a script of its own.
//! Source: UTS #46 (mapping), UTS #39 (highly restrictive level, look-alikes), the Public Suffix List.

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

use super::{HostError, MAX_NAME};
use crate::text;

const MAX_LABEL: usize = 63;

/// Brings a name into its canonical form; a trailing dot is dropped.
pub(super) fn canonical(name: &str) -> Result<String, HostError> {
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.is_empty() {
        return Err(HostError::Empty);
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if !name.bytes().all(|byte| !byte.is_ascii() || plain(byte)) {
        return Err(HostError::Character);
    }
    if name.chars().any(is_disguised) {
        return Err(HostError::Disguised);
    }
    let ascii = if name.is_ascii() { name.to_ascii_lowercase() } else { encode(name)? };
    if ascii.len() > MAX_NAME {
        return Err(HostError::TooLong);
    }
    for label in ascii.split('.') {
        if label.is_empty() || label.len() > MAX_LABEL || label.starts_with('-') || label.ends_with('-') {
            return Err(HostError::Label);
        }
    }
    if ascii.split('.').any(|label| label.starts_with("xn--")) {
        // An A-label that no name encodes to would be another spelling of the same name, or of none.
        let decoded = decode(&ascii).ok_or(HostError::Label)?;
        if decoded.chars().any(text::is_hidden) || encode(&decoded)? != ascii {
            return Err(HostError::Label);
        }
    }
    if psl::domain_str(&ascii).unwrap_or(&ascii).contains('_') {
        return Err(HostError::Underscore);
    }
    Ok(ascii)
}

/// Whether a program might take the name for an IPv4 address: its last label is a decimal, octal or hexadecimal number.
pub(super) fn ends_in_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    match last.strip_prefix("0x") {
        Some(digits) => digits.bytes().all(|digit| digit.is_ascii_hexdigit()),
        None => last.bytes().all(|digit| digit.is_ascii_digit()),
    }
}

/// Whether all names below this one may be granted at once: never at a public suffix or above it.
pub(super) fn may_widen(domain: &str) -> bool {
    psl::domain_str(domain).is_some()
}

/// What is to be said of the labels that are not plain ASCII.
pub(super) fn remarks(name: &str) -> Vec<String> {
    let mut remarks = Vec::new();
    for label in name.split('.').filter(|label| label.starts_with("xn--")) {
        let Some(decoded) = decode(label) else { continue };
        let scripts = scripts(&decoded);
        remarks.push(if is_mixed(&scripts) {
            format!("{label} mixes {} letters", scripts.join(" and "))
        } else if let Some(alike) = looks_like(&decoded) {
            format!("{label} looks like {alike} and is not, it is in {} letters", scripts.join(" and "))
        } else {
            format!("{label} reads {}", text::escaped(decoded.as_bytes()))
        });
    }
    remarks
}

fn encode(name: &str) -> Result<String, HostError> {
    // ASCII, hyphens and lengths are judged by us, the same for every label.
    let encoded = Uts46::new().to_ascii(name.as_bytes(), AsciiDenyList::EMPTY, Hyphens::Allow, DnsLength::Ignore);
    encoded.map(std::borrow::Cow::into_owned).map_err(|_| HostError::Label)
}

fn decode(name: &str) -> Option<String> {
    let (decoded, valid) = Uts46::new().to_unicode(name.as_bytes(), AsciiDenyList::EMPTY, Hyphens::Allow);
    valid.ok().map(|()| decoded.into_owned())
}

/// Whether IDNA maps the character to ASCII: full-width and superscript digits, the Kelvin sign, ideographic dots,
/// ligatures. People write names in capitals, not in these.
fn is_disguised(character: char) -> bool {
    if character.is_ascii() {
        return false;
    }
    let mut buffer = [0; 4];
    let bytes = character.encode_utf8(&mut buffer).as_bytes();
    // Whether the character can stand alone is not the question, only what becomes of it.
    let (mapped, _) = Uts46::new().to_unicode(bytes, AsciiDenyList::EMPTY, Hyphens::Allow);
    mapped.is_empty() || mapped.bytes().any(|byte| byte.is_ascii())
}

/// The scripts of a label's letters, in the order they come in. Digits, hyphens and marks belong to every script.
fn scripts(label: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    for character in label.chars() {
        let script = script(character);
        if script != COMMON && !found.contains(&script) {
            found.push(script);
        }
    }
    found
}

/// Whether no language is written in these scripts together.
fn is_mixed(scripts: &[&str]) -> bool {
    const TOGETHER: [&[&str]; 3] =
        [&["Latin", "Han", "Hiragana", "Katakana"], &["Latin", "Han", "Bopomofo"], &["Latin", "Han", "Hangul"]];
    scripts.len() > 1 && !TOGETHER.iter().any(|allowed| scripts.iter().all(|script| allowed.contains(script)))
}

/// The ASCII label that this one looks like, if every letter has a plain look-alike.
fn looks_like(label: &str) -> Option<String> {
    label
        .chars()
        .map(|character| {
            if character.is_ascii() {
                return Some(character);
            }
            ALIKE.iter().find(|(_, letters)| letters.contains(character)).map(|(plain, _)| *plain)
        })
        .collect()
}

/// Letters that are hardly told from a plain one in the usual typefaces.
static ALIKE: [(char, &str); 22] = [
    ('a', "аɑα"),
    ('b', "ьᏏ"),
    ('c', "сϲᴄ"),
    ('d', "ԁ"),
    ('e', "еҽ"),
    ('g', "ɡցԍ"),
    ('h', "һհ"),
    ('i', "іıɩιɪ"),
    ('j', "јϳյ"),
    ('k', "кκ"),
    ('l', "ӏ"),
    ('n', "ոηпɴ"),
    ('o', "оοօᴏ"),
    ('p', "рρ"),
    ('q', "ԛզ"),
    ('r', "гᴦ"),
    ('s', "ѕꜱ"),
    ('u', "սυᴜ"),
    ('v', "ѵνʋᴠ"),
    ('w', "ԝѡᴡ"),
    ('x', "хχ"),
    ('y', "уγʏ"),
];

const COMMON: &str = "common";

fn script(character: char) -> &'static str {
    let code = u32::from(character);
    if !character.is_alphabetic() {
        return COMMON;
    }
    let at = SCRIPTS.partition_point(|(_, last, _)| *last < code);
    match SCRIPTS.get(at) {
        Some((first, _, name)) if *first <= code => name,
        _ => "unknown",
    }
}

/// First and last code point of blocks whose letters are of one script, in order.
static SCRIPTS: [(u32, u32, &str); 64] = [
    (0x41, 0x5a, "Latin"),
    (0x61, 0x7a, "Latin"),
    (0xaa, 0xba, "Latin"),
    (0xc0, 0x2af, "Latin"),
    (0x2b0, 0x36f, COMMON),
    (0x370, 0x3ff, "Greek"),
    (0x400, 0x52f, "Cyrillic"),
    (0x530, 0x58f, "Armenian"),
    (0x590, 0x5ff, "Hebrew"),
    (0x600, 0x6ff, "Arabic"),
    (0x700, 0x74f, "Syriac"),
    (0x750, 0x77f, "Arabic"),
    (0x780, 0x7bf, "Thaana"),
    (0x8a0, 0x8ff, "Arabic"),
    (0x900, 0x97f, "Devanagari"),
    (0x980, 0x9ff, "Bengali"),
    (0xa00, 0xa7f, "Gurmukhi"),
    (0xa80, 0xaff, "Gujarati"),
    (0xb00, 0xb7f, "Oriya"),
    (0xb80, 0xbff, "Tamil"),
    (0xc00, 0xc7f, "Telugu"),
    (0xc80, 0xcff, "Kannada"),
    (0xd00, 0xd7f, "Malayalam"),
    (0xd80, 0xdff, "Sinhala"),
    (0xe00, 0xe7f, "Thai"),
    (0xe80, 0xeff, "Lao"),
    (0xf00, 0xfff, "Tibetan"),
    (0x1000, 0x109f, "Myanmar"),
    (0x10a0, 0x10ff, "Georgian"),
    (0x1100, 0x11ff, "Hangul"),
    (0x1200, 0x139f, "Ethiopic"),
    (0x13a0, 0x13ff, "Cherokee"),
    (0x1780, 0x17ff, "Khmer"),
    (0x1800, 0x18af, "Mongolian"),
    (0x1c80, 0x1c8f, "Cyrillic"),
    (0x1c90, 0x1cbf, "Georgian"),
    (0x1d00, 0x1d25, "Latin"),
    (0x1d26, 0x1d2a, "Greek"),
    (0x1d2b, 0x1d2b, "Cyrillic"),
    (0x1d2c, 0x1dbf, "Latin"),
    (0x1e00, 0x1eff, "Latin"),
    (0x1f00, 0x1fff, "Greek"),
    (0x2c60, 0x2c7f, "Latin"),
    (0x2c80, 0x2cff, "Coptic"),
    (0x2d00, 0x2d2f, "Georgian"),
    (0x2d80, 0x2ddf, "Ethiopic"),
    (0x2de0, 0x2dff, "Cyrillic"),
    (0x3005, 0x3007, "Han"),
    (0x3041, 0x309f, "Hiragana"),
    (0x30a0, 0x30ff, "Katakana"),
    (0x3100, 0x312f, "Bopomofo"),
    (0x3130, 0x318f, "Hangul"),
    (0x31a0, 0x31bf, "Bopomofo"),
    (0x31f0, 0x31ff, "Katakana"),
    (0x3400, 0x4dbf, "Han"),
    (0x4e00, 0x9fff, "Han"),
    (0xa640, 0xa69f, "Cyrillic"),
    (0xa720, 0xa7ff, "Latin"),
    (0xab30, 0xab64, "Latin"),
    (0xab65, 0xab65, "Greek"),
    (0xab70, 0xabbf, "Cherokee"),
    (0xac00, 0xd7af, "Hangul"),
    (0xf900, 0xfaff, "Han"),
    (0x20000, 0x3134f, "Han"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn remark(name: &str) -> Vec<String> {
        remarks(&canonical(name).expect("a name"))
    }

    #[test]
    fn blocks_are_in_order_and_apart() {
        for pair in SCRIPTS.windows(2) {
            assert!(pair[0].0 <= pair[0].1 && pair[0].1 < pair[1].0, "{pair:x?}");
        }
    }

    #[test]
    fn a_label_is_shown_as_what_it_is() {
        assert_eq!(remark("plain.example.com"), Vec::<String>::new());
        assert_eq!(remark("bücher.example.com"), ["xn--bcher-kva reads bücher"]);
        assert_eq!(remark("日本語go.example.jp").len(), 1);
        assert!(remark("日本語go.example.jp")[0].ends_with("reads 日本語go"));
        assert!(remark("ひらカタ漢字.jp")[0].ends_with("reads ひらカタ漢字"));
    }

    #[test]
    fn a_label_that_mixes_scripts_is_not_shown_decoded() {
        // The first letter is Cyrillic.
        let remarks = remark("аpple.com");
        assert_eq!(remarks.len(), 1);
        assert!(remarks[0].ends_with("mixes Cyrillic and Latin letters") && remarks[0].is_ascii(), "{remarks:?}");
        assert!(remark("αlpha.com")[0].ends_with("mixes Greek and Latin letters"));
        assert!(remark("ꙮmega.com")[0].contains("mixes"));
    }

    #[test]
    fn a_label_in_letters_that_look_latin_is_named() {
        // All of it is Cyrillic.
        let remarks = remark("аррӏе.com");
        assert_eq!(remarks, ["xn--80ak6aa92e looks like apple and is not, it is in Cyrillic letters"]);
        assert!(remark("привет.com")[0].ends_with("reads привет"));
    }

    #[test]
    fn nothing_at_or_above_a_public_suffix_widens() {
        for domain in
            ["example.com", "a.example.com", "example.co.uk", "me.github.io", "example.test", "a.b.example.test"]
        {
            assert!(may_widen(domain), "{domain}");
        }
        for domain in ["com", "co.uk", "github.io", "test", "intranet", "s3.amazonaws.com", "xn--p1ai"] {
            assert!(!may_widen(domain), "{domain}");
        }
    }
}
