//! A call's arguments, typed.
//!
//! Promise: what parses has every field it needs, of its type, and no field the tool does not know; numbers are in range.
//! An error names the tool's argument and never repeats a value.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::Tool;

/// The most bytes a `file_write` takes.
pub const MAX_WRITE: usize = 16 << 20;
/// The most bytes of a note.
pub const MAX_NOTE: usize = 64 << 10;

/// Why arguments were refused; the text is for the agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid arguments for {tool}: {why}")]
pub struct ArgumentError {
    /// The tool.
    pub tool: &'static str,
    /// What is wrong.
    pub why: String,
}

/// A call with its arguments.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// `file_read`
    FileRead(FileRead),
    /// `file_list`
    FileList(FileList),
    /// `file_stat`
    FileStat(FileStat),
    /// `file_search`
    FileSearch(FileSearch),
    /// `file_write`
    FileWrite(FileWrite),
    /// `file_remove`
    FileRemove(FileRemove),
    /// `file_move`
    FileMove(FileMove),
    /// `notify`
    Notify(Notify),
    /// `remind`
    Remind(Remind),
    /// `remind_list`
    RemindList(Nothing),
    /// `remind_cancel`
    RemindCancel(RemindCancel),
    /// `memory_read`
    MemoryRead(MemoryRead),
    /// `memory_write`
    MemoryWrite(MemoryWrite),
    /// `skill_read`
    SkillRead(SkillRead),
    /// `skill_load`
    SkillLoad(SkillLoad),
    /// `time_now`
    TimeNow(Nothing),
    /// `wake`
    Wake(Wake),
}

/// In what a position in a file is counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Bytes.
    #[default]
    Bytes,
    /// Lines; the first is 0.
    Lines,
}

/// Arguments of `file_read`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct FileRead {
    /// The file.
    pub path: String,
    /// Where to begin.
    #[serde(default)]
    pub offset: u64,
    /// How much at most.
    #[serde(default)]
    pub limit: Option<u64>,
    /// What both are counted in.
    #[serde(default)]
    pub unit: Unit,
}

/// Arguments of `file_list`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct FileList {
    /// The directory; the root if left out.
    #[serde(default)]
    pub path: Option<String>,
}

/// Arguments of `file_stat`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct FileStat {
    /// The path.
    pub path: String,
}

/// Arguments of `file_search`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct FileSearch {
    /// A glob; without `/` it is compared with names, else with paths relative to `path`.
    pub pattern: String,
    /// Where to search; the root if left out.
    #[serde(default)]
    pub path: Option<String>,
    /// What a file has to hold.
    #[serde(default)]
    pub contains: Option<String>,
    /// Whether `contains` is a regular expression.
    #[serde(default)]
    pub regex: bool,
    /// Whether to search what git ignores, too.
    #[serde(default)]
    pub all: bool,
}

/// Arguments of `file_write`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct FileWrite {
    /// The file.
    pub path: String,
    /// All of its new content.
    pub content: String,
}

/// Arguments of `file_remove`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct FileRemove {
    /// The file or empty directory.
    pub path: String,
}

/// Arguments of `file_move`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct FileMove {
    /// What leaves.
    pub from: String,
    /// Where it arrives.
    pub to: String,
    /// Whether it may take the place of a file.
    #[serde(default)]
    pub overwrite: bool,
}

/// Arguments of `notify`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notify {
    /// The text.
    pub message: String,
    /// Its title.
    #[serde(default)]
    pub title: Option<String>,
}

/// Arguments of `remind`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remind {
    /// `in 10m`, or a time in RFC 3339.
    pub when: String,
    /// The text.
    pub message: String,
    /// Its title.
    #[serde(default)]
    pub title: Option<String>,
}

/// No arguments.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// Arguments of `remind_cancel`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemindCancel {
    /// The reminder.
    pub id: String,
}

/// Arguments of `memory_read`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryRead {
    /// The note.
    pub path: String,
}

/// Arguments of `memory_write`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryWrite {
    /// The note.
    pub path: String,
    /// One line that says what is in it.
    pub summary: String,
    /// All of its new content.
    pub content: String,
}

/// Arguments of `skill_read`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillRead {
    /// The skill.
    pub name: String,
    /// The file in its folder.
    pub path: String,
}

/// Arguments of `skill_load`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillLoad {
    /// The skill.
    pub name: String,
}

/// Arguments of `wake`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wake {
    /// In how many seconds; brought between one second and one hour.
    pub seconds: f64,
    /// What to say then.
    pub note: String,
}

