//! What becomes of which operation on a protected file, as far as this watch promises it.
//!
//! Promise: nothing is said that was not tried, on a scratch file of the same file system, when the watch began.

use super::lock::Locked;

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
    /// How much is locked: there every change is refused, whatever becomes of others.
    pub locked: Option<Locked>,
    /// What was asked for and is not kept, a sentence each.
    pub missing: Vec<String>,
}

impl Default for Promises {
    /// What every watch does.
    fn default() -> Self {
        Self { writes: Kept::Undone, reads_are_held: false, others: Kept::Undone, locked: None, missing: Vec::new() }
    }
}

impl Promises {
    /// What the start line says of them; `None` where it is what every watch does.
    pub fn clause(&self) -> Option<String> {
        let locked = self.locked.map(|locked| locked.to_string());
        let operations = self.operations();
        if operations.is_none() && locked.is_none() {
            return None;
        }
        Some(operations.into_iter().chain(locked).collect::<Vec<_>>().join("; "))
    }

    fn operations(&self) -> Option<String> {
        if self.writes == Kept::Undone && self.others == Kept::Undone && !self.reads_are_held {
            return None;
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
            None => said.push((self.others, "other changes".to_owned())),
        }
        let parts: Vec<String> = said.iter().map(|(kept, words)| format!("{words} are {}", kept.words())).collect();
        Some(parts.join(", "))
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

    fn clause(writes: Kept, reads_are_held: bool, others: Kept) -> String {
        Promises { writes, reads_are_held, others, ..Promises::default() }.clause().expect("is special")
    }

    #[test]
    fn the_start_line_says_what_becomes_of_each_operation() {
        use Kept::{Held, Refused, Undone};
        assert_eq!(Promises::default().clause(), None);
        assert_eq!(clause(Held, false, Undone), "opens for writing are held, other changes are undone");
        assert_eq!(
            clause(Held, true, Undone),
            "opens for writing and of secrets for reading are held, other changes are undone"
        );
        assert_eq!(clause(Refused, false, Refused), "opens for writing and other changes are refused");
        assert_eq!(
            clause(Refused, true, Refused),
            "opens for writing and other changes are refused, opens of secrets for reading are held"
        );
    }

    #[test]
    fn the_start_line_says_how_much_is_locked() {
        let locked = Some(Locked { files: 12, folders: 1 });
        let only = Promises { locked, ..Promises::default() };
        assert_eq!(only.clause().as_deref(), Some("locked: 12 files, 1 folder"));
        let both = Promises { locked, writes: Kept::Held, ..Promises::default() };
        let clause = both.clause().expect("is special");
        assert!(clause.starts_with("opens for writing are held"), "{clause}");
        assert!(clause.ends_with("; locked: 12 files, 1 folder"), "{clause}");
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
