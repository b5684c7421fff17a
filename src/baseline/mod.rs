//! The baseline: the accepted snapshots of the protected set, what differs from them, and how that is put back.

pub mod snapshot;

pub use snapshot::{Change, ChangeKind, Content, Snapshot};
