//! How often the person may be told something: ten times in any minute.
//!
//! Promise: no minute, wherever it begins, has more than [`MOST`]; time that the machine sleeps counts.
//! Limit: it is one gate's; each gate, and each `keep mcp` without one, counts its own.

use std::collections::VecDeque;
use std::time::Duration;

use platform::Moment;

/// So many.
pub const MOST: usize = 10;
/// In so long.
pub const WINDOW: Duration = Duration::from_secs(60);

/// When the person was last told something.
#[derive(Debug, Default)]
pub struct Rate(VecDeque<Moment>);

impl Rate {
    /// Counts one more; how long to wait instead, if there were enough.
    pub fn take(&mut self, now: Moment) -> Result<(), Duration> {
        while self.0.front().is_some_and(|told| now.since(*told) >= WINDOW) {
            self.0.pop_front();
        }
        match self.0.front() {
            Some(first) if self.0.len() >= MOST => Err(WINDOW - now.since(*first)),
            _ => {
                self.0.push_back(now);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn second(seconds: u64) -> Moment {
        Moment::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn the_eleventh_waits_until_the_first_is_a_minute_old() {
        let mut rate = Rate::default();
        for n in 0..10 {
            assert_eq!(rate.take(second(n)), Ok(()));
        }
        assert_eq!(rate.take(second(10)), Err(Duration::from_secs(50)));
        assert_eq!(rate.take(second(59)), Err(Duration::from_secs(1)), "asking in vain does not count");
        assert_eq!(rate.take(second(60)), Ok(()));
        assert_eq!(rate.take(second(60)), Err(Duration::from_secs(1)));
    }

    proptest! {
        #[test]
        fn no_minute_has_more_than_ten(pauses in proptest::collection::vec(0..20u64, 0..100)) {
            let (mut rate, mut now, mut told) = (Rate::default(), 0, Vec::new());
            for pause in pauses {
                now += pause;
                match rate.take(second(now)) {
                    Ok(()) => told.push(now),
                    Err(wait) => prop_assert!(!wait.is_zero() && wait <= WINDOW),
                }
                prop_assert!(told.iter().filter(|at| now - **at < 60).count() <= MOST);
            }
        }
    }
}
