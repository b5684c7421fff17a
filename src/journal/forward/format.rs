//! The bytes in which each collector takes a notice.
//!
//! * systemd's journal: fields as `NAME=value` and a newline, or, where a value holds a control character, as the name, a
//!   newline, the value's length in eight bytes, the value, and a newline. Nothing in a value can end it.
//! * syslog: one line as syslog(3) sends it to a local reader, `<PRIORITY>keep[PID]: `, without a time. RFC 5424 is for the
//!   network; readers of `/dev/log` (journald, rsyslog, BusyBox among them) expect the older form, take the time of
//!   arrival, and would misread a time of another zone. The sentence comes first, then ` | ` and `name="value"` pairs. A
//!   quotation mark in the sentence has a backslash before it, so that the first ` | event="` is where the pairs begin.
//! * a file: one JSON object a line.
//!
//! Source: systemd's "Native Journal Protocol"; RFC 3164 section 4.1; syslog(3).

use serde_json::{Map, Value};

use super::notice::{Notice, clipped};
use crate::text::{escaped, json_line};

/// LOG_AUTHPRIV: names of protected files are for those who administer the machine.
const FACILITY: u8 = 10;
/// How we are called.
const IDENTIFIER: &str = "keep";
/// The longest line for syslog: what rsyslog takes unless told otherwise.
const LONGEST_LINE: usize = 8 << 10;
/// Of that the sentence may take this,
const LONGEST_SENTENCE: usize = 2 << 10;
/// and one value this.
const LONGEST_VALUE: usize = 2 << 10;

/// A collector's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The native protocol of systemd's journal.
    Journald,
    /// A line for the reader of `/dev/log`.
    Syslog,
    /// A JSON object and a newline.
    Lines,
}

impl Format {
    /// The notice in this format; before it, `missed` others were not taken.
    pub fn bytes(self, notice: &Notice, missed: u64) -> Vec<u8> {
        match self {
            Format::Journald => journald(notice, missed),
            Format::Syslog => syslog(notice, missed).into_bytes(),
            Format::Lines => line(notice, missed).into_bytes(),
        }
    }
}

fn journald(notice: &Notice, missed: u64) -> Vec<u8> {
    let mut record = Vec::with_capacity(1 << 10);
    field(&mut record, "MESSAGE", &notice.sentence(missed));
    field(&mut record, "PRIORITY", &notice.severity.number().to_string());
    field(&mut record, "SYSLOG_FACILITY", &FACILITY.to_string());
    field(&mut record, "SYSLOG_IDENTIFIER", IDENTIFIER);
    field(&mut record, "SYSLOG_PID", &notice.pid.to_string());
    for (name, value) in &notice.fields {
        let name = format!("KEEPWATCH_{}", name.to_ascii_uppercase());
        match value {
            // A field may occur more than once there.
            Value::Array(list) => list.iter().for_each(|value| field(&mut record, &name, &plain(value))),
            value => field(&mut record, &name, &plain(value)),
        }
    }
    if missed > 0 {
        field(&mut record, "KEEPWATCH_MISSED", &missed.to_string());
    }
    record
}

fn field(record: &mut Vec<u8>, name: &str, value: &str) {
    record.extend_from_slice(name.as_bytes());
    if value.bytes().any(|byte| byte < b' ') {
        record.push(b'\n');
        record.extend_from_slice(&(value.len() as u64).to_le_bytes());
    } else {
        record.push(b'=');
    }
    record.extend_from_slice(value.as_bytes());
    record.push(b'\n');
}

/// A value without quotation marks.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn syslog(notice: &Notice, missed: u64) -> String {
    let sentence = clipped(&escaped(notice.sentence(missed).as_bytes()), LONGEST_SENTENCE).replace('"', "\\\"");
    let priority = FACILITY * 8 + notice.severity.number();
    let mut line = format!("<{priority}>{IDENTIFIER}[{}]: {sentence} |", notice.pid);
    let missed = (missed > 0).then(|| ("missed".to_owned(), Value::from(missed)));
    for (name, value) in notice.fields.iter().chain(&missed) {
        let elements = match value {
            Value::Array(list) => list.as_slice(),
            value => std::slice::from_ref(value),
        };
        for value in elements {
            let value = json_line(&clipped(&plain(value), LONGEST_VALUE).into());
            // What does not fit is left out as a whole; the entry has it.
            if line.len() + name.len() + value.len() + 2 <= LONGEST_LINE {
                line.push_str(&format!(" {name}={value}"));
            }
        }
    }
    line
}

fn line(notice: &Notice, missed: u64) -> String {
    let mut object = Map::new();
    object.insert("message".into(), notice.sentence(missed).into());
    object.insert("severity".into(), notice.severity.name().into());
    object.extend(notice.fields.iter().cloned());
    object.entry("pid").or_insert_with(|| notice.pid.into());
    if missed > 0 {
        object.insert("missed".into(), missed.into());
    }
    json_line(&Value::Object(object)) + "\n"
}
