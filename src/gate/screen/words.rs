//! The words of a question, and which key is which answer.
//!
//! Promise: what an agent chose is one word, or stands in quotation marks with everything in it escaped that could hide,
//! reorder or end it; a path is never cut. A fact that begins like a line of ours is marked. Nothing an agent wrote stands
//! in a question; in the difference, which is shown when asked for, each line of it is marked.
//! Limit: letters of scripts that run from right to left stand as they are, and a terminal may turn them around their
//! neighbours; letters that look alike and differ are told for hosts only.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar;

use crate::ask::{Block, Printed, certain, misleads};
use crate::gate::action::{Action, Target};
use crate::gate::machine::{Caller, Choice, Offer, OfferId, Question};
use crate::text;

/// Characters of a client's name; the rest tells nobody anything.
const MOST_OF_A_NAME: usize = 60;
/// Facts that are shown, and their bytes: what tells them is a process that reads hostile files.
const MOST_FACTS: usize = 24;
const MOST_OF_FACTS: usize = 16 << 10;
/// Characters of a line of a difference.
const MOST_OF_A_LINE: usize = 400;

/// Stands before a line that somebody else wrote.
const QUOTED: &str = "  | ";

/// A question in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words {
    /// What is asked, by whom, and the facts.
    said: Vec<Printed>,
    /// The answers but the last.
    choices: Vec<Printed>,
    /// Which key is which answer.
    keys: Vec<(u8, OfferId)>,
}

impl Words {
    pub(super) fn of(question: &Question) -> Self {
        let Question { call, action, offers, .. } = question;
        let mut said = vec![first_line(action), asked_by(&call.caller, call.tool.name()).into()];
        said.extend(remarks(action).iter().map(|remark| format!("  {}", certain(remark)).into()));
        said.extend(facts(&call.facts).into_iter().map(Printed::from));
        let others = call.actions.iter().filter(|other| *other != action && !is_told(other, &call.facts));
        said.extend(others.map(|other| format!("  and {}", in_words(other)).into()));
        let mut choices: Vec<Printed> = offers.iter().map(|offer| choice(offer).into()).collect();
        if !call.difference.is_empty() {
            choices.push("  [d] show the difference".to_owned().into());
        }
        let keys = offers.iter().map(|offer| (key_of(offer.choice), offer.id)).collect();
        Self { said, choices, keys }
    }

    /// As it stands on the terminal. `is_tall`: it will not be seen all at once.
    pub(super) fn block(&self, waiting: usize, is_tall: bool) -> Block {
        let mut head = self.said.clone();
        if is_tall {
            head.push("  (taller than this terminal: scroll up for its beginning)".to_owned().into());
        }
        head.extend(self.choices.iter().cloned());
        let unit = if waiting > 0 { format!(" s; {waiting} more waiting)") } else { " s)".to_owned() };
        Block { head, keys: "  [n] no (denied in ".to_owned(), unit, ..Block::default() }
    }

    /// The answer this key is, if it is offered.
    pub(super) fn offer(&self, key: u8) -> Option<OfferId> {
        self.keys.iter().find(|(known, _)| *known == key).map(|(_, id)| *id)
    }
}

/// An action in words, as the first line of its question names it: kind and target, each a word by itself.
pub fn in_words(action: &Action) -> String {
    format!("{} {}", action.kind(), word(&action.target().to_string()))
}

/// A line of a difference, which others wrote.
pub(super) fn quoted(line: &str) -> Printed {
    let mut shown = certain(line);
    if let Some((end, _)) = shown.char_indices().nth(MOST_OF_A_LINE) {
        shown.truncate(end);
        shown.push('…');
    }
    format!("{QUOTED}{shown}").into()
}

fn first_line(action: &Action) -> Printed {
    const OURS: &str = "keep gate: ";
    let text = format!("{OURS}{}", in_words(action));
    let bold = OURS.len() + action.kind().name().len() + 1..text.len();
    Printed { text, bold }
}

fn asked_by(caller: &Caller, tool: &str) -> String {
    let name = match caller.name.char_indices().nth(MOST_OF_A_NAME) {
        Some((end, _)) => word(&format!("{}…", &caller.name[..end])),
        None if caller.name.is_empty() => "a client without a name".to_owned(),
        None => word(&caller.name),
    };
    let unattended = if caller.unattended { ", unattended" } else { "" };
    format!("  asked by {name} through {tool}{unattended}")
}

/// What a person should know of a host's name before reading it.
fn remarks(action: &Action) -> Vec<String> {
    match action.target() {
        Target::Host(host) => host.remarks(),
        Target::Path(_) | Target::User | Target::Note(_) => Vec::new(),
    }
}

fn facts(facts: &[String]) -> Vec<String> {
    let mut bytes = 0;
    let mut shown: Vec<String> = facts
        .iter()
        .take(MOST_FACTS)
        .map(|fact| certain(fact))
        .take_while(|fact| {
            bytes += fact.len();
            bytes <= MOST_OF_FACTS
        })
        .map(|fact| if misleads(&fact) { format!("{QUOTED}{fact}") } else { format!("  {fact}") })
        .collect();
    if shown.len() < facts.len() {
        shown.push(format!("  … and {} more facts", facts.len() - shown.len()));
    }
    shown
}

