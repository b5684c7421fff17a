//! `time_now`: the time in the person's zone.
//!
//! Promise: a zone that cannot be read is UTC, and is named so. Source: RFC 3339; tzset(3) on the sign of a rule's offset.

use std::time::SystemTime;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use platform::Zone;
use serde_json::{Map, Value};

use super::object;

/// A zone, with the name it has for people.
#[derive(Debug, Clone)]
pub struct LocalZone {
    zone: TimeZone,
    name: String,
}

impl LocalZone {
    /// Reads what the platform found.
    pub fn new(zone: Zone) -> Self {
        let (zone, name) = match zone {
            Zone::Utc => (None, String::new()),
            Zone::Posix(rule) => (TimeZone::posix(&rule).ok(), rule),
            Zone::Compiled { name, data } => (TimeZone::tzif(&name, &data).ok(), name),
        };
        match zone {
            Some(zone) => Self { zone, name },
            None => Self { zone: TimeZone::UTC, name: "UTC".to_owned() },
        }
    }

    /// The result of `time_now`.
    pub fn now(&self, wall: SystemTime) -> Result<Map<String, Value>, String> {
        let now = Timestamp::try_from(wall).map_err(|_| "this machine's clock is beyond all calendars".to_owned())?;
        let now = Timestamp::from_second(now.as_second()).map_err(|error| error.to_string())?;
        let offset = self.zone.to_offset(now);
        Ok(object([
            ("unix", now.as_second().into()),
            ("iso", now.display_with_offset(offset).to_string().into()),
            ("utc", now.to_string().into()),
            ("timezone", self.name.clone().into()),
            ("offset_seconds", offset.seconds().into()),
        ]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;

    fn now(zone: Zone) -> Value {
        let wall = SystemTime::UNIX_EPOCH + Duration::from_millis(1_796_031_667_890);
        Value::Object(LocalZone::new(zone).now(wall).expect("a time"))
    }

    #[test]
    fn the_time_is_told_in_the_zone() {
        let rule = "CET-1CEST,M3.5.0,M10.5.0/3";
        let told = now(Zone::Posix(rule.to_owned()));
        let wanted = json!({"unix": 1_796_031_667, "iso": "2026-11-30T10:41:07+01:00", "utc": "2026-11-30T09:41:07Z",
            "timezone": rule, "offset_seconds": 3600});
        assert_eq!(told, wanted);
    }

    #[test]
    fn a_zone_that_cannot_be_read_is_utc() {
        let compiled = Zone::Compiled { name: "Europe/Prague".to_owned(), data: b"TZif2 and no more".to_vec() };
        for zone in [Zone::Utc, Zone::Posix("5".to_owned()), compiled] {
            let told = now(zone);
            assert_eq!((&told["timezone"], &told["offset_seconds"]), (&json!("UTC"), &json!(0)));
            assert_eq!(told["iso"], json!("2026-11-30T09:41:07+00:00"));
        }
    }

    #[test]
    fn this_machines_own_zone_can_be_read() {
        let told = now(Zone::local(None));
        assert!(told["timezone"].as_str().is_some_and(|name| !name.is_empty()), "{told}");
    }

    #[test]
    fn a_clock_beyond_all_calendars_is_an_error() {
        let far = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 40);
        assert!(LocalZone::new(Zone::Utc).now(far).is_err());
    }
}
