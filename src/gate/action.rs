//! What a call is going to reach: a kind and a canonical target.
//!
//! Promise: an action is made from a target that has been brought into its one canonical form, and its kind follows from
//! how it was made. A target is never a pattern: what may be remembered is another type ([`super::pattern`]).

use std::fmt;

use super::host::Host;
use super::kind::Kind;
use super::path::{FilePath, NotePath};
use super::wire::GrantInfo;

/// Where an action goes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A host, with its port if that is not the usual one.
    Host(Host),
    /// A path below the root.
    Path(FilePath),
    /// The person.
    User,
    /// A note, below the folder of notes.
    Note(NotePath),
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(host) => host.fmt(formatter),
            Self::Path(path) => path.fmt(formatter),
            Self::User => formatter.write_str("user"),
            Self::Note(path) => path.fmt(formatter),
        }
    }
}

/// One thing a call is going to do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Action {
    kind: Kind,
    target: Target,
}

impl Action {
    /// Reaching a host.
    pub fn net(host: Host) -> Self {
        Self { kind: Kind::Net, target: Target::Host(host) }
    }

    /// Changing what is at a path.
    pub fn file(path: FilePath) -> Self {
        Self { kind: Kind::File, target: Target::Path(path) }
    }

    /// Telling the person something now.
    pub fn notify() -> Self {
        Self { kind: Kind::Notify, target: Target::User }
    }

    /// Telling the person something later.
    pub fn remind() -> Self {
        Self { kind: Kind::Remind, target: Target::User }
    }

    /// Writing a note.
    pub fn memory(path: NotePath) -> Self {
        Self { kind: Kind::Memory, target: Target::Note(path) }
    }

    /// What sort of reach it is.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Where it goes.
    pub const fn target(&self) -> &Target {
        &self.target
    }

    /// As messages and the audit spell it.
    pub fn info(&self) -> GrantInfo {
        GrantInfo { kind: self.kind.name().to_owned(), target: self.target.to_string() }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.kind, self.target)
    }
}
