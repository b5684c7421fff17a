//! Which names a volume takes for the same.
//!
//! APFS and HFS+ come with and without regard to case; HFS+ stores names decomposed, APFS as they are and compares them
//! normalised. Which characters fold into which depends on a version of Unicode that the volume has and we have not: so
//! only ASCII is folded here, and of other names only the volume can tell whether they are the same.
//! Source: pathconf(2) `_PC_CASE_SENSITIVE`; "Apple File System Reference", names; the reports in the corpus.

use crate::stat::FileId;

/// What two names are to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Likeness {
    /// The volume takes them for the same.
    Same,
    /// It may.
    Maybe,
    /// It does not.
    Other,
}

/// What is known of a volume; what is not is taken to fold, which costs looks and misses nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Names {
    case: Option<bool>,
    form: Option<bool>,
}

/// Letters with their decomposed forms, for a probe by a name that has one.
const DECOMPOSED: [(&str, &str); 8] = [
    ("é", "e\u{301}"),
    ("ä", "a\u{308}"),
    ("ö", "o\u{308}"),
    ("ü", "u\u{308}"),
    ("ñ", "n\u{303}"),
    ("á", "a\u{301}"),
    ("ó", "o\u{301}"),
    ("å", "a\u{30a}"),
];

impl Names {
    /// A volume that folds case or forms as said.
    pub fn known(folds_case: bool, folds_form: bool) -> Self {
        Self { case: Some(folds_case), form: Some(folds_form) }
    }

    /// Whether nothing is left to find out.
    pub fn is_settled(self) -> bool {
        self.case.is_some() && self.form.is_some()
    }

    /// Whether different names may be the same.
    pub fn folds(self) -> bool {
        self.folds_case() || self.form != Some(false)
    }

    /// Whether names that differ in case may be the same.
    pub fn folds_case(self) -> bool {
        self.case != Some(false)
    }

    /// Finds out what it can from an entry that is there: its name is looked up in another spelling. `at` says what the
    /// volume has under a name.
    pub fn learn(&mut self, name: &[u8], at: impl Fn(&[u8]) -> Option<FileId>) {
        let same = |other: &[u8]| at(name).map(|id| at(other) == Some(id));
        if self.case.is_none() && name.iter().any(u8::is_ascii_alphabetic) {
            let swapped: Vec<u8> = name
                .iter()
                .map(
                    |byte| {
                        if byte.is_ascii_lowercase() { byte.to_ascii_uppercase() } else { byte.to_ascii_lowercase() }
                    },
                )
                .collect();
            self.case = same(&swapped);
        }
        if self.form.is_none()
            && let Ok(text) = std::str::from_utf8(name)
        {
            let respelled = DECOMPOSED.iter().find_map(|(one, two)| {
                if text.contains(two) {
                    Some(text.replace(two, one))
                } else {
                    text.contains(one).then(|| text.replace(one, two))
                }
            });
            if let Some(other) = respelled {
                self.form = same(other.as_bytes());
            }
        }
    }

    /// What two names of one directory are to each other.
    pub fn likeness(self, one: &[u8], other: &[u8]) -> Likeness {
        if one == other {
            Likeness::Same
        } else if !self.folds() {
            Likeness::Other
        } else if !one.is_ascii() || !other.is_ascii() {
            // An ASCII name may be meant, too: U+212A is a K to a volume that folds.
            Likeness::Maybe
        } else if self.folds_case() && one.eq_ignore_ascii_case(other) {
            Likeness::Same
        } else {
            Likeness::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENSITIVE: Names = Names { case: Some(false), form: Some(false) };
    const FOLDING: Names = Names { case: Some(true), form: Some(true) };

    #[test]
    fn a_sensitive_volume_has_no_two_spellings_of_a_name() {
        assert_eq!(SENSITIVE.likeness(b".env", b".ENV"), Likeness::Other);
        assert_eq!(SENSITIVE.likeness("é".as_bytes(), "e\u{301}".as_bytes()), Likeness::Other);
        assert!(!SENSITIVE.folds());
    }

    #[test]
    fn ascii_is_folded_here_and_the_rest_is_left_to_the_volume() {
        assert_eq!(FOLDING.likeness(b".env", b".ENV"), Likeness::Same);
        assert_eq!(FOLDING.likeness(b".env", b".envy"), Likeness::Other);
        assert_eq!(FOLDING.likeness("é".as_bytes(), "e\u{301}".as_bytes()), Likeness::Maybe);
        assert_eq!(FOLDING.likeness("STRASSE".as_bytes(), "straße".as_bytes()), Likeness::Maybe);
        assert_eq!(FOLDING.likeness(b"k", "\u{212a}".as_bytes()), Likeness::Maybe);
        assert_eq!(Names::known(false, true).likeness(b".env", b".ENV"), Likeness::Other);
    }

    #[test]
    fn what_is_not_known_is_taken_to_fold() {
        assert_eq!(Names::default().likeness(b"a", b"A"), Likeness::Same);
        assert!(!Names::default().is_settled());
    }

    #[test]
    fn a_volume_is_learnt_from_the_names_it_has() {
        let id = FileId { dev: 1, ino: 2 };
        let folding = |name: &[u8]| {
            let text = String::from_utf8_lossy(name).to_lowercase().replace('é', "e\u{301}");
            (text == "cafe\u{301}").then_some(id)
        };
        let exact = |name: &[u8]| (name == "Café".as_bytes()).then_some(id);
        for (at, folds) in [(&folding as &dyn Fn(&[u8]) -> Option<FileId>, true), (&exact, false)] {
            let mut names = Names::default();
            names.learn(b"123", at);
            assert_eq!(names, Names::default(), "a name without letters tells nothing");
            names.learn("Café".as_bytes(), at);
            assert_eq!(names, Names::known(folds, folds));
        }
    }

    #[test]
    fn a_name_that_is_gone_before_it_is_looked_up_tells_nothing() {
        let mut names = Names::default();
        names.learn("Café".as_bytes(), |_| None);
        assert_eq!(names, Names::default());
    }
}
