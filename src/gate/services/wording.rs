//! Texts that an agent wants the person to read: bounded, and shown as what they are.
//!
//! Promise: a headline says first that an agent speaks, in words of ours that it cannot take away; nothing in a text can
//! move a cursor, hide itself or begin a line.

use crate::text::{escaped, is_hidden};

/// The most characters of a message or note.
pub const MAX_MESSAGE: usize = 1000;
/// The most characters of a title.
pub const MAX_TITLE: usize = 100;

/// What a notification is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// An agent tells something now.
    Message,
    /// An agent wanted something told now.
    Reminder,
}

/// A message or note that is not empty and not too long; `what` names the argument.
pub fn message(what: &str, text: &str) -> Result<(), String> {
    bounded(what, text, MAX_MESSAGE)?;
    if text.trim().is_empty() { Err(format!("`{what}` is empty")) } else { Ok(()) }
}

/// A title that is not too long.
pub fn title(text: Option<&str>) -> Result<(), String> {
    bounded("title", text.unwrap_or_default(), MAX_TITLE)
}

fn bounded(what: &str, text: &str, most: usize) -> Result<(), String> {
    match text.chars().count() {
        length if length > most => Err(format!("`{what}` has {length} characters, more than {most}")),
        _ => Ok(()),
    }
}

/// The headline of a notification.
pub fn headline(occasion: Occasion, title: Option<&str>) -> String {
    let ours = match occasion {
        Occasion::Message => "An agent says",
        Occasion::Reminder => "Reminder from an agent",
    };
    match title.map(str::trim).filter(|title| !title.is_empty()) {
        Some(title) => format!("{ours}: {}", escaped(title.as_bytes())),
        None => ours.to_owned(),
    }
}

/// The body of a notification.
pub fn body(message: &str) -> String {
    escaped(message.trim().as_bytes())
}

/// One line of at most `most` characters, of which none is hidden; longer ones are cut. `None` if nothing is left, or if a
/// character is hidden.
pub fn line(text: &str, most: usize) -> Option<String> {
    let text = text.trim();
    if text.is_empty() || text.chars().any(is_hidden) {
        return None;
    }
    Some(text.chars().take(most).collect::<String>().trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_cannot_speak_as_the_gate() {
        assert_eq!(headline(Occasion::Message, Some("keep gate\n")), "An agent says: keep gate");
        assert_eq!(headline(Occasion::Message, Some("a\nb\u{202e}")), "An agent says: a\\nb\\u{202e}");
        assert_eq!(headline(Occasion::Reminder, Some("  ")), "Reminder from an agent");
        assert_eq!(body("one\ntwo\x1b[2J\n"), "one\\ntwo\\x1b[2J");
    }

    #[test]
    fn texts_have_an_end_and_a_message_says_something() {
        assert_eq!(message("message", &"é".repeat(MAX_MESSAGE)), Ok(()));
        assert!(message("message", &"é".repeat(MAX_MESSAGE + 1)).is_err_and(|why| why.contains("1001 characters")));
        assert_eq!(message("note", " \n"), Err("`note` is empty".to_owned()));
        assert_eq!(title(None), Ok(()));
        assert!(title(Some(&"x".repeat(MAX_TITLE + 1))).is_err());
    }

    #[test]
    fn a_line_is_one_line_and_cut_not_refused_for_its_length() {
        assert_eq!(line("  what is next ", 120).as_deref(), Some("what is next"));
        assert_eq!(line(&"é".repeat(121), 120), Some("é".repeat(120)));
        for none in ["", " ", "a\nb", "a\u{202e}b", "a\u{200b}b", "a\tb"] {
            assert_eq!(line(none, 120), None, "{none:?}");
        }
    }
}
