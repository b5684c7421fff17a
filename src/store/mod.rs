//! What is kept beside the journal: accepted content by digest, and rejected content by time.

mod attributes;
mod objects;

pub use attributes::{parse_attributes, serialize_attributes};
pub use objects::{Objects, StoreError};
