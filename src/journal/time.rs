//! Wall time as the journal writes it.
//!
//! Source: RFC 3339; always UTC, always milliseconds, so that texts of the same length sort by time.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;

/// The time as `2026-11-30T09:41:07.123Z`, cut to milliseconds.
///
/// Times that RFC 3339 cannot write are moved to the nearest end of the years 0 to 9999: a machine's wrong clock is no
/// reason to write no entry.
pub fn rfc3339(at: SystemTime) -> String {
    let beyond = if at < SystemTime::UNIX_EPOCH { Timestamp::MIN } else { Timestamp::MAX };
    written(Timestamp::try_from(at).unwrap_or(beyond))
}

fn written(at: Timestamp) -> String {
    let first: Timestamp = "0000-01-01T00:00:00Z".parse().expect("a literal in RFC 3339");
    let last: Timestamp = "9999-12-30T21:59:59.999Z".parse().expect("a literal in RFC 3339");
    let at = at.clamp(first, last);
    // Cut, not rounded: a rounded time can lie after what follows it.
    let millis = Timestamp::from_millisecond(at.as_nanosecond().div_euclid(1_000_000) as i64);
    format!("{:.3}", millis.expect("lies between two timestamps"))
}

/// The time that `text` means, as [`rfc3339`] writes it: a time in RFC 3339, or so many seconds, minutes, hours or days
/// (`90s`, `15m`, `25h`, `7d`) before `now`. `None` if it means none.
pub fn time_meant(text: &str, now: SystemTime) -> Option<String> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(written(at));
    }
    let unit = match text.chars().next_back()? {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return None,
    };
    let count = &text[..text.len() - 1];
    let count: u64 = count.bytes().all(|byte| byte.is_ascii_digit()).then(|| count.parse().ok())??;
    Some(rfc3339(now.checked_sub(Duration::from_secs(count.checked_mul(unit)?)).unwrap_or(SystemTime::UNIX_EPOCH)))
}

/// A name for a session that no other of this machine has: its start and its process.
pub fn session_id(started: SystemTime, pid: u32) -> String {
    let digits: String = rfc3339(started).chars().filter(|character| !matches!(character, '-' | ':' | '.')).collect();
    format!("{}-{pid}", digits.trim_end_matches('Z'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch_plus(millis: u64, nanos: u32) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(millis) + Duration::from_nanos(u64::from(nanos))
    }

    #[test]
    fn times_have_three_digits_of_a_second_and_a_zulu() {
        assert_eq!(rfc3339(epoch_plus(0, 0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(epoch_plus(1_796_031_667_123, 999_999)), "2026-11-30T09:41:07.123Z");
        assert_eq!(rfc3339(SystemTime::UNIX_EPOCH - Duration::from_nanos(1)), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn a_clock_beyond_all_years_is_written_as_the_nearest() {
        let far = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 40);
        assert_eq!(rfc3339(far), "9999-12-30T21:59:59.999Z");
        assert_eq!(rfc3339(SystemTime::UNIX_EPOCH - Duration::from_secs(1 << 40)), "0000-01-01T00:00:00.000Z");
    }

    #[test]
    fn a_time_is_meant_by_its_name_or_by_how_long_ago_it_was() {
        let now = epoch_plus(1_796_031_667_123, 0);
        let meant = |text: &str| time_meant(text, now);
        assert_eq!(meant("2026-11-30T10:41:07.123+01:00").as_deref(), Some("2026-11-30T09:41:07.123Z"));
        assert_eq!(meant("25h").as_deref(), Some("2026-11-29T08:41:07.123Z"));
        assert_eq!(meant("90s"), meant("2026-11-30T09:39:37.123Z"));
        assert_eq!((meant("2d"), meant("0m")), (meant("48h"), Some(rfc3339(now))));
        assert_eq!(meant("99999999999d").as_deref(), Some("0000-01-01T00:00:00.000Z"), "before everything");
        for none in ["", "h", "+1h", "-1h", "1", "1w", "1.5h", "2026-11-30", "99999999999999999999d", "é"] {
            assert_eq!(meant(none), None, "{none}");
        }
    }

    #[test]
    fn a_session_is_named_by_its_start_and_its_process() {
        assert_eq!(session_id(epoch_plus(1_796_031_667_123, 0), 4242), "20261130T094107123-4242");
    }
}
