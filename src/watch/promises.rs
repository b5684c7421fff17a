//! What becomes of which operation on a protected file, as far as this watch promises it.
//!
//! Promise: nothing is said that was not tried, on a scratch file of the same file system, when the watch began.

/// What becomes of an operation that nobody has allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kept {
    /// It waits until it is answered.
    Held,
    /// It fails.
    Refused,
    /// It takes place, is found, and is put back.
    Undone,
}

impl Kept {
    const fn words(self) -> &'static str {
        match self {
            Kept::Held => "held",
            Kept::Refused => "refused",
            Kept::Undone => "undone",
        }
    }
}

/// The promises of one watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promises {
    /// Opening for writing.
    pub writes: Kept,
    /// Whether opening a secret for reading is held.
    pub reads_are_held: bool,
    /// Everything else: renaming over, removing, linking, bits, cutting by path.
    pub others: Kept,
    /// What was asked for and is not kept, a sentence each.
    pub missing: Vec<String>,
}

impl Default for Promises {
    /// What every watch does.
    fn default() -> Self {
        Self { writes: Kept::Undone, reads_are_held: false, others: Kept::Undone, missing: Vec::new() }
    }
}

impl Promises {
    /// What is said of them after the start line, a sentence each; none where it is what every watch does.
    pub fn sentences(&self) -> Vec<String> {
        if self.writes == Kept::Undone && self.others == Kept::Undone && !self.reads_are_held {
            return Vec::new();
        }
        let mut said: Vec<(Kept, String)> = vec![(self.writes, "opens for writing".to_owned())];
        if self.reads_are_held {
            match said.iter_mut().find(|(kept, _)| *kept == Kept::Held) {
                Some((_, words)) => words.push_str(" and of secrets for reading"),
                None => said.push((Kept::Held, "opens of secrets for reading".to_owned())),
            }
        }
        match said.iter_mut().find(|(kept, _)| *kept == self.others) {
            Some((_, words)) => words.push_str(" and other changes"),
            None => said.push((self.others, "other changes (renames, removals, bits, truncate)".to_owned())),
        }
        said.iter().map(|(kept, words)| format!("{words} are {}", kept.words())).collect()
    }

    /// What this watch cannot hold, for the report.
    pub fn limits(&self) -> Vec<String> {
        let mut limits = Vec::new();
        if self.writes == Kept::Held {
            limits.push(
                "Only opening is held; what needs no open (renaming over, removing, linking, changing bits, cutting by path), \
                 and what was open before, is found afterwards."
                    .to_owned(),
            );
        }
        limits.extend(self.missing.iter().cloned());
        limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences(writes: Kept, reads_are_held: bool, others: Kept) -> Vec<String> {
        Promises { writes, reads_are_held, others, ..Promises::default() }.sentences()
    }

    #[test]
    fn what_becomes_of_each_operation_is_a_sentence_that_fits_a_terminal() {
        use Kept::{Held, Refused, Undone};
        const OTHERS: &str = "other changes (renames, removals, bits, truncate) are undone";
        assert_eq!(Promises::default().sentences(), [""; 0]);
        assert_eq!(sentences(Held, false, Undone), ["opens for writing are held", OTHERS]);
        assert_eq!(sentences(Held, true, Undone), ["opens for writing and of secrets for reading are held", OTHERS]);
        assert_eq!(sentences(Refused, false, Refused), ["opens for writing and other changes are refused"]);
        assert_eq!(
            sentences(Refused, true, Refused),
            ["opens for writing and other changes are refused", "opens of secrets for reading are held"]
        );
        let all = [Held, Refused, Undone].map(|kept| sentences(kept, true, Undone));
        assert!(all.iter().flatten().all(|sentence| "keep watch: ".len() + sentence.len() <= 80), "{all:?}");
    }

    #[test]
    fn what_is_missing_is_a_limit() {
        let missing = vec!["Opens are not held: this file system cannot.".to_owned()];
        let promises = Promises { missing: missing.clone(), ..Promises::default() };
        assert_eq!(promises.limits(), missing);
        let held = Promises { writes: Kept::Held, ..Promises::default() };
        assert!(held.limits()[0].starts_with("Only opening is held"));
    }
}
