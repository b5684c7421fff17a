//! What is kept beside the journal: accepted content by digest, and rejected content by time.

mod about;
mod attributes;
mod objects;
mod quarantine;

pub use about::{About, Held, Rejection};
pub use attributes::{parse_attributes, serialize_attributes};
pub use objects::{Objects, StoreError};
pub use quarantine::{ASIDE, Fingerprint, IfTaken, Quarantine, QuarantineError, QuarantineId};
