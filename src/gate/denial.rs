//! Why a call was denied: a closed list, each with a name the agent reads.

use std::fmt;

/// Why an action did not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Denial {
    /// The policy forbids the kind.
    Policy,
    /// There is nobody to ask.
    Unattended,
    /// The person said no.
    Declined,
    /// Nobody answered in time.
    Timeout,
    /// The caller withdrew the call.
    Cancelled,
    /// Whoever could have answered went away.
    Gone,
}

impl Denial {
    /// Its name, in results, in the audit and on the terminal.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Unattended => "unattended",
            Self::Declined => "declined",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Gone => "gone",
        }
    }

    /// What it means, for the agent.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Policy => "the policy of this gate forbids it",
            Self::Unattended => "it has to be asked about, and nobody can be asked",
            Self::Declined => "the person said no",
            Self::Timeout => "nobody answered in time",
            Self::Cancelled => "the call was withdrawn",
            Self::Gone => "whoever could have answered went away",
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