/// Whether a fact names the target of this action already, as a word by itself.
fn is_told(action: &Action, facts: &[String]) -> bool {
    let target = action.target().to_string();
    let ends = |character: char| character.is_whitespace() || matches!(character, ',' | ';');
    facts.iter().take(MOST_FACTS).any(|fact| fact.split(ends).any(|named| named == target))
}

fn choice(offer: &Offer) -> String {
    let key = char::from(key_of(offer.choice));
    let patterns = || offer.grants.iter().map(|grant| word(&grant.target())).collect::<Vec<_>>().join(" and ");
    match offer.choice {
        Choice::Once => format!("  [{key}] once"),
        Choice::Session => format!("  [{key}] this session"),
        Choice::Always => format!("  [{key}] always"),
        Choice::WidenSession => format!("  [{key}] {} this session", patterns()),
        Choice::WidenAlways => format!("  [{key}] {} always", patterns()),
    }
}

const fn key_of(choice: Choice) -> u8 {
    match choice {
        Choice::Once => b'o',
        Choice::Session => b's',
        Choice::Always => b'a',
        Choice::WidenSession => b'w',
        Choice::WidenAlways => b'W',
    }
}

/// The text as it is if it is one plain word; otherwise in quotation marks, so that no other text looks the same.
fn word(text: &str) -> String {
    let is_certain = |character: char| !text::is_hidden(character) && matches!(character.width(), Some(1 | 2));
    let is_plain =
        |character: char| is_certain(character) && !character.is_whitespace() && !matches!(character, '"' | '\\');
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(character);
            }
            ' ' => quoted.push(' '),
            plain if is_plain(plain) => quoted.push(plain),
            other => write!(quoted, "\\u{{{:x}}}", u32::from(other)).expect("a String takes everything"),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_plain_word_stands_as_it_is_and_anything_else_in_quotation_marks() {
        for plain in ["notes/todo.md", "*", "[a]", "what?.md", "žluťoučký", "設定.env", "api.example.com:8443"] {
            assert_eq!(word(plain), plain);
        }
        for (text, shown) in [
            ("", "\"\""),
            ("a b", "\"a b\""),
            ("a\"b", "\"a\\\"b\""),
            ("back\\slash", "\"back\\\\slash\""),
            ("e\u{301}", "\"e\\u{301}\""),
            ("a\u{a0}b", "\"a\\u{a0}b\""),
            ("x\r\n[o] no", "\"x\\u{d}\\u{a}[o] no\""),
            ("\u{202e}\u{9b}2J", "\"\\u{202e}\\u{9b}2J\""),
        ] {
            assert_eq!(word(text), shown);
        }
    }

    #[test]
    fn a_client_cannot_speak_as_we_do() {
        let asked = |name: &str, unattended| {
            asked_by(&Caller { connection: 1, name: name.to_owned(), unattended }, "file_write")
        };
        assert_eq!(asked("some-agent", false), "  asked by some-agent through file_write");
        assert_eq!(asked("some-agent", true), "  asked by some-agent through file_write, unattended");
        assert_eq!(asked("x through file_read", false), "  asked by \"x through file_read\" through file_write");
        assert_eq!(asked("", false), "  asked by a client without a name through file_write");
        assert!(asked(&"n".repeat(5000), false).len() < 120);
    }

    #[test]
    fn facts_are_bounded_and_those_that_look_like_ours_are_marked() {
        let said = |texts: &[&str]| facts(&texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>());
        assert_eq!(said(&["overwrite, 310 bytes, +2 -1"]), ["  overwrite, 310 bytes, +2 -1"]);
        assert_eq!(said(&["[o] once", " keep gate: net x"]), ["  | [o] once", "  |  keep gate: net x"]);
        assert_eq!(said(&["a\r\nb\u{1b}[2J"]), ["  a\\u{d}\\u{a}b\\u{1b}[2J"]);
        let many = said(&["fact"; 40]);
        assert_eq!((many.len(), many[24].as_str()), (25, "  … and 16 more facts"));
        let long = "x".repeat(MOST_OF_FACTS);
        assert_eq!(said(&[&long, "y"])[1], "  … and 1 more facts");
    }

    #[test]
    fn a_line_of_a_difference_is_marked_and_cut() {
        assert_eq!(quoted("[n] no").text, "  | [n] no");
        assert_eq!(quoted("+four-added").text, "  | +four-added");
        assert_eq!(quoted(&"é".repeat(1000)).text.chars().count(), 4 + MOST_OF_A_LINE + 1);
    }

    proptest! {
        #[test]
        fn two_texts_never_look_the_same(one in hostile(), other in hostile()) {
            prop_assert_eq!(word(&one) == word(&other), one == other);
        }
    }

    fn hostile() -> impl Strategy<Value = String> {
        let pieces = ["a", "\\", "\"", " ", "\u{a0}", "u{a0}", "\n", "\u{301}", "\\u{301}", "é", "日"];
        proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..4).prop_map(|parts| parts.concat())
    }
}
