//! A key, made fit to be shown.

use crate::text;

/// The most characters of one key.
const MOST: usize = 60;

/// The most characters of a whole path of keys.
const MOST_IN_ALL: usize = 160;

/// The key, escaped and cut; or a stand-in if it looks like a value that got there by mistake.
pub(super) fn shown(key: &str) -> String {
    if looks_like_a_value(key) {
        return "(a key that looks like a value)".to_owned();
    }
    cut(&text::escaped(key.as_bytes()), MOST, 0)
}

/// A path of keys, cut in the middle: its end says more than that.
pub(super) fn path(path: &str) -> String {
    cut(path, MOST_IN_ALL / 2, MOST_IN_ALL / 2)
}

/// A path of files that is a value, escaped; only one that nobody could read at a glance is cut, in the middle.
pub(super) fn file_path(bytes: &[u8]) -> String {
    cut(&text::escaped(bytes), 200, 100)
}

fn cut(text: &str, head: usize, tail: usize) -> String {
    let count = text.chars().count();
    if count <= head + tail {
        return text.to_owned();
    }
    text.chars().take(head).chain(['…']).chain(text.chars().skip(count - tail)).collect()
}

/// Names have separators or one case, tokens have neither; and a URL can hold a password.
pub(super) fn looks_like_a_value(key: &str) -> bool {
    let has = |test: fn(char) -> bool| key.chars().any(test);
    let separated = has(|character| matches!(character, '_' | '-' | '.' | ' ' | ':' | '/'));
    let mixed = has(|character| character.is_ascii_digit())
        && has(|character| character.is_ascii_lowercase())
        && has(|character| character.is_ascii_uppercase());
    let hexadecimal = key.chars().all(|character| character.is_ascii_hexdigit());
    const TOKENS: [&str; 10] = ["ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "sk-", "sk_", "xox", "npm_", "eyJ"];
    (key.len() >= 20 && (mixed && !separated || TOKENS.iter().any(|token| key.starts_with(token))))
        || (key.len() >= 32 && hexadecimal)
        || (key.contains("://") && key.contains('@'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_and_tokens_are_not() {
        for name in
            ["API_TOKEN", "AWS_SECRET_ACCESS_KEY_2024", "featureFlags", "registry.npmjs.org", "node_modules/a1B"]
        {
            assert_eq!(shown(name), name);
        }
        for token in
            ["ghp_0123456789abcdefghijABCDEFGHIJ", "xJ5kQ9vR2mT8wB4nL7pZ", "https://u:p@host/", &"0a".repeat(20)]
        {
            assert!(!shown(token).contains(&token[..8]), "{}", shown(token));
        }
    }

    #[test]
    fn keys_are_escaped_and_cut() {
        assert_eq!(shown("a\x1b[2Jb\n"), "a\\x1b[2Jb\\n");
        assert_eq!(shown(&"k".repeat(61)).chars().count(), 61);
        assert_eq!(path(&"k".repeat(500)).chars().count(), 161);
    }
}
