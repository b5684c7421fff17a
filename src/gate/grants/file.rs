//! `grants.json` in the control folder: read whenever it changed, and replaced as a whole.
//!
//! Promise: the grants that hold are those of the file as it is now, changed by whomever, in place or by a rename. A file
//! that cannot be trusted or understood holds none, says why, and is never overwritten. Writers, `keep grants` and the
//! gate, take turns and read what the other one wrote.
//! Limit: a change within the last two seconds is found by reading the file again, a later one by its stamps; who can set
//! the machine's clock back can hide a change in place of the same size. Editors take no turns: what one saves while an
//! answer is being stored can be lost.
//! Source: rename(2) for the replacement, fsync(2) on file and directory; the kernel stamps times by the tick of its timer.

use std::collections::BTreeSet;
use std::fmt;
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::time::{Duration, SystemTime};

use platform::turn::{Turn, TurnError};
use platform::{Clock, Dir, FsError, Stat, SystemClock, dir, file};

use super::shape::{self, MAX_BYTES, ShapeError};
use crate::digest::Digest;
use crate::gate::control::Control;
use crate::gate::kind::Kind;
use crate::gate::pattern::Grant;
use crate::state::is_ours_alone;
use crate::text::escaped;

/// The file's name in the control folder.
pub(super) const NAME: &[u8] = b"grants.json";
/// What will be the file; a crash can leave it, and the next writer removes it.
const TEMPORARY: &[u8] = b".grants.json.new";
/// Where writers wait for their turn.
const TURN: &[u8] = b"grants.lock";

/// How long a writer waits. Nobody holds a turn for longer than a write and two syncs take.
const WAIT: Duration = Duration::from_secs(2);

/// Two changes so close can have the same stamps: on file systems that keep whole seconds, and by the kernel's tick on all.
const SETTLED: Duration = Duration::from_secs(2);

