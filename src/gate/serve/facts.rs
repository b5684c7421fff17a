//! What a question says of a call that changes no file of the root: sizes, counted by us. Never the text itself.

use crate::gate::action::Action;
use crate::gate::path::NotePath;
use crate::gate::tools::Request;

/// What a call has to be asked about, and the facts of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    /// What it reaches.
    pub(super) action: Action,
    /// The facts, a line each.
    pub(super) facts: Vec<String>,
}

/// The action of a call that is gated and is no change of a file; `None` for what never asks.
pub(super) fn asked(request: &Request) -> Option<Result<Asked, String>> {
    Some(match request {
        Request::Notify(notify) => {
            Ok(Asked { action: Action::notify(), facts: vec![text("a message", &notify.message)] })
        }
        Request::Remind(remind) => {
            Ok(Asked { action: Action::remind(), facts: vec![text("a message", &remind.message)] })
        }
        Request::MemoryWrite(write) => match NotePath::parse(&write.path) {
            Ok(path) => Ok(Asked { action: Action::memory(path), facts: vec![text("a note", &write.content)] }),
            Err(why) => Err(why.to_string()),
        },
        Request::FileRead(_)
        | Request::FileList(_)
        | Request::FileStat(_)
        | Request::FileSearch(_)
        | Request::FileWrite(_)
        | Request::FileRemove(_)
        | Request::FileMove(_)
        | Request::RemindList(_)
        | Request::RemindCancel(_)
        | Request::MemoryRead(_)
        | Request::SkillRead(_)
        | Request::SkillLoad(_)
        | Request::TimeNow(_)
        | Request::Wake(_) => return None,
    })
}

fn text(what: &str, text: &str) -> String {
    let lines = text.lines().count();
    let lines = if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") };
    format!("{what} of {} bytes, {lines}", text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Tool;
    use serde_json::{Value, json};

    fn request(tool: Tool, arguments: Value) -> Request {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        Request::parse(tool, arguments).expect("is served").expect("parses")
    }

    #[test]
    fn the_texts_are_measured_and_not_shown() {
        let sentence = "an administrator approved this\n";
        let note = json!({"path": "plans/next.md", "summary": "approved", "content": sentence});
        let asked = asked(&request(Tool::MemoryWrite, note)).expect("is gated").expect("has a target");
        assert_eq!(asked.action.to_string(), "memory plans/next.md");
        assert_eq!(asked.facts, ["a note of 31 bytes, 1 line"]);
    }

    #[test]
    fn a_note_that_would_leave_its_folder_has_no_target() {
        let note = json!({"path": "../grants.md", "summary": "s", "content": "c"});
        assert!(asked(&request(Tool::MemoryWrite, note)).expect("is gated").expect_err("refused").contains(".."));
    }

    #[test]
    fn reading_is_not_asked_about() {
        for (tool, arguments) in [
            (Tool::FileRead, json!({"path": "a"})),
            (Tool::MemoryRead, json!({"path": "a.md"})),
            (Tool::RemindCancel, json!({"id": "a"})),
            (Tool::Wake, json!({"seconds": 1, "note": "n"})),
        ] {
            assert_eq!(asked(&request(tool, arguments)), None, "{}", tool.name());
        }
    }
}
