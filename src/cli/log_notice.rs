//! What `keep log --notify` tells the desktop: how many changes of the entries shown ended how. It asks nothing.

use platform::Notification;

use crate::journal::Event;

/// Counts of what became of changes.
#[derive(Debug, Default)]
pub struct Counts {
    accepted: usize,
    restored: usize,
    not_restored: usize,
    kept: usize,
}

impl Counts {
    /// Counts an entry that was shown.
    pub fn add(&mut self, event: &Event) {
        match event {
            Event::Accepted { .. } => self.accepted += 1,
            Event::Restored { .. } => self.restored += 1,
            Event::RestoreFailed { .. } => self.not_restored += 1,
            Event::Kept { .. } => self.kept += 1,
            _ => {}
        }
    }

    /// What there is to tell of the tree that people read as `root`; `None` if nothing.
    pub fn notification(&self, root: &str, is_broken: bool) -> Option<Notification> {
        let parts = [
            (self.not_restored, "NOT restored"),
            (self.restored, "restored"),
            (self.accepted, "accepted"),
            (self.kept, "reported and kept"),
        ];
        let mut told: Vec<String> =
            parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        if is_broken {
            told.insert(0, "the journal's chain does not hold".to_owned());
        }
        let body = format!("{root}: {}; keep log shows which", told.join(", "));
        (!told.is_empty()).then(|| Notification { title: "keep log".to_owned(), body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_changes_is_told_and_nothing_if_there_were_none() {
        let mut counts = Counts::default();
        counts.add(&Event::Sealed { files: 3 });
        assert_eq!(counts.notification("/app", false), None);
        let broken = counts.notification("/app", true).expect("is told");
        assert_eq!(broken.body, "/app: the journal's chain does not hold; keep log shows which");
        let failed = Event::RestoreFailed { path: ".env".into(), errno: None, reason: "read-only".into() };
        (0..2).for_each(|_| counts.add(&failed));
        let told = counts.notification("/app", false).expect("is told");
        assert_eq!(
            (told.title.as_str(), told.body.as_str()),
            ("keep log", "/app: 2 NOT restored; keep log shows which")
        );
    }
}
