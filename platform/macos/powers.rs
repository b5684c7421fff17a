//! There is nothing of this on macOS: Endpoint Security needs an entitlement of Apple's.

use crate::dir::Dir;
use crate::powers::{Power, Standing};
use crate::trial::Trial;

pub(crate) struct Powers;

/// No setting of this system is looked at.
pub(crate) fn settings() -> Vec<(crate::machine::Setting, Option<u64>)> {
    Vec::new()
}

impl Powers {
    pub(crate) fn open(_dir: &Dir) -> Self {
        Self
    }

    pub(crate) fn standing(&self) -> Standing {
        Standing::Absent
    }

    pub(crate) fn try_in(self, _dir: &Dir) -> Vec<(Power, Trial)> {
        Vec::new()
    }
}
