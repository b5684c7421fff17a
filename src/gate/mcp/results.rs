//! What came of a call, and what tools there are, in the client's terms.
//!
//! Promise: a result is there twice, as structure and as text that says the same; a denial is a result marked as an error,
//! with the reason's name, never an error of the protocol.
//! Source: Model Context Protocol 2025-11-25, "Tools".

use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock, ErrorData, Tool as Listed, ToolAnnotations};
use serde_json::{Value, json};

use crate::gate::denial::Denial;
use crate::gate::tools::Tool;
use crate::gate::wire::{Outcome, ToolInfo};
use crate::text::escaped;

use super::link::Reply;

/// How many characters of a tool's name are repeated to whoever called it.
const LONGEST_NAME: usize = 100;

/// The result of a call of the tool of that name.
pub fn result(tool: &str, reply: Reply) -> Result<CallToolResult, ErrorData> {
    Ok(match reply {
        Reply::Outcome(Outcome::Ok(result)) => CallToolResult::structured(Value::Object(result)),
        Reply::Outcome(Outcome::Failed(why)) => failed(why),
        Reply::Outcome(Outcome::Denied { action, denial }) => denied(&action, denial, denial.meaning()),
        Reply::Outcome(Outcome::UnknownTool) => {
            return Err(ErrorData::invalid_params(format!("unknown tool: {}", shown(tool)), None));
        }
        Reply::Gone => denied(&shown(tool), Denial::Gone, "the gate went away before it said what came of the call"),
        Reply::Withdrawn => cancelled(),
        Reply::Unsent(why) => failed(why),
    })
}

/// The result of a call that is one too many.
pub fn too_many() -> CallToolResult {
    failed(format!("there are {} calls under way already; wait for one of them", super::calls::MAX_CALLS))
}

/// The result of a call that its client withdrew. The SDK sends it only if the whole server ends.
pub fn cancelled() -> CallToolResult {
    denied("the call", Denial::Cancelled, Denial::Cancelled.meaning())
}

fn failed(why: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(why)])
}

fn denied(what: &str, denial: Denial, meaning: &str) -> CallToolResult {
    let mut result = failed(format!("denied ({denial}): {what}: {meaning}"));
    result.structured_content = Some(json!({"denied": what, "reason": denial.name()}));
    result
}

fn shown(name: &str) -> String {
    match name.char_indices().nth(LONGEST_NAME) {
        Some((end, _)) => format!("{}…", escaped(&name.as_bytes()[..end])),
        None => escaped(name.as_bytes()),
    }
}

/// A tool, as it is listed.
pub fn listed(info: ToolInfo) -> Listed {
    let known = Tool::parse(&info.name);
    let is_repeatable = info.read_only
        || matches!(known, Some(Tool::FileWrite | Tool::FileRemove | Tool::MemoryWrite | Tool::RemindCancel));
    let reaches_out =
        matches!(known, Some(Tool::HttpRead | Tool::HttpWrite | Tool::DnsResolve | Tool::Ping | Tool::CodeRun));
    let mut listed = Listed::new(info.name, info.description, Arc::new(info.input_schema));
    listed.annotations = Some(
        ToolAnnotations::new()
            .read_only(info.read_only)
            .destructive(info.destructive)
            .idempotent(is_repeatable)
            .open_world(reaches_out),
    );
    listed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::tools::info;

    fn shown_result(reply: Reply) -> Value {
        serde_json::to_value(result("file_write", reply).expect("a result")).expect("serializes")
    }

    #[test]
    fn a_result_is_structure_and_the_same_as_text() {
        let Value::Object(fields) = json!({"content": "a\n", "truncated": false}) else { panic!("an object") };
        let result = shown_result(Reply::Outcome(Outcome::Ok(fields)));
        assert_eq!(result["structuredContent"], json!({"content": "a\n", "truncated": false}));
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().expect("text")).expect("JSON");
        assert_eq!((&text, &result["isError"]), (&result["structuredContent"], &json!(false)));
    }

    #[test]
    fn a_denial_is_an_error_that_says_what_and_why() {
        for denial in
            [Denial::Policy, Denial::Unattended, Denial::Declined, Denial::Timeout, Denial::Cancelled, Denial::Gone]
        {
            let outcome = Outcome::Denied { action: "file notes/a.md".into(), denial };
            let result = shown_result(Reply::Outcome(outcome));
            assert_eq!(result["isError"], json!(true));
            let text = result["content"][0]["text"].as_str().expect("text");
            for word in ["denied", denial.name(), "file notes/a.md", denial.meaning()] {
                assert!(text.contains(word), "{text}");
            }
            assert_eq!(result["structuredContent"]["reason"], json!(denial.name()));
        }
        let gone = shown_result(Reply::Gone);
        assert_eq!(gone["isError"], json!(true));
        assert!(gone["content"][0]["text"].as_str().expect("text").starts_with("denied (gone): file_write: "));
    }

    #[test]
    fn an_unknown_tool_is_named_within_bounds_and_without_its_control_characters() {
        let error = |name: &str| {
            let unknown = Reply::Outcome(Outcome::UnknownTool);
            result(name, unknown).expect_err("an error of the protocol").message.into_owned()
        };
        assert_eq!(error("no_such_tool"), "unknown tool: no_such_tool");
        assert_eq!(error("a\x1b[2J"), "unknown tool: a\\x1b[2J");
        assert_eq!(error(&"ä".repeat(10_000)).chars().count(), "unknown tool: ".len() + LONGEST_NAME + 1);
    }

    #[test]
    fn hints_say_what_a_tool_does() {
        for tool in Tool::all() {
            let listed = serde_json::to_value(listed(info(tool))).expect("serializes");
            let hints = &listed["annotations"];
            assert_eq!(hints["readOnlyHint"], json!(tool.is_read_only()), "{listed}");
            assert_eq!(hints["destructiveHint"], json!(tool.is_destructive()), "{listed}");
            assert_eq!(listed["inputSchema"]["type"], json!("object"), "{listed}");
        }
    }
}
