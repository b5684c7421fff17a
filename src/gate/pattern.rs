//! What can be remembered: patterns, which are never made from an action's text by reading it.

use super::action::Target;
use super::kind::Kind;
use super::path::FilePath;

/// What a grant covers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pattern {
    /// This very target.
    Exact(Target),
    /// Every name below this domain, at any depth, on the default port; not the domain itself.
    Subdomains(String),
    /// What lies directly in this directory (for notes, below the folder of notes), and not the directory itself.
    Children(FilePath),
}

/// A kind and a pattern.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grant {
    pub(super) kind: Kind,
    pub(super) pattern: Pattern,
}
