//! One entry as collectors are told of it: a sentence, how bad it is, and the entry's members by name.

use serde_json::{Map, Value};

use crate::journal::{Event, Head, HeldOutcome};

/// The most elements of a list that are told one by one.
const MOST_ELEMENTS: usize = 10;
/// The longest text of one, in bytes; a path may have 4,096 bytes, each four characters long.
const MOST_BYTES: usize = 16 << 10;
/// The longest element of a list.
const MOST_BYTES_OF_AN_ELEMENT: usize = 2 << 10;

/// How bad it is, by the numbers of syslog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// A file is not as it was accepted, and could not be put back.
    Error,
    /// Something was put back or refused, or went unseen for a while.
    Warning,
    /// Something was decided.
    Notice,
    /// A run begins or ends.
    Info,
    /// What is about to be done.
    Debug,
}

impl Severity {
    /// What an entry is.
    fn of(event: &Event) -> Self {
        if let Event::Held { decision: HeldOutcome::Allowed | HeldOutcome::Trusted, .. } = event {
            return Severity::Notice;
        }
        match event.name() {
            "restore_failed" => Severity::Error,
            "restored" | "held" | "contested" | "lost" | "unguarded" | "linked" | "transient" => Severity::Warning,
            "session" | "sealed" | "ended" => Severity::Info,
            "restoring" | "flagged" | "unflagged" => Severity::Debug,
            _ => Severity::Notice,
        }
    }

    /// The number in syslog(3).
    pub const fn number(self) -> u8 {
        match self {
            Severity::Error => 3,
            Severity::Warning => 4,
            Severity::Notice => 5,
            Severity::Info => 6,
            Severity::Debug => 7,
        }
    }

    /// The name in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Notice => "notice",
            Severity::Info => "info",
            Severity::Debug => "debug",
        }
    }
}

/// What a collector is told of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The sentence for people, nothing in it that a terminal would obey.
    pub message: String,
    /// How bad it is.
    pub severity: Severity,
    /// The process that says it.
    pub pid: u32,
    /// What is known of it, by names of small letters and underscores. Values are texts, numbers, `true` or `false`, or
    /// lists of texts; paths are stored names.
    pub fields: Vec<(String, Value)>,
}

impl Notice {
    /// Of an entry that people read as `message`; `root` is the stored path of the tree, `head` the entry's place in the
    /// chain.
    pub fn of(event: &Event, message: &str, (at, session): (&str, &str), (pid, root): (u32, &str), head: Head) -> Self {
        let name = event.name();
        let mut fields = Fields::default();
        fields.add("event", name.into());
        fields.add("session", session.into());
        fields.add("seq", head.seq.into());
        fields.add("chain", head.digest.to_string().into());
        fields.add("at", at.into());
        fields.add("root", root.into());
        let Ok(Value::Object(entry)) = serde_json::to_value(event) else { unreachable!("an event is an object") };
        if let Some(Value::Object(members)) = entry.into_iter().next().map(|(_, members)| members) {
            fields.add_entry(members);
        }
        if matches!(name, "accepted" | "kept" | "restore_failed") {
            fields.add("outcome", name.into());
        }
        if let Some((_, decision)) = fields.0.iter().find(|(name, _)| name == "decision").cloned() {
            fields.add("outcome", decision);
        }
        let message = clipped(&format!("{name}: {message}"), MOST_BYTES);
        Self { message, severity: Severity::of(event), pid, fields: fields.0 }
    }

    /// A member's value.
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The sentence, and how many notices before it were not taken.
    pub fn sentence(&self, missed: u64) -> String {
        match missed {
            0 => self.message.clone(),
            1 => format!("{} (1 notice before this one could not be sent)", self.message),
            _ => format!("{} ({missed} notices before this one could not be sent)", self.message),
        }
    }
}

#[derive(Default)]
struct Fields(Vec<(String, Value)>);

impl Fields {
    /// Adds a member, unless one has its name already.
    fn add(&mut self, name: &str, value: Value) {
        let is_name = name.starts_with(|first: char| first.is_ascii_lowercase())
            && name.len() <= 40
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if is_name && !self.0.iter().any(|(known, _)| known == name) {
            self.0.push((name.to_owned(), value));
        }
    }

    /// Adds the members of an entry: all but tables, of which the writer's are told with their own names after `writer_`,
    /// and of a snapshot its digest.
    fn add_entry(&mut self, members: Map<String, Value>) {
        for (name, value) in members {
            match (name.as_str(), value) {
                ("writer", Value::Object(writer)) => {
                    writer.into_iter().for_each(|(name, value)| self.add_plain(&format!("writer_{name}"), value));
                }
                ("snapshot", Value::Object(mut snapshot)) => {
                    snapshot.remove("sha256").into_iter().for_each(|digest| self.add_plain("sha256", digest));
                }
                ("sha256_after", value) => self.add_plain("sha256", value),
                (name, value) => self.add_plain(name, value),
            }
        }
    }

    fn add_plain(&mut self, name: &str, value: Value) {
        match value {
            Value::Null | Value::Object(_) => {}
            Value::String(text) => self.add(name, clipped(&text, MOST_BYTES).into()),
            Value::Array(list) => {
                let texts = list.iter().filter_map(Value::as_str);
                let told: Vec<Value> =
                    texts.take(MOST_ELEMENTS).map(|text| clipped(text, MOST_BYTES_OF_AN_ELEMENT).into()).collect();
                if !told.is_empty() {
                    self.add(&format!("{name}_count"), list.len().into());
                    self.add(name, told.into());
                }
            }
            value @ (Value::Bool(_) | Value::Number(_)) => self.add(name, value),
        }
    }
}

/// The text, cut off with a mark if it is longer than this many bytes.
pub(super) fn clipped(text: &str, most: usize) -> String {
    const MARK: &str = "\u{2026}";
    if text.len() <= most {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most.saturating_sub(MARK.len()));
    format!("{}{MARK}", &text[..end])
}
