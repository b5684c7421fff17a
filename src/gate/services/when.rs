//! When a reminder is due: `in 1h30m`, or a time as RFC 3339 writes it.
//!
//! Promise: a duration is exact to the nanosecond and positive, and nothing is guessed: what is not one of the two forms is
//! refused. A time that has passed is taken; it is due at once. At most [`HORIZON`] ahead.
//! Source: RFC 3339, section 5.6; the durations are those of Go's `time.ParseDuration` without a sign.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;

/// The farthest: ten years.
pub const HORIZON: Duration = Duration::from_secs(3653 * 24 * 60 * 60);

/// The longest text that can mean anything.
const MAX_TEXT: usize = 64;

/// Digits in a row. More cannot matter, and these fit into the arithmetic.
const MAX_DIGITS: usize = 15;

/// Why a time was refused; the text is for the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WhenError {
    /// It is neither form.
    #[error(
        "`when` is `in` and a duration, such as `in 1h30m` or `in 90s`, or a time as in RFC 3339, such as 2030-12-01T09:00:00+01:00"
    )]
    Unreadable,
    /// The duration is nothing.
    #[error("the duration in `when` has to be positive")]
    NotPositive,
    /// It is too far away.
    #[error("`when` is more than ten years ahead")]
    TooFar,
}

/// The time that `text` means at `now`.
pub fn when(text: &str, now: SystemTime) -> Result<SystemTime, WhenError> {
    let text = text.trim();
    if text.len() > MAX_TEXT {
        return Err(WhenError::Unreadable);
    }
    if let Some(rest) = text.strip_prefix("in ") {
        let wait = duration(rest.trim_start()).ok_or(WhenError::Unreadable)?;
        if wait.is_zero() {
            return Err(WhenError::NotPositive);
        }
        return if wait > HORIZON { Err(WhenError::TooFar) } else { now.checked_add(wait).ok_or(WhenError::TooFar) };
    }
    let at = rfc3339(text).ok_or(WhenError::Unreadable)?;
    match at.duration_since(now) {
        Ok(wait) if wait > HORIZON => Err(WhenError::TooFar),
        _ => Ok(at),
    }
}

/// Reads a time of RFC 3339 and no other of the forms that ISO 8601 has.
pub fn rfc3339(text: &str) -> Option<SystemTime> {
    let shape: Vec<u8> = text.bytes().take(19).map(|byte| if byte.is_ascii_digit() { b'0' } else { byte }).collect();
    let rest = text.get(19..)?;
    let plain =
        rest.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b':' | b'+' | b'-' | b'Z' | b'z'));
    if !plain || !matches!(&shape[..], b"0000-00-00T00:00:00" | b"0000-00-00t00:00:00") {
        return None;
    }
    SystemTime::try_from(text.parse::<Timestamp>().ok()?).ok()
}

/// Reads a duration: decimal numbers, each with a unit, such as `1h30m` or `1.5s`. `None` if it is none, or none that fits.
pub fn duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut nanos: u128 = 0;
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => digits(after),
            None => ("", after),
        };
        if (whole.is_empty() && fraction.is_empty()) || whole.len().max(fraction.len()) > MAX_DIGITS {
            return None;
        }
        let (unit, after) = unit(after)?;
        // At most 10^15 * 3.6 * 10^12: far from the end of the type, and so is a sum of as many as the text has room for.
        nanos += number(whole) * unit + number(fraction) * unit / 10_u128.pow(fraction.len() as u32);
        rest = after;
    }
    if text.is_empty() {
        return None;
    }
    let seconds = u64::try_from(nanos / 1_000_000_000).ok()?;
    Some(Duration::new(seconds, (nanos % 1_000_000_000) as u32))
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len()))
}

fn number(digits: &str) -> u128 {
    digits.bytes().fold(0, |number, digit| number * 10 + u128::from(digit - b'0'))
}

