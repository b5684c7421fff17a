//! The baseline: the accepted snapshots of the protected set, what differs from them, and how that is put back.

mod index;
mod look;
mod restore;
mod set;
mod snapshot;

pub use index::{Found, Index};
pub use look::{Look, LookError, SHOWN_BYTES, holds, is_older, look, look_and_store};
pub use restore::{Intent, Restore, RestoreError, Restored, clear_leftover, is_temporary};
pub use set::{Baseline, Caps, CapsError, Directory, Row};
pub use snapshot::{Change, ChangeKind, Content, Snapshot, is_unwritten};
