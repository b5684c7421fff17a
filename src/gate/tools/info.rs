//! What an agent is told of each tool: a sentence or two, and the JSON Schema of its arguments.
//!
//! Promise: for every tool that is served, the schema lets pass what [`super::Request`] takes and refuses what it refuses:
//! the same fields, the same of them required, no others; a test holds the two together.
//! Limit: sizes, and what makes a path or a host canonical, are in the words only.

use serde_json::{Map, Value, json};

use super::Tool;
use crate::gate::wire::ToolInfo;

/// Whether this version carries the tool out; one that it does not is listed for nobody.
pub const fn served(tool: Tool) -> bool {
    !matches!(tool, Tool::HttpRead | Tool::HttpWrite | Tool::DnsResolve | Tool::Ping | Tool::CodeRun)
}

/// What an agent is told of a tool.
pub fn info(tool: Tool) -> ToolInfo {
    ToolInfo {
        name: tool.name().to_owned(),
        description: description(tool).to_owned(),
        input_schema: schema(arguments(tool)),
        read_only: tool.is_read_only(),
        destructive: tool.is_destructive(),
    }
}

fn description(tool: Tool) -> &'static str {
    match tool {
        Tool::HttpRead => {
            "Fetch a page by GET or HEAD. The person may be asked about the host, and again about each redirect to another."
        }
        Tool::HttpWrite => "Send a request that may change something. The person may be asked about the host.",
        Tool::DnsResolve => "Look a name up. The person may be asked about it.",
        Tool::Ping => "Ask whether a host is there. The person may be asked about it.",
        Tool::FileRead => {
            "Read a file: its content, its size in bytes, and whether it was cut. Asks nobody. Use offset and limit, in bytes \
             or lines, for the rest of a long file."
        }
        Tool::FileList => "List a directory: names, types and sizes. Asks nobody.",
        Tool::FileStat => "Say whether there is something at a path, and what: type, size, time. Asks nobody.",
        Tool::FileSearch => {
            "Find files by a glob over names or paths, and by what they contain. Files that git ignores are left out unless \
             `all` is set. Asks nobody."
        }
        Tool::FileWrite => {
            "Create a file or replace all of its content, at most 16 MiB; missing directories are made. The person may be \
             asked, and sees what changes."
        }
        Tool::FileRemove => "Remove a file or an empty directory. The person may be asked.",
        Tool::FileMove => {
            "Move or rename a file or directory. What is at the new path is replaced only if `overwrite` is set. The person \
             may be asked, and sees both paths."
        }
        Tool::Notify => "Show the person a message on their desktop now. At most 10 a minute.",
        Tool::Remind => "Show the person a message later; it survives a restart. At most 100 wait at a time.",
        Tool::RemindList => "List the reminders that wait, the next one first.",
        Tool::RemindCancel => "Take a reminder back.",
        Tool::MemoryRead => "Read one of the notes that you wrote, or the index of all: `MEMORY.md`.",
        Tool::MemoryWrite => {
            "Write a note for later, in Markdown, at most 64 KiB; it replaces the whole note of that path. Its summary stands \
             in the index. The person may be asked."
        }
        Tool::SkillRead => "Read a file of a skill's folder.",
        Tool::SkillLoad => "Load a skill: its instructions, and which files it has.",
        Tool::TimeNow => "Tell the time: Unix seconds, local time with its zone, and UTC.",
        Tool::Wake => {
            "Be told a note again later, between one second and one hour from now. It comes as a logging notification. At \
             most three wait at a time."
        }
        Tool::CodeRun => {
            "Run JavaScript with no files, network or clock of its own. Call the other tools with keep.call(name, arguments) \
             and print with console.log. Each of those calls may be asked about."
        }
    }
}

