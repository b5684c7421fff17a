//! `reminders.json`: a JSON array of `{"id", "fireAt", "title"?, "message"}`, an entry a line, the soonest first.
//!
//! Promise: what is written is read back as it was, and nothing else is read: an unknown field, an id that is doubled or not
//! one of ours, a time that is none, or a part of a file is an error.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::gate::services::when;
use crate::journal::rfc3339;

/// A reminder that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reminder {
    at: SystemTime,
    entry: Entry,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    id: String,
    fire_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    message: String,
}

/// Why a file holds no reminders.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// It has another shape.
    #[error("{0}")]
    Shape(serde_json::Error),
    /// An entry's id is none of ours.
    #[error("entry {0} has no id of twelve hex digits")]
    Id(usize),
    /// An id is there twice.
    #[error("entry {0} has the id of another")]
    Doubled(usize),
    /// An entry's time cannot be read.
    #[error("entry {0} has a `fireAt` that is no time of RFC 3339")]
    Time(usize),
}

impl Reminder {
    /// A reminder; its time is cut to milliseconds, as it is stored.
    pub fn new(id: String, at: SystemTime, title: Option<&str>, message: &str) -> Self {
        let fire_at = rfc3339(at);
        let at = when::rfc3339(&fire_at).unwrap_or(at);
        let (title, message) = (title.map(str::to_owned), message.to_owned());
        Self { at, entry: Entry { id, fire_at, title, message } }
    }

    /// Its name.
    pub fn id(&self) -> &str {
        &self.entry.id
    }

    /// When it is due.
    pub const fn at(&self) -> SystemTime {
        self.at
    }

    /// The same, as RFC 3339 writes it.
    pub fn fire_at(&self) -> &str {
        &self.entry.fire_at
    }

    /// Its title.
    pub fn title(&self) -> Option<&str> {
        self.entry.title.as_deref()
    }

    /// Its text.
    pub fn message(&self) -> &str {
        &self.entry.message
    }

    /// What they are sorted by.
    pub fn order(&self) -> (SystemTime, &str) {
        (self.at, self.id())
    }
}

/// The file with these in it.
pub fn write(all: &[Reminder]) -> Vec<u8> {
    let entries: Vec<&Entry> = all.iter().map(|reminder| &reminder.entry).collect();
    let mut text = serde_json::to_string_pretty(&entries).expect("texts can be written").into_bytes();
    text.push(b'\n');
    text
}

/// The reminders in a file, sorted.
pub fn read(text: &str) -> Result<Vec<Reminder>, ListError> {
    let entries: Vec<Entry> = serde_json::from_str(text).map_err(ListError::Shape)?;
    let mut ids = std::collections::HashSet::new();
    let mut all = Vec::with_capacity(entries.len());
    for (number, entry) in (1..).zip(entries) {
        let is_ours = entry.id.len() == 12 && entry.id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !is_ours {
            return Err(ListError::Id(number));
        }
        if !ids.insert(entry.id.clone()) {
            return Err(ListError::Doubled(number));
        }
        let at = when::rfc3339(&entry.fire_at).ok_or(ListError::Time(number))?;
        all.push(Reminder { at, entry });
    }
    all.sort_by(|one, other| one.order().cmp(&other.order()));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    const GOOD: &str = r#"[{"id":"0123456789ab","fireAt":"2030-01-02T03:04:05Z","message":"m"}]"#;

    #[test]
    fn only_a_whole_file_of_ours_is_read() {
        let all = read(GOOD).expect("a file of ours");
        assert_eq!((all[0].id(), all[0].title(), all[0].message()), ("0123456789ab", None, "m"));
        let twice =
            GOOD.replace("[{", "[{\"id\":\"0123456789ab\",\"fireAt\":\"2031-01-02T03:04:05Z\",\"message\":\"n\"},{");
        for (text, said) in [
            (GOOD.replace("\"m\"}", "\"m\",\"sound\":1}"), "unknown field"),
            (GOOD.replace("0123456789ab", "0123456789AB"), "entry 1 has no id"),
            (GOOD.replace("2030-01-02T03:04:05Z", "tomorrow"), "entry 1 has a `fireAt`"),
            (twice, "entry 2 has the id of another"),
            (GOOD.replace('[', "{\"all\":["), "invalid type"),
            (String::new(), "EOF"),
        ] {
            let error = read(&text).expect_err(&text).to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    fn reminders() -> impl Strategy<Value = Vec<Reminder>> {
        let one = (0..4_000_000_000_000u64, proptest::option::of(any::<String>()), any::<String>());
        proptest::collection::vec(one, 0..8).prop_map(|all| {
            let made = all.into_iter().zip(0..).map(|((millis, title, message), number): (_, u64)| {
                let at = SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
                Reminder::new(format!("{number:012x}"), at, title.as_deref(), &message)
            });
            let mut all: Vec<Reminder> = made.collect();
            all.sort_by(|one, other| one.order().cmp(&other.order()));
            all
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_and_no_part_of_it_is(all in reminders()) {
            let bytes = write(&all);
            let text = std::str::from_utf8(&bytes).expect("UTF-8");
            prop_assert_eq!(&read(text).expect("a file of ours"), &all);
            // All but the line end at the end.
            for length in (0..text.len() - 1).filter(|length| text.is_char_boundary(*length)) {
                prop_assert!(read(&text[..length]).is_err(), "{length} bytes of {}", text.len());
            }
        }
    }
}
