//! The five kinds of reach. Closed: a sixth cannot be written down anywhere.

use std::fmt;

/// What sort of reach an action is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A host on the network.
    Net,
    /// A path below the root.
    File,
    /// A message to the person, now.
    Notify,
    /// A message to the person, later.
    Remind,
    /// A note.
    Memory,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Net, Self::File, Self::Notify, Self::Remind, Self::Memory];

    /// Its name in questions, in `policy.toml` and in `grants.json`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Net => "net",
            Self::File => "file",
            Self::Notify => "notify",
            Self::Remind => "remind",
            Self::Memory => "memory",
        }
    }

    /// The kind of this exact name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_its_kind_and_no_other_spelling_does() {
        for kind in Kind::ALL {
            assert_eq!(Kind::parse(kind.name()), Some(kind));
            assert_eq!(Kind::parse(&kind.name().to_uppercase()), None);
        }
        for name in ["", "*", "files", " file", "file "] {
            assert_eq!(Kind::parse(name), None, "{name:?}");
        }
    }
}
