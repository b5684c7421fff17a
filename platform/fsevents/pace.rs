//! Something that is to be done when it is wanted, and not too often.

use std::time::Duration;

use crate::clock::Moment;

/// See the module. Time is a value.
#[derive(Debug)]
pub(super) struct Pace {
    between: Duration,
    last: Option<Moment>,
    wanted: bool,
}

impl Pace {
    /// Nothing is wanted yet.
    pub(super) fn new(between: Duration) -> Self {
        Self { between, last: None, wanted: false }
    }

    /// Wants it.
    pub(super) fn want(&mut self) {
        self.wanted = true;
    }

    /// How long what is wanted has to wait; `None` if nothing is.
    pub(super) fn left(&self, now: Moment) -> Option<Duration> {
        let wait = |last: Moment| self.between.saturating_sub(now.since(last));
        self.wanted.then(|| self.last.map_or(Duration::ZERO, wait))
    }

    /// Whether it is to be done now; then it is taken for done.
    pub(super) fn take(&mut self, now: Moment) -> bool {
        let due = self.left(now) == Some(Duration::ZERO);
        if due {
            self.wanted = false;
            self.last = Some(now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_often_is_done_at_intervals_and_never_forgotten() {
        let mut pace = Pace::new(Duration::from_secs(1));
        let start = Moment::from_nanos(1);
        assert!(!pace.take(start), "nothing was wanted");
        pace.want();
        assert!(pace.take(start));
        pace.want();
        let soon = start + Duration::from_millis(400);
        assert!(!pace.take(soon));
        assert_eq!(pace.left(soon), Some(Duration::from_millis(600)));
        assert!(pace.take(start + Duration::from_secs(1)));
        assert_eq!(pace.left(start + Duration::from_secs(1)), None);
    }
}
