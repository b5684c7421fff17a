//! What was granted for good: `grants.json` in the control folder, and what `keep grants` asks the gate of a session.
//!
//! Promise: a file with anything wrong in it grants nothing and is left as it is; the file that is there after a crash is
//! the old one or the new one, whole. Limit: whoever may write the file may grant; it holds no proof of who wrote it.

mod file;
mod session;
mod shape;

#[cfg(test)]
mod crashes;

pub use file::{GrantFile, GrantsError, Reading, Unusable};
pub use session::{SessionError, ask};
pub use shape::{MAX_BYTES, ShapeError};