/// Nanoseconds of the unit that `text` begins with. Longer names first: `m` begins `ms`, too.
fn unit(text: &str) -> Option<(u128, &str)> {
    const UNITS: [(&str, u128); 8] = [
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("μs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60 * 1_000_000_000),
        ("h", 3600 * 1_000_000_000),
    ];
    UNITS.iter().find_map(|(name, nanos)| text.strip_prefix(name).map(|rest| (*nanos, rest)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_031_667)
    }

    #[test]
    fn both_forms_are_read() {
        assert_eq!(when("in 90s", now()), Ok(now() + Duration::from_secs(90)));
        assert_eq!(when(" in  1h30m ", now()), Ok(now() + Duration::from_secs(5400)));
        assert_eq!(when("in 1.5h", now()), Ok(now() + Duration::from_secs(5400)));
        assert_eq!(when("in .5ms1us", now()), Ok(now() + Duration::from_micros(501)));
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(981_173_106);
        assert_eq!(when("2001-02-03T04:05:06Z", now()), Ok(at), "a time that has passed");
        assert_eq!(when("2001-02-03t05:05:06.000+01:00", now()), Ok(at));
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "",
            "in",
            "in ",
            "soon",
            "1h",
            "in 5",
            "in -5s",
            "in +5s",
            "in 1h ago",
            "in 1 h",
            "in h",
            "in .s",
            "in 1..5s",
            "in 1d",
            "in 1H",
            "IN 1h",
            "in1h",
            "in ٣s",
            "in 1e3s",
            "2020-13-01T00:00:00Z",
            "2020-02-30T00:00:00Z",
            "2020-01-01",
            "2020-01-01T00:00:00",
            "20200101T000000Z",
            "2020-01-01T00:00Z",
            "+002020-01-01T00:00:00Z",
            "2020-01-01T00:00:00Z[UTC]",
            "2020-01-01T00:00:00+01:00[!Europe/Prague]",
            "2020-01-01T25:00:00Z",
        ] {
            assert_eq!(when(text, now()), Err(WhenError::Unreadable), "{text:?}");
        }
        assert_eq!(when("in 0s", now()), Err(WhenError::NotPositive));
        assert_eq!(when("in 0.1ns", now()), Err(WhenError::NotPositive));
        assert_eq!(when("in 87673h", now()), Err(WhenError::TooFar));
        assert_eq!(when("in 999999999999999h", now()), Err(WhenError::TooFar));
        assert_eq!(when("9999-01-01T00:00:00Z", now()), Err(WhenError::TooFar));
        assert_eq!(when(&format!("in {}s", "0".repeat(70)), now()), Err(WhenError::Unreadable));
    }

    proptest! {
        #[test]
        fn parts_add_up(hours in 0..80_000u64, minutes in 0..10_000u64, seconds in 0..10_000_000u64, millis in 0..10_000u64) {
            let text = format!("{hours}h{minutes}m{seconds}s{millis}ms");
            let sum = Duration::from_secs(hours * 3600 + minutes * 60 + seconds) + Duration::from_millis(millis);
            prop_assert_eq!(duration(&text), Some(sum));
        }

        #[test]
        fn a_fraction_is_exact(nanos in 0..1_000_000_000_000_000u64) {
            let text = format!("{}.{:09}s", nanos / 1_000_000_000, nanos % 1_000_000_000);
            prop_assert_eq!(duration(&text), Some(Duration::from_nanos(nanos)));
        }

        #[test]
        fn no_text_makes_it_fall_or_lead_into_the_past(text in "(in )?[0-9.hmsnuµ:TZ+-]{0,40}|\\PC{0,30}") {
            if let Ok(at) = when(&text, now()) {
                prop_assert!(!text.trim().starts_with("in ") || at > now(), "{text:?}");
                prop_assert!(at <= now() + HORIZON);
            }
        }

        #[test]
        fn what_is_written_is_read(seconds in 0..253_000_000_000u64, millis in 0..1000u64) {
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(millis);
            let text = crate::journal::rfc3339(at);
            prop_assert_eq!(rfc3339(&text), Some(at));
        }
    }
}
