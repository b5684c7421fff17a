//! The session log: everything that happened in one session, detections included, for a person to read.
//!
//! Limit: it is not synced and proves nothing; decisions hang on the journal only. A log that cannot be written is no
//! reason to stop.

use std::fs::File;

use platform::{Dir, FsError, file};
use serde_json::{Map, Value};

use crate::text;

/// The log of one session.
#[derive(Debug)]
pub struct SessionLog {
    file: File,
    name: String,
}

impl SessionLog {
    /// Makes the log `session-<id>.jsonl` in the state folder; it must not exist.
    pub fn create(dir: &Dir, session: &str) -> Result<Self, FsError> {
        let name = format!("session-{session}.jsonl");
        dir.create_new(name.as_bytes(), 0o600)?;
        // Opened again so that it appends: two writers then mix lines, never bytes.
        Ok(Self { file: dir.open_append(name.as_bytes())?, name })
    }

    /// Its name in the state folder.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Writes one line: the time in RFC 3339, what happened, and what else is known of it; no content of any file.
    pub fn write(&mut self, at: &str, event: &str, fields: Map<String, Value>) -> Result<(), FsError> {
        let mut object = Map::new();
        object.insert("at".into(), at.into());
        object.insert("event".into(), event.into());
        for (name, value) in fields {
            object.entry(name).or_insert(value);
        }
        let mut line = text::json_line(&Value::Object(object)).into_bytes();
        line.push(b'\n');
        file::write_all(&self.file, self.name.as_bytes(), &line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn each_line_is_an_object_that_cannot_draw() {
        let folder = tempfile::tempdir().expect("makes a folder");
        let dir = Dir::open_ambient(folder.path()).expect("opens it");
        let mut log = SessionLog::create(&dir, "s-1").expect("makes the log");
        let fields = serde_json::json!({"path": "a\u{1b}[2J\u{202e}\n", "at": "never"});
        log.write("then", "detected", fields.as_object().expect("an object").clone()).expect("writes");
        log.write("later", "ended", Map::new()).expect("writes");
        let mut text = String::new();
        dir.open_read(b"session-s-1.jsonl").expect("opens").read_to_string(&mut text).expect("reads");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], r#"{"at":"then","event":"detected","path":"a\u001b[2J\u202e\n"}"#);
        assert_eq!(lines[1..], [r#"{"at":"later","event":"ended"}"#]);
        assert_eq!(dir.stat(b"session-s-1.jsonl").expect("stats").expect("exists").mode, 0o600);
        assert!(SessionLog::create(&dir, "s-1").is_err(), "a second session of that name");
    }
}
