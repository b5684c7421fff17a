//! What is allowed, asked about and denied, by kind.
//!
//! Promise: the table is the loosest policy there is; [`Policy::tightened`] is the only way to another one, and refuses
//! whatever would be looser. A gated tool that names nothing it would reach is not let through for that.

use super::kind::Kind;
use super::recall::{Recall, Ruling};
use super::tools::Tool;

/// The kind of action that a tool's calls are checked as; `None` for tools that are bounded by how they are made.
pub const fn checked_as(tool: Tool) -> Option<Kind> {
    match tool {
        Tool::HttpRead | Tool::HttpWrite | Tool::DnsResolve | Tool::Ping => Some(Kind::Net),
        Tool::FileWrite | Tool::FileRemove | Tool::FileMove => Some(Kind::File),
        Tool::Notify => Some(Kind::Notify),
        Tool::Remind => Some(Kind::Remind),
        Tool::MemoryWrite => Some(Kind::Memory),
        Tool::FileRead
        | Tool::FileList
        | Tool::FileStat
        | Tool::FileSearch
        | Tool::RemindList
        | Tool::RemindCancel
        | Tool::MemoryRead
        | Tool::SkillRead
        | Tool::SkillLoad
        | Tool::TimeNow
        | Tool::Wake
        | Tool::CodeRun => None,
    }
}

/// What the table says of a kind.
const fn table(kind: Kind, unattended: bool) -> Ruling {
    match (kind, unattended) {
        (Kind::Net | Kind::File, _) | (Kind::Memory, true) => Ruling::Ask { ceiling: Recall::Always },
        (Kind::Notify | Kind::Remind, _) | (Kind::Memory, false) => Ruling::Allow,
    }
}

/// How strict a ruling is.
fn strictness(ruling: Ruling) -> u8 {
    match ruling {
        Ruling::Allow => 0,
        Ruling::Ask { ceiling: Recall::Always } => 1,
        Ruling::Ask { ceiling: Recall::Session } => 2,
        Ruling::Ask { ceiling: Recall::Never } => 3,
        Ruling::Deny => 4,
    }
}

/// What a setting says of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tightening {
    /// The rule is this one.
    Rule(Ruling),
    /// Wherever the kind is asked about, a yes is remembered no longer than this.
    Ceiling(Recall),
}

/// Why a kind's rule was not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyRefusal {
    /// It would be looser than the table.
    #[error("{kind} may be made stricter only; {}", looser_than(.kind))]
    Looser {
        /// The kind.
        kind: Kind,
    },
    /// A ceiling for what is never asked about.
    #[error("a ceiling is for a kind that is asked about, and {kind} is not; write ruling = \"ask\" with it")]
    NotAsked {
        /// The kind.
        kind: Kind,
    },
}

const fn looser_than(kind: &Kind) -> &'static str {
    match kind {
        Kind::Memory => "it is asked about in an unattended run",
        Kind::Net | Kind::File | Kind::Notify | Kind::Remind => "it is asked about",
    }
}

/// A ruling for each kind, for a caller that somebody watches and for one that nobody does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    attended: [Ruling; Kind::ALL.len()],
    unattended: [Ruling; Kind::ALL.len()],
}

impl Default for Policy {
    /// The table.
    fn default() -> Self {
        Self { attended: Kind::ALL.map(|kind| table(kind, false)), unattended: Kind::ALL.map(|kind| table(kind, true)) }
    }
}

impl Policy {
    /// What holds for a kind.
    pub const fn rule(&self, kind: Kind, unattended: bool) -> Ruling {
        // The table's arrays are in the order of `Kind::ALL`, which is that of the type.
        if unattended { self.unattended[kind as usize] } else { self.attended[kind as usize] }
    }

    /// This policy with a stricter rule for one kind, for both sorts of caller.
    pub fn tightened(mut self, kind: Kind, by: Tightening) -> Result<Self, PolicyRefusal> {
        let mut asked = false;
        for (unattended, rules) in [(false, &mut self.attended), (true, &mut self.unattended)] {
            let rule = &mut rules[kind as usize];
            let wanted = match (by, *rule) {
                (Tightening::Rule(ruling), _) => ruling,
                (Tightening::Ceiling(lower), Ruling::Ask { ceiling }) => Ruling::Ask { ceiling: lower.min(ceiling) },
                (Tightening::Ceiling(_), other) => other,
            };
            if strictness(wanted) < strictness(table(kind, unattended)) {
                return Err(PolicyRefusal::Looser { kind });
            }
            asked |= matches!(wanted, Ruling::Ask { .. });
            *rule = wanted;
        }
        match by {
            Tightening::Ceiling(_) if !asked => Err(PolicyRefusal::NotAsked { kind }),
            _ => Ok(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASK: Ruling = Ruling::Ask { ceiling: Recall::Always };

    #[test]
    fn the_table_is_as_the_page_says() {
        let policy = Policy::default();
        for (kind, attended, unattended) in [
            (Kind::Net, ASK, ASK),
            (Kind::File, ASK, ASK),
            (Kind::Notify, Ruling::Allow, Ruling::Allow),
            (Kind::Remind, Ruling::Allow, Ruling::Allow),
            (Kind::Memory, Ruling::Allow, ASK),
        ] {
            assert_eq!((policy.rule(kind, false), policy.rule(kind, true)), (attended, unattended), "{kind}");
        }
    }

    #[test]
    fn the_kinds_are_in_the_order_of_their_numbers() {
        for (number, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
        }
    }

    #[test]
    fn no_setting_is_looser_than_the_table() {
        let rulings =
            [Ruling::Allow, Ruling::Deny].into_iter().chain(Recall::ALL.map(|ceiling| Ruling::Ask { ceiling }));
        let settings: Vec<_> = rulings.map(Tightening::Rule).chain(Recall::ALL.map(Tightening::Ceiling)).collect();
        for kind in Kind::ALL {
            for first in &settings {
                for second in &settings {
                    let Ok(policy) = Policy::default().tightened(kind, *first) else { continue };
                    let policy = policy.clone().tightened(kind, *second).unwrap_or(policy);
                    for unattended in [false, true] {
                        let (is, was) = (policy.rule(kind, unattended), table(kind, unattended));
                        assert!(strictness(is) >= strictness(was), "{kind} {first:?} {second:?}: {is:?}");
                    }
                    for other in Kind::ALL.into_iter().filter(|other| *other != kind) {
                        assert_eq!(policy.rule(other, false), table(other, false));
                    }
                }
            }
        }
    }

    #[test]
    fn a_ceiling_is_for_what_is_asked_about() {
        let session = Tightening::Ceiling(Recall::Session);
        let asks = Ruling::Ask { ceiling: Recall::Session };
        assert_eq!(
            Policy::default().tightened(Kind::File, session).map(|policy| policy.rule(Kind::File, true)),
            Ok(asks)
        );
        let memory = Policy::default().tightened(Kind::Memory, session).expect("is asked about when nobody watches");
        assert_eq!((memory.rule(Kind::Memory, false), memory.rule(Kind::Memory, true)), (Ruling::Allow, asks));
        let refused = Policy::default().tightened(Kind::Notify, session);
        assert_eq!(refused, Err(PolicyRefusal::NotAsked { kind: Kind::Notify }));
    }

    #[test]
    fn every_tool_that_changes_something_outside_the_gate_is_checked() {
        for tool in Tool::all() {
            let checked = checked_as(tool);
            assert!(checked.is_some() || !tool.is_destructive(), "{tool:?}");
            assert!(checked.is_none() || !tool.is_read_only() || checked == Some(Kind::Net), "{tool:?}");
        }
    }
}
