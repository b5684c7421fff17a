//! Everything that knows an operating system; a leaf that knows no policy.
//!
//! Promise: no type here speaks of rules, secrets, decisions or grants; the root package depends on this crate and never
//! the other way round (Cargo refuses the cycle).
//! Limit: Linux and macOS only; any other target is a compile error, here and nowhere else.

#![deny(unsafe_code)]

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("keepwatch runs on Linux and macOS");

pub mod backends;
pub mod clock;
pub mod cover;
pub mod dir;
pub mod event;
pub mod fault;
pub mod linux;
pub mod macos;
pub mod poll;
pub mod relpath;
pub mod root;
pub mod stat;

#[cfg(target_os = "linux")]
use linux as host;
#[cfg(target_os = "macos")]
use macos as host;

pub use backends::backends;
pub use clock::{Clock, ManualClock, Moment, SystemClock};
pub use dir::{Dir, FsError};
pub use event::{Hint, Interest, LostCause, Place, RootId};
pub use relpath::{RelPath, RelPathError};
pub use root::{Root, RootError};
pub use stat::{FileId, FileType, Stat};
