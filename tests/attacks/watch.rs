//! Attacks on a running watch, through the program itself: each must fail, or end as `docs/attacks.md` says.

mod asking;
mod locking;
mod naming;
mod privilege;
mod replacing;
mod restarting;
mod silent;
mod starving;
mod storms;
mod two_watches;

use crate::support::{Sandbox, Watch};

/// A home with a watch that has time.
fn watched() -> (Sandbox, Watch) {
    let lab = Sandbox::new();
    let watch = lab.watch(&["--decision-timeout", "300"]);
    (lab, watch)
}
