//! Who holds a lock, as one line of JSON in the lock's file: written by us, read by whoever finds it.
//!
//! Promise: what is written is read back; of a line that is cut or garbled, the fields before the damage are read.
//! Limit: the line only tells people whom they wait for. Whether a lock is held is never decided by it where flock(2)
//! works. The file can be written by any process of the user: its text must be escaped before it is shown.

use std::io;

use crate::process;

/// The process that takes a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its number.
    pub pid: u32,
    /// When it started ([`process::start_time`]).
    pub start_time: u64,
    /// The boot it runs in ([`process::boot_id`]).
    pub boot_id: String,
    /// What it does, for people: `keep watch`.
    pub command: String,
    /// Since when, as RFC 3339 text.
    pub since: String,
}

impl Holder {
    /// This process, doing `command` since `since`.
    pub fn this_process(command: &str, since: &str) -> io::Result<Self> {
        let pid = process::own_pid();
        let start_time = process::start_time(pid)?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let (command, since) = (command.to_owned(), since.to_owned());
        Ok(Self { pid, start_time, boot_id: process::boot_id()?, command, since })
    }

    /// The line, with its newline.
    pub fn to_line(&self) -> String {
        let mut line = format!("{{\"pid\":{},\"start_time\":{}", self.pid, self.start_time);
        for (key, value) in [("boot_id", &self.boot_id), ("command", &self.command), ("since", &self.since)] {
            line.push_str(",\"");
            line.push_str(key);
            line.push_str("\":\"");
            for character in value.chars() {
                match character {
                    '"' | '\\' => line.extend(['\\', character]),
                    control if control.is_control() => line.push_str(&format!("\\u{:04x}", u32::from(control))),
                    plain => line.push(plain),
                }
            }
            line.push('"');
        }
        line.push_str("}\n");
        line
    }
}

/// What a lock's file tells of its holder. Each part may be missing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Known {
    /// Its number.
    pub pid: Option<u32>,
    /// When it started.
    pub start_time: Option<u64>,
    /// The boot it runs in.
    pub boot_id: Option<String>,
    /// What it does.
    pub command: Option<String>,
    /// Since when.
    pub since: Option<String>,
}

impl Known {
    /// Reads a line; stops at the first thing that is not as [`Holder::to_line`] writes it.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut known = Self::default();
        let mut rest = Rest(bytes);
        if !rest.skip(b'{') {
            return known;
        }
        loop {
            let Some(key) = rest.text() else { return known };
            if !rest.skip(b':') {
                return known;
            }
            let Some(value) = rest.value() else { return known };
            // Fields of a newer version are passed over.
            match (key.as_str(), value) {
                ("pid", Value::Number(number)) => known.pid = u32::try_from(number).ok(),
                ("start_time", Value::Number(number)) => known.start_time = Some(number),
                ("boot_id", Value::Text(text)) => known.boot_id = Some(text),
                ("command", Value::Text(text)) => known.command = Some(text),
                ("since", Value::Text(text)) => known.since = Some(text),
                _ => {}
            }
            if !rest.skip(b',') {
                return known;
            }
        }
    }

    /// Whether the process may still run, for where flock(2) cannot tell. A line that names no process is nobody's; one
    /// that names a process incompletely is believed as long as the number is in use.
    pub fn may_run(&self, this_boot: &str) -> bool {
        let Some(pid) = self.pid else { return false };
        if self.boot_id.as_deref().is_some_and(|boot| boot != this_boot) {
            return false;
        }
        self.start_time.map_or_else(|| process::exists(pid), |start_time| process::is_alive(pid, start_time))
    }
}

enum Value {
    Number(u64),
    Text(String),
}

/// What of the line is still to be read.
struct Rest<'b>(&'b [u8]);

impl Rest<'_> {
    fn skip(&mut self, expected: u8) -> bool {
        while self.0.first().is_some_and(u8::is_ascii_whitespace) {
            self.0 = &self.0[1..];
        }
        let found = self.0.first() == Some(&expected);
        if found {
            self.0 = &self.0[1..];
        }
        found
    }

    fn value(&mut self) -> Option<Value> {
        if let Some(text) = self.text() {
            return Some(Value::Text(text));
        }
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = self.0.split_at(digits);
        self.0 = rest;
        std::str::from_utf8(number).ok()?.parse().ok().map(Value::Number)
    }

    fn text(&mut self) -> Option<String> {
        if !self.skip(b'"') {
            return None;
        }
        let mut text = Vec::new();
        loop {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            match byte {
                b'"' => return Some(String::from_utf8_lossy(&text).into_owned()),
                b'\\' => {
                    let (&escape, rest) = self.0.split_first()?;
                    self.0 = rest;
                    match escape {
                        b'"' | b'\\' | b'/' => text.push(escape),
                        b'u' => {
                            let (digits, rest) = self.0.split_at_checked(4)?;
                            self.0 = rest;
                            let code = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
                            let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                            text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                        }
                        _ => return None,
                    }
                }
                plain => text.push(plain),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn holder(command: &str) -> Holder {
        let (boot_id, since) = ("0f3c".into(), "2026-01-02T03:04:05Z".into());
        Holder { pid: 4242, start_time: 77, boot_id, command: command.into(), since }
    }

    fn known(holder: &Holder) -> Known {
        Known {
            pid: Some(holder.pid),
            start_time: Some(holder.start_time),
            boot_id: Some(holder.boot_id.clone()),
            command: Some(holder.command.clone()),
            since: Some(holder.since.clone()),
        }
    }

    #[test]
    fn the_line_is_plain_json() {
        let line = holder("keep \"watch\"\n").to_line();
        let expected = concat!(
            r#"{"pid":4242,"start_time":77,"boot_id":"0f3c","command":"keep \"watch\"\u000a","#,
            r#""since":"2026-01-02T03:04:05Z"}"#,
            "\n"
        );
        assert_eq!(line, expected);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(command in any::<String>()) {
            let holder = holder(&command);
            let line = holder.to_line();
            prop_assert_eq!(line.matches('\n').count(), 1);
            prop_assert_eq!(Known::parse(line.as_bytes()), known(&holder));
        }

        #[test]
        fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = Known::parse(&bytes);
        }

        #[test]
        fn a_cut_line_gives_the_fields_before_the_cut(cut in 0_usize..120) {
            let whole = holder("keep watch");
            let line = whole.to_line();
            let found = Known::parse(&line.as_bytes()[..cut.min(line.len())]);
            prop_assert!(found.pid.is_none() || found.pid == Some(4242) || cut < line.find(',').expect("it has one"));
            prop_assert!(found.since.is_none() || found == known(&whole));
        }
    }

    #[test]
    fn fields_of_a_newer_version_are_passed_over() {
        let found = Known::parse(br#" { "host" : "h", "pid" : 7 , "command":"keep run" } "#);
        assert_eq!((found.pid, found.command.as_deref()), (Some(7), Some("keep run")));
        assert_eq!(Known::parse(b"garbage"), Known::default());
    }

    #[test]
    fn only_this_boots_process_with_that_start_may_run() {
        let us = Holder::this_process("test", "now").expect("the system tells");
        assert!(known(&us).may_run(&us.boot_id));
        assert!(!known(&us).may_run("another boot"));
        assert!(!known(&Holder { start_time: us.start_time + 1, ..us.clone() }).may_run(&us.boot_id));
        assert!(!Known::default().may_run(&us.boot_id), "a file without a process is nobody's");
        assert!(Known { pid: Some(us.pid), ..Known::default() }.may_run(&us.boot_id));
    }
}
