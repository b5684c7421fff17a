//! Wakes: a client wants to be called again.
//!
//! Promise: between one second and one hour, whatever number is given; at most three wait in one gate, so that an agent that
//! connects again and again has no more. They go by time that no clock's setting changes.
//! Limit: they end with the gate, and with their client unless a program is started for them: without either there is
//! nobody to wake.

use std::time::Duration;

use platform::Moment;

use super::wording;

/// The shortest.
pub const SHORTEST: Duration = Duration::from_secs(1);
/// The longest.
pub const LONGEST: Duration = Duration::from_secs(60 * 60);
/// The most that wait.
pub const MOST: usize = 3;

/// One that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wake {
    /// When.
    pub at: Moment,
    /// Whose.
    pub connection: u64,
    /// What to say.
    pub note: String,
}

/// Those that wait.
#[derive(Debug, Default)]
pub struct Wakes {
    waiting: Vec<Wake>,
}

/// The whole seconds that a number means, rounded up. What is no number is the longest: it makes the least noise.
pub fn clamped(seconds: f64) -> Duration {
    if seconds.is_nan() {
        return LONGEST;
    }
    // `as` brings what does not fit to the nearest that does.
    Duration::from_secs(seconds.ceil() as u64).clamp(SHORTEST, LONGEST)
}

impl Wakes {
    /// Adds one, and says how long it waits.
    pub fn add(&mut self, seconds: f64, note: &str, connection: u64, now: Moment) -> Result<Duration, String> {
        wording::message("note", note)?;
        if self.waiting.len() >= MOST {
            return Err(format!("{MOST} wakes wait already"));
        }
        let wait = clamped(seconds);
        self.waiting.push(Wake { at: now + wait, connection, note: note.to_owned() });
        // Stable: of two at the same time the one that was asked for first comes first.
        self.waiting.sort_by_key(|wake| wake.at);
        Ok(wait)
    }

    /// When the next is due.
    pub fn next(&self) -> Option<Moment> {
        self.waiting.first().map(|wake| wake.at)
    }

    /// Takes those out that are due.
    pub fn due(&mut self, now: Moment) -> Vec<Wake> {
        let due = self.waiting.iter().take_while(|wake| wake.at <= now).count();
        self.waiting.drain(..due).collect()
    }

    /// Forgets those of a client.
    pub fn forget(&mut self, connection: u64) {
        self.waiting.retain(|wake| wake.connection != connection);
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
    fn every_number_is_between_a_second_and_an_hour() {
        for (seconds, wait) in [
            (0.0, 1),
            (-5.0, 1),
            (0.2, 1),
            (1.5, 2),
            (90.0, 90),
            (3600.0, 3600),
            (3600.1, 3600),
            (1e300, 3600),
            (2f64.powi(63), 3600),
            (f64::INFINITY, 3600),
            (f64::NEG_INFINITY, 1),
            (f64::NAN, 3600),
            (f64::MIN_POSITIVE, 1),
        ] {
            assert_eq!(clamped(seconds), Duration::from_secs(wait), "{seconds}");
        }
    }

    #[test]
    fn three_wait_and_each_comes_once_in_its_time() {
        let mut wakes = Wakes::default();
        for (seconds, note) in [(30.0, "third"), (10.0, "first"), (20.0, "second")] {
            wakes.add(seconds, note, 1, second(0)).expect("room");
        }
        assert!(wakes.add(5.0, "one too many", 2, second(0)).is_err());
        assert_eq!(wakes.next(), Some(second(10)));
        assert_eq!(wakes.due(second(9)), []);
        let due: Vec<String> = wakes.due(second(20)).into_iter().map(|wake| wake.note).collect();
        assert_eq!(due, ["first", "second"]);
        wakes.add(5.0, "room again", 2, second(20)).expect("room");
        wakes.forget(2);
        assert_eq!(wakes.next(), Some(second(30)));
        assert!(wakes.add(5.0, "", 2, second(20)).is_err());
    }

    proptest! {
        #[test]
        fn no_number_is_outside(seconds in any::<f64>()) {
            prop_assert!((SHORTEST..=LONGEST).contains(&clamped(seconds)));
        }
    }
}
