//! Answers that came after the caller had given up waiting.
//!
//! Promise: an answer is taken by the same call of the same caller, once, and not after its time.

use platform::Moment;

use super::types::Call;
use crate::gate::action::Action;

/// What the answer was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The call may run.
    Run,
    /// The person said no; this is what they were asked about.
    Deny(Action),
}

/// An answer nobody waited for.
#[derive(Debug)]
pub(super) struct Kept {
    call: Call,
    verdict: Verdict,
    until: Moment,
}

impl Kept {
    pub(super) fn new(call: &Call, verdict: Verdict, until: Moment) -> Self {
        // What was shown is not needed to know the call again, and may be large.
        let call = Call {
            ticket: call.ticket,
            caller: call.caller.clone(),
            tool: call.tool,
            digest: call.digest,
            actions: call.actions.clone(),
            facts: Vec::new(),
            difference: Vec::new(),
        };
        Self { call, verdict, until }
    }

    /// From when on it is void.
    pub(super) const fn ends(&self) -> Moment {
        self.until
    }

    pub(super) const fn connection(&self) -> u64 {
        self.call.caller.connection
    }
}

/// Takes the answer that was kept for this call.
pub(super) fn take(kept: &mut Vec<Kept>, call: &Call) -> Option<Verdict> {
    let at = kept.iter().position(|kept| kept.call.is_same(call))?;
    Some(kept.swap_remove(at).verdict)
}
