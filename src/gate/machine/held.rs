//! The grants that hold.
//!
//! Promise: a grant for the session that was given to a caller somebody watches does not reach one that nobody does;
//! whatever is in the file reaches both. Limit: the file is what the caller says it is.

use std::collections::BTreeSet;

use crate::gate::action::Action;
use crate::gate::pattern::Grant;

/// The grants that hold now.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// What `grants.json` holds; nothing is known before it was read once.
    always: Option<BTreeSet<Grant>>,
    /// Given in a chat, until the gate ends.
    chat: BTreeSet<Grant>,
    /// Given to a caller that nobody watches, until the gate ends.
    unattended: BTreeSet<Grant>,
}

impl Held {
    /// Whether a grant covers this action of such a caller.
    pub(super) fn covers(&self, action: &Action, unattended: bool) -> bool {
        Grant::covering(action).iter().any(|grant| {
            self.always.as_ref().is_some_and(|always| always.contains(grant))
                || self.unattended.contains(grant)
                || (!unattended && self.chat.contains(grant))
        })
    }

    /// Takes what the file holds now: what was not in it before, and what is no longer. Nothing counts as new at the
    /// first time.
    pub(super) fn replace(&mut self, grants: Vec<Grant>) -> (Vec<Grant>, Vec<Grant>) {
        let now: BTreeSet<_> = grants.into_iter().collect();
        let changes = self
            .always
            .as_ref()
            .map(|before| (now.difference(before).cloned().collect(), before.difference(&now).cloned().collect()));
        self.always = Some(now);
        changes.unwrap_or_default()
    }

    /// Adds grants for the session; returns those that are new.
    pub(super) fn remember_session(&mut self, grants: Vec<Grant>, unattended: bool) -> Vec<Grant> {
        let set = if unattended { &mut self.unattended } else { &mut self.chat };
        grants.into_iter().filter(|grant| set.insert(grant.clone())).collect()
    }

    /// Drops the grants for the session; returns them.
    pub(super) fn forget_session(&mut self) -> Vec<Grant> {
        let taken = self.session();
        self.chat.clear();
        self.unattended.clear();
        taken
    }

    /// The grants for the session, sorted.
    pub(super) fn session(&self) -> Vec<Grant> {
        self.chat.union(&self.unattended).cloned().collect()
    }
}
