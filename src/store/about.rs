//! What is known of one rejected thing: the `about.json` beside its content in the quarantine.
//!
//! Promise: one line, no contents, and nothing in it that a terminal would obey. What [`About::to_line`] writes
//! [`About::parse`] reads back. Limit: whoever can write to the state folder can change it; it is a label, not a proof.

use serde_json::{Value, json};

use crate::baseline::ChangeKind;
use crate::digest::Digest;
use crate::rules::Rule;
use crate::text;

/// Why, when and in whose session something was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The path as people see it.
    pub shown: String,
    /// The path as the journal stores it.
    pub stored: String,
    /// The rule that covers it.
    pub rule: Rule,
    /// How it differed.
    pub kind: ChangeKind,
    /// How the question ended, if there was one.
    pub outcome: Option<String>,
    /// The session.
    pub session: String,
    /// Wall time, RFC 3339 in UTC.
    pub rejected_at: String,
}

/// Where the rejected thing is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// A copy of the bytes, or of the link's text, is in the quarantine.
    Copied,
    /// The thing itself was moved into the quarantine.
    Moved,
    /// It had no content: only this description is left of it.
    Described,
    /// It could be neither copied nor moved, and lies in its own directory under this name.
    Aside {
        /// The name.
        name: Vec<u8>,
    },
}

/// The description of one rejected thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Its id in the quarantine.
    pub id: String,
    /// Why and when.
    pub rejection: Rejection,
    /// `regular`, `symlink`, `directory`, `fifo`, `socket`, `device`.
    pub file_type: String,
    /// Permission bits with set-id and sticky.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Bytes of a file, or of a link's text.
    pub size: u64,
    /// Digest of what was copied; none for what was moved, whose bytes may still be written to by who has it open.
    pub sha256: Option<Digest>,
    /// Where it is.
    pub held: Held,
}

impl About {
    /// One line of JSON with its end.
    pub fn to_line(&self) -> String {
        text::json_line(&self.to_json()) + "\n"
    }

    /// All of it as one JSON object.
    pub fn to_json(&self) -> Value {
        let why = &self.rejection;
        let (held, aside) = match &self.held {
            Held::Copied => ("copied", None),
            Held::Moved => ("moved", None),
            Held::Described => ("described", None),
            Held::Aside { name } => ("aside", Some(text::encode(name))),
        };
        json!({
            "id": self.id, "path": why.stored, "shown": why.shown, "rule": why.rule.name(), "kind": why.kind.name(),
            "outcome": why.outcome, "session": why.session, "rejected_at": why.rejected_at, "type": self.file_type,
            "mode": format!("{:04o}", self.mode), "uid": self.uid, "gid": self.gid, "size": self.size,
            "sha256": self.sha256.map(|digest| digest.to_string()), "held": held, "aside": aside,
        })
    }

    /// Reads a description; `None` if it is not a whole one.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(line).ok()?;
        let string = |name: &str| value.get(name)?.as_str().map(str::to_owned);
        let number = |name: &str| value.get(name)?.as_u64();
        let rejection = Rejection {
            shown: string("shown")?,
            stored: string("path")?,
            rule: Rule::from_name(&string("rule")?)?,
            kind: ChangeKind::from_name(&string("kind")?)?,
            outcome: string("outcome"),
            session: string("session")?,
            rejected_at: string("rejected_at")?,
        };
        let held = match string("held")?.as_str() {
            "copied" => Held::Copied,
            "moved" => Held::Moved,
            "described" => Held::Described,
            "aside" => Held::Aside { name: text::decode(&string("aside")?)? },
            _ => return None,
        };
        Some(Self {
            id: string("id")?,
            rejection,
            file_type: string("type")?,
            mode: u32::from_str_radix(&string("mode")?, 8).ok()?,
            uid: u32::try_from(number("uid")?).ok()?,
            gid: u32::try_from(number("gid")?).ok()?,
            size: number("size")?,
            sha256: string("sha256").map(|hex| Digest::parse(&hex)).map_or(Some(None), |digest| digest.map(Some))?,
            held,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_description_comes_back_and_draws_nothing(
            shown in "\\PC*|[\\x00-\\u{2100}]*", outcome in proptest::option::of("[a-z_]*"), name in any::<Vec<u8>>(),
            numbers in any::<(u32, u32, u32, u64)>(), held in 0..4usize, hashed in any::<bool>(),
        ) {
            let rejection = Rejection {
                stored: text::encode(shown.as_bytes()), shown, rule: Rule::Secrets, kind: ChangeKind::Replaced, outcome,
                session: "s".into(), rejected_at: "2026-11-30T09:41:07.123Z".into(),
            };
            let about = About {
                id: "20261130T094107123Z-0000".into(), rejection, file_type: "regular".into(), mode: numbers.0 & 0o7777,
                uid: numbers.1, gid: numbers.2, size: numbers.3, sha256: hashed.then(|| Digest::of(&name)),
                held: [Held::Copied, Held::Moved, Held::Described, Held::Aside { name }][held].clone(),
            };
            let line = about.to_line();
            prop_assert!(!line.trim_end_matches('\n').chars().any(text::is_hidden));
            prop_assert_eq!(About::parse(line.as_bytes()), Some(about));
            prop_assert_eq!(About::parse(&line.as_bytes()[..line.len() / 2]), None);
        }
    }
}