impl Request {
    /// Takes the arguments of a call of `tool`; `None` if this version does not serve the tool.
    pub fn parse(tool: Tool, arguments: Map<String, Value>) -> Option<Result<Self, ArgumentError>> {
        let value = Value::Object(arguments);
        Some(match tool {
            Tool::FileRead => take(tool, value).map(Self::FileRead),
            Tool::FileList => take(tool, value).map(Self::FileList),
            Tool::FileStat => take(tool, value).map(Self::FileStat),
            Tool::FileSearch => take(tool, value).map(Self::FileSearch),
            Tool::FileWrite => take(tool, value).and_then(|write: FileWrite| {
                at_most(tool, "content", write.content.len(), MAX_WRITE).map(|()| Self::FileWrite(write))
            }),
            Tool::FileRemove => take(tool, value).map(Self::FileRemove),
            Tool::FileMove => take(tool, value).map(Self::FileMove),
            Tool::Notify => take(tool, value).map(Self::Notify),
            Tool::Remind => take(tool, value).map(Self::Remind),
            Tool::RemindList => take(tool, value).map(Self::RemindList),
            Tool::RemindCancel => take(tool, value).map(Self::RemindCancel),
            Tool::MemoryRead => take(tool, value).map(Self::MemoryRead),
            Tool::MemoryWrite => take(tool, value).and_then(|write: MemoryWrite| {
                at_most(tool, "content", write.content.len(), MAX_NOTE).map(|()| Self::MemoryWrite(write))
            }),
            Tool::SkillRead => take(tool, value).map(Self::SkillRead),
            Tool::SkillLoad => take(tool, value).map(Self::SkillLoad),
            Tool::TimeNow => take(tool, value).map(Self::TimeNow),
            Tool::Wake => take(tool, value).map(Self::Wake),
            Tool::HttpRead | Tool::HttpWrite | Tool::DnsResolve | Tool::Ping | Tool::CodeRun => return None,
        })
    }
}

fn at_most(tool: Tool, argument: &str, bytes: usize, most: usize) -> Result<(), ArgumentError> {
    if bytes <= most {
        return Ok(());
    }
    Err(ArgumentError { tool: tool.name(), why: format!("`{argument}` has {bytes} bytes, more than {most}") })
}

fn take<T: serde::de::DeserializeOwned>(tool: Tool, value: Value) -> Result<T, ArgumentError> {
    serde_json::from_value(value).map_err(|error| ArgumentError { tool: tool.name(), why: wrong(&error) })
}

/// What is wrong, without the value: serde repeats the one it found.
fn wrong(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.strip_prefix("invalid type: ").or_else(|| text.strip_prefix("invalid value: ")) {
        Some(rest) => match rest.rsplit_once(", expected ") {
            Some((_, expected)) => format!("one of them is of the wrong type; {expected} is expected"),
            None => "one of them is of the wrong type".to_owned(),
        },
        None => crate::text::escaped(text.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(tool: Tool, arguments: Value) -> Result<Request, ArgumentError> {
        let Value::Object(map) = arguments else { panic!("an object") };
        Request::parse(tool, map).expect("is served")
    }

    #[test]
    fn arguments_are_taken_with_their_defaults() {
        let read = parse(Tool::FileRead, json!({"path": "a"})).expect("parses");
        let wanted = FileRead { path: "a".into(), offset: 0, limit: None, unit: Unit::Bytes };
        assert_eq!(read, Request::FileRead(wanted));
        let lines =
            parse(Tool::FileRead, json!({"path": "a", "offset": 3, "limit": 2, "unit": "lines"})).expect("parses");
        let wanted = FileRead { path: "a".into(), offset: 3, limit: Some(2), unit: Unit::Lines };
        assert_eq!(lines, Request::FileRead(wanted));
    }

    #[test]
    fn what_is_missing_wrong_or_unknown_is_refused_without_its_value() {
        for (tool, arguments, word) in [
            (Tool::FileRead, json!({}), "path"),
            (Tool::FileRead, json!({"path": 7}), "string"),
            (Tool::FileRead, json!({"path": null}), "string"),
            (Tool::FileRead, json!({"path": "a", "offset": -1}), "u64"),
            (Tool::FileRead, json!({"path": "a", "mode": "r"}), "mode"),
            (Tool::FileWrite, json!({"path": "a"}), "content"),
            (Tool::FileWrite, json!({"path": ["hunter2"], "content": "x"}), "string"),
            (Tool::Wake, json!({"seconds": "hunter2", "note": "n"}), "f64"),
            (Tool::TimeNow, json!({"zone": "UTC"}), "zone"),
        ] {
            let error = parse(tool, arguments.clone()).expect_err("refused").to_string();
            assert!(error.contains(word) && error.contains(tool.name()), "{arguments}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn contents_over_the_limit_are_refused_and_those_at_it_are_not() {
        for (most, over) in [(MAX_WRITE, false), (MAX_WRITE + 1, true)] {
            assert_eq!(parse(Tool::FileWrite, json!({"path": "a", "content": "x".repeat(most)})).is_err(), over);
        }
    }
}