/// Why no grants hold, whatever the file says.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unusable {
    /// It cannot be looked at or opened.
    #[error(transparent)]
    Open(#[from] FsError),
    /// It cannot be read.
    #[error("cannot read grants.json")]
    Read(#[source] std::io::Error),
    /// It is not ours alone.
    #[error("grants.json {0}")]
    NotOurs(&'static str),
    /// Others may read it, or it can be run.
    #[error("grants.json has the mode {0:04o} and must have 0600")]
    Mode(u32),
    /// It is too large to be one.
    #[error("grants.json has more than {MAX_BYTES} bytes")]
    TooLarge,
    /// It is not what it must be.
    #[error("grants.json: {0}")]
    Shape(#[source] ShapeError),
}

/// Why grants were not stored or taken back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GrantsError {
    /// Another process did not let go of the file.
    #[error("cannot get a turn at grants.json")]
    Turn(#[from] TurnError),
    /// What is there has to be mended first; it was left as it is.
    #[error("grants.json was left as it is until it is mended")]
    Unusable(#[source] Unusable),
    /// It would become too large; it was left as it is.
    #[error("grants.json would have more than {MAX_BYTES} bytes and was left as it is")]
    TooLarge,
    /// A grant would not be read back as what it is; the file was left as it is.
    #[error("a grant cannot be written down as one")]
    Unwritable,
    /// The new file could not be written, or not made durable.
    #[error("cannot store grants.json")]
    Write(#[source] FsError),
}

/// What the file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// What is granted, sorted; nothing if there is a fault.
    pub grants: Vec<Grant>,
    /// Whether grants or fault are others than at the last reading. True at the first.
    pub changed: bool,
    /// Why nothing is granted, whatever the file says: a line for people, escaped.
    pub fault: Option<String>,
}

/// What was found at the last look.
struct Seen {
    /// The stamps of the file that was read, `None` if there was none.
    stat: Option<Stat>,
    /// When it was looked at, just before.
    at: SystemTime,
    /// The digest of its bytes, if they were read and the file trusted.
    bytes: Option<Digest>,
    grants: BTreeSet<Grant>,
    fault: Option<String>,
}

/// The file of one control folder.
pub struct GrantFile {
    dir: Dir,
    owner: u32,
    clock: Box<dyn Clock>,
    seen: Option<Seen>,
}

impl fmt::Debug for GrantFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("GrantFile").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl GrantFile {
    /// The file of a control folder. Nothing is read or made.
    pub fn open(control: &Control) -> Result<Self, GrantsError> {
        Self::with_clock(control, Box::new(SystemClock))
    }

    /// The same by another clock.
    pub(super) fn with_clock(control: &Control, clock: Box<dyn Clock>) -> Result<Self, GrantsError> {
        let dir = control.dir().try_clone().map_err(GrantsError::Write)?;
        Ok(Self { dir, owner: control.owner(), clock, seen: None })
    }

    /// What is granted now. If the file is as it was, this is one look at its stamps and a copy of what it said; see
    /// [`GrantFile::read_if_changed`], which does not copy.
    pub fn read(&mut self) -> Reading {
        let changed = self.refresh();
        self.reading(changed)
    }

    /// What is granted now, if that is something else than before.
    pub fn read_if_changed(&mut self) -> Option<Reading> {
        self.refresh().then(|| self.reading(true))
    }

    /// Adds grants, durably. Those that are there already stay as they are, and if all are, nothing is written.
    pub fn remember(&mut self, grants: &[Grant]) -> Result<(), GrantsError> {
        self.update(|held| {
            held.extend(grants.iter().cloned());
        })
    }

    /// Takes the grants with this target back, durably: of one kind, or of all kinds. Returns them; none if there are none.
    pub fn revoke(&mut self, target: &str, kind: Option<Kind>) -> Result<Vec<Grant>, GrantsError> {
        let mut revoked = Vec::new();
        self.update(|held| {
            let is_meant = |grant: &Grant| kind.is_none_or(|kind| kind == grant.kind()) && grant.target() == target;
            revoked = held.iter().filter(|grant| is_meant(grant)).cloned().collect();
            held.retain(|grant| !is_meant(grant));
        })?;
        Ok(revoked)
    }

    fn reading(&self, changed: bool) -> Reading {
        let seen = self.seen.as_ref();
        Reading {
            grants: seen.map(|seen| seen.grants.iter().cloned().collect()).unwrap_or_default(),
            changed,
            fault: seen.and_then(|seen| seen.fault.clone()),
        }
    }

    /// Looks at the file, and reads it unless it is surely as it was. Whether it says something else.
    fn refresh(&mut self) -> bool {
        if self.is_current() {
            return false;
        }
        // Taken before the look: what changes after it will have later stamps, or be looked at again.
        let at = self.clock.wall();
        let nothing = |stat, fault| Seen { stat, at, bytes: None, grants: BTreeSet::new(), fault };
        let unusable =
            |stat, why: &Unusable| nothing(stat, Some(format!("{}; no grants hold until it is mended", line(why))));
        let Loaded { stat, bytes } = load(&self.dir, self.owner);
        let found = match bytes {
            Ok(None) => nothing(None, None),
            Err(why) => unusable(stat, &why),
            Ok(Some(bytes)) => {
                let digest = Digest::of(&bytes);
                if let Some(seen) = self.seen.as_mut().filter(|seen| seen.bytes == Some(digest)) {
                    // Touched, written over with the same, or changed too short a time ago to be sure without reading.
                    (seen.stat, seen.at) = (stat, at);
                    return false;
                }
                match shape::parse(&bytes) {
                    Ok(grants) => Seen { stat, at, bytes: Some(digest), grants, fault: None },
                    Err(error) => unusable(stat, &Unusable::Shape(error)),
                }
            }
        };
        let changed =
            self.seen.as_ref().is_none_or(|seen| (&seen.grants, &seen.fault) != (&found.grants, &found.fault));
        self.seen = Some(found);
        changed
    }

    /// Whether the file is surely what was read last.
    fn is_current(&self) -> bool {
        let Some(seen) = &self.seen else { return false };
        let Ok(now) = self.dir.stat(NAME) else { return false };
        seen.stat == now && now.is_none_or(|stat| is_settled(&stat, seen.at))
    }

    /// Changes what is granted: reads the file as it is now, and replaces it if that makes a difference.
    fn update(&mut self, change: impl FnOnce(&mut BTreeSet<Grant>)) -> Result<(), GrantsError> {
        let _turn = Turn::named(&self.dir, TURN, WAIT)?;
        let found = load(&self.dir, self.owner).bytes.map_err(GrantsError::Unusable)?;
        let before = match &found {
            Some(bytes) => shape::parse(bytes).map_err(|error| GrantsError::Unusable(Unusable::Shape(error)))?,
            None => BTreeSet::new(),
        };
        let mut after = before.clone();
        change(&mut after);
        if after == before {
            // An earlier writer may have been stopped between the rename and this.
            return if found.is_some() { self.dir.sync().map_err(GrantsError::Write) } else { Ok(()) };
        }
        let bytes = shape::write(&after);
        if bytes.len() as u64 > MAX_BYTES {
            return Err(GrantsError::TooLarge);
        }
        // A file that is not taken back would take all the other grants with it.
        if shape::parse(&bytes).as_ref() != Ok(&after) {
            return Err(GrantsError::Unwritable);
        }
        self.replace(&bytes).map_err(GrantsError::Write)
    }

    fn replace(&self, bytes: &[u8]) -> Result<(), FsError> {
        let new = match self.dir.create_new(TEMPORARY, 0o600) {
            Err(error) if error.source.kind() == std::io::ErrorKind::AlreadyExists => {
                // Left by a writer that died; it is our turn, so nobody is writing it.
                self.dir.unlink(TEMPORARY)?;
                self.dir.create_new(TEMPORARY, 0o600)?
            }
            created => created?,
        };
        let written = file::write_all(&new, TEMPORARY, bytes)
            .and_then(|()| file::sync_all(&new, TEMPORARY))
            .and_then(|()| self.dir.rename(TEMPORARY, &self.dir, NAME));
        if let Err(error) = written {
            let _ = self.dir.unlink(TEMPORARY);
            return Err(error);
        }
        self.dir.sync()
    }
}

/// Whether whatever comes after a look at this time gives the file other stamps than these.
fn is_settled(stat: &Stat, looked: SystemTime) -> bool {
    let since_epoch = |(seconds, nanos): (i64, u32)| Duration::new(u64::try_from(seconds).unwrap_or(0), nanos);
    // Of both, since a program can set the one that it must not be told by, and the other may be from another clock.
    let changed = since_epoch(stat.ctime).max(since_epoch(stat.mtime));
    SystemTime::UNIX_EPOCH.checked_add(changed + SETTLED).is_some_and(|settled| settled <= looked)
}

/// What a look found: the stamps of what it was at, and its bytes; both `None` if there is no file.
struct Loaded {
    stat: Option<Stat>,
    bytes: Result<Option<Vec<u8>>, Unusable>,
}

fn load(dir: &Dir, owner: u32) -> Loaded {
    let mut stat = None;
    let bytes = load_noting(dir, owner, &mut stat);
    Loaded { stat, bytes }
}

fn load_noting(dir: &Dir, owner: u32, stat: &mut Option<Stat>) -> Result<Option<Vec<u8>>, Unusable> {
    *stat = dir.stat(NAME)?;
    let Some(there) = stat else { return Ok(None) };
    // Before it is opened: opening a pipe or a device can do things.
    trust(there, owner)?;
    let file = match dir.open_read(NAME) {
        Ok(file) => file,
        Err(error) if error.source.kind() == std::io::ErrorKind::NotFound => {
            *stat = None;
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    *there = dir::stat_of(file.as_fd())?;
    trust(there, owner)?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(Unusable::Read)?;
    if bytes.len() as u64 > MAX_BYTES { Err(Unusable::TooLarge) } else { Ok(Some(bytes)) }
}

fn trust(stat: &Stat, owner: u32) -> Result<(), Unusable> {
    is_ours_alone(stat, owner).map_err(Unusable::NotOurs)?;
    if stat.mode == 0o600 { Ok(()) } else { Err(Unusable::Mode(stat.mode)) }
}

/// An error with its cause on one line.
fn line(unusable: &Unusable) -> String {
    let cause = match unusable {
        Unusable::Open(error) => Some(&error.source),
        Unusable::Read(source) => Some(source),
        _ => None,
    };
    let text = cause.map_or_else(|| unusable.to_string(), |cause| format!("{unusable}: {cause}"));
    escaped(text.as_bytes())
}

#[cfg(test)]
mod tests;
