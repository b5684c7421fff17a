//! How long a yes is remembered, and what a policy says of a kind.

/// How long a yes is remembered. The order is the meaning: the smaller of two is the one that holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Recall {
    /// For this call only.
    #[default]
    Never,
    /// Until the gate ends.
    Session,
    /// Until somebody revokes it; kept in `grants.json`.
    Always,
}

impl Recall {
    /// All of them, from the shortest.
    pub const ALL: [Self; 3] = [Self::Never, Self::Session, Self::Always];

    /// Its name in `policy.toml` and in the audit.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Session => "session",
            Self::Always => "always",
        }
    }

    /// The recall of this exact name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|recall| recall.name() == name)
    }
}

/// What the policy says of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ruling {
    /// It runs; nobody is asked and nothing remembered.
    Allow,
    /// The person is asked, unless a grant covers it.
    Ask {
        /// The longest that a yes may be remembered.
        ceiling: Recall,
    },
    /// It does not run, whatever was granted.
    Deny,
}

impl Default for Ruling {
    /// Asks, and remembers nothing.
    fn default() -> Self {
        Self::Ask { ceiling: Recall::Never }
    }
}
