//! Opens of protected files that the kernel holds until we answer: what they are, and who decides about them.
//!
//! Promise: an open is answered once, by an answer, by its opener's end, or by the guardian when we are gone.
//! Limit: only opening can be held; names, links, bits and cutting by path cannot (fanotify(7)).

use std::io;

use crate::clock::Moment;
use crate::dir::Dir;
use crate::stat::FileId;
use crate::writer::Writer;

/// What an open is for, as far as that can be told while it is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// Reading only.
    Read,
    /// Writing, or cutting the file as it is opened, or it could not be told.
    Write,
}

impl Access {
    /// The name in reports and the journal.
    pub const fn name(self) -> &'static str {
        match self {
            Access::Read => "read",
            Access::Write => "write",
        }
    }

    /// The one with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Access::Read, Access::Write].into_iter().find(|access| access.name() == name)
    }
}

/// Number of a held open, never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeldId(pub u64);

/// An open that waits in the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// The file.
    pub object: FileId,
    /// The name by which the kernel knows it, for people and where policy does not know the object yet.
    pub path: Option<Vec<u8>>,
    /// What for.
    pub access: Access,
    /// Who, always certain.
    pub by: Writer,
    /// When it was read.
    pub at: Moment,
}

/// What to do about an open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    /// Let it through at once.
    Pass,
    /// Ask; it waits.
    Hold,
}

/// The answer to a held open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Allow,
    /// It fails with EPERM.
    Refuse,
}

/// What an answer to a held open came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// The open goes on, or fails, by it.
    Done,
    /// The guardian had refused it before, as we were stopped.
    Relieved,
    /// It was answered before, or its opener is gone.
    Gone,
}

/// Policy, asked from the thread that reads the opens: must be fast, must not block, and must open nothing below a root.
pub trait Doorkeeper: Send + Sync {
    /// What to do about it.
    fn rule(&self, opening: &Opening) -> Ruling;

    /// It is held from now on, under this number.
    fn held(&self, id: HeldId, opening: Opening);

    /// The opener is gone; there is nothing to answer any more.
    fn gone(&self, id: HeldId);

    /// While we were stopped the guardian has refused it; there is nothing to answer any more.
    fn relieved(&self, id: HeldId) {
        self.gone(id);
    }

    /// As many wait as there is room for: further ones that would be held are refused at once. Said when it begins, and
    /// again only after half of them were answered.
    fn crowded(&self) {}

    /// Opens are not read any more, by an error of this program: those that waited were refused, and nothing is held or
    /// named from now on.
    fn broken(&self) {}
}

/// Sees to it that opens of a covered file are told, where the backend covers it: called from the event thread for every
/// covered regular file, each time another object may have the name.
pub trait Marker: Send + Sync {
    /// Marks what has the name `name` in `dir` now. An object that may not be marked, as it belongs to somebody else, is no
    /// error; the kernel's limit is (`ENOSPC`). What fails must be told by whoever promised to hold opens: the event backend
    /// goes on.
    fn mark(&self, dir: &Dir, name: &[u8]) -> io::Result<()>;
}

/// Lets every open through: for naming writers only.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenDoor;

impl Doorkeeper for OpenDoor {
    fn rule(&self, _opening: &Opening) -> Ruling {
        Ruling::Pass
    }

    fn held(&self, _id: HeldId, _opening: Opening) {}

    fn gone(&self, _id: HeldId) {}
}