/// One argument: its name, its schema, and whether it has to be given.
type Argument = (&'static str, Value, bool);

fn text(name: &'static str, description: &str) -> Argument {
    (name, json!({"type": "string", "description": description}), true)
}

fn choice(name: &'static str, of: &[&str], description: &str) -> Argument {
    (name, json!({"type": "string", "enum": of, "description": description}), false)
}

fn count(name: &'static str, description: &str) -> Argument {
    (name, json!({"type": "integer", "minimum": 0, "description": description}), false)
}

fn flag(name: &'static str, description: &str) -> Argument {
    (name, json!({"type": "boolean", "default": false, "description": description}), false)
}

fn headers() -> Argument {
    let schema = json!({"type": "object", "additionalProperties": {"type": "string"},
        "description": "accept, accept-language and content-type; others are refused"});
    ("headers", schema, false)
}

fn optional((name, schema, _): Argument) -> Argument {
    (name, schema, false)
}

fn arguments(tool: Tool) -> Vec<Argument> {
    let path = |description| text("path", description);
    match tool {
        Tool::HttpRead => vec![
            text("url", "an http or https address without user name or password"),
            choice("method", &["GET", "HEAD"], "GET if left out"),
            headers(),
        ],
        Tool::HttpWrite => vec![
            text("url", "an http or https address without user name or password"),
            choice("method", &["POST", "PUT", "PATCH", "DELETE"], "POST if left out"),
            optional(text("body", "what to send, at most 1 MiB")),
            optional(text("content_type", "application/json if left out and there is a body")),
            headers(),
        ],
        Tool::DnsResolve => vec![
            text("host", "the name"),
            choice(
                "type",
                &["A", "AAAA", "IP", "MX", "TXT", "CNAME", "NS", "PTR", "SRV"],
                "the type of record; A if left out",
            ),
        ],
        Tool::Ping => vec![text("host", "a name or an address")],
        Tool::FileRead => vec![
            path("the file, relative to the root"),
            count("offset", "where to begin; 0 is the first byte or line"),
            count("limit", "how much to return at most"),
            choice("unit", &["bytes", "lines"], "what offset and limit count; bytes if left out"),
        ],
        Tool::FileList => vec![optional(path("the directory, relative to the root; the root if left out"))],
        Tool::FileStat => vec![path("the path, relative to the root")],
        Tool::FileSearch => vec![
            text("pattern", "a glob: without `/` it is compared with names, else with paths relative to `path`"),
            optional(path("the directory to search; the root if left out")),
            optional(text("contains", "a text that the file has to hold")),
            flag("regex", "whether `contains` is a regular expression"),
            flag("all", "whether to search what git ignores, too"),
        ],
        Tool::FileWrite => {
            vec![path("the file, relative to the root"), text("content", "all of its new content, as text")]
        }
        Tool::FileRemove => vec![path("the file or empty directory, relative to the root")],
        Tool::FileMove => vec![
            text("from", "what to move, relative to the root"),
            text("to", "its new path, relative to the root"),
            flag("overwrite", "whether it may take the place of a file"),
        ],
        Tool::Notify => vec![text("message", "the text"), optional(text("title", "a title"))],
        Tool::Remind => vec![
            text("when", "`in 10m`, `in 2h30m`, or a time as 2026-11-30T18:00:00+01:00"),
            text("message", "the text"),
            optional(text("title", "a title")),
        ],
        Tool::RemindList | Tool::TimeNow => vec![],
        Tool::RemindCancel => vec![text("id", "the reminder, as `remind` and `remind_list` name it")],
        Tool::MemoryRead => vec![path("the note, as plans/next.md")],
        Tool::MemoryWrite => vec![
            path("the note, as plans/next.md"),
            text("summary", "one line that says what is in it"),
            text("content", "all of its new content"),
        ],
        Tool::SkillRead => vec![text("name", "the skill"), path("the file, relative to the skill's folder")],
        Tool::SkillLoad => vec![text("name", "the skill")],
        Tool::Wake => vec![
            ("seconds", json!({"type": "number", "description": "how long from now; 1 to 3600"}), true),
            text("note", "what to tell you then"),
        ],
        Tool::CodeRun => vec![text("source", "the script")],
    }
}

fn schema(arguments: Vec<Argument>) -> Map<String, Value> {
    let required: Vec<Value> =
        arguments.iter().filter(|(_, _, required)| *required).map(|(name, ..)| json!(name)).collect();
    let properties: Map<String, Value> =
        arguments.into_iter().map(|(name, schema, _)| (name.to_owned(), schema)).collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), Value::Array(required));
    }
    schema.insert("additionalProperties".to_owned(), json!(false));
    schema
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::gate::tools::Request;

    fn is_taken(tool: Tool, arguments: &Map<String, Value>) -> bool {
        Request::parse(tool, arguments.clone()).is_some_and(|request| request.is_ok())
    }

    /// A value that a property's schema lets pass.
    fn fitting(schema: &Value) -> Value {
        match (schema["type"].as_str().expect("a type"), &schema["enum"]) {
            (_, Value::Array(choices)) => choices[0].clone(),
            ("string", _) => json!("x"),
            ("integer", _) => json!(1),
            ("number", _) => json!(1.5),
            ("boolean", _) => json!(true),
            (other, _) => panic!("no value of type {other}"),
        }
    }

    /// A tool's properties by name, and which of them are required.
    fn properties(tool: Tool) -> (Map<String, Value>, BTreeSet<String>) {
        let schema = Value::Object(info(tool).input_schema);
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let names = required.iter().map(|name| name.as_str().expect("a name").to_owned()).collect();
        (schema["properties"].as_object().expect("an object").clone(), names)
    }

    #[test]
    fn what_is_served_is_what_a_request_can_be_made_of() {
        for tool in Tool::all() {
            assert_eq!(served(tool), Request::parse(tool, Map::new()).is_some(), "{}", tool.name());
        }
    }

    #[test]
    fn a_schema_and_the_arguments_taken_agree_on_what_is_required_what_is_known_and_of_what_type_it_is() {
        for tool in Tool::all().filter(|tool| served(*tool)) {
            let (schemas, required) = properties(tool);
            let all: Map<String, Value> =
                schemas.iter().map(|(name, schema)| (name.clone(), fitting(schema))).collect();
            assert!(is_taken(tool, &all), "{}: {all:?}", tool.name());
            for (name, schema) in &schemas {
                let mut fewer = all.clone();
                fewer.remove(name);
                assert_eq!(is_taken(tool, &fewer), !required.contains(name), "{} without {name}", tool.name());
                let mut wrong = all.clone();
                wrong.insert(name.clone(), json!([1]));
                assert!(!is_taken(tool, &wrong), "{}: {name} takes a list", tool.name());
                if !schema["enum"].is_null() {
                    wrong.insert(name.clone(), json!("x"));
                    assert!(!is_taken(tool, &wrong), "{}: {name} takes what is no choice", tool.name());
                }
            }
            for needed in &required {
                assert!(schemas.contains_key(needed), "{}: {needed} is required and unknown", tool.name());
            }
        }
    }

    #[test]
    fn a_field_that_is_not_in_the_schema_is_refused_and_every_field_that_is_taken_is_in_it() {
        for tool in Tool::all().filter(|tool| served(*tool)) {
            let (schemas, _) = properties(tool);
            let unknown = Map::from_iter([("no_such_field".to_owned(), json!(1))]);
            let error = Request::parse(tool, unknown).expect("is served").expect_err("refused").to_string();
            // "…unknown field `x`, expected one of `a`, `b`", "…expected `a`" or "…there are no fields"
            let (_, told) = error.split_once("`no_such_field`").expect("names the field");
            let taken: BTreeSet<&str> = told.split('`').skip(1).step_by(2).collect();
            assert_eq!(taken, schemas.keys().map(String::as_str).collect(), "{}: {error}", tool.name());
        }
    }

    #[test]
    fn every_choice_of_a_schema_is_taken() {
        for (tool, name) in [(Tool::FileRead, "unit")] {
            let (schemas, required) = properties(tool);
            let needed = required.iter().map(|name| (name.clone(), fitting(&schemas[name])));
            let needed: Map<String, Value> = needed.collect();
            for choice in schemas[name]["enum"].as_array().expect("choices") {
                let mut arguments = needed.clone();
                arguments.insert(name.to_owned(), choice.clone());
                assert!(is_taken(tool, &arguments), "{}: {choice}", tool.name());
            }
        }
    }

    #[test]
    fn every_tool_is_described_and_closed() {
        for tool in Tool::all() {
            let info = info(tool);
            assert!(info.description.len() > 15 && info.description.len() < 300, "{}", info.description);
            assert_eq!(info.input_schema["type"], json!("object"));
            assert_eq!(info.input_schema["additionalProperties"], json!(false));
            for (name, schema) in info.input_schema["properties"].as_object().expect("an object") {
                assert!(!schema["description"].as_str().expect("a description").is_empty(), "{}: {name}", tool.name());
            }
        }
    }
}
