//! Everything that knows an operating system; a leaf that knows no policy.
//!
//! Promise: no type here speaks of rules, secrets, decisions or grants; the root package depends on this crate and never
//! the other way round (Cargo refuses the cycle).
//! Limit: Linux and macOS only; any other target is a compile error, here and nowhere else.

#![deny(unsafe_code)]

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("keepwatch runs on Linux and macOS");

pub mod ambient;
pub mod apple_access_list;
pub mod apple_attributes;
pub mod attributes;
pub mod backends;
pub mod bsd_flags;
pub mod child;
pub mod clock;
pub mod confine;
pub mod copy;
pub mod cover;
pub mod datagram;
pub mod dir;
pub mod durable;
pub mod environment;
pub mod event;
pub mod event_thread;
pub mod fault;
pub mod file;
pub mod flags;
pub mod fsevents;
pub mod guardian;
pub mod holder;
pub mod hook;
pub mod linux;
pub mod local_socket;
pub mod lock;
pub mod machine;
pub mod macos;
pub mod notify;
pub mod opening;
pub mod openings;
pub mod poll;
pub mod powers;
pub mod privilege;
pub mod privileged;
#[cfg(feature = "testing")]
pub mod probe;
pub mod process;
pub mod program;
pub mod random;
pub mod relpath;
mod remove;
pub mod root;
pub mod seatbelt;
pub mod signals;
#[cfg(test)]
mod simulation;
pub mod stat;
pub mod state_dir;
pub mod terminal;
pub mod tree;
pub mod trial;
pub mod turn;
mod unix;
pub mod users;
pub mod witness;
pub mod writer;
pub mod xattr;
pub mod zone;

#[cfg(target_os = "linux")]
use linux as host;
#[cfg(target_os = "macos")]
use macos as host;

pub use backends::backends;
pub use clock::{Clock, ManualClock, Moment, SystemClock};
pub use dir::{Dir, FsError};
pub use environment::{Environment, EnvironmentError};
pub use event::{Hint, Interest, LostCause, Names, Place, RootId};
pub use flags::{FlagError, Flags};
pub use local_socket::{Listening, LocalListener, LocalStream, SocketError};
pub use notify::{Notification, Notifier};
pub use opening::{Access, Answered, Doorkeeper, HeldId, Marker, Opening, Ruling, Verdict};
pub use privileged::{Privileged, Wanted};
pub use relpath::{RelPath, RelPathError};
pub use root::{Root, RootError};
pub use signals::{Signal, Signals, SignalsError};
pub use stat::{FileId, FileType, Stat};
pub use terminal::{InputEvent, RawGuard, Terminal, TerminalError, WriteState};
pub use witness::Witness;
pub use writer::{Account, Certainty, Mark, Nobody, Program, Writer};
pub use zone::Zone;
